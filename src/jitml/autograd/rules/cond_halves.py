"""Branches in two halves: a cond whose branches also give what each saves, zeros where it is the other's; and a linear cond."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from jitml.autograd.core.transpose import not_linear
from jitml.autograd.reverse.residuals import choose, replay, values_read, where
from jitml.autograd.reverse.split import Halves, halve, halving
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import Parts
from jitml.ir.types import I64, Aval

Parted = tuple[Sequence[Value], Sequence[Node]]


@halving.rule(ops.cond)
def halve_cond(node: Node, tangents: Collection[Value], cheap: Collection[Value] | None) -> Parted:
    parts = Parts.of(node)
    if any(v in tangents for v in parts.head):
        raise not_linear("if", node)
    holds = [v in tangents for v in parts.captured]
    dear = [cheap is not None and v not in tangents and v not in cheap for v in parts.captured]
    halves: dict[str, Halves] = {}
    for name, body in parts.bodies.items():
        readable = [v for v, d, h in zip(body.inputs, dear, holds) if not d and not h]
        halves[name] = halve(body, where(body.inputs, holds, True), None if cheap is None else readable)
    moves = [any(h.outputs[k] in h.tangents for h in halves.values()) for k in range(len(node.outputs))]
    branches = {name: _Branch(h, moves, holds, dear) for name, h in halves.items()}
    slots = _share_slots(branches.values())

    captured = where(parts.captured, holds, False)
    results = ops.cond(*parts.head, *captured, **{name: branch.known(slots) for name, branch in branches.items()})
    n = len(results) - len(slots)
    used = [any(reads) for reads in zip(*(branch.reads() for branch in branches.values()))]
    bodies = {name: branch.linear(slots, used) for name, branch in branches.items()}
    operands = (*parts.head, *results[n:], *where(captured, used, True), *where(parts.captured, holds, True))
    outs = tuple(Value(v.aval) for v, m in zip(node.outputs, moves) if m)
    of_known, of_linear = iter(results[:n]), iter(outs)
    return [next(of_linear) if m else next(of_known) for m in moves], [Node(ops.cond, operands, bodies, outs, node.source)]


class _Branch:
    """One branch in halves.

    Args:
        moves: which results are tangents, of this branch or the other.
        holds: which captured values are.
        dear: which captured values the linear half should rather not read.
    """

    def __init__(self, halves: Halves, moves: Sequence[bool], holds: Sequence[bool], dear: Sequence[bool]) -> None:
        self.halves, self.moves, self.holds = halves, moves, holds
        self.around = where(halves.inputs, dear, True)
        self.captured = where(halves.inputs, holds, False)
        self.outputs = where(halves.outputs, moves, True)
        self.kept = choose(halves, self.outputs, set(self.captured).difference(self.around), around=self.around)
        self.places: Sequence[int] = ()  # the slot of each saved value

    def known(self, slots: Sequence[Aval]) -> Graph:
        """The known half: its results, then the slots, filled with zeros where they are the other branch's."""
        with recording(self.halves.known):
            filled = {place: _put(v) for v, place in zip(self.kept.saved, self.places)}
            saved = [filled[k] if k in filled else _blank(aval) for k, aval in enumerate(slots)]
        return self.halves.known.build([*where(self.halves.outputs, self.moves, False), *saved])

    def reads(self) -> list[bool]:
        """Which of the known captured values the linear half reads."""
        read = values_read(self.halves, self.kept, self.outputs)
        return [v in read for v in self.captured]

    def linear(self, slots: Sequence[Aval], used: Sequence[bool]) -> Graph:
        """The linear half, given the slots, the captured values that are used, and the tangents."""
        b = GraphBuilder()
        slots_in = [b.add_input(aval) for aval in slots]
        env = {v: b.add_input(v.aval) for v in where(self.captured, used, True)}
        env |= {v: b.add_input(v.aval) for v in where(self.halves.inputs, self.holds, True)}
        with recording(b):
            saved = dict(zip(self.kept.saved, (slots_in[k] for k in self.places)))
            replay(b, self.halves, self.kept, env, partial(_get_from, saved), self.around)
        return b.build([env[v] for v in self.outputs])


def _share_slots(branches: Iterable[_Branch]) -> list[Aval]:
    """The places for what each branch saves; branches share them, and are told which are theirs."""
    slots: list[Aval] = []
    for branch in branches:
        taken: list[int] = []
        for value in branch.kept.saved:
            aval = _slot(value)
            place = next((k for k, slot in enumerate(slots) if slot == aval and k not in taken), len(slots))
            if place == len(slots):
                slots.append(aval)
            taken.append(place)
        branch.places = taken
    return slots


def _slot(value: Value) -> Aval:
    return Aval(value.aval.bounds, value.dtype)


def _blank(aval: Aval) -> Value:
    return ops.full(value=0, shape=aval.shape, dtype=aval.dtype)


def _put(value: Value) -> Value:
    """The value in memory of its largest shape."""
    if value.aval.is_static:
        return value
    return ops.dynamic_update_slice(_blank(_slot(value)), value, *_zeros(value), step=(1,) * value.ndim)


def _get_from(slots: Mapping[Value, Value], value: Value) -> Value:
    slot = slots[value]
    if value.aval.is_static:
        return slot
    return ops.dynamic_slice(slot, *_zeros(value), sizes=value.shape, step=(1,) * value.ndim)


def _zeros(value: Value) -> list[Value]:
    return [ops.full(value=0, shape=(), dtype=I64) for _ in value.shape]
