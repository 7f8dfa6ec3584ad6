"""Partition into groups: which groups are there, who wants what of whom, and which must run first?

The groups that (transitively) need a group are kept as bit sets, so that a merge that would close a cycle is seen at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from jitml.fusion.grouping.groups import WHOLE, Group
from jitml.fusion.grouping.regions import UPDATES, before_checks, carried_operands
from jitml.fusion.lower.points import Index
from jitml.ir import ops
from jitml.ir.dims import syms_in
from jitml.ir.graph import Node, Value
from jitml.kernels.sizes import Sizes
from jitml.kernels.target import Cost


def updated_by(g: Group) -> Iterable[Value]:
    """The operands in whose memory a group makes its node's results."""
    if g.node is None or g.only_looks:
        return ()
    if scatters := g.scatters:
        return [node.inputs[0] for node in scatters]
    return carried_operands(g.node) if g.node.bodies else g.node.inputs[: g.node.op in UPDATES]


class Partition:
    """The groups made so far.

    users: value -> the groups that want it. stored: value -> the group that makes it. claimed: the result of a check -> the group
    that looks. reliant: the result of a check -> the groups that use the place that was checked. same_memory: value -> the one
    that it is another shape of. looks: node -> the groups that look at its indices.
    """

    def __init__(self, sizes: Sizes, producers: Mapping[Value, Node]) -> None:
        self.sizes, self.producers = sizes, producers
        self.groups: list[Group] = []
        self.users: dict[Value, list[Group]] = {}
        self.stored: dict[Value, Group] = {}
        self.claimed: dict[Value, Group] = {}
        self.reliant: dict[Value, dict[Group, None]] = {}
        self.same_memory: dict[Value, Value] = {}
        self.looks: dict[Node, tuple[Group, ...]] = {}
        self._made = 0

    # --------------------------------------------------------------------------------------------------- members

    def new_group(self, users: Iterable[Group]) -> Group:
        """A group that others will read from."""
        g = Group(self._made, self.sizes)
        self._made += 1  # numbers of groups that were absorbed are not used again
        g.bits = 1 << g.number
        for h in users:
            g.after |= h.after | h.bits
        self.groups.append(g)
        return g

    def want(self, g: Group, value: Value, index: Index | None, reach: frozenset[str], share: float = 1.0) -> None:
        """Note that a group needs a value, at an index of its loops."""
        if value not in g.wanted:
            self.users.setdefault(value, []).append(g)
        g.want(value, index, reach, share)

    def take(self, node: Node, g: Group) -> None:
        """Make a node a member of a group, which then needs the sizes that the node mentions."""
        g.admit(node)
        self.want_places(g, node)
        self.want_sizes(g, (*node.inputs, *node.outputs), node.params.values())

    def want_sizes(self, g: Group, values: Iterable[Value], params: Iterable[object] = ()) -> None:
        for sym in {*syms_in(tuple(v.shape for v in values)), *syms_in(tuple(params))}:
            self.want(g, self.sizes.values[sym], WHOLE, frozenset())

    def want_places(self, g: Group, node: Node) -> None:
        places = node.inputs[{ops.dynamic_slice: 1, ops.dynamic_update_slice: 2}.get(node.op, len(node.inputs)) :]
        for root in {v for place in places for v in self.sizes.roots(place)}:
            self.want(g, root, WHOLE, frozenset())
        for claim in (v for place in places for v in self.sizes.claims(place)):
            self.reliant.setdefault(claim, {})[g] = None
            g.claims[claim] = None

    def unchecked(self, value: Value) -> Value:
        """What a value is the checked form of: the same memory."""
        return before_checks(value, self.producers)

    def memory_of(self, value: Value) -> frozenset[Value]:
        """What a value may share its memory with: what it is a part or another shape of, or has been before it was changed."""
        found = [value]
        for v in found:  # it grows meanwhile
            maker = self.producers.get(v)
            if maker is not None and (maker.op in UPDATES or maker.op is ops.check or maker.op.family == "index_maps"):
                found += maker.inputs[:1]
        return frozenset(found)

    # ----------------------------------------------------------------------------------------------------- order

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

    def absorb(self, g: Group, h: Group) -> None:
        """Make one group of two whose loops are alike."""
        g.bits |= h.bits
        g.after |= h.after
        for k in self.groups:
            if k is not g and k.after & g.bits:
                k.after |= g.after | g.bits
        g.join(h)
        for value in h.wanted:
            users = self.users.get(value, [])  # none for an output that only its own group wants
            if len(users) > 1:
                users[:] = list(dict.fromkeys(g if u is h else u for u in users))
            elif users and users[0] is h:
                users[0] = g
        for value in h.claims:
            reliant = self.reliant.get(value, {})
            if h in reliant:
                del reliant[h]
                reliant[g] = None
        for value in h.stores:
            self.stored[value] = g
        self.groups.remove(h)

    def updaters(self, value: Value) -> list[Group]:
        """The groups made so far that change an array in part."""
        return [g for g in self.groups if value in map(self.unchecked, updated_by(g))]

    def read_before_updates(self, in_place: Mapping[Value, Value]) -> None:
        """Who reads what a group changes in place goes first, wherever the two do not depend on each other."""
        pairs = [(self.stored[out], x) for out, x in in_place.items() if out in self.stored]
        for g in self.groups:
            pairs += [(g, self.unchecked(x)) for x in updated_by(g)]
        for g, x in pairs:
            g.follows += [h for h in self.users.get(x, []) if h is not g and h not in g.follows and self.connect(h, [g])]

    def look_first(self) -> None:
        """Let indices be used once they are known to be good: a clamped one reaches beyond an array that is empty."""
        users: dict[Node, list[Group]] = {}
        for g in self.groups:
            for node in g.members.keys() & self.looks.keys():
                users.setdefault(node, []).append(g)
        for node, looks in self.looks.items():
            for g, look in product(users.get(node, ()), looks):
                if g is not look and look not in g.follows and self.connect(look, [g]):
                    g.follows.append(look)

    def read_after_loops(self, cost: Cost) -> Iterator[tuple[Group, Value]]:
        """Have products of large arrays that are in no cache wait for loops that read the same ones, where they can.

        Loops stream an array from memory; BLAS, which reads a few rows at a time to pack them, would wait for each line of it.

        Yields:
            each product that waits, and the array.
        """
        order = self.in_order()
        place = {g: n for n, g in enumerate(order)}
        moved = [sum(v.aval.nbytes for v in (*g.wanted, *(g.stores if g.node is None else g.results))) for g in order]
        for n, g in enumerate(order):
            if g.node is None or g.node.op is not ops.dot_general:
                continue
            for value in [v for v in g.wanted if cost.waits_for_lines(v.aval.nbytes)]:
                maker = [self.stored[value]] if value in self.stored else []
                touching = sorted(place[h] for h in (*maker, *self.users[value]) if h is not g)
                last = max((k for k in touching if k < n), default=None)
                later = [order[k] for k in touching if k > n and order[k].node is None]
                is_cold = last is None or cost.waits_for_lines(sum(moved[last + 1 : n]))
                if later and is_cold and self.connect(later[0], [g]):
                    g.follows.append(later[0])
                    yield g, value

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
