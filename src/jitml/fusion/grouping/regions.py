"""Regions as steps: how does a node that holds graphs become a step?

Its bodies are fused like programs; this says which buffer is which.

What a loop carries is updated in place: body output and body input are one buffer of the program around, which holds the
initial value when the step starts. The same goes for what both branches of a `cond` make out of one operand. Where arrays
change names (`u, v = v, f(u)`), an output ends up in the memory of the array that it was, and the loop changes the pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import BOOL, I64, DType
from jitml.kernels.ir import Buffer
from jitml.kernels.program import KernelProgram, Region
from jitml.records import dataclass, replace

UPDATES = (ops.update_slice, ops.dynamic_update_slice, ops.scatter)  # their first operand, changed in part


def before_checks(value: Value, producers: Mapping[Value, Node]) -> Value:
    """What a value is the checked form of: the same memory."""
    while (maker := producers.get(value)) is not None and maker.op is ops.check:
        value = maker.inputs[0]
    return value


class FuseBody(Protocol):
    """Fuses a body, given which output ends up in which input, and the element strides of inputs."""

    def __call__(self, body: Graph, aliases: Mapping[int, int], strides: Mapping[int, tuple[int, ...]]) -> KernelProgram: ...


@dataclass(frozen=True, slots=True)
class RegionSite:
    """What a rule is given: the program around.

    reads: where the node's operands lie. writes: where its results go.
    """

    node: Node
    name: str
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    trips: int | None  # of a loop, where it is known
    fuse: FuseBody
    new_buffer: Callable[[DType, tuple[int, ...]], Buffer]
    new_constant: Callable[[np.ndarray[Any, Any]], str]

    def region(
        self, kind: Literal["loop", "while", "cond"], bodies: Sequence[FusedBody], control: str | int, **more: Any
    ) -> Region:
        fused = [body.fused(self) for body in bodies]
        programs, arguments = tuple(program for program, _ in fused), tuple(names for _, names in fused)
        results = tuple(body.results for body in bodies)
        sources = (self.node.source,) if self.node.source else ()
        return Region(self.name, kind, programs, arguments, results, control, sources=sources, **more)


@dataclass(frozen=True, slots=True)
class FusedBody:
    """A graph, with the outer buffer of each input and the names of those of its outputs."""

    graph: Graph
    arguments: tuple[Buffer, ...]
    results: tuple[str, ...]

    def fused(self, site: RegionSite) -> tuple[KernelProgram, tuple[str, ...]]:
        """The body's program, and the names of its arguments. Its constants have become inputs."""
        names = tuple(b.name for b in self.arguments)
        aliases = {k: names.index(name) for k, name in enumerate(self.results) if name in names}
        strides = {k: b.strides for k, b in enumerate(self.arguments) if b.strides is not None}
        program = site.fuse(self.graph, aliases, strides)
        inputs = (*program.inputs, *program.constants)
        names = (*names, *map(site.new_constant, program.constants.values()))
        return replace(program, inputs=inputs, constants={}), names


def loop_step(site: RegionSite) -> Region:
    (trip, *operands), carried, body = site.reads, site.node.params["carried"], site.node.params["body"]
    index = site.new_buffer(I64, ())
    run = FusedBody(body, (index, *site.writes, *operands[carried:]), landing(body, site.writes, first=1))
    control = trip.name if site.trips is None else site.trips
    return site.region("loop", [run], control, index=index.name, updates=_updates(site.writes, operands))


def while_step(site: RegionSite) -> Region:
    carried, going_on = site.node.params["carried"], site.new_buffer(BOOL, ())
    arguments = (*site.writes, *site.reads[carried:])
    test = FusedBody(site.node.params["test"], arguments, (going_on.name,))
    graph = site.node.params["body"]
    body = FusedBody(graph, arguments, landing(graph, site.writes, first=0))
    return site.region("while", [test, body], going_on.name, updates=_updates(site.writes, site.reads))


def cond_step(site: RegionSite) -> Region:
    which, *operands = site.reads
    branches = [site.node.params["then"], site.node.params["orelse"]]
    updated = updated_operands(site.node)
    arguments = list(operands)
    for result, operand in updated.items():
        arguments[operand] = site.writes[result]
    bodies = [FusedBody(graph, tuple(arguments), _names(site.writes)) for graph in branches]
    updates = {site.writes[result].name: operands[operand].name for result, operand in updated.items()}
    return site.region("cond", bodies, which.name, updates=updates)


def landing(body: Graph, carried: Sequence[Buffer], first: int) -> tuple[str, ...]:
    """For each output of a loop's body, which buffer it ends up in: that of the carried array that it was, or is made from.

    Args:
        carried: the buffers of what is carried, the body's inputs from `first` on.
    """
    inputs, makers = body.inputs[first : first + len(carried)], body.producers()
    origins = [_origin(value, makers) for value in body.outputs]
    taken: dict[int, int] = {}  # input -> the other output that ends up in its memory
    for k, value in enumerate(origins):
        if value in inputs and (j := inputs.index(value)) not in (k, *taken):
            if origins[j] is not inputs[j] and _change_places(inputs, carried, k, j):
                taken[j] = k
    places = {k: j for j, k in taken.items()}
    for k in range(len(carried)):
        if k not in places:
            at = k
            while at in taken:  # whoever is there came from a place that is free now, or from which another has come
                at = taken[at]
            places[k] = at
    return tuple(carried[places[k]].name for k in range(len(carried)))


def _change_places(inputs: Sequence[Value], carried: Sequence[Buffer], k: int, j: int) -> bool:
    """Whether two carried arrays have memory of one form, and more than a copy of an element is saved."""
    one, other = carried[k], carried[j]
    alike = one.shape == other.shape and one.dtype == other.dtype and one.strides is None and other.strides is None
    return alike and inputs[k].aval.is_static and inputs[j].aval.is_static and one.size > 1


def updated_operands(node: Node) -> dict[int, int]:
    """Results of a `cond` that are one of the captured values, perhaps changed, in each branch that says: result -> operand."""
    found: dict[int, int] = {}
    graphs = (node.params["then"], node.params["orelse"])
    makers = [graph.producers() for graph in graphs]
    for k in range(len(node.outputs)):
        origins = [_origin(graph.outputs[k], known) for graph, known in zip(graphs, makers)]
        places = {graph.inputs.index(v) for graph, v in zip(graphs, origins) if v in graph.inputs}
        if len(places) == 1 and not places & set(found.values()):
            (place,) = places
            if graphs[0].inputs[place].aval == node.outputs[k].aval:
                found[k] = place
    return found


def carried_operands(node: Node) -> frozenset[Value]:
    """Operands that a region starts from and changes: they need memory of their own shape."""
    match node.op:
        case ops.loop:
            return frozenset(node.inputs[1 : 1 + node.params["carried"]])
        case ops.while_:
            return frozenset(node.inputs[: node.params["carried"]])
        case ops.cond:
            return frozenset(node.inputs[1 + operand] for operand in updated_operands(node).values())
    return frozenset()


def acts(node: Node) -> bool:
    """Whether a node prints or draws, inside of it, too: those that do run in the order of the graph."""
    functions = (inner.params["function"] for inner in node.walk() if inner.op in (ops.host_call, ops.draw))
    return any(f.postpones or f.draws for f in functions)


def known_trips(node: Node, makers: Mapping[Value, Node]) -> int | None:
    """How often a loop runs, if that is a number in the program."""
    if node.op is not ops.loop:
        return None
    trip = makers.get(node.inputs[0])
    return max(0, int(trip.params["value"])) if trip is not None and trip.op is ops.full else None


def _origin(value: Value, makers: Mapping[Value, Node]) -> Value:
    """What a value is an update of: itself, or whatever chains of updates began with."""
    while (node := makers.get(value)) is not None:
        if node.op in UPDATES or node.op is ops.check:
            value = node.inputs[0]
        elif node.op in (ops.loop, ops.while_) and (k := node.outputs.index(value)) < node.params["carried"]:
            value = node.inputs[k + (node.op is ops.loop)]
        elif node.op is ops.cond and (k := node.outputs.index(value)) in (updated := updated_operands(node)):
            value = node.inputs[1 + updated[k]]
        else:
            break
    return value


def _names(buffers: Sequence[Buffer]) -> tuple[str, ...]:
    return tuple(b.name for b in buffers)


def _updates(results: Sequence[Buffer], initial: Sequence[Buffer]) -> dict[str, str]:
    return {result.name: start.name for result, start in zip(results, initial)}


REGIONS: Mapping[Any, Callable[[RegionSite], Region]] = {ops.loop: loop_step, ops.while_: while_step, ops.cond: cond_step}
