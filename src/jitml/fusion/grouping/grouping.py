"""Fusion grouping: which nodes run together?  May we: one sweep over the graph, from its outputs up.

A *group* is one set of loops. When the sweep reaches a value, all its users have been placed, so it is known which
groups want it and at which indices. It is then recomputed there, or stored by one of them, or gets a group of its own;
`cost.py` says which is cheaper. Reductions join the group that uses them if that group's loops run over the
reduction's rows. What may join what is said in `legality.py`; who wants what, and in which order, is kept in `partition.py`.
The sweep is near-linear in the number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from jitml.fusion import cost
from jitml.fusion.grouping.groups import WHOLE, Group, ReadRecorder, collect_cuts, split_for_reshape
from jitml.fusion.grouping.legality import (
    alike,
    beside,
    evaluations,
    homes,
    may_inline,
    may_scatter_too,
    on_the_way,
    piece_of,
    rows_stay_in_cache,
    why_not_inline,
)
from jitml.fusion.grouping.partition import Partition
from jitml.fusion.grouping.products import Products, is_product
from jitml.fusion.grouping.regions import UPDATES, acts, carried_operands, known_trips
from jitml.fusion.lower import lowering
from jitml.fusion.lower.compaction import has_cuts_at_values, keeps_positions
from jitml.fusion.lower.index_maps import packed
from jitml.fusion.lower.indexed import IndexCheck, is_for_library
from jitml.fusion.lower.points import Index, targets
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.prepare.index_checks import Checks
from jitml.ir import ops
from jitml.ir.dims import have_elements_if
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.passes.windows import is_start
from jitml.ir.printer import name_values
from jitml.kernels.ir import Const, Var, variables_of
from jitml.kernels.program import Decision
from jitml.kernels.sizes import Sizes
from jitml.kernels.target import GEMM, Target
from jitml.records import dataclass

FEW = 64  # elements that may be kept where some of them would do
LOOKAHEAD = 32  # values that are looked at for one that something is made of

_NONE: Mapping[Value, Value] = {}
_DENSE: Mapping[Value, tuple[int, ...] | None] = {}
_UNCHECKED: Checks = {}


@dataclass
class Grouping:
    """The answer: groups in an order in which they can run, which values lie in memory, and which are others reshaped."""

    groups: list[Group]
    stored: dict[Value, Group]
    same_memory: dict[Value, Value]
    decisions: list[Decision]


def is_point(node: Node) -> bool:
    """Whether a node's result can be computed at one index alone, anywhere."""
    if node.op is ops.array:
        return node.output.capacity <= 1
    return node.op in lowering and not has_cuts_at_values(node)


def group(
    graph: Graph,
    sizes: Sizes,
    target: Target,
    *,
    in_place: Mapping[Value, Value] = _NONE,
    strided: Mapping[Value, tuple[int, ...] | None] = _DENSE,
    checks: Checks = _UNCHECKED,
    halves: Iterable[tuple[Value, Value]] = (),
) -> Grouping:
    """Partition a graph's live nodes into groups.

    Args:
        sizes: the variables that stand for sizes in the groups' kernels.
        in_place: output -> the input whose memory it is to end up in, so that a slice of that is updated where it is.
        strided: inputs and outputs whose memory is not C-contiguous -> the strides of inputs.
        checks: of indices, by the nodes that rely on them.
        halves: inputs whose elements lie side by side, each beside its partner's: what brings one from memory brings both.
    """
    return _GroupSweep(graph, sizes, target, in_place, strided, checks).run(halves)


class _GroupSweep:
    def __init__(
        self,
        graph: Graph,
        sizes: Sizes,
        target: Target,
        in_place: Mapping[Value, Value],
        strided: Mapping[Value, tuple[int, ...] | None],
        checks: Checks,
    ) -> None:
        self.checks = checks
        self.looks: dict[IndexCheck, Group] = {}
        self.graph, self.sizes, self.target, self.in_place, self.strided = graph, sizes, target, in_place, strided
        self.names = name_values(graph)
        self.producers, self.users = graph.producers(), graph.users()
        self.point = {v: is_point(n) for v, n in self.producers.items()}
        self.work = cost.work_from_memory(graph, self.point, target.cost)
        self.parts = Partition(sizes, self.producers)
        sized = (sizes.values[sym] for v in graph.outputs for sym in v.aval.syms)
        self.outputs = frozenset((*graph.outputs, *sized))
        self.observed: set[Value] = set()
        gemm = target.calls.get("gemm", GEMM)  # asked only of products that are not expanded
        self.products = Products(graph, self.parts, self.point, strided, self.outputs, gemm)
        self.decisions: list[Decision] = []
        self.acting: Group | None = None  # the first group so far that does what others see

    def run(self, halves: Iterable[tuple[Value, Value]]) -> Grouping:
        for node in reversed(self.graph.nodes):
            if node.op is ops.bind:  # whoever mentions the size wants its value
                continue
            if node.op is ops.observe:
                self.observed.add(node.inputs[0])
                continue
            # Even if nothing uses the node any more: `expand` says it otherwise, and leaves it for the check.
            if node in self.checks:
                self.parts.looks[node] = tuple(map(self.place_check, self.checks[node]))
            if node.op is ops.check:
                self.place_claim(node)
            elif len(node.outputs) != 1 or node.bodies or node.has_effect:
                self.place_region(node)
            else:
                self.place_value(node, node.output)
        for value in self.graph.inputs:
            self.merge(value, self.parts.users.get(value, []))
        for value, h, g in beside(halves, self.parts.users):
            self.parts.absorb(h, g)
            self.decide(value, "shared loops", f"{value.aval.nbytes:,} bytes lie beside others that are read")
        self.parts.look_first()
        self.parts.read_before_updates(self.in_place)
        for g, value in self.parts.read_after_loops(self.target.cost):
            self.decisions += [
                Decision(f"dot_general %{self.names[v]}", f"waits for loops that stream %{self.names[value]}") for v in g.results
            ]
        return Grouping(self.parts.in_order(), self.parts.stored, self.parts.same_memory, self.decisions)

    # ------------------------------------------------------------------------------------------------ placing

    def place_value(self, node: Node, value: Value) -> None:
        if value in self.products.turned:
            self.place_whole(node, self.parts.users.get(self.products.turned[value].output, []), self.products.turned[value])
            return
        users = self.parts.users.get(value, [])
        must = value in self.outputs or (value in self.observed and not self.is_computed_whole(value, users))
        if (not users and not must) or (node.op is ops.array and not self.point[value]):
            return
        if len(users) > 1:
            # That two scalars ask for one constant is no reason for what makes one of them to wait for the other.
            apart = [g for g in users if node.op is ops.full and not g.axes]
            users = [*apart, *self.merge(value, [g for g in users if g not in apart])]
        if self.products.writes_transpose(node):
            return
        if node.op in REDUCTIONS:
            self.place_reduction(node, users, must)
        elif self.point[value]:
            self.place_point(node, users, must)
        elif node.op in targets:
            self.place_update(node, users)
        elif node.op is ops.scatter and not is_for_library(node, self.target) and min(v.capacity for v in node.inputs[:2]):
            self.place_scatter(node, users)
        else:
            self.place_whole(node, users)

    def is_computed_whole(self, value: Value, users: list[Group]) -> bool:
        """Whether some group computes every element, wherever else the value is needed in part."""

        def visits_all(g: Group, index: Index) -> bool:
            # Loops around that may not run at all visit nothing.
            return g.covers(index, value.shape) is not None and have_elements_if(g.axes.values(), value.shape)

        return any(
            index is not None and g.node is None and not g.is_cold and not g.cuts and visits_all(g, index)
            for g in users
            for index in g.wanted[value]
        )

    def place_region(self, node: Node) -> None:
        """A region or a host call: a step of its own, after all that it reads. Nothing joins it."""
        users = {g: None for v in node.outputs for g in self.merge(v, self.parts.users.get(v, []))}
        must = not (self.outputs | self.observed).isdisjoint(node.outputs)
        if not users and not must and not node.has_effect:
            return
        if not acts(node):
            self.place_whole(node, list(users))
            return
        later = [] if self.acting is None else [self.acting]
        g = self.place_whole(node, list(dict.fromkeys((*users, *later))))
        for other in later:
            other.follows.append(g)
        self.acting = g

    def place_claim(self, node: Node) -> None:
        """A check: a kernel that looks. What wants the result reads the operand instead, and comes after the check."""
        value, source = node.output, node.inputs[0]
        users = self.merge(value, self.parts.users.get(value, []))
        g = self.parts.new_group((*users, *self.parts.reliant.get(value, ())))
        g.node = node
        for operand in node.inputs[1:]:
            self.parts.want(g, operand, WHOLE, frozenset())
        self.parts.claimed[value] = g
        for h in users:
            h.claims[value] = None
            self.parts.take(node, h)
            for index, reach in h.wanted[value].items():
                self.parts.want(h, source, index, reach)
        if any(WHOLE in h.wanted[value] for h in users):
            self.parts.same_memory[value] = source

    def see_through(self, node: Node, users: list[Group]) -> list[Group]:
        """Let calls and nests that want a reshaped array, or the start of one, read the array itself; the users that are left."""
        if not node.inputs or node.inputs[0] in self.strided or not self.is_same_memory(node):
            return users
        value, source = node.output, node.inputs[0]
        # An update in place starts from its operand's own buffer; a window's loops load elements at their places in the shape.
        # Loops see a memory in one shape: what reads the array itself as well needs the other apart, unless it has bodies.
        through = [
            g
            for g in users
            if g.node is not None
            and not g.takes_points
            and not is_product(g.node)
            and not self.starts_from(g.node, value)
            and (g.node.bodies or source not in g.wanted)
            and set(g.wanted[value]) == {WHOLE}
        ]
        if through:
            self.parts.same_memory[value] = source
        for g in through:
            self.parts.want(g, source, WHOLE, frozenset())
            del g.wanted[value]
        return [g for g in users if g not in through]

    def is_same_memory(self, node: Node) -> bool:
        """Whether a node's result is the beginning of its operand's memory, which is there in any case."""
        value, source = node.output, node.inputs[0]
        if node.op is ops.reshape:  # where sizes are unknown, rows of the largest shape are further apart
            return value.aval.is_static and source.aval.is_static
        is_there = not self.point.get(source, False) and is_start(node, self.producers)
        return is_there and node.op is ops.dynamic_slice and value.aval.bounds[1:] == source.aval.bounds[1:]

    def starts_from(self, node: Node, value: Value) -> bool:
        return value in carried_operands(node) or (node.op in UPDATES and value is node.inputs[0])

    def place_point(self, node: Node, users: list[Group], must: bool) -> None:
        if not must:
            users = self.products.read_through(node, self.see_through(node, users))
            if not users:
                return
        if must or not self.inlined_everywhere(node, users):
            self.store_point(node, users)

    def inlined_everywhere(self, node: Node, users: list[Group]) -> bool:
        """Compute a point node wherever it is wanted, if that may be and pays."""
        value = node.output
        uses = [(g, index) for g in users for index in g.wanted[value]]
        if any(index is WHOLE for _, index in uses) or not all(may_inline(node, g) for g in users):
            self.decide(value, "stored", why_not_inline(node, users))
            return False
        uses = [(g, index) for g, index in uses if not g.is_cold]
        if uses and not self.asks_of_operand(node):
            times = sum(evaluations(g, value, index) for g, index in uses if index is not None)
            ratio = times / max(1, value.capacity)
            single = len(uses) == 1 and times <= value.capacity
            again = self.work_again(node, uses)
            if not single and not cost.recompute_pays(value, again, times, self.target.cost):
                often = f"{ratio:,.1f}".removesuffix(".0")
                self.decide(value, "stored", f"computing it {often} times costs more than its memory traffic")
                return False
            if not single and again > 0:
                how_often = f"{len(uses)} uses" if len(uses) > 1 else f"{ratio:.0f} times"
                self.decide(value, f"recompute for {how_often}", "cheaper than its memory traffic")
        for g in users:
            self.inline(node, g)
        return True

    def asks_of_operand(self, node: Node) -> bool:
        """Whether to keep anything of a node is a question about its operand, of which it is a view."""
        if node.op is ops.broadcast:
            return node.inputs[0].capacity < node.output.capacity
        if node.op is ops.transpose:  # of a view: the same one, along other axes
            maker = self.producers.get(node.inputs[0])
            return maker is not None and self.asks_of_operand(maker)
        if node.op is ops.reshape:
            before, after = ([n for n in v.shape if n != 1] for v in (node.inputs[0], node.output))
            is_view = before == after
        else:
            is_view = node.op is ops.slice and cost.work(node, self.target.cost) == 0
        # Of a large operand few elements may be wanted: to keep all of it would be dear.
        return is_view and node.inputs[0].capacity <= FEW

    def work_again(self, node: Node, uses: Sequence[tuple[Group, Index | None]]) -> float:
        """Work of an element wherever it is wanted: the node's own, if its operands are to be had there as well."""
        if node.op.is_pointwise:
            operands = [v for v in node.inputs if self.work.get(v, 0.0) > 0]
            # One of the groups would make the operands anyway, as it makes the value for all.
            lacking = sum(not all(self.is_had(v, g, index, node) for v in operands) for g, index in uses)
            if lacking <= 1:
                return cost.work(node, self.target.cost)
        return self.work[node.output]

    def is_had(self, operand: Value, g: Group, index: Index | None, but: Node) -> bool:
        """Whether a group wants a value, or will for something else than one node; as far as can be seen."""
        found = [operand]
        for v in islice(found, LOOKAHEAD):  # it grows meanwhile
            if index in g.wanted.get(v, ()) and self.producers.get(v) not in g.members:
                return True
            makers = (n for n in self.users[v] if n is not but and n.op.is_pointwise and n not in g.members)
            found += [n.output for n in makers if n.output not in found]
        return False

    def store_point(self, node: Node, users: list[Group]) -> None:
        """Compute a point node once, and keep it: in a reader that visits each element once, or in loops of its own."""
        value = node.output
        for g, index in homes(value, users):
            if may_inline(node, g) and self.parts.connect(g, [h for h in users if h is not g]):
                g.stores[value] = index
                self.parts.stored[value] = g
                self.inline(node, g)
                return
        if node.op in targets and self.updates_in_place(node, users):
            self.place_update(node, users)
            return
        fresh = self.parts.new_group(users)
        if node.op is ops.reshape and value.ndim == 1 and not all(isinstance(n, int) for n in node.inputs[0].shape[1:]):
            # Loops over the operand: a multiplication gives the element's place, where the other way needs a division.
            shape = node.inputs[0].shape
            home: Index = (packed(fresh.place(shape, "x"), shape, self.sizes.expr),)
        else:
            home = fresh.place(value.shape, "x")
        fresh.stores[value] = home
        fresh.want(value, home, frozenset(fresh.axes))
        self.parts.stored[value] = fresh
        self.inline(node, fresh)

    def inline(self, node: Node, g: Group) -> None:
        """Compute a point node inside a group: its operands are wanted there instead."""
        if node.op is ops.reshape:
            for result in [i for i in g.wanted[node.output] if i is not None]:
                split_for_reshape(g, node, result)
        self.parts.take(node, g)
        share = g.shares.get(node.output, 1.0)
        for index, reach in list(g.wanted[node.output].items()):
            assert index is not None
            if node.op.is_pointwise:
                for value in node.inputs:
                    self.parts.want(g, value, index, reach, share)
                continue
            recorder = ReadRecorder(g, index, reach)
            recorder.run(node, index)
            collect_cuts(recorder, g.cuts, g.ranges)
            for value, at in recorder.reads:
                self.parts.want(g, value, at, reach, share * piece_of(node, value))

    def place_reduction(self, node: Node, users: list[Group], must: bool) -> None:
        value = node.output
        for g in users:
            others = [h for h in users if h is not g]
            joined = on_the_way(node, g)
            if joined is not None and not rows_stay_in_cache(node, g, joined, self.target):
                self.decide(value, "not fused with its users", "its rows do not stay in cache between two passes")
                continue
            if joined is None or not self.parts.connect(g, others):
                continue
            if must or others:
                g.stores[value] = joined
                self.parts.stored[value] = g
            self.reduce(node, g, joined)
            return
        g = self.parts.new_group(users)
        index = g.place(value.shape, "x")
        g.stores[value] = index
        g.want(value, index, frozenset(g.axes))
        self.parts.stored[value] = g
        self.reduce(node, g, index)

    def reduce(self, node: Node, g: Group, index: Index) -> None:
        rows = g.covers(index, node.output.shape)
        assert rows is not None
        operand, axes = node.inputs[0], node.params["axes"]
        if g.rows is None and len(rows) == len(g.axes):
            g.place([operand.shape[a] for a in axes], "y")
        names = iter([name for name in g.axes if name not in rows])
        outer = iter(index)
        at: Index = tuple(
            next(outer) if a not in axes else Const(0) if n == 1 else Var(next(names)) for a, n in enumerate(operand.shape)
        )
        g.rows = rows
        g.reductions[node] = (index, at)
        self.parts.take(node, g)
        self.parts.want(g, operand, at, frozenset(g.axes))

    def place_whole(self, node: Node, users: list[Group], transposed: Node | None = None) -> Group:
        g = self.parts.new_group(users)
        g.node, g.transposed = node, transposed
        self.parts.take(node, g)
        for out in g.results:
            self.parts.stored[out] = g
        # The number of a loop's iterations may be known, and what is compressed may be positions.
        skipped = known_trips(node, self.producers) is not None or keeps_positions(node, self.producers)
        for value in node.inputs[skipped:]:
            self.parts.want(g, value, WHOLE, frozenset())
        return g

    def place_check(self, check: IndexCheck) -> Group:
        """The group that looks, once for all nodes that rely on it. Indices need not be kept for it, if it seldom runs."""
        if (known := self.looks.get(check)) is not None:
            return known
        g = self.looks[check] = self.parts.new_group([])
        g.check = check
        g.stores[check.index] = index = g.place(check.index.shape, "x")
        self.parts.want(g, check.index, index, frozenset(g.axes))
        for extreme in (check.low, check.high):
            if extreme is not None:
                self.parts.want(g, extreme, WHOLE, frozenset())
        self.parts.want_sizes(g, (check.index,), (check.size,))
        return g

    def updates_in_place(self, node: Node, users: list[Group]) -> bool:
        """Writing a slice beats writing the whole if the rest is there already and need not be kept."""
        x = self.parts.unchecked(node.inputs[0])
        needs_result = 0
        for g in users:
            needs_result |= g.bits | g.after
        if any(g.bits & needs_result for g in self.parts.users.get(x, [])):
            return False  # the old contents are read with the new ones, or after them
        if x in self.producers:
            if self.makes_most_of(node, x):
                return False
            return self.work.get(x, cost.MOST_WORK) > 0 or len(self.parts.users.get(x, [])) > 0
        return x in self.in_place.values()

    def makes_most_of(self, node: Node, x: Value) -> bool:
        """Whether a write leaves little of an array that nobody else needs: that is not worth a pass of its own."""
        is_free = self.point[x] and x not in self.outputs and not self.parts.users.get(x)
        return is_free and node.inputs[1].capacity * 8 >= x.capacity * 7

    def place_update(self, node: Node, users: list[Group]) -> None:
        g = self.parts.new_group(users)
        g.node = node
        whole, part = node.inputs[:2]
        index = g.place(part.shape, "x")
        g.stores[node.output] = targets[node.op](node, index, self.sizes.place)
        self.parts.take(node, g)
        self.parts.stored[node.output] = g
        self.parts.want(g, whole, WHOLE, frozenset())
        self.parts.want(g, part, index, frozenset(g.axes))

    def place_scatter(self, node: Node, users: list[Group]) -> None:
        """Loops over what is scattered, which compute it and its indices as they go, but not of what they change."""
        x, v, *indices = node.inputs
        memory = self.parts.memory_of(x)
        others = (g for g in self.parts.users.get(indices[0], []) if may_scatter_too(node, g, memory, self.target))
        g = next((g for g in others if g not in users and self.parts.connect(g, users)), None)
        if g is None:
            g = self.parts.new_group(users)
            g.node = node
        g.untouched |= memory
        g.stores[node.output] = at = g.place(v.shape, "x")
        self.parts.take(node, g)
        self.parts.stored[node.output] = g
        self.parts.want(g, x, WHOLE, frozenset())
        self.parts.want(g, v, at, frozenset(g.axes))
        first = node.params["axis"]
        place = at[first : first + indices[0].ndim]
        for index in indices:
            self.parts.want(g, index, place, variables_of(*place))

    # ------------------------------------------------------------------------------------------------ helpers

    def merge(self, value: Value, users: list[Group]) -> list[Group]:
        """Run groups that read one value in one set of loops, where their loops are alike."""
        kept: list[Group] = []
        for g in tuple(users):  # absorbing a group edits the list of users
            for h in kept:
                if alike(value, h, g):
                    self.parts.absorb(h, g)
                    self.decide(value, "shared loops", f"{value.aval.nbytes:,} bytes are read once")
                    break
            else:
                kept.append(g)
        return kept

    def decide(self, value: Value, what: str, why: str) -> None:
        node, name = self.producers.get(value), self.names[value]
        self.decisions.append(Decision(f"{node.op.name} %{name}: {what}" if node else f"%{name}: {what}", why))
