"""Launch sequences: what a program asks of the device where each run asks for the same, but for addresses.

The program's steps run once with relative addresses, and what they would have asked for is noted. A run then fills in the bases.
A sequence of several launches is recorded by the device as a graph, and replayed by one call. Memory that is freed is soon used
again, so that a few graphs have the addresses of most runs; for others, the launches of a graph are changed. What depends on
conditions is not changed, and happens in graphs only: without one, the host drives regions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from jitml.codegen.cuda.calls.plan import LibraryCall
from jitml.codegen.cuda.runtime.device import Device, DeviceFunction, DeviceGraph
from jitml.codegen.cuda.runtime.run import NO_CONDITION, Run, RunStopped
from jitml.codegen.cuda.runtime.steps import BoundProgram
from jitml.records import dataclass

_FEW = 3  # launches below which a graph gains nothing
_GRAPHS = 4  # that are kept, for other addresses each
_SEEN = 16  # addresses of the last runs

Bases: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RelativeAddress:
    """An address before it is known: a base, by its number, and bytes from there on."""

    base: int
    offset: int = 0

    def __add__(self, nbytes: int) -> RelativeAddress:
        return RelativeAddress(self.base, self.offset + nbytes)

    def __sub__(self, nbytes: int) -> RelativeAddress:
        return RelativeAddress(self.base, self.offset - nbytes)


class Parameters:
    """Relative addresses, and numbers among them."""

    def __init__(self, given: Sequence[Any]) -> None:
        self._pairs = [(p.base, p.offset) if isinstance(p, RelativeAddress) else (None, p) for p in given]
        self.bases = frozenset(base for base, _ in self._pairs if base is not None)
        is_plain = len(given) > 1 and all(base is not None and not offset for base, offset in self._pairs)
        self._get = itemgetter(*(base for base, _ in self._pairs)) if is_plain else None

    def at(self, bases: Bases) -> Sequence[int]:
        if self._get is not None:
            found: Sequence[int] = self._get(bases)
            return found
        return [offset if base is None else bases[base] + offset for base, offset in self._pairs]


@dataclass(frozen=True, slots=True)
class SequencedLaunch:
    function: DeviceFunction
    blocks: int
    threads: int
    shared: int
    parameters: Parameters

    def run(self, device: Device, bases: Bases) -> None:
        device.launch(self.function, self.blocks, self.threads, self.shared, self.parameters.at(bases))


@dataclass(frozen=True, slots=True)
class SequencedLibraryCall:
    call: LibraryCall
    parameters: Parameters

    def run(self, device: Device, bases: Bases) -> None:
        Run(device, 0).call_library(self.call, self.parameters.at(bases))


@dataclass(frozen=True, slots=True)
class SequencedConditional:
    """Steps that happen if a condition holds, or as long as it does; conditions are bases behind those that are addresses."""

    kind: Literal["if", "while"]
    condition: int
    steps: Sequence[SequencedStep]

    def run(self, device: Device, bases: Bases) -> None:
        def work() -> None:
            for step in self.steps:
                step.run(device, bases)

        device.conditional(self.kind, bases[self.condition], work)


SequencedStep: TypeAlias = SequencedLaunch | SequencedLibraryCall | SequencedConditional


class _Noting(Run):
    """A run that notes what is asked for; addresses are relative.

    Args:
        count: how many bases are addresses.
    """

    decides = True

    def __init__(self, device: Device, error: Any, count: int) -> None:
        super().__init__(device, error)
        self.noted: list[SequencedStep] = []
        self._count = count
        self.conditions: list[bool] = []  # whether anything depends on each

    def launch(self, function: DeviceFunction, blocks: int, threads: int, shared: int, addresses: Sequence[Any]) -> None:
        if blocks:
            self.noted.append(SequencedLaunch(function, blocks, threads, shared, Parameters(addresses)))

    def call_library(self, call: LibraryCall, addresses: Sequence[Any]) -> None:
        self.noted.append(SequencedLibraryCall(call, Parameters(addresses)))

    def condition(self) -> Any:
        self.conditions.append(False)
        return RelativeAddress(self._count + len(self.conditions) - 1)

    def conditional(self, kind: Literal["if", "while"], condition: Any, work: Callable[[], None]) -> None:
        around, self.noted = self.noted, []
        try:
            work()
            if self.noted:
                self.conditions[condition.base - self._count] = True
                around.append(SequencedConditional(kind, condition.base, self.noted))
        finally:
            self.noted = around


class LaunchSequence:
    """The steps of a program that can be recorded.

    Args:
        count: how many bases there are; the last one is the address of the error record.
        has_error: whether there is one.
    """

    def __init__(self, device: Device, bound: BoundProgram, count: int, *, has_error: bool = True) -> None:
        run = _Noting(device, RelativeAddress(count - 1) if has_error else 0, count)
        bound.run([RelativeAddress(n) for n in range(count)], run)  # type: ignore[misc]  # steps only add to addresses, and compare them
        self._device, self._bound, self._has_error = device, bound, has_error
        self._steps, self._conditions = run.noted, run.conditions
        self._fixed = sorted({n for n in _unchangeable(self._steps) if n < count})
        self._has_loops = any(isinstance(step, SequencedConditional) and step.kind == "while" for step in self._steps)
        self._is_worth_a_graph = len(self._steps) >= _FEW or bound.decides
        self._graphs: OrderedDict[Bases, _SequenceGraph] = OrderedDict()  # the one that was used last is the last one
        self._seen: OrderedDict[Bases, None] = OrderedDict()

    def run(self, bases: Bases) -> None:
        device = self._device
        with device.lock, device.turn:
            recorded = self._recorded(bases) if self._is_worth_a_graph else None
            if recorded is not None:
                recorded.replay(bases)
                return
            if self._bound.decides:
                with suppress(RunStopped):  # the error record says why
                    self._bound.run(bases, Run(device, bases[-1] if self._has_error else 0))
                return
            for step in self._steps:
                step.run(device, bases)

    def _recorded(self, bases: Bases) -> _SequenceGraph | None:
        """A graph for these addresses: one that has them, a new one if they come again, or one that can be changed to them.

        For a loop that the device ends itself there is always one: nobody knows how often the host would have to wait.
        """
        graphs, seen = self._graphs, self._seen
        recorded = graphs.get(bases)
        if recorded is not None:
            graphs.move_to_end(bases)
            return recorded
        is_known = bases in seen
        is_due = (bool(seen) and not graphs) or self._has_loops
        seen[bases] = None
        if len(seen) > _SEEN:
            seen.popitem(last=False)
        fixed = [bases[n] for n in self._fixed]
        same = next((at for at in graphs if [at[n] for n in self._fixed] == fixed), None)
        if is_due or (is_known and (same is None or len(graphs) < _GRAPHS)):
            if len(graphs) >= _GRAPHS:
                graphs.popitem(last=False)
            recorded = _SequenceGraph(self._device, self._steps, bases, self._conditions)
        elif same is not None:
            recorded = graphs.pop(same)
        else:
            return None
        graphs[bases] = recorded
        return recorded


class _SequenceGraph:
    """A graph, its conditions, and the addresses that its launches have."""

    def __init__(self, device: Device, steps: Sequence[SequencedStep], bases: Bases, conditions: Sequence[bool]) -> None:
        def work() -> None:
            self._conditions = tuple(device.new_condition() if is_used else NO_CONDITION for is_used in conditions)
            for step in steps:
                step.run(device, bases + self._conditions)

        self._graph: DeviceGraph = device.record(work)
        self._parameters = [step.parameters for step in steps if isinstance(step, SequencedLaunch)]
        self._bases = bases
        self._users = [[k for k, p in enumerate(self._parameters) if n in p.bases] for n in range(len(bases))]

    def replay(self, bases: Bases) -> None:
        if bases == self._bases:
            self._graph.replay()
            return
        before, self._bases = self._bases, ()  # until all are changed: an exception may come between
        changed = [n for n, address in enumerate(bases) if not before or address != before[n]]
        users = {k for n in changed for k in self._users[n]}
        given = bases + self._conditions
        self._graph.replay([(k, self._parameters[k].at(given)) for k in users])
        self._bases = bases


def _unchangeable(steps: Sequence[SequencedStep], *, all_of_them: bool = False) -> Iterator[int]:
    """The bases of what a graph cannot be changed in."""
    for step in steps:
        if isinstance(step, SequencedConditional):
            yield from _unchangeable(step.steps, all_of_them=True)
        elif all_of_them or not isinstance(step, SequencedLaunch):
            yield from step.parameters.bases
