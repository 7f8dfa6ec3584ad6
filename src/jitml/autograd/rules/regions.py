"""Forward mode through regions: what is carried carries its tangent beside it.

Which carried values have one is found by running the body's derivative until no more appear; the others stay without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitml.autograd.core.jvp import Tangent, jvp_of_many, push_nodes, start_like, zeros_like
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import Parts, rebuilt
from jitml.records import dataclass, replace

Results = tuple[Sequence[Value], Sequence[Tangent]]
Flags = Sequence[bool]


@dataclass(frozen=True)
class _Moving:
    """Which carried and which captured values of a region have a tangent."""

    carried: Flags
    captured: Flags

    def beside(self, carried: Sequence[Value], captured: Sequence[Value], tangent: Callable[[Value], Value]) -> list[Value]:
        """Values in the order of the derivative's operands: carried, their tangents, captured, theirs."""
        dcarried = [tangent(v) for v, moves in zip(carried, self.carried) if moves]
        return [*carried, *dcarried, *captured, *(tangent(v) for v, moves in zip(captured, self.captured) if moves)]


@jvp_of_many.rule(ops.loop, ops.while_)
def loop_jvp(node: Node, tangents: Sequence[Tangent]) -> Results:
    parts = Parts.of(node)
    heads, n = len(parts.head), len(parts.carried)
    starts, held = tangents[heads : heads + n], tangents[heads + n :]
    moving = _Moving([t is not None for t in starts], [t is not None for t in held])
    while True:
        body, moved = _body_jvp(parts, moving)
        after = [a or b for a, b in zip(moving.carried, moved)]
        if after == moving.carried:
            break
        moving = _Moving(after, moving.captured)
    dstarts = [t if t is not None else start_like(v) for v, t, moves in zip(parts.carried, starts, moving.carried) if moves]
    bodies = {"body": body}
    if node.op is ops.while_:
        bodies["test"] = _with_tangents(parts, parts.bodies["test"], moving)
    derivative = replace(
        parts,
        carried=(*parts.carried, *dstarts),
        captured=(*parts.captured, *(t for t in held if t is not None)),
        bodies=bodies,
    )
    results = derivative.record()
    tangent = iter(results[n:])
    return results[:n], [next(tangent) if moves else None for moves in moving.carried]


def _body_jvp(parts: Parts, moving: _Moving) -> tuple[Graph, Flags]:
    """The body on values and tangents, and which of its outputs moved."""
    b = GraphBuilder()
    carried, captured = parts.inputs(parts.body)
    primal = {v: b.add_input(v.aval) for v in parts.body.inputs[: parts.first]}
    tangent: dict[Value, Value] = {}
    for inputs, moves in ((carried, moving.carried), (captured, moving.captured)):
        primal |= {v: b.add_input(v.aval) for v in inputs}
        tangent |= {v: b.add_input(v.aval) for v, m in zip(inputs, moves) if m}
    values, tangents = push_nodes(b, parts.body, primal, tangent)
    with recording(b):
        moved = [t if t is not None else zeros_like(v) for v, t, m in zip(values, tangents, moving.carried) if m]
    return b.build([*values, *moved]), [t is not None for t in tangents]


def _with_tangents(parts: Parts, test: Graph, moving: _Moving) -> Graph:
    """The test of a while, which reads no tangent."""
    carried, captured = parts.inputs(test)
    return rebuilt(test, moving.beside(carried, captured, lambda v: Value(v.aval)), test.outputs)


@jvp_of_many.rule(ops.cond)
def cond_jvp(node: Node, tangents: Sequence[Tangent]) -> Results:
    parts = Parts.of(node)
    moving = _Moving([], [t is not None for t in tangents[1:]])
    pushed = {name: _branch_jvp(body, moving.captured) for name, body in parts.bodies.items()}
    moves = [any(ts) for ts in zip(*([t is not None for t in tangents] for _, _, tangents in pushed.values()))]
    bodies: dict[str, Graph] = {}
    for name, (b, values, moved) in pushed.items():
        with recording(b):
            dense = [t if t is not None else zeros_like(v) for v, t, m in zip(values, moved, moves) if m]
        bodies[name] = b.build([*values, *dense])
    derivative = replace(parts, captured=(*parts.captured, *(t for t in tangents[1:] if t is not None)), bodies=bodies)
    results = derivative.record()
    n = len(node.outputs)
    tangent = iter(results[n:])
    return results[:n], [next(tangent) if m else None for m in moves]


def _branch_jvp(body: Graph, moving: Flags) -> tuple[GraphBuilder, list[Value], list[Tangent]]:
    b = GraphBuilder()
    primal = {v: b.add_input(v.aval) for v in body.inputs}
    tangent = {v: b.add_input(v.aval) for v, moves in zip(body.inputs, moving) if moves}
    return b, *push_nodes(b, body, primal, tangent)
