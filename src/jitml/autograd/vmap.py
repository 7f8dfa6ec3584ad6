"""Batching: a graph in, recorded once for all rows of a batch.

A batched value has one more axis than its rows, anywhere; which one is noted beside it, and data moves only where an op needs
its axes in another order. What is the same for every row is computed once and never repeated. Each op has a rule that says
what it does to batched operands, filled by `rules/batching/<family>.py`; it is asked only where an operand is batched.

In branches and loops that some rows have left, the others go on: `Batch.active` says which rows still count. Such a part runs
only as long as any row is in it, so what does not depend on the row is as valid there as in a loop over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Dim, Size, Sym, as_size
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import Op, RuleTable, active_recorder, recording
from jitml.ir.passes.cse import share_common
from jitml.ir.types import Aval

Ints = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Batched:
    """A value for each row, side by side along one axis."""

    value: Value
    axis: int

    @property
    def row(self) -> Aval:
        """What each row is."""
        shape = self.value.shape
        return self.value.aval.with_shape(shape[: self.axis] + shape[self.axis + 1 :])


Operand: TypeAlias = Value | Batched


@dataclass(frozen=True, slots=True)
class Masked:
    """What masks pick in each row, of another length in each: all elements, those that are not picked with any contents.

    Args:
        shape: of a row as the graph names it, with the sizes that differ.
    """

    value: Operand
    shape: tuple[Size, ...]


def syms_of(size: Size) -> list[Sym]:
    """The Syms of a size, in order."""
    return sorted(size.syms, key=lambda sym: sym.serial) if isinstance(size, Dim) else []


def row_of(x: Operand) -> Aval:
    return x.row if isinstance(x, Batched) else x.aval


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows that are computed together.

    Args:
        size: how many.
        counts: what the Syms of the size are, in their order, where it is not a number.
        active: bool[size], which of them count; None: all.
        units: a value whose rows are known to be the unit vectors, in order: what is multiplied by it is what comes out.
    """

    size: Size
    counts: tuple[Value, ...] = ()
    active: Value | None = None
    units: Value | None = None

    def of(self, aval: Aval) -> Aval:
        """Such rows side by side along the first axis."""
        return Aval((self.size, *aval.shape), aval.dtype)  # type: ignore[arg-type]  # shapes may hold Dims

    def inside(self, b: GraphBuilder, active: Value | None = None) -> Batch:
        """The rows in a graph that begins: it gets inputs for the counts, which the node that holds it has as operands."""
        counts = tuple(b.add_input(count.aval) for count in self.counts)
        with recording(b):
            for count, sym in zip(counts, syms_of(self.size), strict=True):
                ops.bind(count, sym=sym)
        return Batch(self.size, counts, active)

    def at(self, x: Operand, axis: int) -> Value:
        """x with the rows along this axis; what is the same for all is repeated."""
        if not isinstance(x, Batched):
            shape = (*x.shape[:axis], self.size, *x.shape[axis:])
            if _is_empty(x):  # memory with any contents is not worth a copy
                return _value(ops.empty(shape=shape, dtype=x.dtype))
            return _value(ops.broadcast(x, shape=shape, axes=tuple(a for a in range(x.ndim + 1) if a != axis)))
        if x.axis == axis:
            return x.value
        others = [a for a in range(x.value.ndim) if a != x.axis]
        return _value(ops.transpose(x.value, perm=(*others[:axis], x.axis, *others[axis:])))

    def front(self, x: Operand) -> Value:
        return self.at(x, 0)

    def aligned(self, operands: Sequence[Operand]) -> tuple[list[Value], int]:
        """Operands of one shape, their rows along one axis: that of the first that is batched."""
        axis = next(x.axis for x in operands if isinstance(x, Batched))
        return [self.at(x, axis) for x in operands], axis

    def choose(self, condition: Value, x: Operand, y: Operand) -> Batched:
        """Each row of x where the condition, bool[size], holds, else of y."""
        x = x if isinstance(x, Batched) else Batched(self.front(x), 0)
        (a, b), axis = self.aligned((x, y))
        spread = condition if a.ndim == 1 else ops.broadcast(condition, shape=a.shape, axes=(axis,))
        return Batched(_value(ops.select(spread, a, b)), axis)

    def within(self, index: Operand) -> Operand:
        """An index or a place that differs from row to row, made harmless for rows that do not count."""
        if self.active is None or not isinstance(index, Batched):
            return index
        return self.choose(self.active, index, ops.full(value=0, shape=index.row.shape, dtype=index.row.dtype))

    def among(self, condition: Value) -> Batch:
        """The same rows, of which only those count for which the condition, bool[size], holds too."""
        return replace(self, active=condition if self.active is None else _value(ops.bit_and(self.active, condition)))


# (batch, *operands, **params) -> result, or a tuple of results for ops that have several.
VmapRule = Callable[..., Operand | tuple[Operand, ...]]

vmap: RuleTable[VmapRule] = RuleTable("vmap", "autograd/rules/batching")

# (masks, node, *operands): for what has a size that differs from row to row, among its operands or in its result.
MaskedRule = Callable[..., Operand | Masked | tuple[()]]

masked: RuleTable[MaskedRule] = RuleTable("masked", "autograd/rules/batching")


class Masks:
    """The sizes of a graph that differ from row to row, because masks do that pick so many elements.

    Args:
        env: what each value is for all rows, as far as that is recorded.
    """

    def __init__(self, batch: Batch, graph: Graph, env: Mapping[Value, Operand | Masked]) -> None:
        self.batch, self.makers, self.env = batch, graph.producers(), env
        self.differing: set[Sym] = set()
        self.picks: dict[Size, Value] = {}  # by which mask so many are picked
        for node in graph.nodes:
            if node.op is ops.compress:
                self.picks.setdefault(node.params["size"], node.inputs[1])
        binders = {as_size(sym): count for sym, count in graph.binders().items()}
        counted = {binders[size]: mask for size, mask in self.picks.items() if size in binders}
        self.picks |= {size: counted[count] for size, count in binders.items() if count in counted}

    def is_open(self, size: Size) -> bool:
        """Whether a size differs from row to row."""
        return isinstance(size, Dim) and not self.differing.isdisjoint(size.syms)

    def mask(self, size: Size) -> Operand:
        """Which elements are picked, of all that there are."""
        mask = self.env.get(self.picks[size]) if size in self.picks else None
        if mask is None:
            self.refuse()
        if isinstance(mask, Masked):  # of what another mask has picked
            return self.op(ops.bit_and, mask.value, self.mask(mask.shape[0]))
        return mask

    def whole(self, param: Any) -> Any:
        """A parameter, with the sizes that are picked from in place of those that differ."""
        if isinstance(param, tuple):
            return tuple(map(self.whole, param))
        return row_of(self.mask(param)).shape[0] if self.is_open(param) else param

    def named(self, x: Operand, shape: Sequence[Size]) -> Operand | Masked:
        """A result of this shape."""
        return Masked(x, tuple(shape)) if any(map(self.is_open, shape)) else x

    def refuse(self) -> NoReturn:
        refuse(
            "the size of an array differs from row to row",
            "Give all rows the largest size, and mask what is beyond with np.where.",
        )

    def op(self, op: Op, *operands: Operand, **params: Any) -> Operand:
        """The op for all rows."""
        if any(isinstance(x, Batched) for x in operands):
            result = vmap[op](self.batch, *operands, **params)
            assert not isinstance(result, tuple)
            return result
        return _value(op(*operands, **params))

    def spread(self, node: Node, operands: Sequence[Operand | Masked]) -> tuple[Operand | Masked, ...]:
        rule = masked.get(node.op)
        if rule is None:
            self.refuse()
        results = rule(self, node, *operands)
        return results if isinstance(results, tuple) else (results,)


def shifted(axes: Sequence[int], batch_axis: int) -> Ints:
    """Axes of a row as axes of the batched value."""
    return tuple(a + (a >= batch_axis) for a in axes)


def inserted(numbers: Sequence[Any], batch_axis: int, number: Any) -> tuple[Any, ...]:
    """A parameter with one number for each axis, with one for the batch's."""
    return (*numbers[:batch_axis], number, *numbers[batch_axis:])


def spread(batch: Batch, graph: Graph, args: Sequence[Operand]) -> list[Operand]:
    """Record a graph for all rows where ops are being recorded; its outputs there."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    if any(node.op is ops.compress for node in graph.nodes):
        graph = share_common(graph)  # masks are told apart by their values
    env: dict[Value, Operand | Masked] = {
        v: x if isinstance(x, Batched) else b.capture(x) for v, x in zip(graph.inputs, args, strict=True)
    }
    masks = Masks(batch, graph, env)
    for node in graph.nodes:
        with b.at(node.source):
            operands = [env[v] for v in node.inputs]
            if node.op is ops.bind and isinstance(operands[0], Batched):
                masks.differing.add(node.params["sym"])
                results: tuple[Operand | Masked, ...] = ()
            elif masks.differing and not masks.differing.isdisjoint(node.syms):
                results = masks.spread(node, operands)
            else:
                results = _spread_node(b, batch, node, [x for x in operands if not isinstance(x, Masked)])
            env.update(zip(node.outputs, results, strict=True))
    outputs = []
    for v in graph.outputs:
        x = env[v]
        if isinstance(x, Masked):
            masks.refuse()
        outputs.append(x)
    return outputs


def _spread_node(b: GraphBuilder, batch: Batch, node: Node, operands: Sequence[Operand]) -> tuple[Operand, ...]:
    if any(isinstance(x, Batched) for x in operands):
        results = vmap[node.op](batch, *operands, **node.params)
        return results if isinstance(results, tuple) else (results,)
    if node.op is ops.bind and is_bound(b, node.params["sym"]):
        return ()  # a size of what surrounds the graph
    values = tuple(x for x in operands if not isinstance(x, Batched))
    outputs: tuple[Value, ...] = b.emit(node.op, values, node.params, tuple(v.aval for v in node.outputs), node.source)
    return outputs


def is_bound(b: GraphBuilder, sym: Sym) -> bool:
    return any(known.op is ops.bind and known.params["sym"] is sym for known in b.nodes)


def batch_graph(batch: Batch, graph: Graph, batched: Sequence[bool]) -> tuple[Graph, tuple[bool, ...]]:
    """A graph for all rows: batched inputs and outputs have the rows along their first axis; the counts are its last inputs.

    Args:
        batched: which inputs differ from row to row.

    Returns:
        The graph, and which of its outputs differ from row to row.

    >>> from jitml.ir.parser import parse
    >>> print(batch_graph(Batch(8), parse("graph(a: f32[4], b: f32[4]) { c: f32[4] = mul a b; return c }"), (True, False))[0])
    graph(a: f32[8,4], b: f32[4]) {
      c: f32[8,4] = broadcast b {axes=(1,), shape=(8, 4)}
      d: f32[8,4] = mul a c
      return d
    }
    """
    b = GraphBuilder()
    args = batched_inputs(b, batch, graph.in_avals, batched)
    inner = batch.inside(b)
    with recording(b):
        results = spread(inner, graph, args)
        outputs = [inner.front(x) if isinstance(x, Batched) else x for x in results]
    return b.build(outputs), tuple(isinstance(x, Batched) for x in results)


def batched_inputs(b: GraphBuilder, batch: Batch, avals: Sequence[Aval], batched: Sequence[bool]) -> list[Operand]:
    """New inputs for rows, and for what is the same for all."""
    return [
        Batched(b.add_input(batch.of(aval)), 0) if flag else b.add_input(aval) for aval, flag in zip(avals, batched, strict=True)
    ]


def _is_empty(x: Value) -> bool:
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    maker = b.producer(x)
    return maker is not None and maker.op is ops.empty


def refuse(message: str, remedy: str = "") -> NoReturn:
    """What cannot be done to all rows at once, at the user's line."""
    b = active_recorder()
    raise UnsupportedError(f"vmap: {message}", source=b.locate() if isinstance(b, GraphBuilder) else None, remedy=remedy)


def _value(x: Any) -> Value:
    assert isinstance(x, Value)
    return x
