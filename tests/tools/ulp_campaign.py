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

Transcendental functions are inline polynomials, so that they vectorise and fuse. The table gives the bound in units in the last
place that the tests hold, the largest error found, and where. An error of 0.5 is a correctly rounded result.

Everything else is exact, that is NumPy's own bits: `+ - * /`, `sqrt`, rounding, comparisons, conversions, `floor_divide`,
`remainder`, `fmod`, `maximum`, `minimum`, `fmax`, `fmin`, `sign`, `copysign`, and all integer and bool functions. (The one
exception: the sign of the maximum or minimum of `0.0` and `-0.0`, which NumPy itself does not fix.) Float16 is computed in
float32 and rounded once.

For all functions: nan gives nan (but `pow(1, nan)`, `pow(nan, 0)` are 1 and `hypot(inf, nan)` is inf), infinities, signed zeros
and domain errors give NumPy's values, subnormal arguments and results are full-precision, and overflow begins where the exact
result rounds to infinity. The results do not depend on how many lanes the processor has. Arguments of `sin`, `cos` and `tan`
beyond 1e9 (float64) or 1e5 (float32) are handed to the C library, lane by lane.

On processors without fused multiply-add, bounds are up to 1 ulp larger, and circular functions go to the C library from 1e6 on.

Reference: mpmath at 160 bits for float64, float64 for float32. Points: {n:,} (float64) and {n32:,} (float32) per range, ranges
chosen around the edges of each method (zeros, folds of the argument reduction, overflow, underflow, subnormals, huge arguments).

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
