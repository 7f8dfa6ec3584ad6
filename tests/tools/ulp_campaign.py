"""Measures vector math on many random points and writes docs/accuracy.md.

    PYTHONPATH=src:tests python tests/tools/ulp_campaign.py [points per range, default 10000] [seed]

Float64 is compared with mpmath at 160 bits, float32 (on twenty times as many points) with float64. The tests in
tests/codegen/test_math_accuracy.py hold the bounds on fewer points.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from codegen.accuracy import errors
from codegen.math_cases import CASES, points
from codegen.vectors import compile_vector
from jitml.codegen.scalar_math import emit
from jitml.ir.types import F32, F64

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
BINARY = ("pow", "hypot", "arctan2")
HEAD = """# Accuracy

*Written by `tests/tools/ulp_campaign.py`; do not edit.*

How far is `np.exp` of compiled code from the exact value? Functions such as `exp` and `sin` are polynomials here, which run
in vectors and become part of larger loops. The unit of the table is the *ulp*, the distance from a float to the next one. An
error of 0.5 ulp is a correctly rounded result. For each function the table has the bound that the tests hold, the largest
error found, and where.

The following give NumPy's own bits: `+ - * /`, `sqrt`, rounding, comparisons, conversions, `floor_divide`,
`remainder`, `fmod`, `maximum`, `minimum`, `fmax`, `fmin`, `sign`, `copysign`, and all integer and bool functions. There is one
exception: the sign of the maximum or minimum of `0.0` and `-0.0`, which NumPy itself does not fix. Float16 is computed in
float32 and rounded once.

What holds for all functions of the table:

* nan gives nan. Only `pow(1, nan)` and `pow(nan, 0)` are 1, and `hypot(inf, nan)` is inf.
* Infinities, signed zeros and arguments outside of the domain give NumPy's values.
* Subnormal numbers (the smallest ones) have full precision, as arguments and as results.
* A result overflows where the exact result rounds to infinity.
* The results do not depend on the vector width of the processor.
* `sin`, `cos` and `tan` of arguments beyond 1e9 (float64) or 1e5 (float32) are computed by the C library, one by one.

Some processors have no fused multiply-add. There, bounds are up to 1 ulp larger, and `sin`, `cos` and `tan` go to the C
library from 1e6 on.

The exact values come from mpmath at 160 bits for float64, and from float64 for float32. Each range has {n:,} (float64) and
{n32:,} (float32) points. The ranges lie around the edges of each method: zeros, folds of the argument reduction, overflow,
underflow, subnormals, huge arguments.

| function | float64 bound | worst found | at | float32 bound | worst found | at |
| --- | --- | --- | --- | --- | --- | --- |
"""


def worst(name: str, dtype: np.dtype, n: int, seed: int) -> tuple[float, str]:
    """The largest error over all ranges, and the point in question."""
    inputs = (dtype,) * (2 if name in BINARY else 1)
    f = compile_vector(lambda b, *args: emit(b, name, args, dtype), inputs, dtype, 8, 2)
    found: tuple[float, str] = (0.0, "")
    for _, xs in points(name, dtype, n, seed):
        error = errors(name, f(*xs), *xs)
        k = int(np.argmax(error))
        found = max(found, (float(error[k]), ", ".join(f"{float(x[k]):.9g}" for x in xs)))
    return found


def main() -> None:
    n, seed = (int(a) for a in (*sys.argv[1:], *("10000", "1")[len(sys.argv) - 1 :]))
    lines = [HEAD.format(n=n, n32=20 * n)]
    for name, (_, double, single) in CASES.items():
        (error, where), (error32, where32) = worst(name, F64, n, seed), worst(name, F32, 20 * n, seed)
        lines.append(f"| `{name}` | {double} | {error:.2f} | {where} | {single} | {error32:.2f} | {where32} |\n")
        print(lines[-1], end="", flush=True)
        if error > double or error32 > single:
            sys.exit(f"{name} exceeds its bound; correct the code or the bound in tests/codegen/math_cases.py")
    PAGE.write_text("".join(lines))


if __name__ == "__main__":
    main()
