"""Loop-invariant code motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import Parts, rebuilt
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.rewrite import Producers, sweep

# One instruction each: on a single number, or on an array beside numbers, computing them again costs no more than reading.
_LIGHT = {
    *(ops.add, ops.sub, ops.mul, ops.neg, ops.abs, ops.sign, ops.copysign, ops.maximum, ops.minimum, ops.select, ops.convert),
    *(ops.lt, ops.le, ops.gt, ops.ge, ops.eq, ops.ne, ops.bit_and, ops.bit_or, ops.bit_xor, ops.bit_not),
    *(ops.isnan, ops.isinf, ops.isfinite, ops.floor, ops.ceil, ops.trunc, ops.rint),
}


def hoist_invariants(graph: Graph, is_worth: Callable[[Node], bool] | None = None) -> Graph:
    """Compute before a loop what is the same in every iteration, where that takes work and cannot fail in vain.

    Index maps and light arithmetic stay with their users, which compute them for nothing while they read; what is heavy
    moves out with all that it needs. It may be computed in vain for a loop that never runs.

    Args:
        is_worth: what counts as heavy instead.
    """
    is_worth = is_worth or _is_heavy
    if not graph.has_regions:
        return graph

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op not in (ops.loop, ops.while_):
            return None
        parts = Parts.of(node)
        moved = _moved(parts, is_worth, runs=_runs(parts, producers))
        if not moved:
            return None
        outside = dict(zip(parts.inputs(parts.body)[1], parts.captured, strict=True))
        for inner in moved:
            results = inner.op(*(outside[v] for v in inner.inputs), **inner.params)
            outside |= zip(inner.outputs, results if isinstance(results, tuple) else (results,), strict=True)
        gone = [inner for inner in moved if is_worth(inner)]
        made = {v for inner in gone for v in inner.outputs}
        observed = [inner for inner in parts.body.nodes if inner.op is ops.observe and inner.inputs[0] in made]
        for inner in observed:
            ops.observe(outside[inner.inputs[0]])
        return _without(parts, [*gone, *observed], outside).record()

    return sweep(graph, visit)


def _runs(parts: Parts, producers: Producers) -> bool:
    """Whether a loop is known to have an iteration."""
    trip = producers.get(parts.head[0]) if parts.head else None
    return trip is not None and trip.op is ops.full and trip.params["value"] >= 1


def _moved(parts: Parts, is_worth: Callable[[Node], bool], *, runs: bool) -> list[Node]:
    """The nodes of the body that go before the loop, in order."""
    body = parts.body
    invariant = set(parts.inputs(body)[1])
    candidates: dict[Value, Node] = {}
    for node in body.nodes:
        if all(v in invariant for v in node.inputs) and (_may_move(node) or (runs and node.op.family == "linalg")):
            invariant.update(node.outputs)
            candidates |= dict.fromkeys(node.outputs, node)
    staying = [node for node in body.nodes if not node.outputs or node.outputs[0] not in candidates]
    wanted = [v for node in staying for v in node.inputs] + list(body.outputs)
    moved: set[Node] = set()
    seen: set[Value] = set()
    while wanted:  # from what stays down to the first heavy nodes
        v = wanted.pop()
        if v in seen or v not in candidates:
            continue
        seen.add(v)
        node = candidates[v]
        if is_worth(node):
            _take(node, candidates, moved)
        else:
            wanted += node.inputs
    return [node for node in body.nodes if node in moved]


def _take(node: Node, candidates: dict[Value, Node], moved: set[Node]) -> None:
    """A node, and all that it is computed from."""
    waiting = [node]
    while waiting:
        n = waiting.pop()
        if n not in moved:
            moved.add(n)
            waiting += [candidates[v] for v in n.inputs if v in candidates]


def _may_move(node: Node) -> bool:
    """Whether running a node in vain harms nobody: no check may fail, no place lie outside, no while go on for ever."""
    return not any(
        inner.has_effect
        or not inner.op.is_total
        or inner.syms
        or inner.op.family in ("indexed", "dynamic")
        or inner.op in (ops.bind, ops.while_)
        for inner in node.walk()
    )


def _is_heavy(node: Node) -> bool:
    if node.op.family == "index_maps":  # nothing moves until it is used
        return False
    if node.op in _LIGHT:
        return sum(v.ndim > 0 for v in set(node.inputs)) > 1
    return True


def _without(parts: Parts, moved: list[Node], outside: dict[Value, Value]) -> Parts:
    """The loop with moved nodes taken from its body, which captures what it uses of their results."""
    body, gone = parts.body, set(moved)
    rest = eliminate_dead(replace(body, nodes=tuple(node for node in body.nodes if node not in gone)))
    used = {v for node in rest.nodes for v in node.inputs} | set(body.outputs)
    new = [v for node in moved for v in node.outputs if v in used]
    unused = [Value(v.aval) for v in new]
    bodies = {name: rebuilt(other, (*other.inputs, *unused), other.outputs) for name, other in parts.bodies.items()}
    bodies["body"] = rebuilt(rest, (*body.inputs, *new), body.outputs)
    return replace(parts, captured=(*parts.captured, *(outside[v] for v in new)), bodies=bodies)
