"""Ragged rows: what has another size in each row?

`Ragged` values: arrays with room for the most, and numbers that say how much of it counts.

A size differs from row to row where its Syms are bound to batched values. Of an axis of such a size there are two forms:

* *packed*: the elements of a row from the beginning of the axis, as many as its count says. Every size has this form, and every
  op can be written for it.
* *placed*: what a mask has picked, each element where it lay. Only sizes that masks make have it; `y[m] = f(y[m])`, sums and
  whatever else does not ask which element comes first need to move nothing so.

A value is made in one form, and in the other where somebody asks. What lies in neither is 1 where it comes in, holds anything
later on, and is replaced by what changes nothing where results come out: of a sum by 0. So no cotangent of it leaves either,
whatever the slope at 1. Rules for ops are in `rules/batching/ragged.py` and `places.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

from jitml.autograd.core.batch import Batch, Batched, Operand, as_value, refuse, row_of, vmap
from jitml.errors import RowsDiffer
from jitml.ir import ops
from jitml.ir.analysis.limits import limits_of
from jitml.ir.dims import Dim, Size, Sym, as_size
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import Op, RuleTable, active_recorder
from jitml.ir.types import I64

Make = Callable[[bool], Operand]  # of a form: packed, or not


class Ragged:
    """A value whose size differs from row to row, in one form or in both.

    Args:
        shape: of a row as the graph names it, with the sizes that differ.
        make: the value in a form, made when it is asked for.
    """

    __slots__ = ("forms", "make", "shape")

    def __init__(self, shape: Sequence[Size], make: Make, forms: Mapping[bool, Operand] | None = None) -> None:
        self.shape, self.make, self.forms = tuple(shape), make, dict(forms or {})

    def form(self, packed: bool) -> Operand:
        if packed not in self.forms:
            self.forms[packed] = self.make(packed)
        return self.forms[packed]


Given: TypeAlias = Operand | Ragged

# (rows, node, *operands): for what has a size that differs from row to row, among its operands or in its result.
RaggedRule = Callable[..., Given | tuple[Given, ...]]

ragged: RuleTable[RaggedRule] = RuleTable("ragged", "autograd/rules/batching")


class RaggedRows:
    """The sizes of a graph that differ from row to row.

    Args:
        env: what each value is for all rows, as far as that is recorded.
    """

    def __init__(self, batch: Batch, graph: Graph, env: Mapping[Value, Given]) -> None:
        self.batch, self.makers, self.env = batch, graph.producers(), env
        self.rooms: dict[Sym, Size] = dict(batch.rooms)
        self.counts: dict[Sym, Operand] = {}
        self.picks: dict[Size, Value] = {}  # by which mask so many are picked
        self._known: dict[tuple[Any, ...], Operand] = {}
        for node in graph.nodes:
            if node.op is ops.compress:
                self.picks.setdefault(node.params["size"], node.inputs[1])
        binders = {as_size(sym): count for sym, count in graph.binders().items()}
        counted = {binders[size]: mask for size, mask in self.picks.items() if size in binders}
        self.picks |= {size: counted[count] for size, count in binders.items() if count in counted}

    def bind(self, sym: Sym, count: Operand) -> Operand:
        """Take note of a size; the value that it is."""
        b = active_recorder()
        assert isinstance(b, GraphBuilder)
        if isinstance(count, Batched) and limits_of(count.value, b.producer, lambda v: None)[1] > sym.high:
            count = self.op(ops.minimum, count, self.number(sym.high))  # it is not: said to whoever asks for limits
        self.counts[sym] = count
        if isinstance(count, Batched) and sym not in self.rooms:
            mask = self.env.get(self.picks[as_size(sym)]) if as_size(sym) in self.picks else None
            self.rooms[sym] = max(0, sym.high) if mask is None else row_of(self.form(mask)).shape[0]
        return count

    def carrying(self) -> Batch:
        """The rows, for graphs in which these sizes occur."""
        if not self.rooms:
            return self.batch
        batch = replace(self.batch, rooms=dict(self.rooms))
        return replace(batch, counts=tuple(map(self._outer, batch.syms)))

    def _outer(self, sym: Sym) -> Value:
        """What a Sym is that is the same for all rows."""
        b = active_recorder()
        assert isinstance(b, GraphBuilder)
        known = dict(zip(self.batch.syms, self.batch.counts))
        if sym in known:
            return known[sym]
        return next(node.inputs[0] for node in b.nodes if node.op is ops.bind and node.params["sym"] is sym)

    # ---------------------------------------------------------------------------------------------------- sizes

    def is_open(self, size: Size) -> bool:
        """Whether a size differs from row to row."""
        return isinstance(size, Dim) and not self.rooms.keys().isdisjoint(size.syms)

    def any_open(self, shape: Iterable[Size]) -> bool:
        return any(map(self.is_open, shape))

    def whole(self, param: Any) -> Any:
        """A parameter, with the room there is in place of sizes that differ."""
        if isinstance(param, tuple):
            return tuple(map(self.whole, param))
        return replace(self.batch, rooms=self.rooms).room(param) if self.is_open(param) else param

    def number(self, n: int) -> Value:
        return as_value(ops.full(value=n, shape=(), dtype=I64))

    def count(self, size: Size) -> Operand:
        """i64[]: how many there are."""
        if not isinstance(size, Dim):
            return self.number(size)
        return self._once(("count", size), lambda: self._polynomial(size))

    def _polynomial(self, size: Dim) -> Operand:
        total: Operand | None = None
        for monomial, factor in size.terms:
            term: Operand | None = None if monomial and factor == 1 else self.number(factor)
            for sym in monomial:
                value = self.counts[sym] if sym in self.counts else self._outer(sym)
                term = value if term is None else self.op(ops.mul, term, value)
            assert term is not None
            total = term if total is None else self.op(ops.add, total, term)
        assert total is not None, "a Dim has terms"
        return total

    def mask(self, size: Size) -> Operand | None:
        """Which elements are picked, where they lie; None of a size that no mask makes, or one of what has moved."""
        mask = self.env.get(self.picks[size]) if size in self.picks else None
        if isinstance(mask, Ragged):  # of what another mask has picked
            outer, inner = self.mask(mask.shape[0]), mask.forms.get(False)
            if outer is None or inner is None:
                return None
            mask = self._once(("mask", size), lambda: self.op(ops.bit_and, inner, outer))
        return mask if mask is not None and row_of(mask).shape == (self.whole(size),) else None

    def counting(self, size: Size, packed: bool) -> Operand:
        """bool[room]: which elements of an axis count."""
        mask = None if packed else self.mask(size)
        if mask is not None:
            return mask
        room = self.whole(size)
        return self._once(("counting", size), lambda: self.op(ops.lt, self.along(room), self.spread(self.count(size), (room,))))

    def ranks(self, size: Size) -> Operand:
        """How many are picked before each element, where they lie."""
        mask = self.mask(size)
        assert mask is not None
        return self._once(("ranks", size), lambda: self.ranks_of(mask))

    def ranks_of(self, mask: Operand) -> Operand:
        one = self.op(ops.convert, mask, dtype=I64)
        return self.op(ops.sub, self.op(ops.cumsum, one, axis=0, reverse=False), one)

    def _once(self, key: tuple[Any, ...], make: Callable[[], Operand]) -> Operand:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    # ---------------------------------------------------------------------------------------------------- values

    def named(self, x: Operand, shape: Sequence[Size], packed: bool) -> Given:
        """A result of this shape, which is there in one form."""
        if not self.any_open(shape):
            return x
        made: Ragged = Ragged(shape, lambda form: self._moved(made, form), {packed: x})
        return made

    def uniform(self, x: Operand, shape: Sequence[Size]) -> Given:
        """A result whose elements along the axes that differ are all alike."""
        return Ragged(shape, lambda form: x) if self.any_open(shape) else x

    def made(self, shape: Sequence[Size], make: Make) -> Given:
        """A result that is as easily made in one form as in the other."""
        return Ragged(shape, make) if self.any_open(shape) else make(True)

    def can_place(self, shape: Sequence[Size]) -> bool:
        return all(not self.is_open(size) or self.mask(size) is not None for size in shape)

    def common_form(self, *operands: Given, shape: Sequence[Size] = ()) -> bool:
        """The form to compute in: placed, where all operands are or may be, and the result."""
        values = [x for x in operands if isinstance(x, Ragged)]
        known = [x for x in values if x.forms]
        return not (
            all(False in x.forms for x in known) and all(self.can_place(x.shape) for x in values) and self.can_place(shape)
        )

    def form(self, x: Given, packed: bool | None = None) -> Operand:
        """A value in a form; by default in one that it has."""
        if not isinstance(x, Ragged):
            return x
        return x.form(self.common_form(x) if packed is None else packed)

    def packed(self, x: Given) -> Operand:
        return self.form(x, True)

    def _moved(self, x: Ragged, packed: bool) -> Operand:
        """One form from the other."""
        value = x.forms[not packed]
        for axis, size in enumerate(x.shape):
            if self.is_open(size):
                mask = self.mask(size)
                if mask is None:
                    self.refuse()
                index = self._once(("order", size), lambda: self.order(mask)) if packed else self.ranks(size)  # noqa: B023  # at once
                value = self.take(value, index, axis)
        return self.filled(value, x.shape, 1, packed)

    def order(self, mask: Operand) -> Operand:
        """i64[n]: where the picked elements lie, in order; then 0."""
        (n,) = row_of(mask).shape
        if n == 0:
            return self.op(ops.convert, mask, dtype=I64)
        # What is not picked goes behind the end.
        ranks = self.op(ops.select, mask, self.ranks_of(mask), self.spread(self.size_number(n), (n,)))
        longer = as_value(ops.full(value=0, shape=(n + 1,), dtype=I64))
        found = self.scatter(longer, self.along(n), (ranks,), 0, "set")
        return self.window(found, 0, n)

    def filled(self, x: Operand, shape: Sequence[Size], value: Any, packed: bool, axes: Iterable[int] | None = None) -> Operand:
        """x, and this number where elements do not count on these axes, by default on all."""
        row = row_of(x)
        for axis in range(len(shape)) if axes is None else axes:
            if self.is_open(shape[axis]):
                counting = self.spread(self.counting(shape[axis], packed), row.shape, (axis,))
                x = self.op(ops.select, counting, x, as_value(ops.full(value=value, shape=row.shape, dtype=row.dtype)))
        return x

    def entering(self, make: Make, shape: Sequence[Size]) -> Given:
        """What does not count is 1: most functions have a slope there."""
        return self.made(shape, lambda packed: self.one_elsewhere(make(packed), shape, packed))

    def one_elsewhere(self, x: Operand, shape: Sequence[Size], packed: bool) -> Operand:
        return self.filled(x, shape, 1, packed) if row_of(x).dtype.kind in "fc" else x

    # ------------------------------------------------------------------------------------------------------- ops

    def op(self, op: Op, *operands: Operand, **params: Any) -> Operand:
        """The op for all rows."""
        if any(isinstance(x, Batched) for x in operands):
            result = vmap[op](self.batch, *operands, **params)
            assert not isinstance(result, tuple)
            return result
        return as_value(op(*operands, **params))

    def spread(self, x: Operand, shape: Sequence[Size], axes: Sequence[int] = ()) -> Operand:
        return x if row_of(x).shape == tuple(shape) else self.op(ops.broadcast, x, shape=tuple(shape), axes=tuple(axes))

    def along(self, size: Size) -> Operand:
        """0, 1, ... size - 1"""
        return as_value(ops.iota(shape=(size,), axis=0, dtype=I64))

    def size_number(self, size: Size) -> Operand:
        """A room as a number."""
        return self.count(size)

    def take(self, x: Operand, index: Operand, axis: int) -> Operand:
        """x at these places of an axis, which lie in it where they count."""
        row, (n,) = row_of(x), row_of(index).shape
        if row.shape[axis] == 0:
            shape = (*row.shape[:axis], n, *row.shape[axis + 1 :])
            return as_value(ops.full(value=0, shape=shape, dtype=row.dtype))
        return self.op(ops.gather, x, index, axis=axis)

    def scatter(self, x: Operand, v: Operand, index: Sequence[Operand], axis: int, combine: str) -> Operand:
        return self.op(ops.scatter, x, v, *index, axis=axis, combine=combine)

    def window(self, x: Operand, axis: int, size: Size) -> Operand:
        """The first elements of an axis."""
        shape = row_of(x).shape
        if shape[axis] == size:
            return x
        sizes = (*shape[:axis], size, *shape[axis + 1 :])
        return self.op(ops.dynamic_slice, x, *[self.number(0)] * len(shape), sizes=sizes, step=(1,) * len(shape))

    def roomed(self, x: Operand, axis: int, room: Size) -> Operand:
        """A packed axis with more room, or with less."""
        row = row_of(x)
        n = row.shape[axis]
        if n == room:
            return x
        if isinstance(n, int) and isinstance(room, int) and n < room:
            high = tuple(room - n if a == axis else 0 for a in range(row.ndim))
            none = (0,) * row.ndim
            one = as_value(ops.full(value=1, shape=(), dtype=row.dtype))
            return self.op(ops.pad, x, one, low=none, high=high, interior=none)
        if isinstance(n, int) and isinstance(room, int):
            return self.window(x, axis, room)
        last = self.op(ops.maximum, self.op(ops.sub, self.size_number(n), self.number(1)), self.number(0))
        return self.take(x, self.op(ops.minimum, self.along(room), self.spread(last, (room,))), axis)

    def refuse(self, remedy: str = "Give all rows the largest size, and mask what is beyond with np.where.") -> NoReturn:
        refuse("the size of an array differs from row to row", remedy, RowsDiffer)

    def record(self, node: Node, operands: Sequence[Given]) -> tuple[Given, ...]:
        """A node for all rows, in whose shapes sizes differ."""
        rule = ragged.get(node.op)
        if rule is None:
            self.refuse()
        results = rule(self, node, *operands)
        return results if isinstance(results, tuple) else (results,)
