"""`while` capture: how does a `while` become one `while_` node?

Its test is recorded at the start of the body, and cut out in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.types import BOOL
from jitml.trace.record.checkpoints import Checkpoints
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.regions.branch import TracedIf, facts_of
from jitml.trace.regions.loop import TracedLoop
from jitml.trace.rewrite.driver_protocol import UNDEF, Names, Values
from jitml.trace.speculation.modes import Mode, Site, decisions, is_ours
from jitml.trace.storage.storage import EnteredStorages
from jitml.trace.symbolic.constants import unknowns_of
from jitml.trace.values.boxing import is_traced
from jitml.trace.values.kinds import is_decided, truth

_STOP = "__jm_stop__"


class TracedWhile(TracedLoop):
    """The driver of a `while`: of a whole one, or of what is left of one that began as plain Python."""

    def __init__(self, place: Site, stopped: Any = False, *, born: int | None = None) -> None:
        super().__init__(place)
        self.stopped = stopped  # whether it has ended before, in iterations that ran apart
        self.is_first = born is None  # whether none of its iterations ran apart
        self.born = self.born if born is None else born
        self.tested: frozenset[Node] = frozenset()
        self.outcome: Value | None = None
        self.rest: TracedIf | None = None  # the body, as a branch that depends on the test
        self.place = self.site, decisions().apart

    @property
    def may_be_plain(self) -> bool:
        return self.is_first and (self.outcome is None or self._begins_concretely(self.outcome))

    def _begins_concretely(self, outcome: Value) -> bool:
        """Whether Python can tell the test before the first iteration: what it depends on is known then."""
        entries = {leaf.start: leaf.entry for name in self.names for leaf in name.leaves}
        for v in unknowns_of(outcome):
            leaf = entries.get(v) if v is not None else UNDEF
            if leaf is None or leaf is UNDEF or (is_traced(leaf) and not is_decided(leaf)):
                return False
        return True

    @property
    def is_open(self) -> bool:
        return False

    def amend(self, error: BaseException) -> None:
        """Of an exception that is the program's own, in the first iteration: the loop is not entered, or the program ends."""
        is_own = not (is_ours(error) or isinstance(error, NameError))
        if is_own and self.passes == 1 and self.outcome is not None and not self.may_be_plain:
            decisions().leave_out(self.place, True, repr(error))
        super().amend(error)

    def __iter__(self) -> Iterator[None]:
        while not self.is_done:
            self._record()
            self._begin()
            yield None

    def test(self, value: Any) -> bool:
        if is_traced(value) and not is_decided(value):
            self.outcome = truth(value)
            self.body.trace.facts = facts_of(value)[0]
        elif value:
            self.outcome = ops.full(value=True, shape=(), dtype=BOOL)
        else:
            self._never_runs()
            return False
        if self.body.trace.local[EnteredStorages].written:
            self._test_once(value)
        else:
            self.tested = frozenset(self.body.trace.builder.nodes)
            self.body.trace.local[Checkpoints].clear()  # the test becomes a graph of its own, of just these nodes
        return True

    def _test_once(self, value: Any) -> None:
        """A test that draws or writes runs once in each iteration: it stays in the body, whose rest is a branch."""
        self.outcome = ops.full(value=True, shape=(), dtype=BOOL)
        self.tested = frozenset(self.body.trace.builder.nodes[-1:])
        if not is_traced(value) or is_decided(value):
            return
        self.rest = TracedIf(value, self.site)
        if self.rest.raising:
            unsupported("a loop's body raises, and its test draws random numbers or writes into an array")
        self.rest.enter((*(name.name for name in self.names), _STOP), {**{n.name: n.start for n in self.names}, _STOP: True})
        self.sides = iter(self.rest)
        assert next(self.sides), "the branch that goes on comes first"

    def _rest_ends(self, values: Values, stop: Any) -> tuple[Values, Any]:
        rest, self.rest = self.rest, None
        assert rest is not None
        rest.step({**values, _STOP: stop})
        assert not next(self.sides)
        rest.step({**{name.name: name.start for name in self.names}, _STOP: True})
        *ends, stop = rest.result()
        return dict(zip((name.name for name in self.names), ends)), stop

    def _never_runs(self) -> None:
        """The test is false whatever the names hold."""
        recorded = self.body.trace
        if recorded.local[EnteredStorages].written or any(node.has_effect for node in recorded.builder.nodes):
            self.demote(UnsupportedError("the test of a loop does more than compute a value", source=self.source), Mode.PLAIN)
        self._suspend()
        self.body.close()
        self.is_done = True

    def ends(self, names: Names, values: Values) -> bool:
        return True

    def step(self, values: Values, stop: Any = False) -> None:
        if self.rest is not None:
            values, stop = self._rest_ends(values, stop)
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
        with active_trace().builder.at(self.source):
            results = list(ops.while_(*before, *captured, test=test, body=body, carried=len(before)))
        self._finish(results[1:] if stops else results, storages, outcomes)


def _test(graph: Graph, tested: frozenset[Node], stops: bool) -> Graph:
    """The part of a body that computes the test, as a graph of its own; where the body may stop, its first input says so."""
    builder = GraphBuilder()
    inputs = [builder.add_input(v.aval) for v in graph.inputs]
    nodes = [node for node in graph.nodes if node in tested or (node.op is ops.bind and node.inputs[0] in graph.inputs)]
    (outcome,) = builder.inline(Graph(graph.inputs, tuple(nodes), graph.outputs[-1:]), inputs)
    with recording(builder):
        return builder.build([ops.bit_and(outcome, ops.bit_not(inputs[0])) if stops else outcome])
