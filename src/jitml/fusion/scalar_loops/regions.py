"""Regions inside a kernel: loops, while loops and branches; what they carry lives in cells, or in memory where it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitml.fusion.grouping.regions import UPDATES
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.scalar_loops.body import MOST_ELEMENTS, GraphBody, Held, WholeMemory, rolled
from jitml.fusion.scalar_loops.order import NotRolled, continued, is_single, origin
from jitml.fusion.scalar_loops.windows import assign, reads_of
from jitml.ir import ops
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, Node, Value
from jitml.kernels.ir import Apply, Check, Const, Observe
from jitml.records import replace

_I64 = np.iinfo("int64")
State = list[Held]  # of what a loop carries: cells and arrays


def run_inside(body: GraphBody, graph: Graph, state: State, operands: Sequence[Held]) -> list[Held]:
    """Write a graph as part of a body's statements. It may write to the state's memories."""
    owned = frozenset(held.memory for held in state if isinstance(held, WholeMemory))
    return GraphBody(body.w, body.memories, body.sizes.known, owned, body.target).run(graph, operands)


@rolled.rule(ops.bind)
def roll_bind(body: GraphBody, node: Node, operands: list[Held]) -> None:
    """The size, clamped to its limits where it is not known to keep them, so that no access leaves its buffer."""
    sym: Sym = node.params["sym"]
    if sym not in body.syms:
        return
    size = clamped = body.number(operands[0])
    least, most = body.w.ranges.bounds(size)
    if sym.low > _I64.min and (least is None or least < sym.low):
        clamped = Apply("maximum", (clamped, Const(sym.low)))
    if sym.high < _I64.max and (most is None or most > sym.high):
        clamped = Apply("minimum", (clamped, Const(sym.high)))
    if clamped is not size:
        clamped = body.w.index(body.w.let(body.b.index(clamped)))
    body.sizes.known[sym] = clamped


@rolled.rule(ops.check)
def roll_check(body: GraphBody, node: Node, operands: list[Held]) -> None:
    x, ok, *values = operands
    assert isinstance(ok, Scalar)
    shown = tuple(body.number(v) for v in values)
    body.w.check(Check(body.w.expr(ok), node.params["error"], node.params["message"], shown, node.source))
    body.held[node.output] = x


@rolled.rule(ops.observe)
def roll_observe(body: GraphBody, node: Node, operands: list[Held]) -> None:
    (x,), (held,) = node.inputs, operands
    if isinstance(held, WholeMemory):  # what is in memory has been computed
        return
    body.over(x.shape, lambda index: body.w.add(Observe(body.w.expr(body.element(held, index, x.dtype)))))


@rolled.rule(ops.loop)
def roll_loop(body: GraphBody, node: Node, operands: list[Held]) -> None:
    graph, count = node.params["body"], node.params["carried"]
    trip = body.number(operands[0])
    state, captured = enter(body, node, operands[1 : 1 + count], operands[1 + count :], node.inputs[1:])
    with body.w.loop(trip) as index:
        results = run_inside(body, in_carried_memory(graph, 1, count), state, [body.b.index(index), *state, *captured])
        carry(body, graph.outputs, state, results)
    leave(body, node, state)


@rolled.rule(ops.while_)
def roll_while(body: GraphBody, node: Node, operands: list[Held]) -> None:
    graph, count = node.params["body"], node.params["carried"]
    state, captured = enter(body, node, operands[:count], operands[count:], node.inputs)
    with body.w.block() as test:
        (again,) = run_inside(body, node.params["test"], [], [*state, *captured])
        assert isinstance(again, Scalar)
        condition = body.w.expr(again)
        with body.w.block() as inner:
            body.w.ranges.assume(condition)
            results = run_inside(body, in_carried_memory(graph, 0, count), state, [*state, *captured])
            carry(body, graph.outputs, state, results)
    body.w.repeat(test, condition, inner)
    leave(body, node, state)


def in_carried_memory(graph: Graph, first: int, count: int) -> Graph:
    """A loop's body that makes what it carries on where that lies: of what begins as `empty`, any contents will do.

    Args:
        first, count: which inputs are carried.
    """
    makers, users = graph.producers(), graph.users()
    found: dict[Value, Value] = {}
    for x, value in zip(graph.inputs[first : first + count], graph.outputs, strict=True):
        last = value
        while (maker := makers.get(value)) is not None and maker.op in UPDATES:
            value = maker.inputs[0]
        is_anew = maker is not None and maker.op is ops.empty and value is not last and len(users[value]) == 1
        is_changed = x in graph.outputs or any(x in continued(node).values() for node in users[x])
        if is_anew and not is_changed and value.aval == x.aval and value.capacity <= MOST_ELEMENTS:
            found[value] = x
    if not found:
        return graph
    kept = [node for node in graph.nodes if found.keys().isdisjoint(node.outputs)]
    nodes = (replace(node, inputs=tuple(found.get(v, v) for v in node.inputs)) for node in kept)
    return Graph(graph.inputs, tuple(nodes), graph.outputs, graph.names)


def enter(
    body: GraphBody, node: Node, carried: Sequence[Held], captured: Sequence[Held], values: Sequence[Value]
) -> tuple[State, list[Held]]:
    """What a loop starts from: a cell per number, memory of the body's own per array; and what it only reads."""
    state: State = []
    for value, held in zip(values, carried):
        if isinstance(held, Scalar):
            state.append(body.b.cell(body.w.cell(body.w.expr(held)), value.dtype))
            continue
        array = body.in_place(value, held)
        state.append(body.stored(value, array) if _is_taken(array, state) else array)
    written = {held.memory for held in state if isinstance(held, WholeMemory)}
    return state, [_kept(body, value, held, written) for value, held in zip(values[len(carried) :], captured, strict=True)]


def _is_taken(array: WholeMemory, state: State) -> bool:
    """Whether another part of the state lies in an array's memory."""
    return any(isinstance(other, WholeMemory) and other.memory == array.memory for other in state)


def _kept(body: GraphBody, value: Value, held: Held, written: set[str]) -> Held:
    """Something a region reads, as it is now, whatever the region writes."""
    if isinstance(held, Scalar):
        return body.w.named(held)
    if reads_of(held).keys() & written or (not isinstance(held, WholeMemory) and held.work > 0):
        return body.stored(value, held)
    return held


def carry(body: GraphBody, outputs: Sequence[Value], state: State, results: Sequence[Held]) -> None:
    """The end of an iteration: arrays are where they belong, cells take their new values, all at once."""
    cells = {held.value for held in state if isinstance(held, Scalar)}
    memories = {held.memory for held in state if isinstance(held, WholeMemory)}
    results = [
        body.stored(value, result)
        if isinstance(held, WholeMemory) and reads_of(result).keys() & (memories - {held.memory})
        else result
        for value, held, result in zip(outputs, state, results, strict=True)
    ]
    updates: list[tuple[str, Scalar]] = []
    for value, held, result in zip(outputs, state, results, strict=True):
        if isinstance(held, Scalar):
            new = body.element(result, [Const(0)] * value.ndim, value.dtype)
            if new is not held:
                updates.append((held.value, new))
        else:
            assert isinstance(held, WholeMemory)
            settle(body, value, held, result)
    updates = [(name, body.w.let(new) if _names(new) & (cells - {name}) else new) for name, new in updates]
    for name, new in updates:
        body.w.update(name, body.w.expr(new))


def _names(scalar: Scalar) -> set[str]:
    own = {scalar.value} if scalar.kind == "cell" else set(scalar.variables)
    return own.union(*map(_names, scalar.args))


def settle(body: GraphBody, value: Value, target: WholeMemory, result: Held) -> None:
    """See to it that an array ends up in its memory."""
    if isinstance(result, WholeMemory) and result.memory == target.memory:
        if not body.memories.is_current(result.memory, result.version):
            raise NotRolled("an array is handed on as it was before an update")
        return
    body.about_to_change(target.memory)
    assign(body, target.memory, value, result, [Const(0)] * value.ndim, [1] * value.ndim)
    body.memories.change(target.memory)


def leave(body: GraphBody, node: Node, state: State) -> None:
    for value, held in zip(node.outputs, state, strict=True):
        if isinstance(held, WholeMemory):
            held = WholeMemory(held.memory, body.memories.version[held.memory])
        body.held[value] = held


@rolled.rule(ops.cond)
def roll_cond(body: GraphBody, node: Node, operands: list[Held]) -> None:
    which, *captured = operands
    assert isinstance(which, Scalar)
    condition = body.w.expr(which)
    kept = [_kept(body, v, held, set()) for v, held in zip(node.inputs[1:], captured, strict=True)]
    state: State = []
    for out in node.outputs:
        if is_single(out):
            state.append(body.b.cell(body.w.cell(Const(0 if out.dtype.kind != "b" else False, out.dtype)), out.dtype))
        else:
            room = _room(body, node, out, kept)
            state.append(body.scratch(out) if _is_taken(room, state) else room)
    arms = []
    before = dict(body.memories.version)
    for name, holds in (("then", True), ("orelse", False)):
        graph: Graph = node.params[name]
        body.memories.version.update(before)
        with body.w.block() as arm:
            body.w.ranges.assume(condition, holds)
            results = run_inside(body, graph, state, kept)
            carry(body, graph.outputs, state, results)
        arms.append(arm)
    body.w.branch(condition, *arms)
    for held in state:
        if isinstance(held, WholeMemory):
            body.memories.change(held.memory)
    leave(body, node, state)


def _room(body: GraphBody, node: Node, out: Value, captured: list[Held]) -> WholeMemory:
    """Where an array that a `cond` results in lies: where the operand does that both branches update, else in scratch."""
    if out in body.rooms:
        return body.rooms[out]
    old = continued(node).get(out)
    if old is None:
        return body.scratch(out)
    p = origin(node.params["then"], node.params["then"].outputs[node.outputs.index(out)])
    assert p is not None
    array = body.in_place(old, captured[p])
    captured[p] = array
    return array
