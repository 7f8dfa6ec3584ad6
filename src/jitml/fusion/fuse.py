"""From a graph to a kernel program: group the nodes, scalarise each group, write its loops, name its buffers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from jitml.errors import Source
from jitml.fusion.emit import Writer
from jitml.fusion.grouping import Grouping, group
from jitml.fusion.groups import Group
from jitml.fusion.loops import Buffer, Check, Const, Expr, Kernel, Load, Stmt, Store
from jitml.fusion.lower.expand import expand
from jitml.fusion.lower.indexed import write_check
from jitml.fusion.lower.nests import Site, nests
from jitml.fusion.lower.points import targets
from jitml.fusion.lower.rolled import NotRolled, roll
from jitml.fusion.lower.scalars import Scalars
from jitml.fusion.machine import Machine
from jitml.fusion.program import Call, Decision, KernelProgram, Step, parted
from jitml.fusion.readback import read_back
from jitml.fusion.regions import REGIONS, RegionSite, known_trips
from jitml.fusion.scalarize import Points, scalarize
from jitml.fusion.schedule import Nest, all_scalars, write
from jitml.fusion.signature import Signature, over_real_numbers
from jitml.fusion.sizes import Shape, Sizes, SizeSource, with_sizes
from jitml.fusion.views import Places, Views
from jitml.ir import ops
from jitml.ir.dims import Dim, bound
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes import run_passes
from jitml.ir.passes.cse import share_common
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.passes.fold import fold_constants
from jitml.ir.passes.simplify import simplify
from jitml.ir.passes.trim import trim_regions
from jitml.ir.printer import name_values
from jitml.ir.types import BOOL, I64, DType

DEFAULT = Machine()


def fuse(
    graph: Graph,
    *,
    aliases: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    machine: Machine = DEFAULT,
    measure: bool = True,
) -> KernelProgram:
    """Decide which nodes run together, and write their loops.

    Args:
        aliases: output position -> position of the input whose memory that output must end up in.
        strides: input position -> element strides, of inputs that are not C-contiguous; may be negative or 0.
        measure: outputs whose shape depends on values are to be shrunk to their true shape (`KernelProgram.measured`).
    """
    split, signature = over_real_numbers(graph, aliases or {}, strides or {})
    graph, aliases = graph if split is graph else tidy(split), signature.aliases
    in_place = frozenset(graph.inputs[i] for i in aliases.values())
    graph, flat = behind_checks(expand(read_back(graph, in_place))), dict[Value, Shape]()
    if measure:
        graph, flat = with_flat_results(graph, aliases)
    return _Fusion(graph, signature, machine, flat).run(measure=measure)


def tidy(graph: Graph) -> Graph:
    """A graph whose complex numbers have just been split, without what is then known, done twice or not wanted."""
    return run_passes(graph, (fold_constants, simplify, share_common, trim_regions, eliminate_dead))


def behind_checks(graph: Graph) -> Graph:
    """The same graph with what was checked as its outputs, rather than the checks' results: those are the same arrays."""
    makers = graph.producers()

    def origin(value: Value) -> Value:
        node = makers.get(value)
        return origin(node.inputs[0]) if node is not None and node.op is ops.check else value

    nodes = tuple(replace(n, inputs=(origin(n.inputs[0]),)) if n.op is ops.observe else n for n in graph.nodes)
    return replace(graph, nodes=nodes, outputs=tuple(map(origin, graph.outputs)))


def with_flat_results(graph: Graph, aliases: Mapping[int, int]) -> tuple[Graph, dict[Value, Shape]]:
    """The same graph with new outputs flat whose strides the inputs tell, and nothing before; and their shapes.

    What they hold is then the beginning of their memory, which need not be larger.
    """
    nodes, outputs, shapes = list(graph.nodes), list(graph.outputs), dict[Value, Shape]()
    sizes = Sizes(graph)
    for position, value in enumerate(graph.outputs):
        is_flat = all(isinstance(n, int) for n in value.shape[1:])
        if position not in aliases and not is_flat and sizes.from_inputs(value.size, graph.inputs) is not None:
            outputs[position] = flat = Value(value.aval.with_shape((value.size,)))
            nodes.append(Node(ops.reshape, (value,), {"shape": flat.shape}, (flat,)))
            shapes[flat] = value.shape
    return replace(graph, nodes=tuple(nodes), outputs=tuple(outputs)), shapes


class _Fusion:
    def __init__(
        self,
        graph: Graph,
        signature: Signature,
        machine: Machine,
        flat: Mapping[Value, Shape],
    ) -> None:
        self.graph, self.signature, self.machine, self.flat = graph, signature, machine, flat
        self.aliases, self.strides = signature.aliases, signature.strides
        self.names = name_values(graph)
        self.makers = graph.producers()
        self.sizes = Sizes(graph)
        self.extents: dict[str, tuple[Expr, ...]] = {}
        self.sources: dict[str, SizeSource] = {}
        self.order: dict[Node, int] = {node: k for k, node in enumerate(graph.nodes)}
        self.buffers: dict[str, Buffer] = {}
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.steps: list[Step] = []
        self.decisions: list[Decision] = []
        self.kernels = 0
        self.temporaries = 0

    def run(self, *, measure: bool) -> KernelProgram:
        in_place = {self.graph.outputs[k]: self.graph.inputs[i] for k, i in self.aliases.items()}
        strided = frozenset(v for k, v in enumerate(self.graph.inputs) if self.is_strided(v, self.strides.get(k)))
        grouping = group(self.graph, self.sizes, self.machine, in_place=in_place, strided=strided)
        self.same_memory = grouping.same_memory
        for value, source in reversed(self.same_memory.items()):  # operands were met last
            if value.shape == source.shape:
                self.names[value] = self.names[source]
        for position, value in enumerate(self.graph.inputs):
            self.add_buffer(self.names[value], value.dtype, value.shape, self.strides.get(position))
        self.add_constants()
        outputs, copies, alias_names = self.name_outputs(grouping)
        for g in grouping.groups:
            for value in (v for v, home in grouping.stored.items() if home is g):
                if self.names[value] not in self.buffers:
                    self.add_buffer(self.names[value], value.dtype, value.shape)
        sources = self.sizes.sources({value: self.buffer(value).name for value in self.sizes.loaded})
        self.sources = {name: source for name, source in sources.items() if source.buffer in self.buffers}
        for g in grouping.groups:
            if g.checks:
                self.write_check(g)
            elif g.node is not None and g.node.op is ops.check:
                self.write_claim(g, g.node)
            elif g.node is not None and g.node.op in REGIONS:
                self.write_region(g, g.node)
            elif g.node is not None and g.node.op not in targets:
                self.write_whole(g)
            else:
                self.write_loops(g)
        self.steps += copies
        exact = self.exact_shapes(outputs) if measure else {}
        measured = self.measure(outputs, exact) if measure else {}
        if measured:
            outputs = (*outputs, self.steps[-1].writes[0])
        return KernelProgram(
            self.buffers,
            tuple(self.names[v] for v in self.graph.inputs),
            outputs,
            self.constants,
            alias_names,
            tuple(self.steps),
            {name: source for name, source in self.sources.items() if source.low is not None},
            self.extents,
            exact,
            measured,
            self.names_at(self.signature.joined_inputs, outputs, self.signature.joined_outputs),
            self.names_at(self.signature.packed_inputs, outputs, self.signature.packed_outputs),
            (*grouping.decisions, *self.decisions),
        )

    def names_at(self, inputs: Collection[int], names: Sequence[str], outputs: Collection[int]) -> frozenset[str]:
        """The names of some inputs and outputs."""
        return frozenset([self.names[self.graph.inputs[k]] for k in inputs] + [names[k] for k in outputs])

    # ------------------------------------------------------------------------------------------------- buffers

    def add_buffer(self, name: str, dtype: DType, shape: Shape, strides: tuple[int, ...] | None = None) -> Buffer:
        buffer = Buffer(name, dtype, tuple(map(bound, shape)))
        if strides is not None and strides != buffer.element_strides and buffer.size > 1:
            buffer = Buffer(name, dtype, buffer.shape, strides)
        if any(isinstance(n, Dim) for n in shape):
            self.extents[name] = tuple(map(self.sizes.expr, shape))
        self.buffers[name] = buffer
        return buffer

    def is_strided(self, value: Value, strides: tuple[int, ...] | None) -> bool:
        return strides is not None and strides != Buffer("", value.dtype, value.aval.bounds).element_strides

    def add_constants(self) -> None:
        for node in self.graph.nodes:
            if node.op is ops.array and node.output.capacity > 1:
                name = self.names[node.output]
                self.add_buffer(name, node.output.dtype, node.output.shape)
                self.constants[name] = np.ascontiguousarray(node.params["value"], dtype=node.output.dtype)

    def name_outputs(self, grouping: Grouping) -> tuple[tuple[str, ...], list[Call], dict[str, str]]:
        """Each output its own buffer: what is an input, a constant or an output already is copied."""
        names: list[str] = []
        copies: list[Call] = []
        alias_names: dict[str, str] = {}
        for position, value in enumerate(self.graph.outputs):
            strides = None
            if position in self.aliases:
                source = self.aliases[position]
                strides = self.strides.get(source)
            elif self.signature.is_part(position):
                strides = parted(Buffer("", value.dtype, value.aval.bounds).element_strides)
            name = self.names[value]
            if value not in grouping.stored or name in names:
                name = f"out{position}"
                copies.append(Call("copy", (self.names[value],), (name,), {}))
            self.add_buffer(name, value.dtype, value.shape, strides)
            if position in self.aliases:
                alias_names[name] = self.names[self.graph.inputs[self.aliases[position]]]
            names.append(name)
        return tuple(names), copies, alias_names

    def measure(self, outputs: tuple[str, ...], exact: Collection[str]) -> dict[str, tuple[int | None, ...]]:
        """A last step that writes down the true extents of outputs that only the run tells, in an output of its own."""
        measured: dict[str, tuple[int | None, ...]] = {}
        found: list[Expr] = []
        for position, (name, value) in enumerate(zip(outputs, self.graph.outputs)):
            if position not in self.aliases and not value.aval.is_static and name not in exact:
                unknown = iter(range(len(found), len(found) + value.ndim))
                measured[name] = tuple(next(unknown) if isinstance(n, Dim) else None for n in value.shape)
                found += [self.sizes.expr(n) for n in value.shape if isinstance(n, Dim)]
        if not measured:
            return {}
        out = self.add_buffer("shapes", I64, (len(found),))
        self.emit("shapes", tuple(Store(out.name, (Const(k),), e) for k, e in enumerate(found)), (out,))
        return measured

    def exact_shapes(self, outputs: tuple[str, ...]) -> dict[str, tuple[Expr, ...]]:
        """The true shapes of new outputs, if they follow from the inputs and such memory is the start of the largest.

        What is compressed may be stored one element beyond its end.
        """
        exact: dict[str, tuple[Expr, ...]] = {}
        for position, (name, value) in enumerate(zip(outputs, self.graph.outputs)):
            maker = self.makers.get(value)
            if value.aval.is_static or position in self.aliases or (maker is not None and maker.op is ops.compress):
                continue
            if not all(isinstance(n, int) for n in value.shape[1:]):
                continue
            shape = [self.sizes.from_inputs(n, self.graph.inputs) for n in self.flat.get(value, value.shape)]
            if None not in shape:
                exact[name] = tuple(e for e in shape if e is not None)
        return exact

    def temporary(self, dtype: DType, shape: Shape, strides: tuple[int, ...] | None = None) -> Buffer:
        self.temporaries += 1
        return self.add_buffer(f"p{self.temporaries - 1}", dtype, shape, strides)

    def emit(
        self,
        what: str,
        body: tuple[Stmt, ...],
        params: Sequence[Buffer],
        updates: Mapping[str, str] | None = None,
        sources: tuple[Source, ...] = (),
        ignored: int = 0,
    ) -> str:
        """Add a kernel, which loads the sizes that it mentions; returns its name."""
        name = self.step_name(what)
        body, params = with_sizes(body, params, self.sources)
        self.steps.append(Kernel(name, params, body, updates or {}, sources, ignored=ignored))
        return name

    def step_name(self, what: str) -> str:
        self.kernels += 1
        return f"k{self.kernels - 1}_{what}"

    # ------------------------------------------------------------------------------------------------- kernels

    def write_claim(self, g: Group, node: Node) -> None:
        (_, ok, *values) = self.operands(g, node)
        shown = tuple(Load(b.name, (), I64) for b in values)
        check = Check(Load(ok.name, (), BOOL), node.params["error"], node.params["message"], shown, node.source)
        params = tuple({b.name: b for b in (ok, *values)}.values())
        self.emit("check", (check,), params, sources=(node.source,) if node.source else ())

    def write_check(self, g: Group) -> None:
        assert g.node is not None
        write_check(self.site(g, g.node, ()), g.checks)

    def site(self, g: Group, node: Node, outputs: tuple[Value, ...]) -> Site:
        reads = self.operands(g, node)
        writes = tuple(self.buffers[self.names[v]] for v in outputs)
        return Site(node, reads, writes, self.machine, self.sizes, self.temporary, self.emit, self.steps, self.makers)

    def operands(self, g: Group, node: Node) -> tuple[Buffer, ...]:
        """Where a node's operands lie. A group that sees through a reshaped array does not wait until it is stored for others."""
        return tuple(self.buffer(value, frozenset(g.wanted)) for value in node.inputs)

    def buffer(self, value: Value, wanted: frozenset[Value] | None = None) -> Buffer:
        """Where a value lies; one that is another reshaped lies where that does, unless it is stored and wanted."""
        source = value
        while source in self.same_memory and (
            self.names[source] not in self.buffers or (wanted is not None and source not in wanted)
        ):
            source = self.same_memory[source]
        known = self.buffers.get(self.names[source])
        if known is not None and source.shape == value.shape:
            return known
        return Buffer(self.names[source], value.dtype, value.aval.bounds)

    def write_whole(self, g: Group) -> None:
        assert g.node is not None
        nests[g.node.op](self.site(g, g.node, g.node.outputs))

    def write_region(self, g: Group, node: Node) -> None:
        def fuse_body(body: Graph, aliases: Mapping[int, int], strides: Mapping[int, tuple[int, ...]]) -> KernelProgram:
            return fuse(body, aliases=aliases, strides=strides, machine=self.machine, measure=False)

        name = self.step_name(node.op.name.rstrip("_"))
        reads = self.operands(g, node)
        writes = tuple(self.buffers[self.names[v]] for v in node.outputs)
        if self.machine.rolls and self.write_rolled(name, node, reads, writes):
            return
        trips = known_trips(node, self.makers)
        region = REGIONS[node.op](RegionSite(node, name, reads, writes, trips, fuse_body, self.temporary, self.new_constant))
        self.steps.append(region)
        self.decisions += [replace(d, what=f"{name}: {d.what}") for body in region.bodies for d in body.decisions]

    def write_rolled(self, name: str, node: Node, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> bool:
        """Write a region as one kernel, if it can be."""
        literals: list[tuple[Buffer, np.ndarray[Any, Any]]] = []

        def new_constant(value: np.ndarray[Any, Any]) -> Buffer:
            literals.append((Buffer(f"{name}_literal{len(literals)}", value.dtype, value.shape), value))
            return literals[-1][0]

        try:
            kernel = roll(name, node, reads, writes, self.numbers(node), new_constant, self.machine)
        except NotRolled as reason:
            self.decisions.append(Decision(f"{name}: a region of kernels", reason.message))
            return False
        self.steps.append(kernel)
        for buffer, value in literals:
            self.buffers[buffer.name], self.constants[buffer.name] = buffer, value
        self.decisions.append(Decision(f"{name}: one kernel of plain loops", "elements and short windows, in place"))
        return True

    def numbers(self, node: Node) -> dict[Value, Const]:
        """The operands that are single numbers known now."""
        makers = {v: self.makers.get(v) for v in node.inputs if not v.ndim}
        return {v: Const(m.params["value"], v.dtype) for v, m in makers.items() if m is not None and m.op is ops.full}

    def new_constant(self, value: np.ndarray[Any, Any]) -> str:
        name = self.temporary(value.dtype, value.shape).name
        self.constants[name] = value
        return name

    def write_loops(self, g: Group) -> None:
        """The kernel of a group of point nodes and reductions, box by box."""
        updates: dict[str, str] = {}
        if g.node is not None:
            updates[self.names[g.node.output]] = self.buffer(g.node.inputs[0]).name
        empty = bool(g.stores) and all(self.buffers[self.names[v]].size == 0 for v in g.stores)
        if empty or (g.node is not None and g.points == 0):
            if updates:  # nothing changes, but the result must be there
                ((out, source),) = updates.items()
                self.steps.append(Call("copy", (source,), (out,), {}))
            return
        boxes = self.boxes(g)
        views = self.views(g, boxes)
        partial: list[Buffer] = []

        def temporary(dtype: DType, shape: tuple[int, ...]) -> str:
            partial.append(self.temporary(dtype, shape))
            return partial[-1].name

        writer = Writer(views)
        rows = frozenset(g.axes) if g.rows is None else g.rows
        for points in boxes:
            write(Nest(points, views, rows, self.machine, self.sizes, writer, temporary))
        assert views.buffers is not None
        order = {name: k for k, name in enumerate(self.buffers)}
        params = (*sorted(views.buffers.values(), key=lambda b: order[b.name]), *partial)
        what = (g.node or max(g.members, key=self.order.__getitem__)).op.name
        sources = tuple(dict.fromkeys(n.source for n in sorted(g.members, key=self.order.__getitem__) if n.source))
        name = self.emit(what, writer.finish(), params, updates, sources, g.ignored)
        self.decisions += describe_group(name, g, self.order)

    def boxes(self, g: Group) -> list[Points]:
        """What happens in each box of the group's loops; boxes that run the same loops run together."""
        scalars = Scalars()
        boxes = [scalarize(g, ranges, self.names, self.order, scalars) for ranges in boxes_of(g)]
        if not g.cuts:
            return boxes
        ranges_of = [points.ranges for points in joined(boxes)]
        together: dict[tuple[object, ...], Points] = {}
        for ranges in ranges_of:
            points = scalarize(g, ranges, self.names, self.order, scalars, single=True)
            key = tuple(points.ranges.items())
            known = together.get(key)
            together[key] = points if known is None else replace(known, stores=known.stores + points.stores)
        return list(together.values())

    def views(self, g: Group, boxes: list[Points]) -> Views:
        accesses: list[tuple[str, Places]] = []
        fixed = set(g.cuts)
        for points in boxes:
            for s in all_scalars(points):
                if s.kind == "load":
                    accesses.append((s.value, s.places))
                elif s.kind == "index":
                    fixed |= s.variables
            accesses += [(s.buffer, s.at) for s in points.stores]
        barriers: frozenset[str] = frozenset()
        if g.rows is not None:
            barriers = frozenset(y for x, y in pairwise(g.axes) if (x in g.rows) != (y in g.rows))
        return Views(g.axes, self.buffers, accesses, frozenset(fixed), barriers)


def describe_group(kernel: str, g: Group, order: Mapping[Node, int]) -> list[Decision]:
    """What a kernel of several nodes saves: arrays that are neither written nor read back."""
    computing = [n for n in sorted(g.members, key=order.__getitem__) if n.op.family in ("pointwise", "reductions")]
    inside = [n.output for n in computing if n.output not in g.stores and n.output.capacity > 1]
    if not inside:
        return []
    names = " ".join(dict.fromkeys(n.op.name for n in computing))
    saved = 2 * sum(v.aval.nbytes for v in inside)
    rows = g.rows is not None and 0 < len(g.rows) < len(g.axes)
    how = "row by row, each row in cache" if rows else "in one pass"
    return [
        Decision(f"{kernel}: fuse {len(computing)} nodes {how} ({names})", f"saves {saved / 1e6:.2f} MB of {len(inside)} arrays")
    ]


def boxes_of(g: Group) -> list[dict[str, tuple[int, int]]]:
    """The boxes that a group's loops are cut into, in order."""
    pieces = []
    for name, n in g.axes.items():
        places = [0, *sorted(g.cuts.get(name, ())), bound(n)]
        pieces.append([(name, limits) for limits in pairwise(places)])
    return [dict(choice) for choice in product(*pieces)]


def joined(boxes: list[Points]) -> list[Points]:
    """Neighbouring boxes that do the same as one: the border around a pad, a row at a time."""
    result: list[Points] = []
    for points in boxes:
        while result and (whole := _together(result[-1], points)) is not None:
            result.pop()
            points = whole
        result.append(points)
    return result


def _together(x: Points, y: Points) -> Points | None:
    if x.stores != y.stores or x.reductions != y.reductions:
        return None
    differ = [name for name in x.ranges if x.ranges[name] != y.ranges[name]]
    if len(differ) != 1 or x.ranges[differ[0]][1] != y.ranges[differ[0]][0]:
        return None
    (name,) = differ
    return replace(x, ranges={**x.ranges, name: (x.ranges[name][0], y.ranges[name][1])})
