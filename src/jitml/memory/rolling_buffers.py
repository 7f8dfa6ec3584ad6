"""Rolling buffers: how can an update that reads its neighbours happen in place?

Each row is stored when nobody reads the old one any more.

`u[1:-1] = f(u[:-2], u[2:])`: row i is made in a small buffer and stored some rows later, so that the array is read once and
written once. Threads share the rows in chunks: what another chunk may still read, at both ends of a chunk, is kept apart until
all are done. A single vector loop is cut into rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from jitml.ir.types import BOOL
from jitml.kernels.analysis.substitution import substituted
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Buffer,
    Const,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    affine,
    expressions,
    floor_divide,
    remainder,
    variables_of,
    walk,
    walk_expressions,
)
from jitml.memory.writeback import numbers_for, stores_only, storing
from jitml.records import dataclass, replace

ROW = 512  # elements of a row that is cut from a vector loop
CHUNK = 8  # rows of a chunk, at least, for each that is kept apart at its ends

Place = Callable[[Expr, tuple[Expr, ...]], tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Delayed:
    """The update in place, and what stores the rows that were kept apart; None if there are none."""

    update: Kernel
    rest: Kernel | None


@dataclass(frozen=True, slots=True)
class _RowLoop:
    """An update as a loop over rows.

    later, earlier: by how many rows at most a row is read after it, or before it. place: where an element of a row stands
    in memory for one row, of this shape.
    """

    loop: Loop
    later: int
    earlier: int
    place: Place
    shape: tuple[int, ...]


def delay(kernel: Kernel, read: str, written: str, apart: str) -> Delayed | None:
    """The kernel, which never reads `written`, with that in the memory of `read`.

    Args:
        apart: what is to hold the rows that are kept apart: an array like the updated one.

    Returns:
        None if it is not one nest over rows that reads and writes them at fixed distances.
    """
    views = {b.name: b for b in kernel.params}
    target, where = views[written], [k for k, s in enumerate(kernel.body) if _touches(s, (read, written))]
    alike = read in views and replace(views[read], name=written) == target
    in_blocks = any(isinstance(s, Loop) and s.kind in ("block", "thread") for s in walk(kernel.body))
    if kernel.optimize or in_blocks or not alike or len(where) != 1:
        return None
    (at,) = where
    loop, before = kernel.body[at], frozenset(s.name for s in kernel.body[:at] if isinstance(s, Let))
    rows = _as_row_loop(loop, read, target, before) if isinstance(loop, Loop) else None
    if rows is None or (rows.later + 1) * prod(rows.shape) * 2 > target.size:
        return None
    writer = _DelayWriter(kernel, rows, target, before)
    if not writer.flushed(written):
        return None
    if rows.loop.kind != "parallel":
        update = writer.in_order(Const(0), rows.loop.stop, written)
        return Delayed(replace(kernel, body=(*kernel.body[:at], *update, *kernel.body[at + 1 :])), None)
    update, rest = writer.in_chunks(apart)
    params = (*kernel.params, replace(target, name=apart))
    lets, loaded = numbers_for(kernel, rest)
    back = Kernel(f"{kernel.name}_back", (replace(target, name=apart), target, *loaded), (*lets, *rest), sources=kernel.sources)
    return Delayed(replace(kernel, params=params, body=(*kernel.body[:at], *update, *kernel.body[at + 1 :])), back)


# ---------------------------------------------------------------------------------------------------------- rows


def _as_row_loop(loop: Loop, read: str, target: Buffer, outside: frozenset[str]) -> _RowLoop | None:
    if loop.start != Const(0) or loop.kind == "unroll" or not target.shape:
        return None
    if loop.step == 1 and loop.kind != "vector":
        distances = _distances(loop, read, target.name, outside)
        return distances and _RowLoop(loop, *distances, lambda _, at: at[1:], target.shape[1:])
    inner = loop if loop.kind == "vector" else loop.body[0]
    if not isinstance(inner, Loop) or inner.kind != "vector" or inner.step != 1 or len(target.shape) != 1:
        return None
    if inner is not loop and (len(loop.body) != 1 or inner.start != Var(loop.index)):
        return None
    distances = _distances(inner, read, target.name, outside)
    return distances and _cut(loop, inner, *distances)


def _cut(loop: Loop, inner: Loop, later: int, earlier: int) -> _RowLoop | None:
    """A vector loop, alone or in chunks, as rows that are no shorter than what lies between a store and a load."""
    size = ROW
    while size < max(later, earlier):
        size *= 2
    if inner is not loop and loop.step % size:
        return None
    row, stop = Var(f"{inner.index}_row"), loop.stop
    piece = replace(inner, start=row * size, stop=Apply("minimum", (row * size + size, stop)))
    cut = Loop(row.name, Const(0), floor_divide(stop + (size - 1), size), 1, "serial", (piece,))
    if inner is not loop:
        cut = replace(cut, kind=loop.kind, grain=loop.step // size * loop.grain)
    return _RowLoop(cut, min(1, later), min(1, earlier), lambda k, _: (Var(inner.index) - k * size,), (size,))


def _distances(loop: Loop, read: str, written: str, outside: frozenset[str]) -> tuple[int, int] | None:
    """By how many iterations at most an element is loaded after the one that stores it, and before it."""
    stores = [s.at for s in walk(loop.body) if isinstance(s, Store) and s.buffer == written and s.combine is None]
    loads = [at for name, at in _loads(loop.body) if name == read]
    if len({at[0] for at in stores}) != 1:  # the small buffer has room for one row of each iteration
        return None
    found = [0]
    for store in stores:
        for load in loads:
            a, b = affine(store[0]), affine(load[0])
            if a is None or b is None or not {*a, *b} <= {loop.index, "", *outside}:
                return None
            step, gap = a.get(loop.index, 0), affine(store[0] - load[0])
            if step <= 0 or gap is None or len(gap) > 1:
                return None
            if gap[""] % step == 0:
                found.append(gap[""] // step)
    return max(found), -min(found)


# --------------------------------------------------------------------------------------------------------- code


class _DelayWriter:
    def __init__(self, kernel: Kernel, rows: _RowLoop, target: Buffer, outside: frozenset[str]) -> None:
        self.rows, self.target, self.outside = rows, target, outside
        taken = {b.name for b in kernel.params} | {name for s in walk(kernel.body) for name in _named(s)}
        self.row, self.k = Var(rows.loop.index), Var(_fresh("k", taken))
        self.first = Var(_fresh("c", taken))
        self.small = Buffer(_fresh("rows", taken), target.dtype, (rows.later + 1, *rows.shape))

    def slot(self, row: Expr, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return remainder(row, self.rows.later + 1), *self.rows.place(row, at)

    def flushed(self, into: str) -> tuple[Stmt, ...]:
        """Row k from the small buffer into an array; nothing if it cannot be said."""
        return self._copies(into, lambda at: Load(self.small.name, self.slot(self.row, at), self.target.dtype))

    def _copies(self, into: str, value: Callable[[tuple[Expr, ...]], Load]) -> tuple[Stmt, ...]:
        loop = self.rows.loop
        copies = stores_only(loop.body, self.target.name, self.outside | {loop.index}, lambda at: Store(into, at, value(at)))
        return _with(copies or (), {self.row.name: self.k})

    def in_order(self, first: Expr, stop: Expr, into: str, ends: str | None = None) -> tuple[Stmt, ...]:
        """Rows from `first` on; those that others may read, at both ends, go elsewhere."""
        loop, later, earlier = self.rows.loop, self.rows.later, self.rows.earlier
        made = storing(loop.body, self.target.name, lambda at: (self.small.name, self.slot(self.row, at)))
        flushed = self.flushed(into)
        if ends is not None and earlier:
            flushed = (If(_at_least(self.k, first + earlier), flushed, self.flushed(ends)),)
        flushed = (Let(self.k.name, self.row - later), *flushed)
        if later:
            flushed = (If(_at_least(self.row, first + later), flushed),)
        body: tuple[Stmt, ...] = (replace(loop, start=first, stop=stop, kind="serial", body=(*made, *flushed), grain=1),)
        if later:
            start = Apply("maximum", (first, stop - later))
            body += (Loop(self.k.name, start, stop, 1, "serial", self.flushed(into if ends is None else ends)),)
        return (Alloc(self.small, body),)

    def in_chunks(self, apart: str) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
        """The rows in chunks for threads, and what stores those that were kept apart."""
        loop, later, earlier = self.rows.loop, self.rows.later, self.rows.earlier
        size = max(loop.grain, CHUNK * (later + earlier))
        stop = Apply("minimum", (self.first + size, loop.stop))
        kept = self._copies(self.target.name, lambda at: Load(apart, at, self.target.dtype))
        start = Apply("minimum", (self.first + earlier, stop))
        end = Apply("maximum", (start, stop - later))
        pieces = ((self.first, start), (end, stop))
        back = tuple(Loop(self.k.name, a, b, 1, "serial", kept) for a, b in pieces if a != b)

        def chunked(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return (Loop(self.first.name, Const(0), loop.stop, size, loop.kind, body),)

        return chunked(self.in_order(self.first, stop, self.target.name, apart)), chunked(back)


def _at_least(x: Expr, y: Expr) -> Expr:
    return Apply("ge", (x, y), BOOL)


def _with(body: Sequence[Stmt], values: dict[str, Expr]) -> tuple[Stmt, ...]:
    """Loops and stores with other expressions for some variables."""

    def stmt(s: Stmt) -> Stmt:
        if isinstance(s, Loop):
            return replace(s, start=substituted(s.start, values), stop=substituted(s.stop, values), body=_with(s.body, values))
        assert isinstance(s, Store)
        return replace(s, at=tuple(substituted(e, values) for e in s.at), value=substituted(s.value, values))

    return tuple(map(stmt, body))


# ------------------------------------------------------------------------------------------------------ questions


def _loads(body: Sequence[Stmt]) -> list[tuple[str, tuple[Expr, ...]]]:
    return [(e.buffer, e.at) for e in walk_expressions(body) if isinstance(e, Load)]


def _touches(stmt: Stmt, names: tuple[str, ...]) -> bool:
    stored = any(isinstance(s, Store) and s.buffer in names for s in walk((stmt,)))
    return stored or any(name in names for name, _ in _loads((stmt,)))


def _named(stmt: Stmt) -> tuple[str, ...]:
    """Names that a statement gives, or uses."""
    own = stmt.index if isinstance(stmt, Loop) else stmt.buffer.name if isinstance(stmt, Alloc) else getattr(stmt, "name", "")
    return (*variables_of(*expressions(stmt)), own)


def _fresh(stem: str, taken: set[str]) -> str:
    name, n = stem, 0
    while name in taken:
        name, n = f"{stem}{n}", n + 1
    taken.add(name)
    return name
