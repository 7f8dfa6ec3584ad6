"""Sort and argsort in loops of our own, where no library sorts: ranks in short runs, then merges. Stable, with NaN last.

In a run of `RUN` elements each element's place is the number of those that come before it, counted with vectors. Runs
are then merged in pairs, to and fro between two buffers; each merge works from both ends at once, which is two chains
of dependent steps instead of one. Argsort carries positions along with the keys.
"""

from __future__ import annotations

from collections.abc import Callable

from jitml.fusion.lower.index_maps import clamped
from jitml.fusion.lower.nests import NestSite
from jitml.ir import ops
from jitml.ir.types import BOOL, I64
from jitml.kernels.ir import Apply, Buffer, Cell, Const, Expr, Let, Load, Loop, Stmt, Store, Update, Var, less
from jitml.records import dataclass

RUN = 16


@dataclass(frozen=True, slots=True)
class _SortedRun:
    """Elements on their way: keys, and for argsort where each came from (None: where it is)."""

    keys: Buffer | None
    places: Buffer | None
    at: Callable[[Expr], tuple[Expr, ...]]

    def key(self, place: Expr) -> Expr:
        assert self.keys is not None
        return Load(self.keys.name, self.at(place), self.keys.dtype)

    def origin(self, place: Expr) -> Expr:
        return place if self.places is None else Load(self.places.name, self.at(place), I64)

    def put(self, place: Expr, key: Expr, origin: Expr) -> tuple[Stmt, ...]:
        at = self.at(place)
        keys = () if self.keys is None else (Store(self.keys.name, at, key),)
        return keys if self.places is None else (*keys, Store(self.places.name, at, origin))


def merge_sort(site: NestSite) -> None:
    """The kernel of a sort or argsort that has elements."""
    (x,), out, axis = site.reads, site.out, site.node.params["axis"]
    shape = site.node.inputs[0].shape
    n, most = site.extent(0, axis), x.shape[axis]

    def at(place: Expr) -> tuple[Expr, ...]:
        return tuple(place if a == axis else Var(f"i{a}") for a in range(len(x.shape)))

    carries = site.node.op is ops.argsort
    keys = [site.new_buffer(x.dtype, shape) for _ in range(2)] if most > RUN else []
    places = [site.new_buffer(I64, shape) for _ in keys] if carries else []
    last = _SortedRun(None, out, at) if carries else _SortedRun(out, None, at)
    levels = max(0, (-(-most // RUN) - 1).bit_length())
    others = [a for a in range(len(x.shape)) if a != axis]
    body: list[Stmt] = []
    run = _SortedRun(x, None, at)
    for level in range(levels + 1):
        target = last if level == levels else _SortedRun(keys[level % 2], places[level % 2] if carries else None, at)
        body.append(_ranked(run, target, n, most) if level == 0 else _merged(run, target, RUN << (level - 1), n, most))
        run = target
    touched = {b.name: b for b in (x, *keys, *places, out)}
    site.emit(site.loops(others, tuple(body)), *touched.values())


def _ranked(run: _SortedRun, target: _SortedRun, n: Expr, most: int) -> Stmt:
    """Sort blocks of `RUN` elements by counting, for each, how many come before it."""
    low, i, j = Var("k0"), Var("k1"), Var("k2")
    high = Var("t0")
    mine, other = Var("t1", run.key(i).dtype), Var("t2", run.key(i).dtype)
    ahead = _select(less(j, i), _not(_before(mine, other)), _before(other, mine))
    count = Update("s0", Apply("convert", (ahead,), I64), "add")
    # The element itself counts as not before itself: j < i fails, and nothing comes before its equal.
    inner = Loop("k2", low, high, 1, "serial", (Let("t2", run.key(j)), count))
    place = clamped(low + Var("s0"), 0, most - 1)
    each = (Let("t1", run.key(i)), Cell("s0", Const(0)), inner, *target.put(place, mine, run.origin(i)))
    blocks = (Let("t0", Apply("minimum", (low + RUN, n))), Loop("k1", low, high, 1, "serial", each))
    return Loop("k0", Const(0), n, RUN, "serial", blocks)


def _merged(run: _SortedRun, target: _SortedRun, width: int, n: Expr, most: int) -> Stmt:
    """Merge neighbouring runs of `width` elements, the smallest from the front and the greatest from the back."""
    low, step = Var("k0"), Var("k1")
    middle, high = Var("t0"), Var("t1")
    front, back = low + step, high - 1 - step
    left, last_left = Var("s0"), Var("s1")
    right, last_right = step + middle - left + low, back + middle - last_left - 1

    def first(swapped: Expr) -> Expr:
        """Whether the right run is next from the front: it has elements, and its first is smaller (or the left has none)."""
        return _and(less(right, high), _or(_not(less(left, middle)), swapped))

    def final(swapped: Expr) -> Expr:
        """Whether the right run is next from the back: not if the left's last is greater (or the right has none)."""
        return _not(_and(_not(less(last_left, low)), _or(less(last_right, middle), swapped)))

    steps: list[Stmt] = []
    for name, place, x, y, takes_right in (("2", front, left, right, first), ("3", back, last_left, last_right, final)):
        i, j = Var(f"l{name}"), Var(f"r{name}")
        key = run.key(i).dtype
        a, b, chosen = Var(f"a{name}", key), Var(f"b{name}", key), Var(f"c{name}", BOOL)
        steps += [
            Let(i.name, clamped(x, 0, most - 1)),
            Let(j.name, clamped(y, 0, most - 1)),
            Let(a.name, run.key(i)),
            Let(b.name, run.key(j)),
            Let(chosen.name, takes_right(_before(b, a))),
            *target.put(place, _select(chosen, b, a), _select(chosen, run.origin(j), run.origin(i))),
        ]
    steps += [
        Update("s0", left + (1 - Apply("convert", (Var("c2", BOOL),), I64))),
        Update("s1", last_left - (1 - Apply("convert", (Var("c3", BOOL),), I64))),
    ]
    half = Apply("floor_divide", (high - low + 1, Const(2)))
    pair = (
        Let("t0", Apply("minimum", (low + width, n))),
        Let("t1", Apply("minimum", (low + 2 * width, n))),
        Cell("s0", low),
        Cell("s1", middle - 1),
        Loop("k1", Const(0), half, 1, "serial", tuple(steps)),
    )
    return Loop("k0", Const(0), n, 2 * width, "serial", pair)


def _before(x: Expr, y: Expr) -> Expr:
    """x strictly before y, NaN after all numbers."""
    smaller = Apply("lt", (x, y), BOOL)
    if x.dtype.kind != "f":
        return smaller
    return _or(smaller, _and(Apply("isnan", (y,), BOOL), _not(Apply("isnan", (x,), BOOL))))


def _select(condition: Expr, x: Expr, y: Expr) -> Expr:
    return Apply("select", (condition, x, y), x.dtype)


def _and(x: Expr, y: Expr) -> Expr:
    return Apply("bit_and", (x, y), BOOL)


def _or(x: Expr, y: Expr) -> Expr:
    return Apply("bit_or", (x, y), BOOL)


def _not(x: Expr) -> Expr:
    return Apply("bit_not", (x,), BOOL)
