"""`for` capture: how does a `for` become one `loop` node, or a `while_` where it may end early?  The body over a symbolic index.

A loop whose names exchange arrays (`x, y = y, x`) has as many iterations in its body as it takes until each has its own again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Dim, limits
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.op import recording
from jitml.ir.types import I64, Aval
from jitml.trace.carried.variables import Name
from jitml.trace.lists.sequences import Rows
from jitml.trace.record.recording import active_trace
from jitml.trace.regions.loop import TracedLoop
from jitml.trace.rewrite.driver_protocol import UNDEF, Values
from jitml.trace.speculation.modes import Mode, Site, decisions
from jitml.trace.symbolic.booleans import any_of
from jitml.trace.symbolic.sizes import named, number, value_of_size
from jitml.trace.values.boxing import TracedArray
from jitml.trace.values.kinds import kind_of, same, take_apart, truth
from jitml.trace.values.numbers import TracedNumber, of_size
from jitml.trace.values.open_names import open_name, parts
from jitml.trace.values.type_unions import doubt_of

_INDEX = Aval((), I64)


class For(TracedLoop):
    """The driver of a `for` over rows that are computed from their position."""

    def __init__(self, rows: Rows, place: Site) -> None:
        super().__init__(place)
        self.rows = rows
        self.first = 0
        self.stopped: Any = False
        self.element: Any = None
        self.interim: Values | None = None
        self.period = decisions().periods.get(self.site, 1)

    @property
    def may_be_plain(self) -> bool:
        return not isinstance(self.rows.trip, Dim)

    @property
    def runs_surely(self) -> bool:
        return limits(self.rows.trip)[0] >= 1

    def __iter__(self) -> Iterator[Any]:
        low, high = limits(self.rows.trip)
        if high <= 0:
            self.rows.ended(None)
            return
        if self.mode is Mode.PEELED:
            if low < 1:
                self.demote(decisions().reasons[self.site], Mode.PLAIN)
            self.first = 1
            with decisions().first_iteration():
                yield from self._plainly(0, 1)
            if self.stopped is True:
                self.rows.ended(self.decider)
                return
        while not self.is_done and self.first < high:
            self._record()
            self.index = self.body.trace.builder.add_input(_INDEX)
            place = self.body.trace.bind(self.index, 0, self.trip - 1, "i")
            position = of_size(self.period * place + self.first)
            self._begin()
            for part in range(self.period):
                self.is_last_part = part == self.period - 1
                self.element = self.rows.at(position if part == 0 else position + part)
                yield self.element
        if self.period > 1:
            yield from self._plainly(self.first + self.trip * self.period, int(self.rows.trip))

    def _plainly(self, start: int, stop: int) -> Iterator[Any]:
        for position in range(start, stop):
            self.element = self.rows.at(position)
            yield self.element

    @property
    def trip(self) -> Any:
        """How often the body runs in the graph."""
        return (self.rows.trip - self.first) // self.period if self.period > 1 else self.rows.trip - self.first

    def load(self) -> tuple[Any, ...]:
        if self.is_recording and self.interim is not None:
            return tuple(self.interim.get(name.name, UNDEF) for name in self.names)
        return super().load()

    def _see_exchange(self, ends: list[tuple[Name, Any]]) -> None:
        moved = [(name, end) for name, end in ends if type(name.start) is type(end) is TracedArray and not same(name.start, end)]
        place = {id(name): next((n for n, (x, _) in enumerate(moved) if same(x.start, end)), -1) for name, end in moved}
        order = [place[id(name)] for name, _ in moved]
        if order and sorted(order) == list(range(len(order))) and self.may_be_plain and self.period == 1:
            decisions().periods[self.site] = _period(order)
            decisions().again()

    def step(self, values: Values, stop: Any = False) -> None:
        if not self.is_recording:
            self.held = {name: values.get(name, UNDEF) for name in self.held}
            self.ends = {name: values.get(name, UNDEF) for name in self.targets}
            self.stopped = stop
            return
        self.interim = None if self.is_last_part else dict(values)
        if not self.is_last_part:
            if stop is not False:
                self.demote(UnsupportedError("a loop that exchanges arrays ends early", source=self.source), Mode.PLAIN)
            return
        self.is_whole = stop is False
        if self._moved(values):
            self._suspend()
            self.body.close()
            return
        self.ends = {name: values.get(name, UNDEF) for name in self.targets}
        self._close(values, stop)

    def _close(self, values: Values, stop: Any) -> None:
        trip = self.trip
        stops = stop is not False
        least = max(limits(trip)[0], 0)  # the limits of a difference of sizes allow what no size is
        if stops:
            ends_at = truth(stop)
            # It may have ended in the iteration that ran apart.
            least = min(least, 1) if self.stopped is False else 0
        places = {n: _leaf_position(self.element, end) for n, end in self.ends.items()}
        self.rebound = [Name(n, UNDEF) for n, place in places.items() if place is None]
        carried, storages, outcomes = self._carried(values, least)
        if stops:
            started = self.body.input(ends_at)
            following = ops.add(self.index, number(1))
            starts = [self.index, started, *(c.start for c in carried)]
            graph, captured = self.body.finish(starts, [following, ends_at, *(c.end for c in carried)])
        else:
            graph, captured = self.body.finish([self.index, *(c.start for c in carried)], [c.end for c in carried])
        self._suspend()
        self.rows.ended(self.decider if stops else None)
        before = [c.before() for c in carried]
        if stops:
            first = truth(self.stopped)
            count = value_of_size(trip)
            test = _goes_on(graph, [*captured, count])
            graph = Graph((*graph.inputs, Value(count.aval)), graph.nodes, graph.outputs)
            begin = (number(0), first, *before)
            with active_trace().builder.at(self.source):
                done, stopped, *results = ops.while_(*begin, *captured, count, test=test, body=graph, carried=len(begin))
            self.stopped = TracedNumber.of_value(active_trace(), stopped)
            last: Any = of_size(named(ops.sub(done, number(1)), least - 1, limits(trip)[1] - 1))
        else:
            times = value_of_size(trip)
            with active_trace().builder.at(self.source):
                results = list(ops.loop(times, *before, *captured, body=graph, carried=len(before)))
            last = of_size(trip - 1)
        self._finish(results, storages, outcomes)
        self.ends = {name: self.held.pop(name) if name in self.held else UNDEF for name in self.ends}
        self._show_targets(last, places)

    def _show_targets(self, last: Any, places: dict[str, int | None]) -> None:
        """The targets hold parts of the last element."""
        surely = limits(self.rows.trip)[0] > 0
        known = {name: place for name, place in places.items() if place is not None}
        wanted = [name for name in known if surely or decisions().wants(name, self.site)]
        if wanted and not surely:
            last = of_size(named(ops.maximum(value_of_size(last.size), number(0)), 0, limits(last.size)[1]))
        leaves = take_apart(self.rows.at(last * self.period + self.first + self.period - 1)).leaves if wanted else ()
        for name, place in known.items():
            self.ends[name] = UNDEF if name not in wanted else leaves[place] if surely else self._if_run(name, leaves[place])

    def _if_run(self, name: str, last: Any) -> Any:
        """What a target holds after a loop that may not have run: the last element, or, of numbers, what it held before."""
        ran = ops.gt(value_of_size(self.rows.trip), number(0))
        before, bound, _ = parts(self.befores[name])
        kind = kind_of(last)
        if bound is False or kind is None or kind.form == "array" or kind != kind_of(before) or doubt_of(before):
            return open_name(name, last, ran, True, self.decider)
        value = ops.select(ran, kind.take(last), kind.take(before))
        return open_name(name, kind.show(value), any_of(ran, bound), True, self.decider)

    def result(self) -> tuple[Any, ...]:
        if limits(self.rows.trip)[1] <= 0:
            return (*self.held.values(), *self.befores.values())
        ends, self.ends, self.befores = self.ends, {}, {}
        return (*super().result(), *ends.values())


def _period(order: list[int]) -> int:
    """How often a permutation has to be applied until everything is where it was.

    >>> _period([1, 0]), _period([1, 2, 0])
    (2, 3)
    """
    now, count = order, 1
    while now != sorted(now):
        now, count = [order[n] for n in now], count + 1
    return count


def _leaf_position(element: Any, end: Any) -> int | None:
    """Which leaf of the loop's element a target still is at the end of the body."""
    leaves = take_apart(element).leaves
    found = next((n for n, leaf in enumerate(leaves) if leaf is end or same(leaf, end)), None)
    # An element that was copied out of an array may have been overwritten there since.
    return found if type(end) is TracedArray or (type(end) is TracedNumber and end.size is not None) else None


def _goes_on(body: Graph, captured: list[Value]) -> Graph:
    """The test of a `for` that may end early: index < count and not stopped.

    The index of the body has the limits of a size. Here it has not: in the end it is one past the last.
    """
    builder = GraphBuilder()
    inputs = [builder.add_input(v.aval) for v in body.inputs]
    count = builder.add_input(captured[-1].aval)
    for sym, v in body.binders().items():
        if v in body.inputs[1:]:
            builder.emit(ops.bind, (inputs[body.inputs.index(v)],), {"sym": sym}, (), None)
    with recording(builder):
        return builder.build([ops.bit_and(ops.lt(inputs[0], count), ops.bit_not(inputs[1]))])
