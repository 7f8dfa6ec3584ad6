"""Writes src/jitml/codegen/llvm/math/coefficients.py: the polynomials of vector math, fitted in 400-bit arithmetic.

    python tests/tools/fit_polynomials.py > src/jitml/codegen/llvm/math/coefficients.py

Chebyshev fits, which lose at most a bit to the minimax polynomial. Each function is divided by what the code multiplies
in exactly, so that the fit's absolute error is the result's relative one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.prec = 400

PIO8 = mp.tan(mp.pi / 8)


def fit_log_erfc(low: float, high: float, terms: int) -> tuple[list[Any], Any]:
    """log(erfc(x)) in powers of x - low, and the largest error of erfc, which is what 1 - exp(p) sees.

    Lawson's iteration: least squares whose weights follow the error tends to the minimax fit.
    """
    count, width = 120, mp.mpf(high - low)
    nodes = [low + width * (1 - mp.cos(mp.pi * (k + 0.5) / count)) / 2 for k in range(count)]
    rows = [[((x - low) / width) ** j for j in range(terms)] for x in nodes]
    values = [mp.log(mp.erfc(x)) for x in nodes]
    tolerances = [mp.erfc(x) for x in nodes]
    weights = [mp.mpf(1) / count] * count
    for _ in range(4):
        scaled = [t * t * w for t, w in zip(tolerances, weights, strict=True)]
        normal = mp.matrix(terms, terms)
        right = mp.matrix(terms, 1)
        for row, value, s in zip(rows, values, scaled, strict=True):
            for i in range(terms):
                right[i] += s * row[i] * value
                for j in range(terms):
                    normal[i, j] += s * row[i] * row[j]
        solution = list(mp.lu_solve(normal, right))
        fitted = [mp.fdot(solution, row) for row in rows]
        errors = [abs(f - v) * t for f, v, t in zip(fitted, values, tolerances, strict=True)]
        products = [w * e for w, e in zip(weights, errors, strict=True)]
        weights = [w / sum(products) for w in products]
    return [c / width**j for j, c in enumerate(solution)], max(errors)


def at_root(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """f of the square root: the fit of an even function in z = x * x."""
    return lambda z: f(mp.sqrt(z))


def atanh_tail(s: Any) -> Any:
    return (mp.atanh(s) / s - 1) / s**2


FITS: list[tuple[str, str, Callable[[Any], Any], tuple[Any, Any], int, int]] = [
    # name, meaning, function, interval, terms for f64 and f32 (0: not needed)
    ("EXP", "(exp(r) - 1 - r) / r**2, |r| <= ln(2)/2", lambda r: (mp.exp(r) - 1 - r) / r**2, (-0.349, 0.35), 10, 5),
    ("EXP2", "(2**r - 1) / r, |r| <= 1/2", lambda r: (mp.mpf(2) ** r - 1) / r, (-0.503, 0.505), 11, 6),
    ("LOG", "(2 atanh(s) / s - 2) / s**2 in s**2", at_root(lambda s: 2 * atanh_tail(s)), (0, 0.0296), 7, 3),
    (
        "ATANH",
        "(atanh(s) / s - 1 - s**2/3) / s**4 in s**2",
        at_root(lambda s: (atanh_tail(s) - mp.mpf(1) / 3) / s**2),
        (0, 0.0296),
        8,
        0,
    ),
    ("SIN", "(sin(r) / r - 1) / r**2 in r**2, |r| <= pi/4", at_root(lambda r: (mp.sin(r) / r - 1) / r**2), (0, 0.63), 6, 3),
    ("COS", "(cos(r) - 1 + r**2/2) / r**4 in r**2", at_root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4), (0, 0.63), 6, 3),
    (
        "ATAN",
        "(atan(t) / t - 1) / t**2 in t**2, |t| <= tan(pi/8)",
        at_root(lambda t: (mp.atan(t) / t - 1) / t**2),
        (0, PIO8**2 * 1.01),
        11,
        5,
    ),
    ("ASIN", "(asin(x) / x - 1) / x**2 in x**2, |x| <= 1/2", at_root(lambda x: (mp.asin(x) / x - 1) / x**2), (0, 0.2502), 13, 6),
    ("ERF", "erf(x) / x - 1 in x**2, |x| <= 1", at_root(lambda x: mp.erf(x) / x - 1), (0, 1.001), 12, 7),
    # For float32 powers, which are computed in float64.
    ("SHORT_ATANH", "(atanh(s) / s - 1) / s**2 in s**2, to 2**-38", at_root(atanh_tail), (0, 0.0296), 5, 0),
    ("SHORT_EXP2", "(2**r - 1) / r, to 2**-32", lambda r: (mp.mpf(2) ** r - 1) / r, (-0.503, 0.505), 7, 0),
]

LOG_ERFC = (6.0, 18), (4.0, 7)  # the upper end of the interval from 1, terms


def split(value: Any, bits: Sequence[int]) -> list[float]:
    """Parts of a constant that add up to it, each rounded to so many bits."""
    parts = []
    for count in bits:
        with mp.workprec(count):
            part = +value
        parts.append(float(part))
        value -= mp.mpf(part)
    return parts


def text(values: Sequence[Any], kind: type) -> str:
    """A tuple of exact constants, in C's hexadecimal form."""
    if kind is np.float32:
        values = [float(np.float32(float(v))) for v in values]
    return "exact(" + "".join(f'\n    "{float(v).hex()}",' for v in values) + "\n)"


CONSTANTS: list[tuple[str, str, Any, tuple[int, ...]]] = [
    # The last part has full length; those before end in zeros, so that their product with a small integer is exact.
    ("LN2", "ln 2, for products with |n| < 2**11", mp.log(2), (42, 53)),
    ("LN2_F32", "the same for float32", mp.log(2), (15, 24)),
    ("LOG2E_SHORT", "1 / ln 2, the first part 21 bits for exact products with 32-bit values", 1 / mp.log(2), (21, 53)),
    ("LOG2E_F32", "1 / ln 2, the first part 12 bits", 1 / mp.log(2), (12, 24)),
    ("LOG10E_SHORT", "1 / ln 10", 1 / mp.log(10), (21, 53)),
    ("LOG10E_F32", "1 / ln 10", 1 / mp.log(10), (12, 24)),
    ("LOG10_2", "log10(2)", mp.log10(2), (42, 53)),
    ("LOG10_2_F32", "log10(2)", mp.log10(2), (15, 24)),
    ("PIO2", "pi / 2, for fused products", mp.pi / 2, (53, 53, 53)),
    ("PIO2_SHORT", "pi / 2, for rounded products with |n| < 2**22", mp.pi / 2, (30, 30, 53)),
    ("PIO2_F32", "pi / 2, for fused products", mp.pi / 2, (24, 24, 24)),
    ("PI", "pi", mp.pi, (53, 53)),
    ("PI_F32", "pi", mp.pi, (24, 24)),
    ("THIRD", "1 / 3", mp.mpf(1) / 3, (53, 53)),
    ("TWO_LOG2E", "2 / ln 2", 2 / mp.log(2), (53, 53)),
]


def main() -> None:
    print('"""Polynomials and split constants of vector math, lowest power first. Written by tests/tools/fit_polynomials.py."""')
    print("\n\ndef exact(*digits: str) -> tuple[float, ...]:\n    return tuple(map(float.fromhex, digits))\n")
    for name, meaning, f, (low, high), *terms in FITS:
        for kind, suffix, count in zip((np.float64, np.float32), ("", "_F32"), terms, strict=True):
            if count:
                coefficients, error = mp.chebyfit(f, [low, high], count, error=True)
                print(f"\n# {meaning}; error 2**{float(mp.log(error, 2)):.1f}")
                print(f"{name}{suffix} = {text(coefficients[::-1], kind)}")
    for kind, suffix, (high, count) in zip((np.float64, np.float32), ("", "_F32"), LOG_ERFC, strict=True):
        coefficients, error = fit_log_erfc(1.0, high, count)
        print(f"\n# log(erfc(x)) in x - 1, 1 <= x <= {high}; error of erfc 2**{float(mp.log(error, 2)):.1f}")
        print(f"LOG_ERFC{suffix} = {text(coefficients, kind)}")
    for name, meaning, value, bits in CONSTANTS:
        print(f"\n# {meaning}\n{name} = {text(split(value, bits), np.float64)}")


if __name__ == "__main__":
    main()
