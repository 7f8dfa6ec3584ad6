"""Fusion groups: what is a group?  Nodes that share one set of loops: its axes, what it stores and reduces, what it wants where.

And what a group asks before it takes a node in: which operand elements the node's rule reads (`ReadRecorder`), and where
loops must be cut or split for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from jitml.fusion.lower import Point, lowering
from jitml.fusion.lower.index_maps import aligned_blocks
from jitml.fusion.lower.indexed import IndexCheck
from jitml.fusion.lower.points import Index, Ranges, decide, substituted, targets
from jitml.fusion.lower.scalars import Scalar, Scalars
from jitml.ir import ops
from jitml.ir.analysis.fp_errors import ALL, ignored_by, raised_by
from jitml.ir.dims import Size, bound
from jitml.ir.graph import Node, Value
from jitml.kernels.ir import Const, Expr, Var, add, affine, mul
from jitml.kernels.sizes import Sizes
from jitml.records import dataclass, field

WHOLE = None  # wanted in memory, at indices that only the data knows


@dataclass(eq=False)
class Group:
    """Nodes that share one set of loops.

    axes: loop index -> extent (a Dim where only the running program knows it), outer first. rows: the indices that are not
    reduced over; None if nothing is reduced.
    stores: values kept in memory, with the index each is stored at. reductions: node -> index of its result
    and of its operand.
    wanted: value -> index -> the loop indices that its use depends on; WHOLE for a use from memory.
    cuts: loop index -> places where the loop is cut, so that a pad or concat needs no test inside.
    shares: of pieces and what they are made of: value -> at which part of the loops' points it is computed, at most.
    target: for an update in place, the index in the whole array as a function of the index in the slice.
    """

    number: int
    sizes: Sizes
    axes: dict[str, Size] = field(default_factory=dict)
    rows: frozenset[str] | None = None
    stores: dict[Value, Index] = field(default_factory=dict)
    reductions: dict[Node, tuple[Index, Index]] = field(default_factory=dict)
    wanted: dict[Value, dict[Index | None, frozenset[str]]] = field(default_factory=dict)
    cuts: dict[str, set[int]] = field(default_factory=dict)
    shares: dict[Value, float] = field(default_factory=dict)
    members: dict[Node, None] = field(default_factory=dict)
    raised: int = 0  # floating-point errors that a member can raise
    ignored: int = ALL  # those that nobody wants to hear of, whichever member they come from
    node: Node | None = None  # the only one, of a group that is not loops over points
    check: IndexCheck | None = None  # only looks whether these are good indices, one after the other
    claims: dict[Value, None] = field(default_factory=dict)  # results of checks that it relies on
    follows: list[Group] = field(default_factory=list)  # that run first, though it needs nothing of them
    views: dict[int, tuple[Node, ...]] = field(default_factory=dict)  # operand -> the maps it is seen through, first to last
    untouched: frozenset[Value] = frozenset()  # what lies in the memory that its node changes in no order
    transposed: Node | None = None  # stored in place of the node's result, in whose memory that then lies
    bits: int = 0
    after: int = 0

    @property
    def ranges(self) -> Ranges:
        """The loops' limits; those of the largest shape where an extent is a Dim."""
        return {name: (0, bound(n)) for name, n in self.axes.items()}

    @property
    def points(self) -> int:
        size = 1
        for n in self.axes.values():
            size *= bound(n)
        return size

    @property
    def only_looks(self) -> bool:
        """Whether it makes nothing, and may end the program with an error."""
        return self.check is not None or (self.node is not None and self.node.op is ops.check)

    @property
    def is_open(self) -> bool:
        """Whether it is loops over points, which others may join."""
        return self.node is None and self.check is None

    @property
    def takes_points(self) -> bool:
        """Whether it computes elements of its operands where it wants them."""
        return self.node is None or self.node.op in targets or (self.node.op is ops.scatter and self.node.output in self.stores)

    @property
    def scatters(self) -> tuple[Node, ...]:
        """Of a group that scatters element by element, the nodes that do; its `node` is one of them."""
        is_one = self.node is not None and self.node.op is ops.scatter
        return tuple(n for n in self.members if n.op is ops.scatter and n.output in self.stores) if is_one else ()

    @property
    def is_cold(self) -> bool:
        """Whether its loops run only where it is known already that they end the program."""
        return self.check is not None and self.check.by_extremes

    @property
    def boxes(self) -> int:
        count = 1
        for places in self.cuts.values():
            count *= len(places) + 1
        return count

    @property
    def results(self) -> tuple[Value, ...]:
        """What a node on its own stores."""
        assert self.node is not None
        return (self.transposed or self.node).outputs

    def operands(self, node: Node) -> tuple[Value, ...]:
        """What is in memory for a node: its operands, or what they are views of."""
        return tuple(self.views[k][0].inputs[0] if k in self.views else v for k, v in enumerate(node.inputs))

    def admit(self, node: Node) -> None:
        self.members[node] = None
        self.raised |= raised_by(node)
        self.ignored &= ignored_by((node,))

    def join(self, other: Group) -> None:
        """Take over all that a group with the same loops does."""
        if self.rows is None:
            self.rows = other.rows
        self.stores |= other.stores
        self.reductions |= other.reductions
        self.members |= other.members
        self.raised |= other.raised
        self.ignored &= other.ignored
        self.claims |= other.claims
        mine = self.wanted
        if self.shares or other.shares:
            apart = dict(other.wanted)
        else:  # a group may want thousands: what one of the two wants alone is taken over as it is
            apart = {value: other.wanted[value] for value in mine.keys() & other.wanted.keys()}
            self.wanted = mine | other.wanted | {value: mine[value] for value in apart}
        for value, uses in apart.items():
            for index, reach in uses.items():
                self.want(value, index, reach, other.shares.get(value, 1.0))

    def want(self, value: Value, index: Index | None, reach: frozenset[str], share: float = 1.0) -> None:
        share += self.shares.pop(value, 1.0 if value in self.wanted else 0.0)
        if share < 1:
            self.shares[value] = share
        uses = self.wanted.setdefault(value, {})
        uses[index] = uses.get(index, frozenset()) | reach

    def place(self, shape: Iterable[Size], prefix: str) -> Index:
        """New loop axes for a shape; axes of one element need none."""
        index: list[Expr] = []
        for k, n in enumerate(shape):
            if n == 1:
                index.append(Const(0))
            else:
                self.axes[f"{prefix}{k}"] = n
                index.append(Var(f"{prefix}{k}"))
        return tuple(index)

    def covers(self, index: Index, shape: tuple[int, ...]) -> frozenset[str] | None:
        """The loop indices of an index that visits each element of a shape once; None if it does not."""
        names: list[str] = []
        for e, n in zip(index, shape):
            if n == 1:
                if e != Const(0):  # a piece of a concat, wanted in a box that has nothing of it
                    return None
                continue
            if not isinstance(e, Var) or self.axes.get(e.name) != n or e.name in names:
                return None
            names.append(e.name)
        return frozenset(names)

    def substitute(self, change: Callable[[Expr], Expr], names: Callable[[Iterable[str]], frozenset[str]]) -> None:
        def at(index: Index | None) -> Index | None:
            return None if index is None else tuple(change(e) for e in index)

        self.wanted = {v: {at(i): names(r) for i, r in uses.items()} for v, uses in self.wanted.items()}
        self.stores = {v: tuple(change(e) for e in i) for v, i in self.stores.items()}
        self.reductions = {n: (tuple(change(e) for e in i), tuple(change(e) for e in j)) for n, (i, j) in self.reductions.items()}

    def split(self, name: str, factors: tuple[int, ...]) -> None:
        """Replace one loop by a nest of loops, the product of whose extents is its own."""
        parts = [f"{name}_{k}" for k in range(len(factors))]
        whole: Expr = Const(0)
        for part, n in zip(parts, factors):
            whole = add(mul(whole, n), Var(part))

        def names(old: Iterable[str]) -> frozenset[str]:
            return frozenset(p for n in old for p in (parts if n == name else (n,)))

        new_axes: dict[str, Size] = {}
        for axis, extent in self.axes.items():
            new_axes.update(zip(parts, factors) if axis == name else ((axis, extent),))
        self.axes = new_axes
        ranges = self.ranges
        self.substitute(lambda e: substituted(e, {name: whole}, ranges), names)
        if self.rows is not None:
            self.rows = names(self.rows)


class ReadRecorder:
    """Runs a lowering rule to see what it reads, once for each way its tests of position can come out, where that is open."""

    def __init__(self, group: Group, index: Index, reach: frozenset[str]) -> None:
        self.b = Scalars()
        self.ranges, self.sizes, self.axes = group.ranges, group.sizes, group.axes
        self.reads: dict[tuple[Value, Index | None], None] = {}
        self.cuts: list[tuple[Expr, int, int]] = []
        self._script: list[bool] = []
        self._asked = 0

    def run(self, node: Node, index: Index) -> None:
        rule = lowering[node.op]
        while True:
            self._asked = 0
            rule(Point(self, node, index))
            while self._script and not self._script[-1]:
                self._script.pop()
            if not self._script:
                return
            self._script[-1] = False

    def read(self, node: Node, operand: int, index: Index) -> Scalar:
        value = node.inputs[operand]
        self.reads[value, index] = None
        return self.b.load(str(operand), (), value.dtype)

    def load(self, node: Node, operand: int, index: tuple[Expr | Scalar, ...]) -> Scalar:
        value = node.inputs[operand]
        self.reads[value, WHOLE] = None
        return self.b.load(str(operand), (), value.dtype)

    def place(self, value: Value) -> Expr:
        return self.sizes.place(value)

    def inside(self, expr: Expr, low: int, high: int) -> bool | None:
        known = decide(expr, low, high, self.ranges)
        if known is not None:
            return known
        if self._asked == len(self._script):
            self._script.append(True)
            self.cuts.append((expr, low, high))
        self._asked += 1
        return self._script[self._asked - 1]


def collect_cuts(recorder: ReadRecorder, cuts: dict[str, set[int]], ranges: Ranges) -> bool:
    """Note where loops are to be cut for a rule's tests of position; False if a test is no limit of one loop."""
    for expr, low, high in recorder.cuts:
        terms = affine(expr)
        if terms is None or len(terms) > 2:
            return False
        names = [name for name in terms if name]
        if any(terms[name] != 1 or name not in ranges for name in names):  # a size variable is no loop that could be cut
            return False
        for name in names:
            places = {p - terms[""] for p in (low, high) if 0 < p - terms[""] < ranges[name][1]}
            if places:
                cuts.setdefault(name, set()).update(places)
    return True


def split_for_reshape(g: Group, node: Node, index: Index) -> None:
    """Cut loops into factors so that a reshape's operand is read by whole loops instead of by quotients."""
    operand, result = node.inputs[0].shape, node.output.shape
    if 0 in operand or not (node.inputs[0].aval.is_static and node.output.aval.is_static):
        return
    for (x0, x1), (y0, y1) in aligned_blocks(operand, result):
        inner = {product_from(operand, k, x1) for k in range(x0, x1)}
        for k in range(y0, y1):
            low = product_from(result, k + 1, y1)
            high = low * result[k]
            places = sorted({p for p in inner if low < p < high} | {low, high})
            if len(places) == 2 or any(q % p for p, q in pairwise(places)):
                continue
            e = index[k]
            if isinstance(e, Var) and g.axes.get(e.name) == result[k]:
                g.split(e.name, tuple(q // p for p, q in pairwise(places))[::-1])


def product_from(shape: tuple[int, ...], start: int, stop: int) -> int:
    size = 1
    for n in shape[start:stop]:
        size *= n
    return size
