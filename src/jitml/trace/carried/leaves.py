"""Carried leaves: how does a loop carry one leaf of what a name holds?

In one kind, with the truths beside it of which other types a number may have (`type_unions.py`): those from before the first
iteration, and those at the end of others. Passes show which they are. None beside a number is such a type, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL
from jitml.records import dataclass, field
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.memory import Carried, CarriedMemory
from jitml.trace.record.recording import active_trace
from jitml.trace.rewrite.driver_protocol import UNDEF
from jitml.trace.values.boxing import TracedArray, lift
from jitml.trace.values.kinds import Kind, join, kind_of, widest
from jitml.trace.values.ragged import SIZE, RaggedKind
from jitml.trace.values.type_unions import Doubts, doubt, is_exact, is_of, may_be_none, types_of

Show = Callable[[list[Value]], Any]


@dataclass(eq=False)
class CarriedLeaf:
    """What is known of it, pass by pass.

    entry: what it is before the loop; UNDEF if there is none.
    kind: as what it is carried; None where it stays what it is.
    known: the types that it may have, if it is a number. flags: of all but its own, as the body begins, the truth of it.
    start: what it is then. dtype: in which the pass carries it.
    inexact: those of numbers that may lose digits as they are carried.
    settles: whether the end of the body has one type.
    is_strict: whether its type decides what the body computes of it, and not only of which type that is.
    """

    entry: Any
    kind: Kind | None
    known: set[type]
    start: Value | None = None
    flags: dict[type, Value] = field(default_factory=dict)
    dtype: np.dtype[Any] | None = None
    inexact: set[type] = field(default_factory=set)
    settles: bool = True
    is_strict: bool = False

    @classmethod
    def of(cls, entry: Any) -> CarriedLeaf:
        return cls(entry, kind_of(entry), types_of(entry))

    def open(self, kind: Kind, body: RegionBody) -> Value:
        """Give the body inputs for it."""
        self.start = body.trace.builder.add_input(kind.aval)
        self.flags = {which: body.truth() for which in self.known - {kind.which}}
        return self.start

    def begin(self, name: str, memory: CarriedMemory) -> Any:
        """A pass begins: the leaf that it begins with, of any of the types."""
        kind, self.start = self.kind, None
        if kind is None:
            return self.entry
        if kind.form == "array":
            made, self.start = memory.stand_in(self.entry, kind, name)
            return made
        start, self.dtype = self.open(kind, memory.loop.body), kind.aval.dtype
        exact = self.known - self.inexact
        doubt(start, self.flags, memory.loop.decider, exact, settles=self.settles, is_strict=self.is_strict)
        return kind.show(start)

    def joined(self, end: Any) -> Kind | None:
        """The kind of what holds the leaf before the first iteration, and after it."""
        after = kind_of(end)
        if self.kind is None and self.entry is None and may_be_none(end):
            return after
        return None if self.kind is None or after is None else widest(self.kind, after, (self.entry, end))

    def may_join(self, joined: Kind, body: RegionBody) -> bool:
        """Whether the first iteration, with a Python number, computes what it would with a number of the other type."""
        return joined == self.kind or self.start is None or _takes_as(body.trace.builder.nodes, self.start, joined)

    def see(self, end: Any) -> bool:
        """Whether the end of a pass shows other types, or that a number may lose digits."""
        if self.kind is None or self.kind.form == "array":
            return False
        found = types_of(end) - self.known
        self.known |= found
        self.settles = settles(end, self.known)
        dtype = self.kind.aval.dtype
        # What has come in by another dtype says nothing of this one.
        ends = (self.entry, end) if dtype == self.dtype else (self.entry,)
        lost = {t for t in self.known if not all(is_exact(x, t, dtype) for x in ends)}
        is_new = bool(found or lost - self.inexact)
        self.inexact |= lost
        return is_new

    def make(self, end: Any, after: Kind | None, body: RegionBody) -> bool:
        """The body makes it anew, as this; whether it can be that and what it was before."""
        self.kind = join(self.kind, after) if self.kind and after else self.kind or after
        self.known |= types_of(end)
        if self.kind is not None:
            self.open(self.kind, body)
        return self.kind is not None or after is None

    def outcome(self, end: Any, memory: CarriedMemory, least: int) -> tuple[list[Carried], Show]:
        """What the loop carries for it, and what it is after the loop, made of the results of those."""
        kind, start, entry, array = self.kind, self.start, self.entry, _array(self.entry)
        if kind is None:
            return [], lambda _: end
        assert start is not None
        if start in memory.taken:  # another name has carried the same array
            return [], lambda _: memory.object_after(end, array, least)
        memory.taken.add(start)
        carried = [Carried(partial(_before, entry, kind), start, kind.take(end))]
        if type(end) is TracedArray:
            memory.handed.append((array, end))
            memory.made.setdefault(end.storage, end)
            if type(kind) is not RaggedKind:
                return carried, lambda results: memory.show(end, kind.show(results[0]), array, least)
            for size in kind.sizes(end):
                begin = memory.loop.body.trace.builder.add_input(SIZE.aval)
                carried.append(Carried(partial(_before, UNDEF, SIZE), begin, SIZE.take(size)))
            return carried, lambda results: memory.show(end, kind.cut(results[0], results[1:]), array, least)
        lasts = {which: is_of(end, which) for which in self.flags}
        carried += [Carried.of_truth(partial(is_of, entry, t), flag, lasts[t]) for t, flag in self.flags.items()]
        told = [last is not False or least == 0 for last in lasts.values()]
        doubted, decider = active_trace().call[Doubts].get(start), memory.loop.decider

        def show(results: list[Value]) -> Any:
            exact, is_strict = ((), False) if doubted is None else (doubted.exact, doubted.is_strict)
            cases = {which: result for which, result, is_told in zip(self.flags, results[1:], told) if is_told}
            doubt(results[0], cases, decider, exact, is_strict=is_strict)
            return kind.show(results[0])

        return carried, show


def settles(end: Any, types: Iterable[type]) -> bool:
    """Whether a number has a type that is known."""
    return all(isinstance(is_of(end, which), bool) for which in {*types, *types_of(end)})


def _array(before: Any) -> TracedArray | None:
    return lift(before) if type(before) is np.ndarray else before if type(before) is TracedArray else None


def _before(leaf: Any, kind: Kind) -> Value:
    if leaf is UNDEF or leaf is None:  # not bound before the first iteration, and not read there, or no number
        return ops.full(value=0, shape=kind.aval.shape, dtype=kind.aval.dtype)
    return kind.take(leaf)


def _takes_as(nodes: Sequence[Node], number: Value, kind: Kind) -> bool:
    """Whether nodes do the same with a number that is converted beforehand."""
    return all(_node_takes_as(node, number, kind) for node in nodes if number in node.inputs)


def _node_takes_as(node: Node, number: Value, kind: Kind) -> bool:
    if node.op is ops.convert:
        return bool(node.params["dtype"] == kind.aval.dtype)
    if number.dtype != kind.aval.dtype:
        return False
    if not node.bodies:
        return all(v.dtype in (number.dtype, BOOL) for v in node.inputs)
    return all(
        _takes_as(body.nodes, inside, kind)
        for body in node.bodies.values()
        for inside, outside in zip(reversed(body.inputs), reversed(node.inputs))  # a loop's index stands before those
        if outside is number
    )
