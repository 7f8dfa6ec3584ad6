"""Windows of arrays: read at run-time places, updated where they lie. One element at an index, read or written, is a window."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.fusion.lower.points import Index
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.scalar_loops.body import GraphBody, Held, Lazy, WholeMemory, rolled
from jitml.fusion.scalar_loops.order import NotRolled, is_single
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import (
    Apply,
    Check,
    Combine,
    Const,
    Expr,
    Load,
    Observe,
    Var,
    affine,
    less,
    sub,
    variables_of,
    walk_expressions,
)


def reads_of(held: Held) -> dict[str, int]:
    match held:
        case WholeMemory(memory, version):
            return {memory: version}
        case Lazy(_, reads):
            return dict(reads)
    return {}


@rolled.rule(ops.dynamic_slice)
def roll_dynamic_slice(body: GraphBody, node: Node, operands: list[Held]) -> None:
    x, dtype = operands[0], node.output.dtype
    starts = [body.number(s) for s in operands[1:]]
    steps: Sequence[int] = node.params["step"]

    def at(index: Index) -> Scalar:
        return body.element(x, [a + i * s for a, i, s in zip(starts, index, steps, strict=True)], dtype)

    if is_single(node.output):
        body.define(node.output, at((Const(0),) * node.output.ndim))
    else:
        body.define(node.output, Lazy(at, reads_of(x), x.work if isinstance(x, Lazy) else 0.0))


@rolled.rule(ops.dynamic_update_slice)
def roll_dynamic_update_slice(body: GraphBody, node: Node, operands: list[Held]) -> None:
    x, v, *starts = operands
    update_window(body, node, x, v, [body.number(s) for s in starts], node.params["step"])


@rolled.rule(ops.update_slice)
def roll_update_slice(body: GraphBody, node: Node, operands: list[Held]) -> None:
    x, v = operands
    update_window(body, node, x, v, [Const(a) for a in node.params["start"]], node.params["step"])


def update_window(body: GraphBody, node: Node, x: Held, v: Held, starts: list[Expr], steps: Sequence[int]) -> None:
    """x with a window of it replaced by v."""
    if is_single(node.output):
        part = node.inputs[1].aval
        if not part.is_static:
            raise NotRolled("whether the only element is written depends on a size")
        body.define(node.output, v if part.size else x)
        return
    target = body.in_place(node.inputs[0], x)
    assign(body, target.memory, node.inputs[1], v, starts, steps)
    body.define(node.output, body.memories.change(target.memory))


def assign(body: GraphBody, memory: str, value: Value, held: Held, starts: Sequence[Expr], steps: Sequence[int]) -> None:
    """Store a value to a window; where one element is needed for another, all of it is computed before any is stored."""
    if any(type(n) is int and n == 0 for n in value.shape):
        return
    if _clashes(body, memory, value, held, starts, steps):
        held = body.stored(value, held)

    def write(index: Index) -> None:
        scalar = body.element(held, index, value.dtype)
        body.w.store(memory, [a + i * s for a, i, s in zip(starts, index, steps, strict=True)], body.w.expr(scalar))

    body.over(value.shape, write)


def _clashes(body: GraphBody, memory: str, value: Value, held: Held, starts: Sequence[Expr], steps: Sequence[int]) -> bool:
    """Whether a store may hit what is read for another element of the window.

    Not if each load is of the very element that is then stored, along every axis that the window extends on, or is of
    another row: an index that no element of the window has.
    """
    if memory not in reads_of(held):
        return False
    names = [body.w.fresh("i") for _ in value.shape]
    index: Index = tuple(Const(0) if n == 1 else Var(name) for name, n in zip(names, value.shape))
    at = [a + i * s for a, i, s in zip(starts, index, steps, strict=True)]
    with body.w.block() as block:  # written to be looked at, and then left out
        body.w.add(Observe(body.w.expr(body.element(held, index, value.dtype))))
        for load in walk_expressions(block.statements):
            if not isinstance(load, Load) or load.buffer != memory:
                continue
            gaps = [sub(e, a) for e, a in zip(load.at, at, strict=True)]
            same = all(n == 1 or affine(gap) == {"": 0} for gap, n in zip(gaps, value.shape))
            apart = any(not variables_of(gap) & {*names} and _never_zero(body, gap) for gap in gaps)
            if not same and not apart:
                return True
    return False


def _never_zero(body: GraphBody, gap: Expr) -> bool:
    least, most = body.w.ranges.bounds(gap)
    return (least is not None and least > 0) or (most is not None and most < 0)


@rolled.rule(ops.resize)
def roll_resize(body: GraphBody, node: Node, operands: list[Held]) -> None:
    body.held[node.output] = operands[0]


# -------------------------------------------------------------------------------------------------- places in data


@rolled.rule(ops.gather)
def roll_gather(body: GraphBody, node: Node, operands: list[Held]) -> None:
    x, *indices = operands
    axis = node.params["axis"]
    if not all(map(is_single, node.inputs[1:])) or node.inputs[1].ndim:
        _check_all(body, node, node.inputs[1:], indices, axis)
        body.point(node)
        return
    at = _places(body, node, x, indices, axis)

    def element(index: Index) -> Scalar:
        return body.element(x, (*index[:axis], *at, *index[axis:]), node.output.dtype)

    if is_single(node.output):
        body.define(node.output, element((Const(0),) * node.output.ndim))
    else:
        body.define(node.output, Lazy(element, reads_of(x)))


@rolled.rule(ops.scatter)
def roll_scatter(body: GraphBody, node: Node, operands: list[Held]) -> None:
    """In the order of the indices; all that is read is read before."""
    x, v, *indices = operands
    axis, depth, values = node.params["axis"], node.inputs[2].ndim, node.inputs[2:]
    if is_single(node.output):
        raise NotRolled("an array of one element is scattered to")
    at = _places(body, node, x, indices, axis) if depth == 0 else []
    if depth:
        _check_all(body, node, values, indices, axis)
    target = body.in_place(node.inputs[0], x)
    v, *indices = (
        body.stored(value, held) if target.memory in reads_of(held) else held
        for value, held in zip(node.inputs[1:], (v, *indices), strict=True)
    )
    names = {"add": "add", "mul": "mul", "min": "min", "max": "max", "set": None}
    combine: Combine | None = names[node.params["combine"]]  # type: ignore[assignment]  # one of Combine

    def write(index: Index) -> None:
        scalar = body.element(v, index, node.output.dtype)
        places = at or [_found(body, node, k, held, index[axis : axis + depth]) for k, held in enumerate(indices)]
        place = (*index[:axis], *places, *index[axis + depth :])
        body.w.store(target.memory, place, body.w.expr(scalar), combine)

    body.over(node.inputs[1].shape, write)
    body.define(node.output, body.memories.change(target.memory))


def _places(body: GraphBody, node: Node, x: Held, indices: list[Held], axis: int) -> list[Expr]:
    """Indices that may count from the end, checked, as offsets from the start."""
    places: list[Expr] = []
    for k, held in enumerate(indices):
        n = node.inputs[0].shape[axis + k]
        assert isinstance(held, Scalar)
        index = body.w.index(body.w.named(body.b.convert(held, I64)))
        places.append(_checked_index(body, node, index, body.sizes.expr(n), axis + k))
    return places


def _found(body: GraphBody, node: Node, k: int, held: Held, index: Index) -> Expr:
    """An index of an array of them that has been looked at; clamped all the same, since others may write to it meanwhile.

    One that cannot be negative counts from the start.
    """
    value, n = node.inputs[2 + k], node.inputs[0].shape[node.params["axis"] + k]
    raw = body.w.index(body.w.let(body.b.convert(body.element(held, index, value.dtype), I64)))
    extent = body.sizes.expr(n)
    least, _ = body.w.ranges.bounds(raw)
    if least is None or least < 0:
        raw = Apply("maximum", (Apply("select", (less(raw, 0), raw + extent, raw)), Const(0)))
    clamped = Apply("minimum", (raw, extent - 1))
    return body.w.index(body.w.let(body.b.index(clamped)))


def _checked_index(body: GraphBody, node: Node, index: Expr, n: Expr, axis: int) -> Expr:
    low, high = Apply("ge", (index, 0 - n), BOOL), less(index, n)
    message = "index {} is out of bounds for axis {} with size {}"
    values = (index, Const(axis), n)
    body.w.check(Check(Apply("bit_and", (low, high), BOOL), "IndexError", message, values, node.source))
    least, _ = body.w.ranges.bounds(index)
    if least is not None and least >= 0:
        return index
    wrapped = Apply("select", (less(index, 0), index + n, index))
    return body.w.index(body.w.let(body.b.index(wrapped)))


def _check_all(body: GraphBody, node: Node, values: Sequence[Value], indices: list[Held], axis: int) -> None:
    """Look at every index of arrays of them before any is used."""
    for k, (value, held) in enumerate(zip(values, indices, strict=True)):
        n = body.sizes.expr(node.inputs[0].shape[axis + k])

        def look(index: Index, held: Held = held, value: Value = value, n: Expr = n, k: int = k) -> None:
            scalar = body.w.let(body.b.convert(body.element(held, index, value.dtype), I64))
            _checked_index(body, node, body.w.index(scalar), n, axis + k)

        body.over(value.shape, look)


@rolled.rule(ops.empty)
def roll_empty(body: GraphBody, node: Node, operands: list[Held]) -> None:
    """Scratch, whatever it holds."""
    body.define(node.output, body.scratch(node.output))
