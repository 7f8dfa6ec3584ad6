"""erf: an odd polynomial up to 1; beyond, 1 - exp(p(|x|)) with a polynomial p for log(erfc)."""

from __future__ import annotations

from jitml.codegen.scalar_math import coefficients as c
from jitml.codegen.scalar_math.builder import ScalarBuilder, V
from jitml.codegen.scalar_math.exponential import expm1_reduced
from jitml.codegen.scalar_math.formats import DOUBLE, format_of, horner, power_of_two
from jitml.codegen.scalar_math.table import rule


@rule("erf")
def erf(b: ScalarBuilder[V], x: V) -> V:
    form = format_of(x)
    magnitude = b.min(6.0 if form is DOUBLE else 4.0, b.fabs(x))
    square = b.fmul(magnitude, magnitude)
    inner = b.fma(magnitude, horner(b, square, form.pick(c.ERF, c.ERF_F32)), magnitude)
    p, n = expm1_reduced(b, horner(b, b.fsub(magnitude, 1.0), form.pick(c.LOG_ERFC, c.LOG_ERFC_F32)))
    power = power_of_two(b, n, form)
    outer = b.fsub(1.0, b.fma(power, p, power))
    return b.copysign(b.select(b.fcmp("ogt", magnitude, 1.0), outer, inner), x)
