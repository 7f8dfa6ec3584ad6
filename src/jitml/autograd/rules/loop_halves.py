"""Loops in two halves: one that runs forward and saves, one that is linear and reads what was saved.

The first writes what is saved into stacks, a window for each iteration. A while also counts its iterations: the linear half
is a loop of that many.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from math import ceil

from jitml.autograd.core.transpose import not_linear
from jitml.autograd.reverse.budget import FEW, affordable, inside_a_loop, room, saved_bytes
from jitml.autograd.reverse.counters import Counter, counters, is_number, limits_here
from jitml.autograd.reverse.residuals import Kept, acts, choose, replay, values_read, where
from jitml.autograd.reverse.segments import best_length, segmented, segmented_while
from jitml.autograd.reverse.split import halve, halving, reached
from jitml.errors import MoreIterations
from jitml.ir import ops
from jitml.ir.capacity import Room
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import Parts, rebuilt
from jitml.ir.types import I64, Aval
from jitml.records import dataclass, replace

# Regions inside a loop that would save more than this, over all iterations, are run again instead.
REPEAT_BYTES = 64 << 20

Parted = tuple[Sequence[Value], Sequence[Node]]


@halving.rule(ops.loop)
def halve_loop(node: Node, tangents: Collection[Value], cheap: Collection[Value] | None) -> Parted:
    parts = Parts.of(node)
    body = _HalvedBody(parts, tangents, cheap)
    (trip,) = parts.head
    body.index = body.halves.inputs[0]
    longest = _longest(trip, parts.body)
    kept = body.choose(longest)
    most = longest if node.params.get("repeat") or is_number(trip) else affordable(kept.nbytes)
    asked = bool(node.params.get("segments"))
    if (asked or longest > affordable(kept.nbytes)) and (
        plan := body.segments(longest, kept, asked, is_number(trip))
    ) is not None:
        length, most = plan
        if most < longest:
            trip = ops.minimum(_checked(node, trip, ops.le(trip, most), trip, most), most)
        node = replace(node, inputs=(trip, *node.inputs[1:]))
        return _halve_segments(segmented(node, most, length, is_open=not is_number(trip)), tangents, cheap)
    most = min(longest, most)
    there = Room(most) if node.params.get("repeat") or is_number(trip) else room(node.source, kept.nbytes, most)
    if longest > there.iterations:
        longest = there.iterations
        trip = _checked(node, trip, ops.le(trip, longest), trip, longest, line=there.line)
    place = body.index
    if not is_number(trip):  # nothing else would say that the place is in the stacks
        with recording(body.halves.known):
            place = ops.minimum(place, longest - 1)
    stacks = body.saving(kept, longest, place)
    forward = body.forward((body.index,))
    carried, captured = body.known(parts.carried, parts.captured)
    operands = (*carried, *(stack.room() for stack in stacks), *captured)
    results = ops.loop(trip, *operands, body=forward, carried=len(forward.outputs), **_repeat(node))
    linear = body.linear_loop(trip, longest, kept, results[len(carried) :])
    return body.results(results, linear.outputs), [linear]


def _halve_segments(loops: tuple[Node, Node], tangents: Collection[Value], cheap: Collection[Value] | None) -> Parted:
    first, last = loops
    ends, linear_first = halve_loop(first, tangents, cheap)
    last = replace(last, inputs=(last.inputs[0], *ends, *last.inputs[1 + len(ends) :]))
    moved = {v for linear in linear_first for v in linear.outputs}
    results, linear_last = halve_loop(last, {*tangents, *moved}, cheap)
    return results, [*linear_first, *linear_last]


@halving.rule(ops.while_)
def halve_while(node: Node, tangents: Collection[Value], cheap: Collection[Value] | None) -> Parted:
    parts = Parts.of(node)
    body = _HalvedBody(parts, tangents, cheap)
    body.counters = counters(parts)
    from_zero = next((c.position for c in body.counters if c.step == 1 and c.end is not None and is_number(c.start, 0)), None)
    known = body.halves.known
    counting, limit = known.add_input(Aval((), I64)), _longest_while(body.counters)
    body.index = counting if from_zero is None else body.carried[from_zero]
    kept = body.choose(limit)
    if node.params.get("segments") and (length := body.segment(min(limit, affordable(kept.nbytes)), kept)) is not None:
        most = ceil(limit / length) if limit < sys.maxsize else None
        parted, linear_nodes = halve_while(segmented_while(node, length, most), tangents, cheap)
        return parted[:-1], linear_nodes
    most = limit if limit <= FEW else min(affordable(kept.nbytes), limit)
    there = Room(most) if node.params.get("repeat") else room(node.source, kept.nbytes, most)
    longest = there.iterations
    if longest < limit:  # it may be too little, and has to be checked
        from_zero, body.index = None, counting
    carried, captured = body.known(parts.carried, parts.captured)
    more: list[tuple[Value, Value]] = []
    index = body.index
    if from_zero is None:
        carried.append(ops.full(value=0, shape=(), dtype=I64))
        with recording(known):
            index = _checked(node, body.index, ops.lt(body.index, longest), longest, line=there.line)
            more.append((body.index, ops.add(index, 1)))
    stacks = body.saving(kept, longest, index)
    forward = body.forward((), more)
    operands = (*carried, *(stack.room() for stack in stacks), *captured)
    results = ops.while_(*operands, test=body.test(more), body=forward, carried=len(forward.outputs), **_repeat(node))
    n = len(carried)
    count = results[n - 1] if from_zero is None else results[sum(not moves for moves in body.moves[:from_zero])]
    ops.bind(count, sym=Sym("count", 0, longest))
    linear = body.linear_loop(count, longest, kept, results[n:])
    return body.results(results, linear.outputs), [linear]


def _repeat(node: Node) -> dict[str, bool]:
    return {"repeat": True} if node.params.get("repeat") else {}


def _checked(node: Node, x: Value, ok: Value, *values: Value | int, line: int | None = None) -> Value:
    """x, if the loop that a node is runs no more often than it can save for.

    Args:
        values: how often it runs, if that is known, and how often it may.
        line: of a loop that there may be more room for.
    """
    shown = [v if isinstance(v, Value) else ops.full(value=v, shape=(), dtype=I64) for v in values]
    if line is not None:
        ran = f"loop {line} ran {{}} times, more than {values[-1]}"
        more: Value = ops.check(x, ok, shown[0], error=MoreIterations.__name__, message=ran)
        return more
    ran = "{} times, more than the {}" if len(shown) == 2 else "more than the {} times"
    message = (
        f'a loop ran {ran} for which its derivative may save values (JITML_SAVED_BYTES); checkpoint(policy="sqrt") saves fewer'
    )
    if node.source is not None:
        place = f"\n  {node.source}\n    {node.source.text}"
        message += place.replace("{", "{{").replace("}", "}}")
    checked: Value = ops.check(x, ok, *shown, error="MemoryError", message=message)
    return checked


class _HalvedBody:
    """The body of a loop or while in halves."""

    def __init__(self, parts: Parts, tangents: Collection[Value], cheap: Collection[Value] | None) -> None:
        self.parts = parts
        carried, captured = parts.inputs(parts.body)
        moving = {v for v, outside in zip((*carried, *captured), (*parts.carried, *parts.captured)) if outside in tangents}
        while True:
            moved = reached(parts.body, moving)
            more = {v for v, after in zip(carried, parts.body.outputs) if after in moved} - moving
            if not more:
                break
            moving |= more
        held = [(v, cheap is None or outside in cheap) for v, outside in zip(captured, parts.captured) if v not in moving]
        with inside_a_loop():
            self.halves = halve(parts.body, moving, [*parts.body.inputs[: parts.first], *(v for v, is_cheap in held if is_cheap)])
        self.moves = [v in moving for v in carried]  # which carried values are tangents
        self.holds = [v in moving for v in captured]
        stand_ins = self.halves.inputs[parts.first :]
        self.carried, self.captured = stand_ins[: len(carried)], stand_ins[len(carried) :]
        self.outputs = self.halves.outputs
        # Captured values of which each iteration of a loop around would save a copy.
        _, known = self.known((), self.captured)
        self.around = [v for v, (_, is_cheap) in zip(known, held) if not is_cheap]
        self.index: Value  # in the known half, which iteration it is
        self.counters: Sequence[Counter] = ()
        self.stacks: Sequence[_SavedStack] = ()
        self.written: Sequence[tuple[Value, Value]] = ()  # each stack as it comes in and as an iteration leaves it

    def known(self, carried: Sequence[Value], captured: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Those of the known half."""
        return where(carried, self.moves, False), where(captured, self.holds, False)

    def moving(self, carried: Sequence[Value], captured: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        return where(carried, self.moves, True), where(captured, self.holds, True)

    def choose(self, longest: int) -> Kept:
        """What an iteration saves, of at most so many.

        A region inside saves what it needs itself, unless that comes to much: then it is run again, if that needs less.
        """
        counted = (self.halves.inputs[counter.position] for counter in self.counters)
        free = {self.index, *counted, *where(self.captured, self.holds, False)} - {*self.around}
        outputs = where(self.outputs, self.moves, True)
        kept = choose(self.halves, outputs, free, around=self.around, times=longest)
        if longest * kept.nbytes > REPEAT_BYTES:
            other = choose(self.halves, outputs, free, around=self.around, times=longest, repeat=True)
            kept = other if 2 * other.nbytes < kept.nbytes else kept
        return kept

    def segment(self, trips: int, kept: Kept) -> int | None:
        """The length of segments that would do for so many iterations; None if segments do not help, or cannot be run again."""
        if self.parts.node.params.get("repeat") or acts(self.parts.node):
            return None
        length = best_length(trips, self._state, kept.nbytes)
        needed = self._needed(trips, length, kept)
        return length if 1 < length < trips and needed < trips * kept.nbytes else None

    def segments(self, trips: int, kept: Kept, is_asked: bool, is_exact: bool) -> tuple[int, int] | None:
        """The length of segments, and how many iterations they do for.

        Args:
            trips: how many iterations there are; if not `is_exact`, the most. Where not even segments have room for so many,
                there are segments only if the user asks for them.
        """
        length = self.segment(trips, kept)
        if length is None or is_exact or self._needed(trips, length, kept) <= saved_bytes():
            return None if length is None else (length, trips)
        if not is_asked:
            return None
        length = self.segment(min(trips, affordable(kept.nbytes)), kept)
        if length is None:
            return None
        rest = saved_bytes() - length * kept.nbytes
        return length, min(trips, length * max(1, rest // max(1, self._state)))

    def _needed(self, trips: int, length: int, kept: Kept) -> int:
        """Bytes for segments of a length."""
        return ceil(trips / length) * self._state + length * kept.nbytes

    @property
    def _state(self) -> int:
        """Bytes of what the known half carries, without its stacks."""
        return sum(v.aval.nbytes for v in where(self.carried, self.moves, False))

    def saving(self, kept: Kept, length: int, place: Value) -> Sequence[_SavedStack]:
        """Record what an iteration writes to the stacks, which are inputs of the known half."""
        with recording(self.halves.known):
            self.stacks = [_SavedStack(v, length) for v in kept.saved]
            inputs = [self.halves.known.add_input(stack.aval) for stack in self.stacks]
            self.written = [(x, stack.put(x, place)) for stack, x in zip(self.stacks, inputs)]
        return self.stacks

    def forward(self, head: Sequence[Value], more: Sequence[tuple[Value, Value]] = ()) -> Graph:
        """The body of the known half: its own inputs, what it carries, `more` and stacks among it, what it captures."""
        carried_in, captured_in = self.known(self.carried, self.captured)
        carries = [*zip(carried_in, where(self.outputs, self.moves, False)), *more, *self.written]
        inputs = (*head, *(before for before, _ in carries), *captured_in)
        return Graph(inputs, tuple(self.halves.known.nodes), tuple(after for _, after in carries))

    def test(self, more: Sequence[tuple[Value, Value]]) -> Graph:
        """The test of a while, for the known half, which carries `more` and stacks, too."""
        test = self.parts.bodies["test"]
        moving = self.moving(*self.parts.inputs(test))
        if not reached(test, chain(*moving)).isdisjoint(test.outputs):
            raise not_linear("while", self.parts.node)
        carried, captured = self.known(*self.parts.inputs(test))
        unread = [Value(v.aval) for v, _ in (*more, *self.written)]
        return rebuilt(test, (*carried, *unread, *captured), test.outputs)

    def linear_loop(self, trip: Value, longest: int, kept: Kept, filled: Sequence[Value]) -> Node:
        """The linear half: a loop that runs so often, over filled stacks."""
        constant = is_number(trip)
        b = GraphBuilder()
        carried, captured = self.moving(self.parts.carried, self.parts.captured)
        carried_in, captured_in = self.moving(self.carried, self.captured)
        used = values_read(self.halves, kept, where(self.outputs, self.moves, True))
        _, around_in = self.known((), self.captured)
        _, around = self.known((), self.parts.captured)
        around = [v for v, inside in zip(around, around_in) if inside in used]
        counted = [(self.halves.inputs[c.position], c) for c in self.counters if self.halves.inputs[c.position] in used]
        index = b.add_input(Aval((), I64))
        env = {v: b.add_input(v.aval) for v in carried_in}
        stacks = {stack.value: (stack, b.add_input(stack.aval)) for stack in self.stacks}
        env |= {v: b.add_input(v.aval) for v in around_in if v in used}
        starts = [b.add_input(c.start.aval) for _, c in counted]
        env |= {v: b.add_input(v.aval) for v in captured_in}
        with recording(b):
            if not constant:  # nothing else would say that the place is in the stacks
                index = ops.minimum(index, longest - 1)
            ops.bind(index, sym=Sym("i", 0, longest - 1))
            env[self.index] = index
            env |= {v: c.value(start, index) for (v, c), start in zip(counted, starts)}
            replay(b, self.halves, kept, env, lambda v: stacks[v][0].get(stacks[v][1], index), self.around)
        body = b.build([env[v] for v in where(self.outputs, self.moves, True)])
        outs = tuple(Value(v.aval) for v in carried)
        operands = (trip, *carried, *filled, *around, *(c.start for _, c in counted), *captured)
        return Node(ops.loop, operands, {"body": body, "carried": len(carried)}, outs, self.parts.node.source)

    def results(self, known: Sequence[Value], linear: Sequence[Value]) -> list[Value]:
        """The region's results, from both halves."""
        of_known, of_linear = iter(known), iter(linear)
        return [next(of_linear) if moves else next(of_known) for moves in self.moves]


@dataclass(frozen=True)
class _SavedStack:
    """Where a loop saves a value, an element for each iteration. A value of unknown size has a window of its place there."""

    value: Value
    length: int

    @property
    def aval(self) -> Aval:
        return Aval((self.length, *self.value.aval.bounds), self.value.dtype)

    def room(self) -> Value:
        empty: Value = ops.empty(shape=self.aval.shape, dtype=self.aval.dtype)
        return empty

    def put(self, stack: Value, index: Value) -> Value:
        x = ops.reshape(self.value, shape=(1, *self.value.shape))
        return ops.dynamic_update_slice(stack, x, *self._starts(index), step=(1,) * stack.ndim)

    def get(self, stack: Value, index: Value) -> Value:
        window = ops.dynamic_slice(stack, *self._starts(index), sizes=(1, *self.value.shape), step=(1,) * stack.ndim)
        return ops.reshape(window, shape=self.value.shape)

    def _starts(self, index: Value) -> list[Value]:
        return [index, *(ops.full(value=0, shape=(), dtype=I64) for _ in self.value.shape)]


def _longest(trip: Value, body: Graph) -> int:
    """How many iterations a loop has at most, as far as is known; 1 for none."""
    index = [node.params["sym"] for node in body.nodes if node.op is ops.bind and node.inputs[0] is body.inputs[0]]
    return max(1, min([limits_here(trip)[1], *(sym.high + 1 for sym in index)]))


def _longest_while(counters: Iterable[Counter]) -> int:
    """How many iterations a while has at most, as far as its counters say."""
    return max(1, min((n for c in counters if (n := c.iterations()) is not None), default=sys.maxsize))
