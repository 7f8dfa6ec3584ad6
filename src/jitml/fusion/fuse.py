"""From a graph to a kernel program: group the nodes, scalarise each group, write its loops, name its buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.errors import ScheduleError, Source, UnknownSizeError, VerificationError
from jitml.fusion.complex.signature import Signature, over_real_numbers
from jitml.fusion.grouping.buffers import Buffers
from jitml.fusion.grouping.grouping import group, is_point
from jitml.fusion.grouping.groups import WHOLE, Group
from jitml.fusion.grouping.regions import REGIONS, RegionSite, known_trips, updated_operands
from jitml.fusion.lower.indexed import (
    IndexCheck,
    in_private_tables,
    look_at,
    private_tables,
    store_scattered,
    where_extremes_fail,
)
from jitml.fusion.lower.nests import SERIAL_NS, NestSite, Reading, nests
from jitml.fusion.lower.points import targets
from jitml.fusion.merge_steps.copy_elimination import deliver
from jitml.fusion.merge_steps.product_accumulation import accumulate
from jitml.fusion.merge_steps.product_assembly import assemble
from jitml.fusion.outputs import behind_checks, behind_widening, exact_shapes, name_outputs, to_be_measured, with_flat_results
from jitml.fusion.prepare.emptiness import behind_emptiness_checks
from jitml.fusion.prepare.expand import expand
from jitml.fusion.prepare.index_checks import with_index_checks
from jitml.fusion.prepare.narrow import narrow_integers
from jitml.fusion.prepare.observed_rest import observe_the_rest
from jitml.fusion.prepare.readback import read_back
from jitml.fusion.schedule import SERIAL, Scheduler
from jitml.fusion.write_group import GroupLoops, describe_group
from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes import run_passes
from jitml.ir.passes.cse import share_common
from jitml.ir.passes.dce import eliminate_dead
from jitml.ir.passes.fold import fold_constants
from jitml.ir.passes.simplify import simplify
from jitml.ir.passes.trim import trim_heard_regions
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import Buffer, Check, Const, Expr, Kernel, Load, Loop, Stmt, Store, walk
from jitml.kernels.program import Call, Decision, KernelProgram, Step, merge_steps
from jitml.kernels.schedule import Parallel, Primitive, Schedule
from jitml.kernels.sizes import Shape, Sizes, SizeSource, with_sizes
from jitml.kernels.target import Target

if TYPE_CHECKING:  # what few programs need; a first call waits for the rest
    from jitml.fusion import scalar_loops
    from jitml.fusion.merge_steps import scalar_steps, tile_loops
    from jitml.fusion.prepare import chained_products, fused_products, least_squares
    from jitml.fusion.scalar_loops import split_loops
    from jitml.fusion.schedule.primitives import statements
    from jitml.kernels.verify import program as program_verifier
else:
    scalar_loops, split_loops = late("jitml.fusion.scalar_loops"), late("jitml.fusion.scalar_loops.split_loops")
    scalar_steps, tile_loops = late("jitml.fusion.merge_steps.scalar_steps"), late("jitml.fusion.merge_steps.tile_loops")
    chained_products = late("jitml.fusion.prepare.chained_products")
    fused_products = late("jitml.fusion.prepare.fused_products")
    least_squares = late("jitml.fusion.prepare.least_squares")
    statements = late("jitml.fusion.schedule.primitives.statements")
    program_verifier = late("jitml.kernels.verify.program")

DEFAULT = Target()


def fuse(
    graph: Graph,
    *,
    aliases: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    target: Target = DEFAULT,
    scheduler: Scheduler = SERIAL,
    measure: bool = True,
    rolls: bool = True,
    schedules: Mapping[str, Schedule] | None = None,
    path: str = "",
) -> KernelProgram:
    """Decide which nodes run together, and write their loops.

    Args:
        aliases: output position -> position of the input whose memory that output must end up in.
        strides: input position -> element strides, of inputs that are not C-contiguous; may be negative or 0.
        scheduler: says how loops run: the back end's heuristics. By itself all are serial.
        measure: outputs whose shape depends on values are to be shrunk to their true shape (`KernelProgram.measured`).
        rolls: loops over single elements become one kernel, where they can; else regions of kernels.
        schedules: how the loops of some kernels are to run, by the kernels' names.
        path: of a region's body: what errors put in front of those names.

    Raises:
        ScheduleError: one of the schedules does not fit its kernel, or there is no kernel of that name.
    """
    if "block" in target.kinds:
        graph = least_squares.over_singular_values(graph)
    split, signature = over_real_numbers(graph, aliases or {}, strides or {})
    graph, aliases = graph if split is graph else tidy(split), signature.aliases
    in_place = frozenset(graph.inputs[i] for i in aliases.values())
    graph = read_back(graph, in_place)
    if "fused" in target.calls:
        graph = chained_products.with_chained_products(graph, target)
    graph = behind_widening(behind_checks(behind_emptiness_checks(expand(graph, target.calls.get("gemm")))))
    graph = observe_the_rest(graph, is_point, target.cost)
    if "vector" in target.kinds:
        graph = narrow_integers(graph)
    if "fused" in target.calls:
        graph = fused_products.with_fused_products(graph)
    flat: dict[Value, Shape] = {}
    if measure:
        graph, flat = with_flat_results(graph, aliases)
    fusion = _Fusion(graph, signature, target, scheduler, flat, schedules or {}, rolls=rolls, path=path)
    program = fusion.run(measure=measure)
    return verified(program, schedules) if schedules and measure else program


def verified(program: KernelProgram, schedules: Mapping[str, Schedule]) -> KernelProgram:
    """A program whose loops are in part the user's."""
    if unknown := [name for name in schedules if name not in program.schedules]:
        there = ", ".join(program.schedules) or "none"
        raise ScheduleError(f"no kernel with a schedule is called {', '.join(unknown)}; there are {there}")
    try:
        return program_verifier.verify_program(program)
    except VerificationError as error:
        raise ScheduleError(f"schedules: {error.message}") from error


def tidy(graph: Graph) -> Graph:
    """A graph whose complex numbers have just been split, without what is then known, done twice or not wanted."""
    return run_passes(graph, (fold_constants, simplify, share_common, trim_heard_regions, eliminate_dead))


class _Fusion:
    def __init__(
        self,
        graph: Graph,
        signature: Signature,
        target: Target,
        scheduler: Scheduler,
        flat: Mapping[Value, Shape],
        given: Mapping[str, Schedule],
        *,
        rolls: bool,
        path: str,
    ) -> None:
        self.scheduler, self.given, self.path = scheduler, given, path
        self.schedules: dict[str, Schedule] = {}
        graph, self.checks = with_index_checks(graph, target)
        self.graph, self.signature, self.target, self.flat, self.rolls = graph, signature, target, flat, rolls
        self.makers = graph.producers()
        self.sizes = Sizes(graph)
        self.sources: dict[str, SizeSource] = {}
        self.order: dict[Node, int] = {node: k for k, node in enumerate(graph.nodes)}
        self.steps: list[Step] = []
        self.decisions: list[Decision] = []
        self.kernels = 0
        # Of a loop, the first that fits makes kernels of which threads can share more.
        self.loop_rewrites = () if "block" in target.kinds else (self.in_tiles, self.in_two_parts)

    def run(self, *, measure: bool) -> KernelProgram:
        graph, signature = self.graph, self.signature
        in_place = {graph.outputs[k]: graph.inputs[i] for k, i in signature.aliases.items()}
        halves = [(graph.inputs[k], graph.inputs[k + 1]) for k in sorted(signature.joined_inputs)]
        strided = strided_values(graph, signature)
        grouping = group(graph, self.sizes, self.target, in_place=in_place, strided=strided, checks=self.checks, halves=halves)
        self.groups = grouping.groups
        self.buffers = buffers = Buffers(graph, self.sizes, grouping.same_memory)
        self.loops = GroupLoops(buffers, self.target, self.order, self.scheduler)
        for position, value in enumerate(graph.inputs):
            buffers.add(buffers.names[value], value.dtype, value.shape, signature.strides.get(position))
        buffers.add_constants(graph)
        outputs = name_outputs(graph, signature, buffers, grouping.stored)
        at_home: dict[int, list[Value]] = {}
        for value, home in grouping.stored.items():
            at_home.setdefault(id(home), []).append(value)
        for g in grouping.groups:
            buffers.add_stored(at_home.get(id(g), ()))
        sources = self.sizes.sources({value: buffers.of(value).name for value in self.sizes.loaded})
        self.sources = {name: source for name, source in sources.items() if source.buffer in buffers.made}
        for g in grouping.groups:
            self.write(g)
        read = (*outputs.names, *(source.buffer for source in self.sources.values()))
        gemm = self.target.calls.get("gemm")
        adds = (accumulate,) if gemm is not None and "add" in gemm.epilogues else ()
        scalars = (scalar_steps.merge_scalars,) if "block" in self.target.kinds else ()
        rules = (*adds, partial(assemble, new_buffer=buffers.another), deliver, *scalars)
        self.steps, needless = merge_steps([*self.steps, *outputs.copies], read, rules)
        for name in needless:
            buffers.remove(name)
        exact: dict[str, tuple[Expr, ...]] = {}
        measured: dict[str, tuple[int | None, ...]] = {}
        names = outputs.names
        if measure:
            exact = exact_shapes(graph, names, signature.aliases, self.sizes, self.flat)
            measured, extents = to_be_measured(graph, names, signature.aliases, exact, self.sizes)
            if measured:
                names = (*names, self.write_extents(extents))
        return KernelProgram(
            buffers.made,
            tuple(buffers.names[v] for v in graph.inputs),
            names,
            buffers.constants,
            outputs.aliases,
            tuple(self.steps),
            {name: source for name, source in self.sources.items() if source.low is not None},
            buffers.extents,
            exact,
            measured,
            self.names_at(signature.joined_inputs, names, signature.joined_outputs),
            self.names_at(signature.packed_inputs, names, signature.packed_outputs),
            (*grouping.decisions, *self.decisions),
            self.schedules,
        )

    def names_at(self, inputs: Collection[int], names: Sequence[str], outputs: Collection[int]) -> frozenset[str]:
        """The names of some inputs and outputs."""
        return frozenset([self.buffers.names[self.graph.inputs[k]] for k in inputs] + [names[k] for k in outputs])

    def write(self, g: Group) -> None:
        """Add the steps of a group."""
        node = g.node
        if g.check is not None:
            self.write_check(g, g.check)
        elif node is None:
            self.write_loops(g)
        elif node.op is ops.check:
            self.write_claim(g, node)
        elif node.op in REGIONS:
            self.write_region(g, node)
        elif node.op in targets:
            self.write_loops(g)
        elif scatters := g.scatters:
            self.write_scatters(g, scatters)
        else:
            nests[node.op](self.site(g, node, g.results))

    def emit(
        self,
        what: str,
        body: tuple[Stmt, ...],
        params: Sequence[Buffer],
        updates: Mapping[str, str] | None = None,
        sources: tuple[Source, ...] = (),
        ns: float = 0.0,
        ignored: int = 0,
        *,
        optimize: bool = False,
    ) -> None:
        """Add a kernel that is called after what it does, and takes so long in order."""
        kernel = replace(self.add_kernel(self.step_name(what), body, params, updates, sources, ignored), optimize=optimize)
        self.steps[-1] = self.scheduled(kernel, lambda: self.scheduler.op(kernel, self.target, ns))

    def scheduled(self, kernel: Kernel, choose: Callable[[], tuple[Primitive, ...]]) -> Kernel:
        """A kernel whose loops are no group's, with these as the user or the back end has them."""
        if not any(isinstance(stmt, Loop) for stmt in walk(kernel.body)):
            return kernel
        schedule = self.given.get(kernel.name) or Schedule((choose(),))
        self.schedules[kernel.name] = schedule
        kernel = statements.with_schedule(kernel, schedule, self.target, self.path + kernel.name)
        if kernel.name in self.given:
            statements.require_proven(kernel, self.path + kernel.name)
        return kernel

    def add_kernel(
        self,
        name: str,
        body: tuple[Stmt, ...],
        params: Sequence[Buffer],
        updates: Mapping[str, str] | None = None,
        sources: tuple[Source, ...] = (),
        ignored: int = 0,
    ) -> Kernel:
        """Add a kernel, which loads the sizes that it mentions."""
        body, params = with_sizes(body, params, self.sources)
        kernel = Kernel(name, params, body, updates or {}, sources, ignored=ignored)
        self.steps.append(kernel)
        return kernel

    def step_name(self, what: str) -> str:
        self.kernels += 1
        return f"k{self.kernels - 1}_{what}"

    def write_check(self, g: Group, check: IndexCheck) -> None:
        n = self.sizes.expr(check.size)
        body, params = self.loops.write_serial(g, check.index.shape, lambda index: look_at(index, check, n))
        extremes = [None if v is None else self.buffers.of(v) for v in (check.low, check.high)]
        low, high = (None if b is None else Load(b.name, (), b.dtype) for b in extremes)
        body = where_extremes_fail(body, low, high, n)
        named = {b.name: b for b in (*params, *filter(None, extremes))}
        sources = (check.node.source,) if check.node.source else ()
        self.emit(check.node.op.name, body, tuple(named.values()), sources=sources, ignored=g.ignored)

    def write_scatters(self, g: Group, scatters: Sequence[Node]) -> None:
        node, *others = scatters
        outs = [self.buffers.stored(n.output) for n in scatters]
        updates = {b.name: self.buffers.of(n.inputs[0]).name for b, n in zip(outs, scatters)}
        body, params = self.loops.write_serial(g, node.inputs[1].shape, lambda value: store_scattered(scatters, outs, value))
        sources = tuple(dict.fromkeys(n.source for n in g.members if n.source))
        count = 1 if others else private_tables(node, g.points, self.target)
        if count > 1:
            (out,) = outs
            tables = self.buffers.temporary(out.dtype, (count, *node.output.shape))
            extents = [self.sizes.expr(n) for n in node.output.shape]
            if (parts := in_private_tables(body, node, out, tables, extents)) is not None:
                self.emit("scatter", parts[0], (*params, tables), sources=sources, ns=g.points * SERIAL_NS, ignored=g.ignored)
                self.emit("scatter", parts[1], (out, tables), updates, sources, float(tables.size))
                return
        self.emit("scatter", body, (*outs, *params), updates, sources, g.points * SERIAL_NS, g.ignored)

    def write_claim(self, g: Group, node: Node) -> None:
        (_, ok, *values) = self.buffers.operands(g, node)
        shown = tuple(Load(b.name, (), I64) for b in values)
        check = Check(Load(ok.name, (), BOOL), node.params["error"], node.params["message"], shown, node.source)
        params = tuple({b.name: b for b in (ok, *values)}.values())
        self.emit("check", (check,), params, sources=(node.source,) if node.source else ())

    def site(self, g: Group, node: Node, outputs: tuple[Value, ...]) -> NestSite:
        reads = self.buffers.operands(g, node)
        writes = tuple(self.buffers.stored(v) for v in outputs)
        return NestSite(
            node,
            reads,
            writes,
            self.target,
            self.sizes,
            self.buffers.temporary,
            self.emit,
            self.steps,
            self.makers,
            g.views,
            g.transposed,
            self.looks,
        )

    def looks(self, value: Value) -> list[Reading] | None:
        """Where loops read a value, if nobody else wants it."""
        uses = [(index, g.ranges) for g in self.groups for index in g.wanted.get(value, ())]
        if value in self.graph.outputs or any(index is WHOLE for index, _ in uses):
            return None
        return [Reading(index, ranges) for index, ranges in uses if index is not None]

    def write_region(self, g: Group, node: Node) -> None:
        bodies: list[str] = []

        def fuse_body(body: Graph, aliases: Mapping[int, int], strides: Mapping[int, tuple[int, ...]]) -> KernelProgram:
            bodies.append(f"{name}.{len(bodies)}/")
            given = {inner.removeprefix(bodies[-1]): s for inner, s in self.given.items() if inner.startswith(bodies[-1])}
            made = fuse(
                body,
                aliases=aliases,
                strides=strides,
                target=self.target,
                scheduler=self.scheduler,
                measure=False,
                rolls=self.rolls,
                schedules=given,
                path=self.path + bodies[-1],
            )
            self.schedules |= {bodies[-1] + inner: s for inner, s in made.schedules.items()}
            return made

        name = self.step_name(node.op.name.rstrip("_"))
        reads = self.buffers.operands(g, node)
        writes = tuple(self.buffers.stored(v) for v in node.outputs)
        if self.rolls and self.write_rolled(name, node, reads, writes):
            return
        trips, results = known_trips(node, self.makers), self.dense(node, writes)
        region = REGIONS[node.op](
            RegionSite(node, name, reads, results, trips, fuse_body, self.buffers.temporary, self.buffers.literal)
        )
        loop = tile_loops.as_loop(region) if self.loop_rewrites else None
        if loop is not None and (kernels := self.rewritten(loop)) is not None:
            assert region.index is not None
            self.buffers.remove(region.index)
            self.add_loops(kernels)
        else:
            self.steps.append(region)
        self.steps += [Call("copy", (x.name,), (y.name,), {}) for x, y in zip(results, writes) if x is not y]
        self.decisions += [replace(d, what=f"{name}: {d.what}") for body in region.bodies for d in body.decisions]

    def dense(self, node: Node, writes: Sequence[Buffer]) -> tuple[Buffer, ...]:
        """The memory for a region's results: what its bodies make anew lies in C order."""
        anew = set(range(len(writes))) - updated_operands(node).keys() if node.op is ops.cond else set()
        return tuple(
            self.buffers.temporary(v.dtype, v.shape) if k in anew and not b.is_c_contiguous else b
            for k, (v, b) in enumerate(zip(node.outputs, writes))
        )

    def write_rolled(self, name: str, node: Node, reads: Sequence[Buffer], writes: Sequence[Buffer]) -> bool:
        """Write a region as one kernel, if it can be."""
        literals: list[tuple[Buffer, np.ndarray[Any, Any]]] = []

        def new_constant(value: np.ndarray[Any, Any]) -> Buffer:
            literals.append((Buffer(f"{name}_literal{len(literals)}", value.dtype, value.shape), value))
            return literals[-1][0]

        try:
            rolled = scalar_loops.roll(name, node, reads, writes, self.numbers(node), new_constant, self.target)
        except (scalar_loops.NotRolled, UnknownSizeError) as reason:
            self.decisions.append(Decision(f"{name}: a region of kernels", reason.message))
            return False
        self.add_loops(self.rewritten(rolled) or (rolled,))
        for buffer, value in literals:
            self.buffers.add_constant(buffer, value)
        self.decisions.append(Decision(f"{name}: one kernel of plain loops", "elements and short windows, in place"))
        return True

    def rewritten(self, loop: Kernel) -> Sequence[Kernel] | None:
        return next((made for rewrite in self.loop_rewrites if (made := rewrite(loop)) is not None), None)

    def in_tiles(self, loop: Kernel) -> Sequence[Kernel] | None:
        return tile_loops.in_tiles(loop)

    def in_two_parts(self, loop: Kernel) -> Sequence[Kernel] | None:
        """A loop as one that threads share, and what is left of it; None where they would not."""
        split = split_loops.in_two_parts(loop, self.buffers.temporary)
        if split is None:
            return None
        if any(isinstance(p, Parallel) for p in self.scheduler.scalars(split.free, self.target)):
            return split.free, split.in_order
        for buffer in split.kept:
            self.buffers.remove(buffer.name)
        return None

    def add_loops(self, kernels: Sequence[Kernel]) -> None:
        """Add kernels that are loops over time, or over single elements."""
        for kernel in kernels:
            made = self.scheduled(kernel, partial(self.scheduler.scalars, kernel, self.target))
            self.steps.append(made if "block" in self.target.kinds else scalar_loops.with_recurrences(made))

    def numbers(self, node: Node) -> dict[Value, Const]:
        """The operands that are single numbers known now."""
        makers = {v: self.makers.get(v) for v in node.inputs if not v.ndim}
        return {v: Const(m.params["value"], v.dtype) for v, m in makers.items() if m is not None and m.op is ops.full}

    def write_loops(self, g: Group) -> None:
        """The kernel of a group of point nodes and reductions."""
        updates: dict[str, str] = {}
        if g.node is not None:
            updates[self.buffers.names[g.node.output]] = self.buffers.of(g.node.inputs[0]).name
        if self.loops.is_empty(g):
            if updates:  # nothing changes, but the result must be there
                ((out, source),) = updates.items()
                self.steps.append(Call("copy", (source,), (out,), {}))
            return
        members = sorted(g.members, key=self.order.__getitem__)
        sources = tuple(dict.fromkeys(n.source for n in members if n.source))
        if (zeros := self.loops.zeros(g)) is not None:
            self.steps.append(Call("zeros", (), (zeros.name,), {}, sources))
            return
        name = self.step_name((g.node or members[-1]).op.name)
        written = self.loops.write(g, self.path + name, self.given.get(name))
        kernel = self.add_kernel(name, written.body, written.params, updates, sources, g.ignored)
        if name in self.given:
            statements.require_proven(kernel, self.path + name)
        self.schedules[name] = written.schedule
        self.decisions += describe_group(name, g, self.order)

    def write_extents(self, extents: Sequence[Expr]) -> str:
        """A last step that writes down what only the run tells, in an output of its own, whose name is the result."""
        out = self.buffers.add("shapes", I64, (len(extents),))
        self.emit("shapes", tuple(Store(out.name, (Const(k),), e) for k, e in enumerate(extents)), (out,))
        return out.name


def strided_values(graph: Graph, signature: Signature) -> dict[Value, tuple[int, ...] | None]:
    """Inputs and outputs that do not lie in memory in C order, one element after the other, and the strides of inputs."""
    dense = {v: Buffer("", v.dtype, v.aval.bounds).element_strides for v in graph.inputs}
    inputs = {k for k, v in enumerate(graph.inputs) if signature.strides.get(k, dense[v]) != dense[v]}
    outputs = [v for k, v in enumerate(graph.outputs) if signature.is_part(k) or signature.aliases.get(k) in inputs]
    return dict.fromkeys(outputs) | {graph.inputs[k]: signature.strides[k] for k in inputs}
