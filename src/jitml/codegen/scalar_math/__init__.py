"""Elementary functions: how is each pointwise function computed on SIMD lanes?

Operation by operation, branch-free but for rare cold lanes.

`emit` is all that the statement emitter needs. The rules lie beside it by topic and write through a back end's
`ScalarBuilder` (`builder.py`); their error bounds, measured, stand in `docs/accuracy.md`. Arithmetic, comparisons,
conversions and integer functions give NumPy's bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.codegen.scalar_math import (  # noqa: F401  (they fill RULES)
    arithmetic,
    exponential,
    integers,
    inverse_trigonometric,
    logarithm,
    power,
    special,
    trigonometric,
)
from jitml.codegen.scalar_math.builder import RAISING, ScalarBuilder, V
from jitml.codegen.scalar_math.table import RULES
from jitml.errors import LoweringError
from jitml.ir.op import OPS, UserFunction
from jitml.ir.types import F16, F32, DType

__all__ = ["RULES", "emit"]


_PLAIN = ("add", "sub", "mul", "div")
_ANY_DTYPE = ("select", "stop_gradient", "bits", *RAISING)  # that hand on what they are given


def emit(b: ScalarBuilder[V], fn: str, args: Sequence[V], dtype: DType) -> V:
    """Write the pointwise op named `fn`; `dtype` is the result's. Float16 is computed in float32 and rounded once.

    Fast-math flags reach plain arithmetic only: polynomials and their corrections rely on the order they are written in.

    Raises:
        LoweringError: no rule bears that name.
    """
    if fn in _PLAIN:
        return _emit_by_rule(b, fn, args, dtype)
    with b.strict():
        return _emit_by_rule(b, fn, args, dtype)


def _emit_by_rule(b: ScalarBuilder[V], fn: str, args: Sequence[V], dtype: DType) -> V:
    if fn == "convert":
        return b.convert(args[0], dtype, raises=True)
    function = RULES.get(fn)
    if function is None and isinstance(op := OPS.get(fn), UserFunction) and op.code is not None:
        return b.call_user_function(fn, op.code, args)
    if function is None:
        raise LoweringError(f"{fn} has no vector math rule; add one in codegen/scalar_math")
    if any(x.dtype == F16 for x in args) and fn not in _ANY_DTYPE:
        wide = [b.convert(x, F32) if x.dtype == F16 else x for x in args]
        return b.convert(function(b, *wide), dtype)
    return function(b, *args)
