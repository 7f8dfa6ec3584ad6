"""Region bodies: how is the body of a region recorded?

`RegionBody`: an inner trace that can be left and taken up again, until it is a graph.

While a body is recorded, storages from around it hold values of the body: the first read gives it an input for what they held
(`Storage.load`). Leaving it puts back what they hold outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jitml.ir import ops
from jitml.ir.graph import Graph, Value
from jitml.trace.record.checkpoints import Checkpoints, outlined
from jitml.trace.record.recording import Trace, active_trace, switch
from jitml.trace.speculation.modes import Decider
from jitml.trace.storage.storage import EnteredStorages, Storage
from jitml.trace.symbolic.booleans import TRUTH
from jitml.trace.values.container_identity import MadeInside


class RegionBody:
    """A recording inside the current one, of a construct that `decider` has traced in another way."""

    def __init__(self, decider: Decider) -> None:
        self.parent = active_trace()
        self.trace = Trace(self.parent)
        self.trace.root.constructs[self.trace.builder] = decider
        self.trace.is_body = True
        self._held: dict[Storage, Value] = {}

    def resume(self) -> None:
        """Record into the body."""
        for storage, value in self._held.items():
            storage.value = value
        switch(self.trace)

    def suspend(self) -> None:
        """Record into what surrounds it; storages are as if the body had not run."""
        known = self.trace.local[EnteredStorages].known
        self._held = {storage: storage.value for storage in known}
        for storage, (outside, _) in known.items():
            storage.value = outside
        switch(self.parent)

    def input(self, like: Value) -> Value:
        """A new input for something that the region carries."""
        return self.trace.builder.add_input(like.aval)

    def truth(self) -> Value:
        """The same for a truth."""
        return self.trace.builder.add_input(TRUTH)

    @property
    def written(self) -> tuple[Storage, ...]:
        """The storages from around the body that it writes."""
        return tuple(self.trace.local[EnteredStorages].written)

    def held(self, storage: Storage) -> Value | None:
        """What a storage from around holds at the end of a body that is suspended; None if the body does not know it."""
        return self._held.get(storage)

    def entry(self, storage: Storage) -> tuple[Value, Value]:
        """What a storage that is known here held as the body began: the value outside, and the one inside."""
        return self.trace.local[EnteredStorages].known[storage]

    def captured(self, carried: Sequence[Value]) -> dict[Value, Value]:
        """Inside -> outside, for all inputs that are not carried."""
        outer = {inside: outside for outside, inside in self.trace.builder.captured.items()}
        outer |= {inside: outside for outside, inside in self.trace.local[EnteredStorages].known.values()}
        return {v: outer[v] for v in self.trace.builder.inputs if v in outer and v not in carried}

    def finish(self, carried: Sequence[Value], outputs: Sequence[Value]) -> tuple[Graph, list[Value]]:
        """The graph, with the carried inputs first, and the values outside for the others. Call it in the body."""
        builder = self.trace.builder
        outputs = [builder.capture(v) for v in outputs]
        self.trace.bind_outer()
        nodes = sorted(builder.nodes, key=lambda node: node.op is not ops.bind or node.inputs[0] not in builder.inputs)
        used = {v for node in builder.nodes for v in node.inputs}.union(outputs)
        outer = {v: outside for v, outside in self.captured(carried).items() if v in used}
        graph = Graph((*carried, *outer), tuple(nodes), tuple(outputs))
        return outlined(graph, self.trace.local[Checkpoints]), list(outer.values())

    def has_made(self, things: Iterable[Any]) -> bool:
        """Whether one of these is an object of the body's own."""
        return any(id(x) in self.trace.local[MadeInside] for x in things)

    def close(self) -> None:
        """Nothing may be recorded any more, and its values may not be used."""
        self.trace.closed = True
