"""Regions that carry and capture what they need, and no more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any
from weakref import WeakKeyDictionary

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.bodies import Parts, rebuilt
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.passes.observable_errors import let_go, to_be_heard
from jitml.ir.rewrite import Producers, sweep
from jitml.records import dataclass, replace

_behind: WeakKeyDictionary[Graph, tuple[Mapping[Value, int], int]] = WeakKeyDictionary()
_carried_on: WeakKeyDictionary[Graph, dict[tuple[Graph | int | bool | None, ...], _Changing]] = WeakKeyDictionary()
_REMADE = (ops.full, ops.iota)  # cheaper to compute than to read


def trim_regions(graph: Graph, *, heard: bool = False) -> Graph:
    """Drop what a region carries for nobody, capture what it never changes, and tell bodies the numbers that they capture.

    A carried value is needed if its result is used, if an effect or the test of a while depends on it, or if one that is
    needed does. Captured values that are equal become one, those that no body uses go.

    Args:
        heard: whether errors of what was carried until now are observed; before `observe_errors` they need not be.
    """
    if not graph.has_regions:
        return graph
    used = _used(graph, heard)

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if not node.bodies:
            return None
        parts = Parts.of(node)
        kept = [k for k, v in enumerate(node.outputs) if v in used]
        results: dict[int, Value] = {}
        if node.op is ops.cond:
            parts = _with_results(parts, kept, heard)
        else:
            results = {k: parts.carried[k] for k in _unchanged(parts)}
            changing = _changing(parts, kept, heard)
            parts, kept = _carrying(parts, changing), changing.kept
        parts = _capturing(parts, producers)
        for v in dict.fromkeys(node.inputs):
            if v not in (*parts.head, *parts.carried, *parts.captured):
                let_go(v, producers)
        if kept or any(inner.has_effect for body in parts.bodies.values() for inner in body.nodes):
            results |= zip(kept, parts.record(), strict=True)
        return tuple(results[k] if k in results else Value(v.aval) for k, v in enumerate(node.outputs))  # nobody reads the rest

    return sweep(graph, visit)


def trim_heard_regions(graph: Graph) -> Graph:
    """The same after `observe_errors`: what is needless by now was not so then, and its errors are to be heard."""
    return trim_regions(graph, heard=True)


def _used(graph: Graph, heard: bool) -> set[Value]:
    """What somebody reads; a loop reads, of what it begins with, what it needs for those of its results that are."""
    used = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.op in (ops.loop, ops.while_):
            parts = Parts.of(node)
            wanted = [k for k, v in enumerate(node.outputs) if v in used]
            used.update(parts.head, parts.captured, (parts.carried[k] for k in wanted))
            used.update(parts.carried[k] for k in _changing(parts, wanted, heard).read)
        else:
            used.update(node.inputs)
    return used


def _inputs_behind(graph: Graph) -> tuple[Mapping[Value, int], int]:
    """The inputs, as bits, that each value depends on; and those that effects do.

    Found once for a graph: a region asks for each of its results, and its bodies hold regions that do the same.
    """
    if graph not in _behind:
        _behind[graph] = _find_inputs_behind(graph)
    return _behind[graph]


def _find_inputs_behind(graph: Graph) -> tuple[Mapping[Value, int], int]:
    masks = {v: 1 << k for k, v in enumerate(graph.inputs)}
    effects = 0
    binders = graph.binders()
    for node in graph.nodes:
        mask = 0
        for v in (*node.inputs, *(binders[sym] for sym in node.syms)):
            mask |= masks[v]
        if node.bodies and (len(node.outputs) > 1 or node.has_effect):
            found, inner = _region_behind(Parts.of(node), masks)
            masks |= zip(node.outputs, found, strict=True)
            effects |= inner if node.has_effect else 0
        else:
            masks |= dict.fromkeys(node.outputs, mask)
            effects |= mask if node.has_effect else 0
    return masks, effects


def _region_behind(parts: Parts, masks: Mapping[Value, int]) -> tuple[list[int], int]:
    """The same of a region's results, one by one, and of its effects: what iterations hand on may be for some of them only."""
    operands = [0] * parts.first + [masks[v] for v in (*parts.carried, *parts.captured)]
    around = reduce(or_, (masks[v] for v in parts.head), 0)
    for body in parts.bodies.values():
        around = reduce(or_, (masks[operand] for operand in _bound(body, parts)), around)
    effects = reduce(or_, (_inputs_behind(body)[1] for body in parts.bodies.values()))
    if parts.node.op is ops.cond:
        bodies = [(body, _inputs_behind(body)[0]) for body in parts.bodies.values()]
        found = [reduce(or_, (inside[body.outputs[k]] for body, inside in bodies)) for k in range(len(parts.node.outputs))]
    else:
        inside, _ = _inputs_behind(parts.body)
        tested = _inputs_behind(parts.bodies["test"])[0][parts.bodies["test"].outputs[0]] if "test" in parts.bodies else 0

        def handed_on(used: Sequence[int], mask: int) -> int:
            # What is carried and not needed is not even read before the first iteration; what is needed is.
            return reduce(or_, (inside[parts.body.outputs[n]] | 1 << (parts.first + n) for n in needed(parts, used)), mask)

        found = [handed_on([k], tested) for k in range(len(parts.body.outputs))]
        effects = handed_on([], tested | effects)

    def outside(mask: int) -> int:
        return reduce(or_, (o for n, o in enumerate(operands) if mask >> n & 1), around)

    return [outside(mask) for mask in found], outside(effects)


def _bound(body: Graph, parts: Parts) -> list[Value]:
    """What a region takes in for the sizes in its body."""
    operands = dict(zip(body.inputs[parts.first :], (*parts.carried, *parts.captured), strict=True))
    return [operands[v] for v in body.binders().values() if v in operands]


def needed(parts: Parts, used: Iterable[int]) -> list[int]:
    """Carried positions that a used result, an effect or the test depends on, in order."""
    masks, always = _inputs_behind(parts.body)
    if parts.node.op is ops.while_:
        of_test, effects = _inputs_behind(parts.bodies["test"])
        always |= effects | of_test[parts.bodies["test"].outputs[0]]
    needed: set[int] = set()

    def add(mask: int) -> list[int]:
        return [k for k in range(len(parts.carried)) if mask >> (parts.first + k) & 1]

    waiting = [*used, *add(always)]
    while waiting:
        k = waiting.pop()
        if k not in needed:
            needed.add(k)
            waiting += add(masks[parts.body.outputs[k]])
    return sorted(needed)


def _unchanged(parts: Parts) -> list[int]:
    carried, _ = parts.inputs(parts.body)
    return [k for k, (before, after) in enumerate(zip(carried, parts.body.outputs)) if before is after]


@dataclass(frozen=True)
class _Changing:
    """What a loop carries on.

    Attributes:
        kept: carried positions that change and are needed, in order.
        read: positions that the bodies read then, and those that are kept.
        bodies: with results for those that are kept; None if these are all.
    """

    kept: list[int]
    read: list[int]
    bodies: Mapping[str, Graph] | None


def _changing(parts: Parts, used: Sequence[int], heard: bool) -> _Changing:
    """Of a loop of which some results are used. Asked twice, by those who make what it begins with and by the loop."""
    known = _carried_on.setdefault(parts.body, {})
    key = (heard, parts.bodies.get("test"), *used)
    if key not in known:
        known[key] = _find_changing(parts, used, heard)
    return known[key]


def _find_changing(parts: Parts, used: Sequence[int], heard: bool) -> _Changing:
    unchanged = set(_unchanged(parts))
    body = _observing(parts.body, {*needed(parts, used), *unchanged}) if heard else parts.body
    observing = None if body is parts.body else {**parts.bodies, "body": body}
    parts = replace(parts, bodies=observing or parts.bodies)
    wanted: Sequence[int] = used
    while True:
        kept = [k for k in needed(parts, wanted) if k not in unchanged]
        if len(kept) == len(parts.carried):
            return _Changing(kept, kept, observing)
        bodies = {name: _shrunk(body, heard) for name, body in parts.bodies.items() if name == "test"}
        bodies["body"] = _shrunk(replace(parts.body, outputs=tuple(parts.body.outputs[k] for k in kept)), heard)
        read = {k for body in bodies.values() for k in _carried_in(parts, body)}.union(kept)
        if read - unchanged == set(kept):
            return _Changing(kept, sorted(read), bodies)
        wanted = sorted(read)  # what a region inside does without is observed there


def _observing(body: Graph, kept: Collection[int]) -> Graph:
    """A loop's body that does without some of its results: what may warn on the way to them is observed, if it is not already."""
    dropped = [v for k, v in enumerate(body.outputs) if k not in kept]
    producers = body.producers() if dropped else {}
    observed = {node.inputs[0] for node in body.nodes if node.op is ops.observe}
    found = [v for v in dict.fromkeys(v for x in dropped for v in to_be_heard(x, producers)) if v not in observed]
    if not found:
        return body
    return replace(body, nodes=(*body.nodes, *(Node(ops.observe, (v,), {}, (), producers[v].source) for v in found)))


def _carrying(parts: Parts, changing: _Changing) -> Parts:
    """The loop with some of what it carries dropped, and some captured instead."""
    if changing.bodies is None:
        return parts
    kept, unchanged = changing.kept, _unchanged(parts)

    def changed(body: Graph) -> Graph:
        carried, captured = parts.inputs(body)
        inputs = (*body.inputs[: parts.first], *(carried[k] for k in kept), *captured, *(carried[k] for k in unchanged))
        return rebuilt(body, inputs, body.outputs)

    moved = (*parts.captured, *(parts.carried[k] for k in unchanged))
    bodies = {name: changed(body) for name, body in changing.bodies.items()}
    return replace(parts, carried=tuple(parts.carried[k] for k in kept), captured=moved, bodies=bodies)


def _carried_in(parts: Parts, body: Graph) -> list[int]:
    """Carried positions that a body reads."""
    read = {*body.outputs, *(v for node in body.nodes for v in node.inputs)}
    return [k for k, v in enumerate(parts.inputs(body)[0]) if v in read]


def _with_results(parts: Parts, kept: Sequence[int], heard: bool) -> Parts:
    """The cond with some of its results."""
    if len(kept) == len(parts.node.outputs):
        return parts

    def changed(body: Graph) -> Graph:
        return _shrunk(replace(body, outputs=tuple(body.outputs[k] for k in kept)), heard)

    return replace(parts, bodies={name: changed(body) for name, body in parts.bodies.items()})


def _shrunk(body: Graph, heard: bool) -> Graph:
    """A body that has fewer results now: regions inside have fewer users, what they captured for those has, and so on."""
    body = eliminate_dead(body)
    while True:
        smaller = eliminate_dead(trim_regions(body, heard=heard))
        if _reads(smaller) == _reads(body):
            return smaller
        body = smaller


def _reads(graph: Graph) -> int:
    return sum(len(node.inputs) + len(node.outputs) for node in graph.nodes)


def _capturing(parts: Parts, producers: Producers) -> Parts:
    """The region with each captured value once, those that are used, and no numbers."""
    used = [
        {v for node in body.nodes for v in node.inputs} | set(body.outputs) | set(body.binders().values())
        for body in parts.bodies.values()
    ]
    insides = [parts.inputs(body)[1] for body in parts.bodies.values()]
    first: dict[Value, int] = {}
    numbers: dict[int, Callable[[], Any]] = {}
    for k, outside in enumerate(parts.captured):
        maker = producers.get(outside)
        if maker is not None and maker.op in _REMADE and not maker.syms:
            numbers[k] = partial(maker.op, **maker.params)
        elif any(inside[k] in names for inside, names in zip(insides, used)):
            first.setdefault(outside, k)
    kept = list(first.values())
    if len(kept) == len(parts.captured):
        return parts

    def changed(body: Graph) -> Graph:
        carried, captured = parts.inputs(body)
        inputs = (*body.inputs[: parts.first], *carried, *(captured[k] for k in kept))
        same = {captured[k]: captured[first[v]] for k, v in enumerate(parts.captured) if v in first and first[v] != k}
        return rebuilt(body, inputs, body.outputs, {captured[k]: make for k, make in numbers.items()}, same)

    bodies = {name: changed(body) for name, body in parts.bodies.items()}
    return replace(parts, captured=tuple(first), bodies=bodies)
