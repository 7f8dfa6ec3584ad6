"""Coincidence: can two addresses be the same in different iterations?

They are compared by their difference, digit by digit: if every larger step exceeds all that the smaller ones can add up to,
a difference of zero means that each digit is zero. Steps and ranges are numbers here; where they are sizes,
`coincidence_by_sizes.py` does the same. Whatever does not fit this pattern counts as "may be the same".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

from jitml.imports.late import late
from jitml.kernels.analysis.dependence import CONSTANT, Access, Accesses, Form, Path, Range

if TYPE_CHECKING:
    from jitml.kernels.analysis import coincidence_by_sizes
else:
    coincidence_by_sizes = late("jitml.kernels.analysis.coincidence_by_sizes")

Digit: TypeAlias = tuple[int, int, int, bool]  # its step, its least and greatest value, whether it must be zero


def coincide_only_together(
    a: Form | None, b: Form | None, shared: Sequence[Path], wanted: Sequence[Path], known: Accesses
) -> bool:
    """Whether a == b implies that both stand in the same iteration of each loop in `wanted`.

    `shared` are the loops (outside the wanted ones, or among them) in which both stand, and the names outside the wanted
    ones that are the same for both; each access has counts of its own in every loop that is wanted or not shared.
    """
    if a is None or b is None:
        return False
    return _digits_coincide(a, b, shared, wanted, known) or coincidence_by_sizes.coincide_by_sizes(a, b, shared, wanted, known)


def _digits_coincide(a: Form, b: Form, shared: Sequence[Path], wanted: Sequence[Path], known: Accesses) -> bool:
    """The same by numbers alone."""
    low = high = a.get(CONSTANT, 0) - b.get(CONSTANT, 0)
    digits: list[Digit] = []
    whole: dict[Path, Digit] = {}  # those of loops with the same step in both
    last = known.last
    may_meet_apart = any(p not in a and last.get(p) != 0 for p in wanted)
    for path in {*a, *b} - {CONSTANT}:
        ca, cb, n = a.get(path, 0), b.get(path, 0), last.get(path)
        if n == 0:
            continue
        if path[0] < 0:  # a size: the same number wherever it stands
            if ca != cb:
                return False
            continue
        if path in shared and path not in wanted:
            if ca != cb:
                return False
            continue
        if n is None:
            return False
        if ca == cb:
            whole[path] = abs(ca), -n, n, path in wanted
        else:
            may_meet_apart = may_meet_apart or path in wanted
            digits += [(abs(c), min(0, n if c > 0 else -n), max(0, n if c > 0 else -n), False) for c in (ca, -cb) if c]
    digits += _tiled(whole, known.tiles)
    if may_meet_apart:
        return not _may_vanish([(step, least, most, False) for step, least, most, _ in digits], low, high)
    return _digits_vanish(_merged(digits), low, high)


def stays_behind(load: Access, store: Access, last: Mapping[Path, int | None]) -> bool:
    """Whether no iteration stores an element of those that later ones load, as a loop that packs what a mask keeps.

    Both stand in the same loops, each of which moves the load along one axis. The store follows it along all axes, or stays
    behind it: then an element that it stores was loaded before, or in the same iteration.
    """
    if load.loops != store.loops or len(load.axes) != len(store.axes):
        return False
    loops = set()
    for here, there, behind in zip(load.axes, store.axes, store.behind, strict=True):
        moving = [path for path in here or {} if path != CONSTANT and last.get(path) != 0]
        if here is None or len(moving) > 1 or (moving and moving[0] not in load.loops):
            return False
        if here != there and not (moving and behind == moving[0] and here == {CONSTANT: 0, behind: 1}):
            return False
        loops |= {*moving}
    return loops >= {path for path in load.loops if last.get(path) != 0}


def _tiled(digits: Mapping[Path, Digit], tiles: Mapping[Path, tuple[Path, int, int]]) -> list[Digit]:
    """The digits, those of a tile loop and of the loop inside as one: the last tile may be narrower than the others."""
    whole = dict(digits)
    for inside, (outside, width, last) in tiles.items():
        if inside in whole and outside in whole and whole[outside][0] == width * whole[inside][0]:
            step, *_, fixed = whole.pop(inside)
            whole[outside] = step, -last, last, fixed or whole[outside][3]
    return list(whole.values())


def _may_vanish(digits: list[Digit], low: int, high: int) -> bool:
    """Whether constant + sum of step * digit == 0 has a solution, as far as ranges and common divisors tell."""
    digits = _merged(digits)
    steps = [d[0] for d in digits]
    return _holds_multiple(low, high, gcd(*steps)) and _holds_multiple(*_reach(low, high, digits), 0)


def _merged(digits: list[Digit]) -> list[Digit]:
    """Digits in ascending order, free ones of one step as a single digit with the sum of their ranges."""
    free: dict[int, Range] = {}
    for step, low, high, fixed in digits:
        if not fixed:
            before = free.get(step, (0, 0))
            free[step] = (before[0] + low, before[1] + high)
    merged = [d for d in digits if d[3]] + [(step, low, high, False) for step, (low, high) in free.items()]
    return sorted(d for d in merged if d[1] or d[2])


def _digits_vanish(digits: list[Digit], low: int, high: int) -> bool:
    """Whether constant + sum of step * digit == 0 makes all digits from the first fixed one on zero, or cannot be."""
    reached = False
    for n, (step, least, greatest, fixed) in enumerate(digits):
        if not _holds_multiple(low, high, gcd(*(d[0] for d in digits[n:]))):
            return True
        reached = reached or fixed
        if reached and step <= max(-low, high, 0):
            return not _holds_multiple(*_reach(low, high, digits[n:]), 0)
        low, high = low + step * least, high + step * greatest
    return True


def _reach(low: int, high: int, digits: list[Digit]) -> Range:
    """The range of a sum that lies in low..high before the digits are added."""
    return low + sum(step * least for step, least, *_ in digits), high + sum(step * most for step, _, most, _ in digits)


def _holds_multiple(low: int, high: int, step: int) -> bool:
    """Whether low..high holds a multiple of `step`; of 0, only 0 is."""
    return high // step * step >= low if step else low <= 0 <= high
