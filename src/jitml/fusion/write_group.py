"""The loops of a group of point nodes and reductions: its boxes, and the kernel that runs them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from itertools import pairwise, product

from jitml.fusion.grouping.buffers import Buffers
from jitml.fusion.grouping.groups import Group
from jitml.fusion.grouping.scalarize import SINK, Points, scalarize, without_loops_of_one
from jitml.fusion.lower.indexed import SCATTERED
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalars
from jitml.fusion.schedule import SERIAL, GroupNest, Scheduler, all_scalars, fitting, scheduled, write
from jitml.fusion.schedule.loop_writer import LoopWriter
from jitml.fusion.schedule.memory_views import Places, Views, steps_of, usual
from jitml.ir import ops
from jitml.ir.dims import Size, bound
from jitml.ir.graph import Node
from jitml.ir.types import I64, DType
from jitml.kernels.ir import Apply, Buffer, Expr, Let, Stmt, Store, Var, is_ordered, walk, with_blocks
from jitml.kernels.program import Decision
from jitml.kernels.schedule import Schedule
from jitml.kernels.target import Target
from jitml.records import dataclass, replace

# Zeros from this size on are asked of the system, which gives a page as it is touched. To write them all is as fast as that if
# they are all used, and what is so large is often reserved for the most that may be needed.
UNTOUCHED_BYTES = 128 << 20


@dataclass(frozen=True)
class WrittenGroup:
    """The body of a group's kernel, its parameters, and the schedule of its loops."""

    body: tuple[Stmt, ...]
    params: tuple[Buffer, ...]
    schedule: Schedule


@dataclass(frozen=True)
class GroupLoops:
    """Writes the loops of groups.

    order: nodes -> their place in the graph.
    scheduler: says how loops run, where the user does not.
    """

    buffers: Buffers
    target: Target
    order: Mapping[Node, int]
    scheduler: Scheduler

    def write(self, g: Group, name: str, given: Schedule | None) -> WrittenGroup:
        """The loops of a group, box by box.

        Args:
            name: of the kernel, for errors.
            given: a schedule of the user's.
        """
        boxes = self.boxes(g)
        views = self.views(g, boxes)
        partial: list[Buffer] = []

        def temporary(dtype: DType, shape: tuple[int, ...]) -> str:
            partial.append(self.buffers.temporary(dtype, shape))
            return partial[-1].name

        writer = LoopWriter(views)
        rows = frozenset(g.axes) if g.rows is None else g.rows
        nests = [GroupNest(points, views, rows, self.target, self.buffers.sizes) for points in boxes]
        schedule = Schedule(tuple(map(self.scheduler.group, nests))) if given is None else fitting(given, nests, name)
        for nest, primitives in zip(nests, schedule.boxes):
            write(scheduled(nest, primitives, name), nest, writer, temporary)
        assert views.buffers is not None
        params = (*sorted(views.buffers.values(), key=lambda b: self.buffers.ages[b.name]), *partial)
        return WrittenGroup(writer.finish(), params, schedule)

    def write_serial(
        self, g: Group, shape: Iterable[Size], end: Callable[[Expr], tuple[Stmt, ...]]
    ) -> tuple[tuple[Stmt, ...], tuple[Buffer, ...]]:
        """Loops in order, and their parameters, of a group that stores nothing.

        Args:
            shape: what the group's loops run over.
            end: what is done with the value at each point.
        """
        self.buffers.add(SINK, I64, tuple(shape))
        written = replace(self, scheduler=SERIAL).write(g, SINK, None)
        self.buffers.remove(SINK)

        named = {s.name: s.value for s in walk(written.body) if isinstance(s, Let) and _is_pair(s.value)}

        def ended(body: tuple[Stmt, ...], place: object = None) -> tuple[Stmt, ...]:
            found: list[Stmt] = []
            for s in body:
                if isinstance(s, Store) and s.buffer == SINK:
                    found += end(named.get(s.value.name, s.value) if isinstance(s.value, Var) else s.value)
                elif not (isinstance(s, Let) and s.name in named):
                    found.append(with_blocks(s, ended))
            return tuple(found)

        return ended(written.body), tuple(b for b in written.params if b.name != SINK)

    def is_empty(self, g: Group) -> bool:
        """Whether a group has nothing to compute."""
        empty = bool(g.stores) and all(self.buffers.stored(v).size == 0 for v in g.stores)
        return empty or (g.node is not None and g.points == 0)

    def zeros(self, g: Group) -> Buffer | None:
        """The buffer that a group fills with zeros and does nothing else, if it is so large that it may not all be touched."""
        if len(g.members) != 1 or g.stores.keys() != {(node := next(iter(g.members))).output} or node.op is not ops.full:
            return None
        buffer = self.buffers.stored(node.output)
        value = buffer.dtype.type(node.params["value"])
        is_large = buffer.nbytes >= UNTOUCHED_BYTES and buffer.is_c_contiguous and buffer.name not in self.buffers.extents
        return buffer if is_large and not any(value.tobytes()) else None

    def boxes(self, g: Group) -> list[Points]:
        """What happens in each box of the group's loops; boxes that run the same loops run together."""
        scalars, members = Scalars(), sorted(g.members, key=self.order.__getitem__)
        boxes = [scalarize(g, ranges, self.buffers.names, members, scalars) for ranges in boxes_of(g)]
        if not g.cuts:
            return boxes
        together: dict[tuple[object, ...], Points] = {}
        for points in joined(boxes):
            points = without_loops_of_one(points, g.axes, scalars)
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
        axes = g.axes
        if g.rows is not None:
            axes = self.as_they_lie(g, g.rows, boxes, accesses)
            barriers = frozenset(y for x, y in pairwise(axes) if (x in g.rows) != (y in g.rows))
        return Views(axes, self.buffers.made, accesses, frozenset(fixed), barriers, sizes=self.buffers.sizes)

    def as_they_lie(
        self, g: Group, rows: Container[str], boxes: Iterable[Points], accesses: Iterable[tuple[str, Places]]
    ) -> dict[str, Size]:
        """A group's axes: those that are reduced over in the order in which most of what is accessed lies in memory.

        A sum of all elements of an array in Fortran order runs down its columns.
        """
        reduced = [name for name in g.axes if name not in rows]
        in_order = any(is_ordered(REDUCTIONS[r.node.op].combine, r.dtype) for points in boxes for r in points.reductions)
        if len(reduced) < 2 or in_order:
            return g.axes
        outer = dict.fromkeys(reduced, 0.0)  # an access has something to say only of axes that it moves along, if there are two
        for name, at in accesses:
            steps = usual(steps_of(self.buffers.made[name], at, g.axes)) or {}
            moving = {axis: abs(steps[axis]) for axis in reduced if steps.get(axis)}
            for axis, step in moving.items():
                outer[axis] += sum((step > other) - (step < other) for other in moving.values())
        inwards = iter(sorted(reduced, key=lambda axis: -outer[axis]))
        return {name: g.axes[name] for name in (axis if axis in rows else next(inwards) for axis in g.axes)}


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


def _is_pair(value: Expr) -> bool:
    """Whether it is no number, but an element and its place."""
    return isinstance(value, Apply) and value.fn == SCATTERED


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
