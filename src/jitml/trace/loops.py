"""How does a `for` or `while` become one node?  Its body is recorded over a symbolic index until nothing moves any more.

What a loop carries is found by recording: names whose value at the end of the body is not the one at its start, and storages
from outside that the body writes. A pass with what is known so far shows whether more is carried; the next pass starts there.
A name whose type moves gets a first iteration of its own (`Mode.PEELED`): after that it has the type of the others. What cannot
be captured at all is run as plain Python runs it (`Mode.PLAIN`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Dim, limits
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.types import BOOL, I64, Aval
from jitml.trace.bodies import Body
from jitml.trace.carried import Carried, Memory, Name, Outcome
from jitml.trace.context import active_trace, user_source
from jitml.trace.decisions import Mode, Site, decisions, refuse_region
from jitml.trace.drivers import UNDEF, Names, Values
from jitml.trace.iteration import Rows
from jitml.trace.names import same, take_apart, truth
from jitml.trace.numbers import TracedNumber, of_size
from jitml.trace.sizes import named, number, value_of_size
from jitml.trace.stacks import Growing
from jitml.trace.storage import Storage
from jitml.trace.tracers import TracedArray

_MOST_PASSES = 6
_INDEX = Aval((), I64)


class Loop:
    """What `for` and `while` have in common: recording passes over a body."""

    drives = True
    body: Body
    index: Value
    trip: Any = 0

    def __init__(self, place: Site) -> None:
        self.site = place
        self.source = user_source()
        self.mode = decisions().modes.get(self.site, Mode.ROLLED)
        self.born = next(Storage.count)
        self.held: dict[str, Any] = {}
        self.names: list[Name] = []
        self.passes = 0
        self.is_recording = False
        self.is_done = False

    def enter(self, names: Names, values: Values, targets: Names = ()) -> None:
        self.held = {name: values.get(name, UNDEF) for name in names}
        self.targets = targets
        self.memory = Memory(self)
        self.locals = values

    def load(self) -> tuple[Any, ...]:
        if not self.is_recording:
            return tuple(self.held.values())
        return tuple(name.start for name in self.names)

    def result(self) -> tuple[Any, ...]:
        held, self.held = self.held, {}
        # Whether an array of before is still there decides what may be written: no driver, and no frame's `locals()`, keeps one.
        self.memory.known.clear()
        self.locals.clear()
        return tuple(held.values())

    def _record(self) -> None:
        """Begin a pass."""
        if not self.names:
            self.names = [Name(name, value) for name, value in self.held.items()]
        self.passes += 1
        if self.passes > _MOST_PASSES:
            self.demote(UnsupportedError("what the loop carries does not settle", source=self.source))
        self.body = Body()
        self.body.resume()
        active_trace().root.open.append(self)
        self.is_recording = True

    def _begin(self) -> None:
        self.memory = Memory(self)
        for name in self.names:
            name.begin(self.body, self.memory)

    def _suspend(self) -> None:
        regions = active_trace().root.open
        if regions[-1] is not self:
            decisions().reconsider(active_trace(), UnsupportedError("an exception leaves a captured region"))
        regions.pop()
        self.body.suspend()
        self.is_recording = False

    def carries(self, name: str) -> bool:
        return any(carried.name == name for carried in self.names)

    def amend(self, error: BaseException) -> None:
        if self.may_be_plain:
            self.demote(error, Mode.PLAIN)

    def settle(self, error: BaseException) -> None:
        """What says how often it runs is assumed to be as it is in this call."""
        if not self.is_open:
            decisions().demote(self.site, Mode.PLAIN, error)

    @property
    def may_be_plain(self) -> bool:
        """Whether it is known how often the loop runs."""
        return True

    @property
    def is_open(self) -> bool:
        """Whether how often it runs may be a size of an argument that has been left open."""
        return not self.may_be_plain and bool(active_trace().root.opened)

    def demote(self, reason: BaseException, mode: Mode | None = None) -> None:
        """Trace the loop otherwise: the next mode that is left, or the one given."""
        if mode is None:
            mode = Mode.PEELED if self.mode is Mode.ROLLED else Mode.PLAIN
        known = decisions()
        if not self.may_be_plain:
            known.reasons[self.site] = reason
            known.reconsider(active_trace(), reason)
            known.settle_open(active_trace(), reason, self)
        if self.is_open:
            refuse_region("this loop cannot be captured, and how often it runs is not known while it is traced", self.site)
        known.demote(self.site, mode, reason)
        raise AssertionError("a loop that cannot be traced in any way")

    def _moved(self, values: Values) -> bool:
        """Whether the pass has shown that more is carried than it took for granted."""
        ends = [(name, values.get(name.name, UNDEF)) for name in self.names]
        self._see_exchange(ends)
        moved = [name for name, end in ends if name.moves(end, self)]  # all of them, not only the first
        if moved:
            return True
        self.memory.check([(name.arrays(name.entry), name.arrays(end)) for name, end in ends if end is not UNDEF])
        return False

    def _see_exchange(self, ends: list[tuple[Name, Any]]) -> None:
        """Names may exchange their arrays, as `x, y = y, x` does."""

    def _carried(self, values: Values, least: int) -> tuple[list[Carried], list[Storage], list[Outcome]]:
        """All that the loop carries. Call it in the body, at its end."""
        outcomes = [name.outcome(values.get(name.name, UNDEF), self.body, self.site, least, self.memory) for name in self.names]
        carried = [c for outcome in outcomes for c in outcome.carried]
        storages = list(self.body.written)
        for storage in storages:
            outside, inside = self.body.entry(storage)
            carried.append(Carried(partial(_identity, outside), inside, storage.value))
        return carried, storages, outcomes

    def _finish(self, results: list[Value], storages: list[Storage], outcomes: list[Outcome], names: list[Name]) -> None:
        """After the loop: storages and names hold its results."""
        values = iter(results)
        self.held = {name.name: outcome.show([next(values) for _ in outcome.carried]) for name, outcome in zip(names, outcomes)}
        for storage, value in zip(storages, values):
            storage.store(value)
        self.body.close()
        self.is_done = True
        self.names = []


def _identity(x: Value) -> Value:
    return x


class For(Loop):
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

    def __iter__(self) -> Iterator[Any]:
        low, high = limits(self.rows.trip)
        if high <= 0:
            return
        if self.mode is Mode.PEELED:
            if low < 1:
                self.demote(decisions().reasons[self.site], Mode.PLAIN)
            self.first = 1
            yield from self._plainly(0, 1)
            if self.stopped is True:
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
    def may_stack(self) -> bool:
        """Whether each iteration may append to a list: their number is known."""
        return self.period == 1 and self.may_be_plain

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
        if self._moved(values):
            self._suspend()
            self.body.close()
            return
        self.ends = {name: values.get(name, UNDEF) for name in self.targets}
        self._close(values, stop)

    def _close(self, values: Values, stop: Any) -> None:
        trip = self.trip
        carried, storages, outcomes = self._carried(values, limits(trip)[0])
        stops = stop is not False
        if stops:
            if any(type(name.start) is Growing for name in self.names):
                self.demote(UnsupportedError("a loop that appends to a list ends early", source=self.source), Mode.PLAIN)
            ends_at = truth(stop)
        places = {n: _leaf_position(self.element, end) for n, end in self.ends.items()}
        targets = [Name(n, UNDEF) for n, place in places.items() if place is None]
        made = [name.outcome(self.ends[name.name], self.body, self.site, limits(trip)[0], self.memory) for name in targets]
        carried[len(carried) - len(storages) : len(carried) - len(storages)] = [c for outcome in made for c in outcome.carried]
        if stops:
            started = self.body.input(ends_at)
            following = ops.add(self.index, number(1))
            starts = [self.index, started, *(c.start for c in carried)]
            graph, captured = self.body.finish(starts, [following, ends_at, *(c.end for c in carried)])
        else:
            graph, captured = self.body.finish([self.index, *(c.start for c in carried)], [c.end for c in carried])
        self._suspend()
        before = [c.before() for c in carried]
        if stops:
            first = truth(self.stopped)
            count = value_of_size(trip)
            test = _goes_on(graph, [*captured, count])
            graph = Graph((*graph.inputs, Value(count.aval)), graph.nodes, graph.outputs)
            begin = (number(0), first, *before)
            done, stopped, *results = ops.while_(*begin, *captured, count, test=test, body=graph, carried=len(begin))
            self.stopped = TracedNumber.of_value(active_trace(), stopped)
            last: Any = of_size(named(ops.sub(done, number(1)), 0, limits(trip)[1] - 1))
        else:
            results = list(ops.loop(value_of_size(trip), *before, *captured, body=graph, carried=len(before)))
            last = of_size(trip - 1)
        self._finish(results, storages, [*outcomes, *made], [*self.names, *targets])
        self.ends = {name: self.held.pop(name) if name in self.held else UNDEF for name in self.ends}
        self._show_targets(last, places)

    def _show_targets(self, last: Any, places: dict[str, int | None]) -> None:
        """The targets hold parts of the last element."""
        bound = limits(self.rows.trip)[0] > 0
        parts = take_apart(self.rows.at(last * self.period + self.first + self.period - 1)).leaves if bound else ()
        for name, place in places.items():
            if place is not None:
                self.ends[name] = parts[place] if bound else UNDEF
                if not bound:
                    decisions().lost[name] = self.site

    def result(self) -> tuple[Any, ...]:
        if limits(self.rows.trip)[1] <= 0:
            return (*self.held.values(), *(UNDEF for _ in self.targets))
        ends, self.ends = self.ends, {}
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
    """The test of a `for` that may end early: index < count and not stopped."""
    builder = GraphBuilder()
    inputs = [builder.add_input(v.aval) for v in body.inputs]
    count = builder.add_input(captured[-1].aval)
    for sym, v in body.binders().items():
        if v in body.inputs:
            builder.emit(ops.bind, (inputs[body.inputs.index(v)],), {"sym": sym}, (), None)
    with recording(builder):
        return builder.build([ops.bit_and(ops.lt(inputs[0], count), ops.bit_not(inputs[1]))])


class While(Loop):
    """The driver of a `while` whose test is traced."""

    def __init__(self, stopped: Any, place: Site) -> None:
        super().__init__(place)
        self.stopped = stopped  # whether it has ended before, in iterations that ran apart
        self.tested: frozenset[Node] = frozenset()
        self.outcome: Value | None = None

    @property
    def may_be_plain(self) -> bool:
        return False

    @property
    def is_open(self) -> bool:
        return False

    def __iter__(self) -> Iterator[None]:
        while not self.is_done:
            self._record()
            self._begin()
            yield None

    def test(self, value: Any) -> bool:
        if value is False:
            raise UnsupportedError("the test of a loop becomes a constant", source=self.source)
        self.outcome = ops.full(value=True, shape=(), dtype=BOOL) if value is True else truth(value)
        self.tested = frozenset(self.body.trace.builder.nodes)
        return True

    def ends(self, names: Names, values: Values) -> bool:
        return True

    def step(self, values: Values, stop: Any = False) -> None:
        if self._moved(values):
            self._suspend()
            self.body.close()
            return
        self._close(values, stop)

    def _close(self, values: Values, stop: Any) -> None:
        carried, storages, outcomes = self._carried(values, 0)
        assert self.outcome is not None
        starts, ends = [c.start for c in carried], [c.end for c in carried]
        stops = stop is not False or self.stopped is not False
        if stops:
            stopped = truth(stop)
            starts, ends = [self.body.input(stopped), *starts], [stopped, *ends]
        graph, captured = self.body.finish(starts, [*ends, self.outcome])
        self._suspend()
        body = Graph(graph.inputs, graph.nodes, graph.outputs[:-1])
        test = _test(graph, self.tested, stops)
        before = [c.before() for c in carried]
        if stops:
            before = [truth(self.stopped), *before]
        results = list(ops.while_(*before, *captured, test=test, body=body, carried=len(before)))
        self._finish(results[1:] if stops else results, storages, outcomes, self.names)


def _test(graph: Graph, tested: frozenset[Node], stops: bool) -> Graph:
    """The part of a body that computes the test, as a graph of its own; where the body may stop, its first input says so."""
    builder = GraphBuilder()
    inputs = [builder.add_input(v.aval) for v in graph.inputs]
    nodes = [node for node in graph.nodes if node in tested or (node.op is ops.bind and node.inputs[0] in graph.inputs)]
    (outcome,) = builder.inline(Graph(graph.inputs, tuple(nodes), graph.outputs[-1:]), inputs)
    with recording(builder):
        return builder.build([ops.bit_and(outcome, ops.bit_not(inputs[0])) if stops else outcome])


__all__ = ["For", "While"]
