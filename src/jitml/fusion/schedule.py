"""How do a group's loops run?  Order, chunks, tiles, vectors and threads, chosen by a few rules from the machine.

Pointwise loops run in the order of what they store, the last loop as vectors; big ones are cut into chunks for threads.
A reduction along contiguous rows keeps a row in cache and makes one pass per dependence (softmax: max, sum, quotient).
One down columns keeps vectors of columns and walks blocks of rows, so that memory is read in order. Long sums are sums
of block sums, with blocks of a fixed size: more accurate than a straight sum, and the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from jitml.fusion import cost
from jitml.fusion.emit import Writer
from jitml.fusion.loops import Apply, Buffer, Const, Expr, Kind, Load, Store, Update, Var, add, as_expr, mul
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.lower.scalars import Scalar, variables_of
from jitml.fusion.machine import Machine
from jitml.fusion.scalarize import Points, Reduced, Stored
from jitml.fusion.views import Axis, Views
from jitml.ir.types import DType

TILE = 32  # elements on each side of a tile through which a transposed array is read
SHORT_ROW = 8  # a row that fills no vector: vectors run across rows, though their loads are strided
TINY = 2  # elements of a last axis that is written out, though its stores are strided then
MOST_UNROLLED = 64  # points of a loop's body that are written out
ROW_BLOCK = 16  # rows that a column reduction adds up in registers before it touches its partial sums


@dataclass
class Nest:
    """One box of a group on its way to loops.

    rows: the group's indices that are not reduced over. temporaries: partial results between two nests.
    """

    points: Points
    views: Views
    rows: frozenset[str]
    machine: Machine
    writer: Writer
    temporary: Callable[[DType, tuple[int, ...]], str]

    def __post_init__(self) -> None:
        self.axes = [a for a in self.views.axes if any(name in self.points.ranges for name in a.members)]
        self.outer = [a for a in self.axes if self.rows.issuperset(a.members)]
        self.inner = [a for a in self.axes if a not in self.outer]
        self.time = self.size(self.axes) * point_time(self.points, self.machine)

    def limits(self, axis: Axis) -> tuple[int, int]:
        return self.points.ranges[axis.members[0]] if len(axis.members) == 1 else (0, axis.extent)

    def extent(self, axis: Axis) -> int:
        low, high = self.limits(axis)
        return high - low

    def size(self, axes: Iterable[Axis]) -> int:
        return prod(map(self.extent, axes))

    def grain(self, steps: int) -> int:
        """Steps of a parallel loop that are worth handing to a thread."""
        return max(1, min(steps, round(self.machine.grain_ns * steps / max(self.time, 1.0))))

    def contiguous_along(self, axis: Axis, other: Axis) -> int:
        """How many loads step by one element along an axis, of those that move with the other axis too."""
        both = [s for s in self.load_steps() if s is not None and s.get(axis.name) and s.get(other.name)]
        return sum(steps[axis.name] == 1 for steps in both)

    def load_steps(self) -> list[dict[str, int] | None]:
        return [self.views.steps(s.value, s.places) for s in all_scalars(self.points) if s.kind == "load"]

    def all_loops(self, axes: Sequence[Axis], kind: Kind = "serial") -> ExitStack[bool | None]:
        """Whole loops over some axes, the last one of the given kind."""
        stack = ExitStack()
        for axis in axes:
            low, high = self.limits(axis)
            stack.enter_context(
                self.writer.loop(axis.name, low, high, kind if axis is axes[-1] else "serial", binds=axis.members)
            )
        return stack


def write(nest: Nest) -> None:
    """Write one box of a group."""
    if not nest.points.reductions:
        _write_points(nest)
    elif _is_tiny_inside(nest):
        _write_unrolled(nest)
    elif _runs_down_columns(nest):
        _write_columns(nest)
    else:
        _write_rows(nest)


def all_scalars(points: Points) -> list[Scalar]:
    """Every scalar of a box, each once."""
    return reachable([s.scalar for s in points.stores] + [r.operand for r in points.reductions])


def reachable(roots: Iterable[Scalar]) -> list[Scalar]:
    seen: dict[Scalar, None] = {}
    stack = list(roots)[::-1]
    while stack:
        s = stack.pop()
        if s not in seen:
            seen[s] = None
            stack += s.args[::-1]
    return list(seen)


def point_time(points: Points, machine: Machine) -> float:
    """Nanoseconds of one point: its work, or its memory traffic if that takes longer."""
    scalars = all_scalars(points)
    flops = sum(cost.WORK.get(s.value, 1.0) for s in scalars if s.kind == "apply") + len(points.reductions)
    nbytes = sum(s.dtype.itemsize for s in scalars if s.kind == "load") + sum(s.scalar.dtype.itemsize for s in points.stores)
    return max(flops / machine.flops, nbytes / machine.memory_bandwidth)


def _least(x: Expr, y: int) -> Expr:
    return Apply("minimum", (x, Const(y)))


def _stop(start: Expr, step: int, low: int, high: int) -> Expr:
    """The end of a chunk that begins at `start`."""
    whole = (high - low) % step == 0
    return add(start, step) if whole else _least(add(start, step), high)


def _write_stores(nest: Nest, stores: Iterable[Stored]) -> None:
    stores = list(stores)
    for store, value in zip(stores, nest.writer.values([s.scalar for s in stores])):
        nest.writer.store(store.buffer, store.at, value)


# ------------------------------------------------------------------------------------------------------- pointwise


def _write_points(nest: Nest) -> None:
    axes = nest.axes
    if not axes:
        _write_stores(nest, nest.points.stores)
        return
    parallel = nest.time > nest.machine.parallel_ns
    partner = _transposed_with(nest)
    if partner is not None:
        _write_tiles(nest, partner, parallel)
    elif len(axes) > 1 and nest.extent(axes[-1]) <= TINY and nest.extent(axes[-2]) >= 2 * SHORT_ROW:
        _write_across(nest, parallel)
    elif parallel and (len(axes) == 1 or nest.extent(axes[0]) < 4 * nest.machine.cores):
        _write_chunks(nest)
    else:
        with ExitStack() as loops:
            for axis in axes:
                low, high = nest.limits(axis)
                kind: Kind = "vector" if axis is axes[-1] else "parallel" if parallel and axis is axes[0] else "serial"
                grain = nest.grain(high - low) if kind == "parallel" else 1
                loops.enter_context(nest.writer.loop(axis.name, low, high, kind, grain=grain, binds=axis.members))
            _write_stores(nest, nest.points.stores)


def _write_chunks(nest: Nest) -> None:
    """Threads take chunks of the longest axis, which comes first; the rest runs inside a chunk."""
    w = nest.writer
    longest = max(nest.axes, key=nest.extent)
    low, high = nest.limits(longest)
    rest = nest.size(nest.axes) // nest.extent(longest)
    step = max(1, nest.machine.chunk // rest) if longest is not nest.axes[-1] else max(512, nest.machine.chunk // rest)
    with w.loop("c0", low, high, "parallel", step=step, grain=nest.grain(-(-(high - low) // step))) as c, ExitStack() as loops:
        for axis in nest.axes:
            limits: tuple[Expr | int, Expr | int] = (c, _stop(c, step, low, high)) if axis is longest else nest.limits(axis)
            kind: Kind = "vector" if axis is nest.axes[-1] else "serial"
            loops.enter_context(w.loop(axis.name, *limits, kind, binds=axis.members))
        _write_stores(nest, nest.points.stores)


def _write_across(nest: Nest, parallel: bool) -> None:
    """Vectors along the last axis but one; the last, which would fill no vector, is written out inside."""
    w = nest.writer
    *lead, wide, tiny = nest.axes
    low, high = nest.limits(wide)
    limits: tuple[Expr | int, Expr | int] = (low, high)
    with ExitStack() as loops:
        for axis in lead:
            first, end = nest.limits(axis)
            kind: Kind = "parallel" if parallel and axis is lead[0] else "serial"
            grain = nest.grain(end - first) if kind == "parallel" else 1
            loops.enter_context(w.loop(axis.name, first, end, kind, grain=grain, binds=axis.members))
        if parallel and not lead:
            step = max(512, nest.machine.chunk // nest.extent(tiny))
            c = loops.enter_context(w.loop("c0", low, high, "parallel", step=step, grain=nest.grain(-(-(high - low) // step))))
            limits = (c, _stop(c, step, low, high))
        loops.enter_context(w.loop(wide.name, *limits, "vector", binds=wide.members))
        loops.enter_context(w.loop(tiny.name, *nest.limits(tiny), "unroll", binds=tiny.members))
        _write_stores(nest, nest.points.stores)


def _transposed_with(nest: Nest) -> Axis | None:
    """The axis along which some load is contiguous while the last axis, along which is stored, jumps."""
    last = nest.axes[-1]
    if nest.extent(last) < TILE:
        return None
    for steps in nest.load_steps():
        if steps is not None and steps.get(last.name, 0) not in (0, 1):
            for axis in nest.axes[:-1]:
                if steps.get(axis.name) == 1 and nest.extent(axis) >= TILE:
                    return axis
    return None


def _write_tiles(nest: Nest, partner: Axis, parallel: bool) -> None:
    w, last = nest.writer, nest.axes[-1]
    others = [a for a in nest.axes if a not in (partner, last)]
    low, high = nest.limits(partner)
    kind: Kind = "parallel" if parallel else "serial"
    grain = nest.grain(-(-(high - low) // TILE)) if parallel else 1
    with w.loop(f"{partner.name}b", low, high, kind, step=TILE, grain=grain) as p, nest.all_loops(others):
        first, end = nest.limits(last)
        with w.loop(f"{last.name}b", first, end, "serial", step=TILE) as q:
            stop = _stop(p, TILE, low, high)
            with (
                w.loop(partner.name, p, stop, "serial", binds=partner.members),
                w.loop(last.name, q, _stop(q, TILE, first, end), "vector", binds=last.members),
            ):
                _write_stores(nest, nest.points.stores)


# ------------------------------------------------------------------------------------------- reductions along rows


@dataclass(frozen=True, slots=True)
class _Pass:
    """One loop over a row: what can be done once the reductions of the passes before are known."""

    reductions: tuple[Reduced, ...]
    stores: tuple[Stored, ...]


def _passes(nest: Nest) -> tuple[list[_Pass], tuple[Stored, ...]]:
    """The passes over a row, in order, and the stores that happen once per row."""
    inside = {name for axis in nest.inner for name in axis.members}
    cells: dict[str, int] = {}
    levels: dict[Scalar, int] = {}
    for reduced in nest.points.reductions:
        cells[reduced.cell] = 1 + _level(reduced.operand, cells, levels)
    per_row = tuple(s for s in nest.points.stores if not s.scalar.variables & inside and not _visits(s, inside))
    stores = [s for s in nest.points.stores if s not in per_row]
    depth = max([*cells.values()] + [1 + _level(s.scalar, cells, levels) for s in stores])
    passes = []
    for k in range(depth):
        reductions = tuple(r for r in nest.points.reductions if cells[r.cell] == k + 1)
        at_k = tuple(s for s in stores if _level(s.scalar, cells, levels) == k)
        if reductions or at_k:
            passes.append(_Pass(reductions, at_k))
    return passes, per_row


def _visits(store: Stored, inside: set[str]) -> bool:
    return any(variables_of(e) & inside for e in store.at)


def _level(scalar: Scalar, cells: Mapping[str, int], levels: dict[Scalar, int]) -> int:
    """How many passes must have run before a scalar can be computed."""
    stack = [scalar]
    while stack:
        s = stack[-1]
        missing = [a for a in s.args if a not in levels]
        if missing:
            stack += missing
            continue
        own = cells[s.value] if s.kind == "cell" else 0
        levels[s] = max([own, *(levels[a] for a in s.args)])
        stack.pop()
    return levels[scalar]


def _write_rows(nest: Nest) -> None:
    w, machine = nest.writer, nest.machine
    passes, per_row = _passes(nest)
    rows = nest.size(nest.outer)
    parallel = nest.time > machine.parallel_ns
    if parallel and nest.inner and rows < 4 * machine.cores and len(passes) == 1:
        _write_partial_rows(nest, passes[0], per_row)
        return
    with ExitStack() as loops:
        for axis in nest.outer:
            low, high = nest.limits(axis)
            kind: Kind = "parallel" if parallel and axis is nest.outer[0] and rows > 1 else "serial"
            grain = nest.grain(high - low) if kind == "parallel" else 1
            loops.enter_context(w.loop(axis.name, low, high, kind, grain=grain, binds=axis.members))
        for k, step in enumerate(passes):
            for r in step.reductions:
                w.cell(r.cell, _identity(r))
            staged = _to_stage(nest, step, passes[k + 1 :])
            homes = [_stage_home(nest, s, step, passes[k + 1 :]) for s in staged]
            _write_pass(nest, step, staged, homes, nest.inner, None)
        _write_stores(nest, per_row)


def _identity(r: Reduced) -> Const:
    return Const(REDUCTIONS[r.node.op].identity(r.dtype), r.dtype)


def _to_stage(nest: Nest, now: _Pass, later: Sequence[_Pass]) -> list[Scalar]:
    """What a later pass over the row would compute again at a price: the topmost such scalars."""
    if not later or not nest.inner:
        return []
    inside = {name for axis in nest.inner for name in axis.members}
    here = set(reachable(_roots(now)))
    again: dict[Scalar, None] = {}
    for step in later:
        roots = _roots(step)
        for s in reachable(roots):
            shared = [a for a in s.args if a in here and s not in here]
            again.update(dict.fromkeys(shared))
        again.update(dict.fromkeys(r for r in roots if r in here))
    known = nest.writer.known
    return [
        s
        for s in again
        if s not in known
        and s.variables & inside
        and sum(cost.WORK.get(a.value, 1.0) for a in reachable([s]) if a.kind == "apply") >= 8.0
    ]


def _roots(step: _Pass) -> list[Scalar]:
    return [r.operand for r in step.reductions] + [s.scalar for s in step.stores]


def _write_pass(
    nest: Nest,
    step: _Pass,
    staged: Sequence[Scalar],
    homes: Sequence[tuple[str, tuple[Expr, ...]]],
    inner: Sequence[Axis],
    limits: tuple[Expr, Expr] | None,
) -> None:
    """One loop over the row (or over `limits` of its first axis): the sums of blocks, then their sum."""
    w = nest.writer
    if not inner:
        _write_point_of_pass(nest, step, staged, homes, [r.cell for r in step.reductions])
    else:
        *outer, last = inner
        low, high = nest.limits(last)
        block = nest.machine.reduction_block
        with ExitStack() as loops:
            for axis in outer:
                bounds: tuple[Expr | int, Expr | int] = nest.limits(axis) if limits is None or axis is not inner[0] else limits
                loops.enter_context(w.loop(axis.name, *bounds, "serial", binds=axis.members))
            first, stop = (as_expr(low), as_expr(high)) if limits is None or outer else limits
            blocked = bool(step.reductions) and high - low > 4 * block
            if blocked:
                b = loops.enter_context(w.loop(f"{last.name}b", first, stop, "serial", step=block))
                first, stop = b, Apply("minimum", (add(b, block), stop))
            cells = [r.cell for r in step.reductions]
            if blocked or outer:
                cells = [f"{c}b" for c in cells]
                for r, c in zip(step.reductions, cells):
                    w.cell(c, _identity(r))
            with w.loop(last.name, first, stop, "vector", binds=last.members):
                _write_point_of_pass(nest, step, staged, homes, cells)
            if blocked or outer:
                for r, c in zip(step.reductions, cells):
                    w.add(Update(r.cell, Var(c, r.dtype), REDUCTIONS[r.node.op].combine))
    for s, (buffer, at) in zip(staged, homes):
        w.stage(s, Load(buffer, at, s.dtype))


def _write_point_of_pass(
    nest: Nest, step: _Pass, staged: Sequence[Scalar], homes: Sequence[tuple[str, tuple[Expr, ...]]], cells: Sequence[str]
) -> None:
    w = nest.writer
    values = w.values([*staged, *(r.operand for r in step.reductions), *(s.scalar for s in step.stores)])
    kept = {store.buffer for store in step.stores}
    for (buffer, at), value in zip(homes, values):
        if buffer not in kept:
            w.add(Store(buffer, at, value))
    values = values[len(staged) :]
    for r, c, value in zip(step.reductions, cells, values):
        w.add(Update(c, value, REDUCTIONS[r.node.op].combine))
    for store, value in zip(step.stores, values[len(cells) :]):
        w.store(store.buffer, store.at, value)


def _stage_home(nest: Nest, s: Scalar, step: _Pass, later: Sequence[_Pass]) -> tuple[str, tuple[Expr, ...]]:
    """Where a staged scalar waits for later passes: where it is stored anyway, in an output that will replace it when
    it has been read for the last time, or in a row of scratch."""
    w = nest.writer
    for store in step.stores:
        if store.scalar is s:
            return store.buffer, tuple(e for e in nest.views.at(store.buffer, store.at) if e is not None)
    taken = {e.buffer for e, _ in w.known.values() if isinstance(e, Load)}
    loaded = {t.value for t in all_scalars(nest.points) if t.kind == "load"}
    inside = {name for axis in nest.inner for name in axis.members}
    last = max(k for k, p in enumerate(later) if s in reachable(_roots(p)))
    for store in (store for p in later[last:] for store in p.stores):
        free = store.buffer not in taken | loaded | w.homes
        if free and store.scalar.dtype == s.dtype and _visits(store, inside):
            w.homes.add(store.buffer)
            at = nest.views.at(store.buffer, store.at)
            return store.buffer, tuple(e for e in at if e is not None)
    name = w.fresh("row")
    w.scratch(Buffer(name, s.dtype, tuple(axis.extent for axis in nest.inner)))
    return name, tuple(Var(axis.name) for axis in nest.inner)


def _write_partial_rows(nest: Nest, step: _Pass, per_row: Sequence[Stored]) -> None:
    """A few long rows: threads sum chunks of a fixed size, and a second nest sums their sums."""
    w, first = nest.writer, nest.inner[0]
    low, high = nest.limits(first)
    row = nest.size(nest.inner) // (high - low)
    chunk = max(1, 4 * nest.machine.chunk // row)
    count = -(-(high - low) // chunk)
    partial = [nest.temporary(r.dtype, (count, *map(nest.extent, nest.outer))) for r in nest.points.reductions]
    at = tuple(Var(axis.name) - nest.limits(axis)[0] for axis in nest.outer)
    with w.loop("c0", 0, count, "parallel", grain=nest.grain(count)) as c, nest.all_loops(nest.outer):
        start = add(mul(c, chunk), low)
        for r in nest.points.reductions:
            w.cell(r.cell, _identity(r))
        _write_pass(nest, step, (), (), nest.inner, (start, _stop(start, chunk, low, high)))
        for r, buffer in zip(nest.points.reductions, partial):
            w.add(Store(buffer, (c, *at), Var(r.cell, r.dtype)))
    with nest.all_loops(nest.outer):
        _write_sum_of_partials(nest, partial, count, at, "vector")
        _write_stores(nest, per_row)


def _write_sum_of_partials(nest: Nest, partial: Sequence[str], count: int, at: tuple[Expr, ...], kind: Kind) -> None:
    w = nest.writer
    for r in nest.points.reductions:
        w.cell(r.cell, _identity(r))
    with w.loop("c0", 0, count, kind) as c:
        for r, buffer in zip(nest.points.reductions, partial):
            w.add(Update(r.cell, Load(buffer, (c, *at), r.dtype), REDUCTIONS[r.node.op].combine))


# ------------------------------------------------------------------------------------------- many tiny reductions


def _is_tiny_inside(nest: Nest) -> bool:
    """Whether each step of the first loop is a handful of short sums (3 by 3 products): too short for vectors."""
    if not nest.outer or not nest.inner or len(_passes(nest)[0]) > 1:
        return False
    first, *rest = nest.outer
    short = all(nest.extent(axis) <= SHORT_ROW for axis in (*rest, *nest.inner))
    return bool(rest) and short and nest.extent(first) > SHORT_ROW and nest.size(nest.axes) <= MOST_UNROLLED * nest.extent(first)


def _write_unrolled(nest: Nest) -> None:
    """One loop, and inside it straight code."""
    w, (step,), per_row = nest.writer, *_passes(nest)
    parallel = nest.time > nest.machine.parallel_ns
    with ExitStack() as loops:
        for axis in nest.outer:
            low, high = nest.limits(axis)
            is_first = axis is nest.outer[0]
            kind: Kind = "unroll" if not is_first else "parallel" if parallel else "serial"
            grain = nest.grain(high - low) if kind == "parallel" else 1
            loops.enter_context(w.loop(axis.name, low, high, kind, grain=grain, binds=axis.members))
        for r in step.reductions:
            w.cell(r.cell, _identity(r))
        with ExitStack() as inner:
            for axis in nest.inner:
                inner.enter_context(w.loop(axis.name, *nest.limits(axis), "unroll", binds=axis.members))
            _write_updates(nest, step)
        _write_stores(nest, per_row)


# ------------------------------------------------------------------------------------------ reductions down columns


def _runs_down_columns(nest: Nest) -> bool:
    """Whether memory is contiguous across the results rather than along what is reduced."""
    if not nest.outer or not nest.inner:
        return False
    if len(_passes(nest)[0]) > 1:
        return False
    columns, row = nest.outer[-1], nest.inner[-1]
    if nest.extent(row) <= SHORT_ROW and nest.size(nest.inner) <= 4 * SHORT_ROW and nest.extent(columns) >= 2 * SHORT_ROW:
        return True
    return nest.extent(columns) >= 4 and nest.contiguous_along(columns, row) > nest.contiguous_along(row, columns)


def _write_columns(nest: Nest) -> None:
    (step,), per_column = _passes(nest)
    if nest.size(nest.inner) <= 4 * ROW_BLOCK:
        _write_short_columns(nest, step, per_column)
    else:
        _write_long_columns(nest, step, per_column)


def _write_short_columns(nest: Nest, step: _Pass, per_column: Sequence[Stored]) -> None:
    """A vector of columns at a time, each summed straight down."""
    w, last = nest.writer, nest.outer[-1]
    parallel = nest.time > nest.machine.parallel_ns
    low, high = nest.limits(last)
    with ExitStack() as loops:
        for axis in nest.outer[:-1]:
            first, end = nest.limits(axis)
            kind: Kind = "parallel" if parallel and axis is nest.outer[0] else "serial"
            grain = nest.grain(end - first) if kind == "parallel" else 1
            loops.enter_context(w.loop(axis.name, first, end, kind, grain=grain, binds=axis.members))
        limits: tuple[Expr | int, Expr | int] = (low, high)
        if parallel and len(nest.outer) == 1 and high - low > 512:
            c = loops.enter_context(w.loop("c0", low, high, "parallel", step=512, grain=nest.grain(-(-(high - low) // 512))))
            limits = (c, _stop(c, 512, low, high))
        loops.enter_context(w.loop(last.name, *limits, "vector", binds=last.members))
        for r in nest.points.reductions:
            w.cell(r.cell, _identity(r))
        with nest.all_loops(nest.inner):
            _write_updates(nest, step)
        _write_stores(nest, per_column)


def _write_updates(nest: Nest, step: _Pass) -> None:
    _write_point_of_pass(nest, step, (), (), [r.cell for r in step.reductions])


def _write_long_columns(nest: Nest, step: _Pass, per_column: Sequence[Stored]) -> None:
    """Blocks of rows are added up in registers, then to a row of sums that stays in cache.

    Where there are many separate matrices (axes before the columns), threads take those. Else they take chunks of rows,
    each with a row of sums of its own, and a second nest adds up these.
    """
    w, rows, lead = nest.writer, nest.inner[0], nest.outer[:-1]
    low, high = nest.limits(rows)
    parallel = nest.time > nest.machine.parallel_ns
    if nest.size(lead) >= 4 * nest.machine.cores:
        columns = nest.outer[-1]
        sums = [Buffer(w.fresh("row"), r.dtype, (columns.extent,)) for r in nest.points.reductions]
        at: tuple[Expr, ...] = (Var(columns.name),)
        with ExitStack() as loops:
            for axis in lead:
                first, end = nest.limits(axis)
                kind: Kind = "parallel" if parallel and axis is lead[0] and end - first > 1 else "serial"
                grain = nest.grain(end - first) if kind == "parallel" else 1
                loops.enter_context(w.loop(axis.name, first, end, kind, grain=grain, binds=axis.members))
            for buffer in sums:
                w.scratch(buffer)
            _write_row_blocks(nest, step, [b.name for b in sums], at, Const(low), Const(high))
            with nest.all_loops([columns], "vector"):
                for r, buffer in zip(nest.points.reductions, sums):
                    w.cell(r.cell, Load(buffer.name, at, r.dtype))
                _write_stores(nest, per_column)
        return
    row = nest.size(nest.axes) // (high - low)
    chunk = -(-max(ROW_BLOCK, 4 * nest.machine.chunk // row) // ROW_BLOCK) * ROW_BLOCK
    count = -(-(high - low) // chunk)
    partial = [nest.temporary(r.dtype, (count, *map(nest.extent, nest.outer))) for r in nest.points.reductions]
    place = tuple(Var(axis.name) - nest.limits(axis)[0] for axis in nest.outer)
    kind = "parallel" if parallel and count > 1 else "serial"
    with w.loop("c0", 0, count, kind, grain=nest.grain(count) if kind == "parallel" else 1) as c, nest.all_loops(lead):
        start = add(mul(c, chunk), low)
        _write_row_blocks(nest, step, partial, (c, *place), start, _stop(start, chunk, low, high))
    with nest.all_loops(nest.outer, "vector"):
        _write_sum_of_partials(nest, partial, count, place, "serial")
        _write_stores(nest, per_column)


def _write_row_blocks(nest: Nest, step: _Pass, sums: Sequence[str], at: tuple[Expr, ...], start: Expr, stop: Expr) -> None:
    """Add up rows start:stop of every column into `sums[at]`, a block of rows in registers at a time."""
    w, rows, columns = nest.writer, nest.inner[0], nest.outer[-1]
    first, end = nest.limits(columns)
    with w.loop(columns.name, first, end, "vector", binds=columns.members):
        for r, buffer in zip(nest.points.reductions, sums):
            w.add(Store(buffer, at, _identity(r)))
    with (
        w.loop(f"{rows.name}b", start, stop, "serial", step=ROW_BLOCK) as b,
        w.loop(columns.name, first, end, "vector", binds=columns.members),
    ):
        for r in nest.points.reductions:
            w.cell(r.cell, _identity(r))
        upper = _least(add(b, ROW_BLOCK), nest.limits(rows)[1])
        with w.loop(rows.name, b, upper, "serial", binds=rows.members), nest.all_loops(nest.inner[1:]):
            _write_updates(nest, step)
        for r, buffer in zip(nest.points.reductions, sums):
            w.add(Store(buffer, at, Var(r.cell, r.dtype), REDUCTIONS[r.node.op].combine))
