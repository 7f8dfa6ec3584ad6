"""Range analysis: what is learned of an index counts as long as it is known, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from jitml.ir.types import DTYPES
from jitml.kernels.analysis.affine_sums import constant, plus, times
from jitml.kernels.analysis.ranges import Ranges
from jitml.kernels.ir import Apply, Const, Var

I8, I64, U32 = DTYPES["i8"], DTYPES["i64"], DTYPES["u32"]


def test_what_is_asked_in_a_scope_is_forgotten_with_it() -> None:
    ranges = Ranges({})
    ranges.forget("n", constant(0))
    n = ranges.names["n"]
    assert not ranges.fits(n, I8)
    with ranges.scope():
        ranges.at_least_zero(plus(constant(100), n, -1))
        assert ranges.fits(n, I8) and not ranges.fits(plus(n, n), I8)
    assert not ranges.fits(n, I8)


def test_atoms_that_bound_each_other_are_seen_together() -> None:
    """`n` alone may be large, and so may `m`: but not `n - m`."""
    ranges = Ranges({})
    ranges.forget("m", constant(0), constant(1000))
    ranges.forget("n", ranges.names["m"], plus(ranges.names["m"], constant(100)))
    assert not ranges.fits(ranges.names["n"], I8)
    assert ranges.fits(plus(ranges.names["n"], ranges.names["m"], -1), I8)


def test_what_works_on_bits_has_limits() -> None:
    """`table[(crc ^ byte) & 0xFF]`: no index is outside a table of 256."""
    ranges = Ranges({})
    ranges.forget("signed")
    ranges.forget("small", constant(3), constant(9))
    word, signed, small = Var("word", U32), Var("signed", I64), Var("small", I64)

    def bounds(fn: str, x: Var, y: Var | Const) -> object:
        return ranges.bounds(Apply(fn, (x, y), x.dtype))

    assert bounds("bit_and", word, Const(255, U32)) == (0, 255)
    assert bounds("bit_and", signed, small) == (0, 9)
    assert (
        bounds("bit_and", signed, Const(-8))
        == bounds("bit_or", signed, small)
        == bounds("bit_xor", small, signed)
        == (None, None)
    )
    assert bounds("bit_or", small, Const(4)) == bounds("bit_xor", small, Const(4)) == (0, 15)
    assert bounds("shift_right", word, Const(8, U32)) == (0, (1 << 24) - 1)
    assert bounds("shift_right", small, small) == (0, 1)
    assert bounds("shift_right", signed, Const(1)) == bounds("shift_right", small, signed) == (None, None)


def test_quotients_of_quotients_are_answered_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calendar: each quotient is bounded by two sums, which hold the older ones. All ways together are millions."""
    asked = 0
    by_bounds = Ranges._most_by_bounds

    def counted(self: Ranges, *args: Any) -> Any:
        nonlocal asked
        asked += 1
        return by_bounds(self, *args)

    monkeypatch.setattr(Ranges, "_most_by_bounds", counted)
    ranges = Ranges({})
    ranges.forget("day", constant(0), constant(146096))
    day = ranges.names["day"]
    for _ in range(8):
        parts = [ranges.quotient(day, d) for d in (1460, 36524, 146096)]
        assert all(ranges.fits(part, I64) for part in parts)
        day = plus(plus(plus(day, parts[0], -1), parts[1]), parts[2], -1)
    least, most = ranges.most(times(day, -1)), ranges.most(day)
    assert least == 0 and most is not None and 0 < most <= 146096 and asked < 50_000
