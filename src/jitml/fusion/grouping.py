"""Which nodes run together?  May we: one sweep over the graph, from its outputs up.

A *group* is one set of loops. When the sweep reaches a value, all its users have been placed, so it is known which
groups want it and at which indices. It is then recomputed there, or stored by one of them, or gets a group of its own;
`cost.py` says which is cheaper. Reductions join the group that uses them if that group's loops run over the
reduction's rows. The groups that (transitively) need a group are kept as bit sets, so a merge that would close a cycle
is seen at once; the sweep is near-linear in the number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jitml.fusion import cost
from jitml.fusion.bounds import intervals, unchecked
from jitml.fusion.groups import WHOLE, Group, Recorder, collect_cuts, split_for_reshape, variables
from jitml.fusion.loops import Const, Var
from jitml.fusion.lower import lowering
from jitml.fusion.lower.compaction import has_cuts_at_values
from jitml.fusion.lower.index_maps import packed
from jitml.fusion.lower.points import Index, targets
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.machine import Machine
from jitml.fusion.program import Decision
from jitml.fusion.regions import UPDATES, carried_operands, known_trips
from jitml.fusion.sizes import Sizes
from jitml.ir import ops
from jitml.ir.dims import bound, syms_in
from jitml.ir.floating import ALL, ignored_by, raised_by
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.printer import name_values

_NONE: Mapping[Value, Value] = {}
MOST_BOXES = 32  # a loop nest is cut into at most so many boxes


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
    machine: Machine,
    *,
    in_place: Mapping[Value, Value] = _NONE,
    strided: frozenset[Value] = frozenset(),
) -> Grouping:
    """Partition a graph's live nodes into groups.

    Args:
        sizes: the variables that stand for sizes in the groups' kernels.
        in_place: output -> the input whose memory it is to end up in, so that a slice of that is updated where it is.
        strided: inputs that are not C-contiguous.
    """
    return _Sweep(graph, sizes, machine, in_place, strided).run()


class _Sweep:
    def __init__(
        self, graph: Graph, sizes: Sizes, machine: Machine, in_place: Mapping[Value, Value], strided: frozenset[Value]
    ) -> None:
        self.graph, self.sizes, self.machine, self.in_place, self.strided = graph, sizes, machine, in_place, strided
        self.names = name_values(graph)
        self.producers = graph.producers()
        self.point = {v: is_point(n) for v, n in self.producers.items()}
        self.intervals = intervals(graph)
        self.work = cost.work_from_memory(graph, self.point)
        self.groups: list[Group] = []
        self.made = 0
        self.users: dict[Value, list[Group]] = {}
        self.stored: dict[Value, Group] = {}
        self.same_memory: dict[Value, Value] = {}
        self.claimed: dict[Value, Group] = {}  # result of a check -> the group that looks
        sized = (sizes.values[sym] for v in graph.outputs for sym in v.aval.syms)
        self.outputs = frozenset((*graph.outputs, *sized))
        self.decisions: list[Decision] = []
        self.some_ignored = any(node.source is not None and node.source.ignored for node in graph.nodes)

    def run(self) -> Grouping:
        for node in reversed(self.graph.nodes):
            if node.op is ops.bind:  # whoever mentions the size wants its value
                continue
            if node.op in (ops.gather, ops.scatter):
                # Even if nothing uses it any more: `expand` says it otherwise, and leaves the node for the check.
                self.place_check(node)
            if node.op is ops.check:
                self.place_claim(node)
            elif len(node.outputs) != 1 or node.bodies or node.has_effect:
                self.place_region(node)
            else:
                self.place_value(node, node.output)
        for value in self.graph.inputs:
            if len(self.users.get(value, [])) > 1:
                self.merge(value, self.users[value])
        self.read_before_updates()
        return Grouping(self.in_order(), self.stored, self.same_memory, self.decisions)

    # ------------------------------------------------------------------------------------------------ placing

    def place_value(self, node: Node, value: Value) -> None:
        users, must = self.users.get(value, []), value in self.outputs
        if (not users and not must) or (node.op is ops.array and not self.point[value]):
            return
        if len(users) > 1:
            users = self.merge(value, users)
        if node.op in REDUCTIONS:
            self.place_reduction(node, users, must)
        elif self.point[value]:
            self.place_point(node, users, must)
        elif node.op in targets:
            self.place_update(node, users)
        else:
            self.place_whole(node, users)

    def place_region(self, node: Node) -> None:
        """A region or a host call: a step of its own, after all that it reads. Nothing joins it."""
        users = {g: None for v in node.outputs for g in self.merge(v, self.users.get(v, []))}
        if not users and self.outputs.isdisjoint(node.outputs) and not node.has_effect:
            return
        self.place_whole(node, list(users))

    def place_claim(self, node: Node) -> None:
        """A check: a kernel that looks. What wants the result reads the operand instead, and comes after the check."""
        value, source = node.output, node.inputs[0]
        users = self.merge(value, self.users.get(value, []))
        g = self.new_group(users)
        g.node = node
        for operand in node.inputs[1:]:
            self.want(g, operand, WHOLE, frozenset())
        self.claimed[value] = g
        for h in users:
            h.claims[value] = None
            self.take(node, h)
            for index, reach in h.wanted[value].items():
                self.want(h, source, index, reach)
        if any(WHOLE in h.wanted[value] for h in users):
            self.same_memory[value] = source

    def see_through(self, node: Node, users: list[Group]) -> list[Group]:
        """Let calls and nests that want a reshaped array read the array itself; the users that are left."""
        if node.op is not ops.reshape or node.inputs[0] in self.strided:
            return users
        value, source = node.output, node.inputs[0]
        if not (value.aval.is_static and source.aval.is_static):  # rows of the largest shape are further apart
            return users
        # An update in place starts from its operand's own buffer; a window's loops load elements at their places in the shape.
        through = [
            g
            for g in users
            if g.node is not None
            and g.node.op not in targets
            and not self.starts_from(g.node, value)
            and set(g.wanted[value]) == {WHOLE}
        ]
        if through:
            self.same_memory[value] = source
        for g in through:
            self.want(g, source, WHOLE, frozenset())
            del g.wanted[value]
        return [g for g in users if g not in through]

    def starts_from(self, node: Node, value: Value) -> bool:
        return value in carried_operands(node) or (node.op in UPDATES and value is node.inputs[0])

    def place_point(self, node: Node, users: list[Group], must: bool) -> None:
        value = node.output
        if not must:
            users = self.see_through(node, users)
            if not users:
                return
        uses = [(g, index) for g in users for index in g.wanted[value]]
        whole = any(index is WHOLE for _, index in uses)
        if not must and not whole and all(self.may_inline(node, g) for g in users):
            if node.op is ops.broadcast and node.inputs[0].capacity < value.capacity:
                for g in users:  # whether to keep anything is a question about the operand
                    self.inline(node, g)
                return
            evaluations = sum(self.evaluations(g, value, index) for g, index in uses if index is not None)
            single = len(uses) == 1 and evaluations <= value.capacity
            if single or cost.recompute_pays(value, self.work[value], evaluations, self.machine):
                if not single and self.work[value] > 0:
                    times = f"{len(uses)} uses" if len(uses) > 1 else f"{evaluations / max(1, value.capacity):.0f} times"
                    self.decide(value, f"recompute for {times}", "cheaper than its memory traffic")
                for g in users:
                    self.inline(node, g)
                return
            self.decide(
                value,
                "stored",
                f"computing it {evaluations / max(1, value.capacity):.1f} times costs more than its memory traffic",
            )
        elif users and not must:
            self.decide(value, "stored", self.why_not_inline(node, users))
        for g, index in self.homes(value, users):
            if self.may_inline(node, g) and self.connect(g, [h for h in users if h is not g]):
                g.stores[value] = index
                self.stored[value] = g
                self.inline(node, g)
                return
        if node.op in targets and self.updates_in_place(node):
            self.place_update(node, users)
            return
        fresh = self.new_group(users)
        if node.op is ops.reshape and value.ndim == 1 and not all(isinstance(n, int) for n in node.inputs[0].shape[1:]):
            # Loops over the operand: a multiplication gives the element's place, where the other way needs a division.
            shape = node.inputs[0].shape
            home: Index = (packed(fresh.place(shape, "x"), shape, self.sizes.expr),)
        else:
            home = fresh.place(value.shape, "x")
        fresh.stores[value] = home
        fresh.want(value, home, frozenset(fresh.axes))
        self.stored[value] = fresh
        self.inline(node, fresh)

    def why_not_inline(self, node: Node, users: list[Group]) -> str:
        """The reason of the first reader that cannot compute a point node itself."""
        for g in users:
            if g.node is not None and g.node.op not in targets:
                return f"its reader {g.node.op.name} runs on its own"
            if WHOLE in g.wanted[node.output]:
                return "a reader wants the whole array, not one element"
        return "it has cases by position, which would cut its readers' loops into too many boxes"

    def may_inline(self, node: Node, g: Group) -> bool:
        """A value with cases by position joins plain loops only, and only while the boxes stay few."""
        if (g.node is not None and g.node.op not in targets) or not self.are_heard_alike((node,), g.members):
            return False
        if node.op not in (ops.pad, ops.concat, ops.update_slice):
            return True
        if node.op is ops.pad and any(node.params["interior"]):
            return False
        if g.rows is not None or (g.node is not None):
            return False
        cuts: dict[str, set[int]] = {name: set(places) for name, places in g.cuts.items()}
        for index, reach in list(g.wanted[node.output].items()):
            assert index is not None
            recorder = Recorder(g, index, reach)
            recorder.run(node, index)
            if not collect_cuts(recorder, cuts, g.ranges):
                return False
        boxes = 1
        for places in cuts.values():
            boxes *= len(places) + 1
        return boxes <= MOST_BOXES

    def inline(self, node: Node, g: Group) -> None:
        """Compute a point node inside a group: its operands are wanted there instead."""
        if node.op is ops.reshape:
            for result in [i for i in g.wanted[node.output] if i is not None]:
                split_for_reshape(g, node, result)
        self.take(node, g)
        for index, reach in list(g.wanted[node.output].items()):
            assert index is not None
            recorder = Recorder(g, index, reach)
            recorder.run(node, index)
            collect_cuts(recorder, g.cuts, g.ranges)
            for value, at in recorder.reads:
                self.want(g, value, at, reach)

    def place_reduction(self, node: Node, users: list[Group], must: bool) -> None:
        value = node.output
        for g in users:
            others = [h for h in users if h is not g]
            joined = self.joins(node, g)
            if joined is None or not self.connect(g, others):
                continue
            if must or others:
                g.stores[value] = joined
                self.stored[value] = g
            self.reduce(node, g, joined)
            return
        g = self.new_group(users)
        index = g.place(value.shape, "x")
        g.stores[value] = index
        g.want(value, index, frozenset(g.axes))
        self.stored[value] = g
        self.reduce(node, g, index)

    def joins(self, node: Node, g: Group) -> Index | None:
        """The index at which a group wants a reduction, if the group's loops can compute it on the way."""
        value, operand, axes = node.output, node.inputs[0], node.params["axes"]
        uses = g.wanted[value]
        if len(uses) != 1 or g.cuts or g.node is not None or not self.are_heard_alike((node,), g.members):
            return None
        ((index, reach),) = uses.items()
        rows = None if index is None else g.covers(index, value.shape)
        if index is None or rows is None or (g.rows is not None and rows != g.rows):
            return None
        rest = [n for name, n in g.axes.items() if name not in rows]
        if g.rows is None and not rest:
            return index
        if rest != [operand.shape[a] for a in axes if operand.shape[a] != 1]:
            return None
        if reach <= rows:
            return index
        # Used again along the row: the row is read twice, so it must lie in cache.
        row = operand.capacity // max(1, value.capacity)
        limit = self.machine.l2 // 2 if value.capacity >= 4 * self.machine.cores else self.machine.l2 // 8
        trailing = axes == tuple(range(operand.ndim - len(axes), operand.ndim))
        if not trailing or row * operand.dtype.itemsize > limit:
            self.decide(value, "not fused with its users", "its rows do not stay in cache between two passes")
            return None
        return index

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
        self.take(node, g)
        self.want(g, operand, at, frozenset(g.axes))

    def place_whole(self, node: Node, users: list[Group]) -> None:
        g = self.new_group(users)
        g.node = node
        self.take(node, g)
        for out in node.outputs:
            self.stored[out] = g
        for value in node.inputs[known_trips(node, self.producers) is not None :]:
            self.want(g, value, WHOLE, frozenset())

    def place_check(self, node: Node) -> None:
        checks = unchecked(node, self.intervals)
        if not checks:
            return
        g = self.new_group([])
        g.node, g.checks = node, checks
        for operand in checks:
            self.want(g, node.inputs[operand], WHOLE, frozenset())
        self.want_sizes(g, node.inputs)

    def updates_in_place(self, node: Node) -> bool:
        """Writing a slice beats writing the whole if the rest is there already and need not be kept."""
        x = self.unchecked(node.inputs[0])
        if x in self.producers:
            return self.work.get(x, cost.MOST_WORK) > 0 or len(self.users.get(x, [])) > 0
        return x in self.in_place.values()

    def place_update(self, node: Node, users: list[Group]) -> None:
        g = self.new_group(users)
        g.node = node
        whole, part = node.inputs[:2]
        index = g.place(part.shape, "x")
        g.stores[node.output] = targets[node.op](node, index, self.sizes.place)
        self.take(node, g)
        self.stored[node.output] = g
        self.want(g, whole, WHOLE, frozenset())
        self.want(g, part, index, frozenset(g.axes))

    # ------------------------------------------------------------------------------------------------ helpers

    def want(self, g: Group, value: Value, index: Index | None, reach: frozenset[str]) -> None:
        if value not in g.wanted:
            self.users.setdefault(value, []).append(g)
        g.want(value, index, reach)

    def take(self, node: Node, g: Group) -> None:
        """Make a node a member of a group, which then needs the sizes that the node mentions."""
        g.members.append(node)
        self.want_places(g, node)
        self.want_sizes(g, (*node.inputs, *node.outputs), node.params.values())

    def want_sizes(self, g: Group, values: Iterable[Value], params: Iterable[object] = ()) -> None:
        for sym in {*syms_in(tuple(v.shape for v in values)), *syms_in(tuple(params))}:
            self.want(g, self.sizes.values[sym], WHOLE, frozenset())

    def want_places(self, g: Group, node: Node) -> None:
        places = node.inputs[{ops.dynamic_slice: 1, ops.dynamic_update_slice: 2}.get(node.op, len(node.inputs)) :]
        for root in {v for place in places for v in self.sizes.roots(place)}:
            self.want(g, root, WHOLE, frozenset())

    def new_group(self, users: list[Group]) -> Group:
        g = Group(self.made, self.sizes)
        self.made += 1  # numbers of groups that were absorbed are not used again
        g.bits = 1 << g.number
        for h in users:
            g.after |= h.after | h.bits
        self.groups.append(g)
        return g

    def connect(self, g: Group, users: list[Group]) -> bool:
        """Let other groups read what g stores; False if g needs one of them already."""
        if any(h.after & g.bits for h in users):
            return False
        more = 0
        for h in users:
            more |= h.after | h.bits
        if more & ~g.after:
            for k in self.groups:
                if k is g or k.after & g.bits:
                    k.after |= more
        return True

    def is_home(self, g: Group, value: Value, index: Index) -> bool:
        """Whether a use visits each element once, as often as the loops around it run: the place to store from."""
        covered = g.covers(index, value.shape)
        return covered is not None and (covered == g.axes.keys() or covered == g.rows)

    def homes(self, value: Value, users: list[Group]) -> Iterator[tuple[Group, Index]]:
        """Groups that compute a value once at every index, with that index: any of them could store it."""
        for g in users:
            if g.node is None and len(g.wanted[value]) == 1:
                (index,) = g.wanted[value]
                if index is not None and self.is_home(g, value, index):
                    yield g, index

    def evaluations(self, g: Group, value: Value, index: Index) -> float:
        """How often an expression at an index runs: its loops, and those around them."""
        used = g.axes.keys() & {name for e in index for name in variables(e)}
        if g.rows is not None and used <= g.rows:
            names = [n for n in g.axes if n in g.rows]
        else:
            names = list(g.axes)
        times, count, mine = 1.0, 1.0, 1.0
        for name in names:
            times *= bound(g.axes[name])
            if name in used:
                mine *= bound(g.axes[name])
                count = times
        # Of a piece of a concat or the inside of a pad, only its own box is run.
        return count / max(1.0, mine) * min(mine, value.capacity) if g.cuts else count

    def merge(self, value: Value, users: list[Group]) -> list[Group]:
        """Run groups that read one value in one set of loops, where their loops are alike."""
        kept: list[Group] = []
        for g in tuple(users):  # absorbing a group edits the list of users
            for h in kept:
                if self.alike(value, h, g):
                    self.absorb(h, g)
                    self.decide(value, "shared loops", f"{value.aval.nbytes:,} bytes are read once")
                    break
            else:
                kept.append(g)
        return kept

    def are_heard_alike(self, some: Sequence[Node], others: Sequence[Node]) -> bool:
        """Whether the same floating-point errors are ignored in both: a kernel cannot tell which of its operations raised one."""
        if not self.some_ignored:
            return True
        raised = {0: 0, 1: 0}
        ignored = {0: ALL, 1: ALL}
        for side, nodes in enumerate((some, others)):
            for node in nodes:
                raised[side] |= raised_by(node)
            ignored[side] = ignored_by(nodes)
        # What one side lets pass and could raise must not be hidden by, nor spoil, what the other does not hear of.
        return not (raised[0] & ~ignored[0] & ignored[1] & raised[1]) and not (raised[1] & ~ignored[1] & ignored[0] & raised[0])

    def alike(self, value: Value, g: Group, h: Group) -> bool:
        if g is h or g.node is not None or h.node is not None or g.axes != h.axes or g.cuts != h.cuts:
            return False
        if g.rows is not None and h.rows is not None and g.rows != h.rows:
            return False
        if (g.rows is None) != (h.rows is None) and (g.cuts or not self.row_fits(g, h)):
            return False
        if g.after & h.bits or h.after & g.bits or not self.are_heard_alike(g.members, h.members):
            return False
        return g.wanted[value].keys() == h.wanted[value].keys()

    def row_fits(self, g: Group, h: Group) -> bool:
        """Loops with and without a reduction go together if the reduction runs along the last axes."""
        rows = g.rows if g.rows is not None else h.rows
        assert rows is not None
        return [name in rows for name in g.axes] == sorted((name in rows for name in g.axes), reverse=True)

    def absorb(self, g: Group, h: Group) -> None:
        g.bits |= h.bits
        g.after |= h.after
        for k in self.groups:
            if k is not g and k.after & g.bits:
                k.after |= g.after | g.bits
        if g.rows is None:
            g.rows = h.rows
        g.stores |= h.stores
        g.reductions |= h.reductions
        g.members += h.members
        g.claims |= h.claims
        for value, uses in h.wanted.items():
            for index, reach in uses.items():
                g.want(value, index, reach)
            users = self.users.get(value, [])  # none for an output that only its own group wants
            users[:] = list(dict.fromkeys(g if u is h else u for u in users))
        for value in h.stores:
            self.stored[value] = g
        self.groups.remove(h)

    def decide(self, value: Value, what: str, why: str) -> None:
        node = self.producers.get(value)
        name = self.names[value]
        self.decisions.append(Decision(f"{node.op.name} %{name}: {what}" if node else f"%{name}: {what}", why))

    def unchecked(self, value: Value) -> Value:
        """What a value is the checked form of: the same memory."""
        while (maker := self.producers.get(value)) is not None and maker.op is ops.check:
            value = maker.inputs[0]
        return value

    def read_before_updates(self) -> None:
        """Who reads what a group changes in place goes first, wherever the two do not depend on each other."""
        pairs = [(self.stored[out], x) for out, x in self.in_place.items() if out in self.stored]
        for g in self.groups:
            if g.node is not None:
                updated = carried_operands(g.node) if g.node.bodies else g.node.inputs[: g.node.op in UPDATES]
                pairs += [(g, self.unchecked(x)) for x in updated]
        for g, x in pairs:
            g.follows += [h for h in self.users.get(x, []) if h is not g and h not in g.follows and self.connect(h, [g])]

    def in_order(self) -> list[Group]:
        """Topological, and as in the graph where that leaves a choice: the sweep made the last group first."""
        order: list[Group] = []
        done: set[int] = set()
        made_by = self.stored
        # Checks first: they must run before anything that the caller can see is written.
        for start in sorted(self.groups, key=lambda g: (not g.only_looks, -g.number)):
            stack = [start]
            while stack:
                g = stack[-1]
                if g.number in done:
                    stack.pop()
                    continue
                before = [made_by[v] for v in g.wanted if v in made_by and made_by[v] is not g]
                before += [self.claimed[v] for v in g.claims] + g.follows
                waiting = [h for h in before if h.number not in done]
                if waiting:
                    stack += waiting[:1]
                else:
                    done.add(g.number)
                    order.append(g)
                    stack.pop()
        return order
