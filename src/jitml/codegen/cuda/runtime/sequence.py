"""Launch sequences: what a program asks of the device where each run asks for the same, but for addresses.

The program's steps run once with relative addresses, and what they would have asked for is noted. A run then fills in the bases.
A sequence of several launches is recorded by the device as a graph, and replayed by one call. Memory that is freed is soon used
again, so that a few graphs have the addresses of most runs; for others, the launches of a graph are changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from jitml.codegen.cuda.calls.plan import LibraryCall
from jitml.codegen.cuda.runtime.device import Device, DeviceFunction, DeviceGraph
from jitml.codegen.cuda.runtime.steps import BoundProgram, Run
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
class SequencedCopy:
    parameters: Parameters
    nbytes: int

    def run(self, device: Device, bases: Bases) -> None:
        target, source = self.parameters.at(bases)
        device.copy(target, source, self.nbytes)


@dataclass(frozen=True, slots=True)
class SequencedLibraryCall:
    call: LibraryCall
    parameters: Parameters

    def run(self, device: Device, bases: Bases) -> None:
        Run(device, 0).call_library(self.call, self.parameters.at(bases))


class _Noting(Run):
    """A run that notes what is asked for; addresses are relative."""

    def __init__(self, device: Device, error: Any) -> None:
        super().__init__(device, error)
        self.noted: list[SequencedLaunch | SequencedCopy | SequencedLibraryCall] = []

    def launch(self, function: DeviceFunction, blocks: int, threads: int, shared: int, addresses: Sequence[Any]) -> None:
        if blocks:
            self.noted.append(SequencedLaunch(function, blocks, threads, shared, Parameters(addresses)))

    def copy(self, target: Any, source: Any, nbytes: int) -> None:
        if nbytes and target != source:
            self.noted.append(SequencedCopy(Parameters([target, source]), nbytes))

    def call_library(self, call: LibraryCall, addresses: Sequence[Any]) -> None:
        self.noted.append(SequencedLibraryCall(call, Parameters(addresses)))


class LaunchSequence:
    """The steps of a program that can be recorded.

    Args:
        count: how many bases there are; the last one is the address of the error record.
    """

    def __init__(self, device: Device, bound: BoundProgram, count: int) -> None:
        run = _Noting(device, RelativeAddress(count - 1))
        bound.run([RelativeAddress(n) for n in range(count)], run)  # type: ignore[misc]  # steps only add to addresses, and compare them
        self._device, self._steps = device, run.noted
        fixed = (step.parameters.bases for step in self._steps if not isinstance(step, SequencedLaunch))
        self._fixed = sorted(frozenset[int]().union(*fixed))
        self._is_worth_a_graph = len(self._steps) >= _FEW
        self._graphs: OrderedDict[Bases, _SequenceGraph] = OrderedDict()  # the one that was used last is the last one
        self._seen: OrderedDict[Bases, None] = OrderedDict()

    def run(self, bases: Bases) -> None:
        device = self._device
        with device.lock, device.turn:
            recorded = self._recorded(bases) if self._is_worth_a_graph else None
            if recorded is not None:
                recorded.replay(bases)
                return
            for step in self._steps:
                step.run(device, bases)

    def _recorded(self, bases: Bases) -> _SequenceGraph | None:
        """A graph for these addresses: one that has them, a new one if they come again, or one that can be changed to them."""
        graphs, seen = self._graphs, self._seen
        recorded = graphs.get(bases)
        if recorded is not None:
            graphs.move_to_end(bases)
            return recorded
        is_known = bases in seen
        is_second = bool(seen) and not graphs
        seen[bases] = None
        if len(seen) > _SEEN:
            seen.popitem(last=False)
        fixed = [bases[n] for n in self._fixed]
        same = next((at for at in graphs if [at[n] for n in self._fixed] == fixed), None)
        if is_second or (is_known and (same is None or len(graphs) < _GRAPHS)):
            if len(graphs) >= _GRAPHS:
                graphs.popitem(last=False)
            recorded = _SequenceGraph(self._device, self._steps, bases)
        elif same is not None:
            recorded = graphs.pop(same)
        else:
            return None
        graphs[bases] = recorded
        return recorded


class _SequenceGraph:
    """A graph, and the addresses that its launches have."""

    def __init__(
        self, device: Device, steps: Sequence[SequencedLaunch | SequencedCopy | SequencedLibraryCall], bases: Bases
    ) -> None:
        def work() -> None:
            for step in steps:
                step.run(device, bases)

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
        self._graph.replay([(k, self._parameters[k].at(bases)) for k in users])
        self._bases = bases
