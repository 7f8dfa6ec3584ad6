"""Carried sizes: `CarriedExtents` are those of the arrays that a loop carries, each a size of its own that iterations may change.

`x = x[keep]` in a loop: the array is carried in memory of its largest size (`values/ragged.py`), its true size beside it as an
i64[]. Axes whose sizes were one before the loop, and are one at the end of each iteration, share an `Extent`, so that what the
body computes from `x[keep]` and `y[keep]` still fits together. Which those are, and how large they get, the passes over the body
show.
"""

from __future__ import annotations

from math import prod
from typing import Any

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.dims import Size, bound, limits
from jitml.ir.graph import Value
from jitml.records import dataclass, field
from jitml.trace.carried.body import RegionBody
from jitml.trace.carried.leaves import CarriedLeaf
from jitml.trace.carried.memory import Demotable
from jitml.trace.record.recording import unsupported, user_source
from jitml.trace.speculation.paths import Limit, limit
from jitml.trace.storage.strides import c_strides
from jitml.trace.symbolic.sizes import named, number, once, span, value_of_size
from jitml.trace.values.boxing import read
from jitml.trace.values.kinds import Kind, kind_of
from jitml.trace.values.ragged import MOST_ELEMENTS, SIZE, widened, window

_GUESS = 1 << 16  # of a size that may grow without an end that is known: memory of that size is set aside
_GROWTH = 16  # the same, in sizes of before the loop
_FEW = 32  # iterations that are rather unrolled, if they change no size but by numbers that are known

Axis = tuple[CarriedLeaf, int]


@dataclass(eq=False)
class Extent:
    """A size that differs from iteration to iteration, `low <= size <= high`."""

    before: Size
    low: int
    high: int
    growth: int | None = None  # by which it grows in an iteration at most, where that bounds it
    claim: Limit | None = None  # what the program claims about it, if nothing bounds it
    start: Value = field(init=False)  # in the body that is being recorded
    now: Size = 0  # in that body as it begins; after the loop, the last one
    after: Size = 0  # in that body at its end

    def begin(self, body: RegionBody) -> None:
        self.start = body.trace.builder.add_input(SIZE.aval)
        self.now = body.trace.bind(self.start, self.low, self.high)

    def end(self, result: Value) -> None:
        """The loop has ended, and left this size."""
        self.now = named(result, self.low, self.high)

    def kept(self, size: Size) -> Size:
        """What the next iteration has of a size: all of it, or the program ends."""
        if span(size)[1] <= self.high:
            return size
        clamped = once((self, size), lambda: self._clamped(value_of_size(size)))
        return named(clamped, max(0, span(size)[0]), self.high)

    def _clamped(self, size: Value) -> Value:
        claimed = size if self.claim is None else self.claim.check(size)
        clamped: Value = ops.minimum(claimed, number(self.high))
        return clamped


@dataclass(frozen=True)
class Varying(Kind):
    """An array that a loop carries, of which some sizes change; `aval` is the memory that is carried in its place."""

    extents: tuple[Extent | None, ...] = ()

    def show(self, value: Value) -> Any:
        shape: tuple[Any, ...] = tuple(n if extent is None else extent.now for n, extent in zip(self.aval.shape, self.extents))
        array = window(value, shape)
        return Kind("array", array.aval, c_strides(shape), self.writeable, self.lent).show(array)

    def take(self, leaf: Any) -> Value:
        value = read(leaf)
        shape = tuple(n if extent is None else extent.kept(n) for n, extent in zip(value.shape, self.extents))
        return widened(value if shape == value.shape else window(value, shape), self.aval)


@dataclass
class CarriedExtents:
    """All that a loop carries of sizes.

    `loop.trip` says how often the loop runs at most, if that is known.
    """

    loop: Demotable
    by_axis: dict[Axis, Extent] = field(default_factory=dict)
    _seen: dict[CarriedLeaf, tuple[str, Kind, Kind]] = field(default_factory=dict)  # its name, and kinds at start and end

    @property
    def all(self) -> list[Extent]:
        """Each once."""
        return list(dict.fromkeys(self.by_axis.values()))

    def begin(self, body: RegionBody) -> None:
        for extent in self.all:
            extent.begin(body)

    def see(self, name: str, leaf: CarriedLeaf, end: Kind | None) -> bool:
        """What an array is at the end of a pass; whether it can be carried with sizes that change."""
        entry = kind_of(leaf.entry)
        is_carried = entry is not None and any((leaf, axis) in self.by_axis for axis in range(entry.aval.ndim))
        if entry is None or end is None or not (is_carried or entry.aval.shape != end.aval.shape) or not self._fit(entry, end):
            return False
        self._seen[leaf] = name, entry, end
        return True

    def _fit(self, entry: Kind, end: Kind) -> bool:
        kinds = (entry, end)
        is_alike = all(k.form == "array" and k.layout == c_strides(k.aval.shape) for k in kinds)
        is_alike = is_alike and len({(k.aval.dtype, k.aval.ndim, k.writeable, k.lent) for k in kinds}) == 1
        return is_alike and prod(entry.aval.bounds) <= MOST_ELEMENTS

    def settle(self) -> bool:
        """Whether a pass has shown more sizes to change than it took for granted, fewer to be equal, or some to get larger.

        Call it in the body, at its end.
        """
        if self._seen and self._is_better_unrolled():
            name, first, later = next(iter(self._seen.values()))
            reason = f"{name} is {first.aval} first and {later.aval} later"
            self.loop.demote(UnsupportedError(reason, source=user_source()))
        groups: dict[tuple[Extent | None, Size, Size], list[Axis]] = {}
        for leaf, (_, entry, end) in self._seen.items():
            for axis, sizes in enumerate(zip(entry.aval.shape, end.aval.shape)):
                place = leaf, axis
                if place in self.by_axis or sizes[0] != sizes[1]:
                    groups.setdefault((self.by_axis.get(place), *sizes), []).append(place)
        taken: set[Extent] = set()
        moved = False
        for (extent, before, after), places in groups.items():
            if extent is None or extent in taken:
                extent, moved = Extent(before, limits(before)[0], bound(before), now=before), True
            taken.add(extent)
            self.by_axis |= dict.fromkeys(places, extent)
            moved |= self._widen(extent, after)
            extent.after = after if moved else extent.kept(after)
        for leaf, (_, entry, _) in self._seen.items():
            extents = tuple(self.by_axis.get((leaf, axis)) for axis in range(entry.aval.ndim))
            shape = tuple(s if extent is None else extent.high for s, extent in zip(entry.aval.shape, extents))
            leaf.kind = Varying("array", entry.aval.with_shape(shape), c_strides(shape), entry.writeable, entry.lent, extents)
        self._seen.clear()
        return moved

    def _is_better_unrolled(self) -> bool:
        """Whether all sizes are known in a few iterations, of which Python knows how many there are."""
        is_known = not any(kind.aval.syms for _, *kinds in self._seen.values() for kind in kinds)
        is_long = self.loop.trip is not None and limits(self.loop.trip)[0] > _FEW
        return is_known and self.loop.may_be_plain and not is_long

    def _widen(self, extent: Extent, after: Size) -> bool:
        """Whether a size at the end of the body goes beyond the limits of the one at its start, which then are widened."""
        low, high = span(after)
        moved = low < extent.low
        if moved:
            extent.low = 0
        growth = span(after - extent.now)[1]
        if high <= extent.high or extent.claim is not None or (extent.growth is not None and growth <= extent.growth):
            return moved
        most = None if self.loop.trip is None else bound(extent.before) + bound(self.loop.trip) * growth
        if extent.growth is None and most is not None and most <= MOST_ELEMENTS:
            extent.growth, extent.high = growth, most
        else:
            extent.claim = limit(self.loop.site, max(_GUESS, _GROWTH * bound(extent.before)))
            if extent.claim is None:
                unsupported("an array grows in a loop, and nothing says how far")
            extent.high = extent.claim.most
        return True


__all__ = ["CarriedExtents", "Extent", "Varying"]
