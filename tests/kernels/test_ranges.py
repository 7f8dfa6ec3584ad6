"""Range analysis: what is learned of an index counts as long as it is known, and no longer."""

from __future__ import annotations

from jitml.ir.types import DTYPES
from jitml.kernels.analysis.affine_sums import constant, plus
from jitml.kernels.analysis.ranges import Ranges

I8 = DTYPES["i8"]


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
