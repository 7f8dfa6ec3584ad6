"""Scalar operators: what do the operators of NumPy scalars do that those of arrays do not?

They say so where an integer overflows.

`np.int64(2**62) * 4` warns, the same product of arrays wraps in silence. The processor's flag for it is gone with the next
operation, so the result carries the condition along (`ops.raise_overflow`); it is left out where the operands' limits exclude it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import OVERFLOW
from jitml.ir.analysis.limits import Limits, dtype_limits
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import F32, DType
from jitml.numpy.support.arguments import astype, full, value_of
from jitml.trace.record.recording import active_trace
from jitml.trace.symbolic.sizes import value_limits
from jitml.trace.values.boxing import TracedArray, TracedScalar, read, scalar
from jitml.trace.values.registry import call, compute_themselves, implements

_F16 = np.dtype(np.float16)
_MOST_OF_F16 = 65519.0  # what is rounded down to 65520 is no float16 any more
_OF_SCALARS = vars(np.generic)  # their operators, by which calls look here
_BINARY: dict[Callable[..., Any], tuple[np.ufunc, Callable[[int, int], int], Op]] = {
    _OF_SCALARS["__add__"]: (np.add, int.__add__, ops.add_overflows),
    _OF_SCALARS["__sub__"]: (np.subtract, int.__sub__, ops.sub_overflows),
    _OF_SCALARS["__mul__"]: (np.multiply, int.__mul__, ops.mul_overflows),
}


def _is_heard(result: Any) -> bool:
    """Whether an operation of scalars may overflow for all that its dtype tells, and somebody wants to know."""
    return type(result) is TracedScalar and result.dtype.kind in "iu" and not active_trace().errors.state[0] & OVERFLOW


def _raising(result: Value, overflows: Value) -> TracedScalar:
    return scalar(ops.raise_overflow(result, overflows))


def _binary(operator: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    ufunc, exact, overflows = _BINARY[operator]

    def apply(x: Any, y: Any) -> Any:
        result = call(ufunc, x, y)
        if not _is_heard(result) or not compute_themselves(x, y):
            return result
        a, b = value_of(x, result.dtype), value_of(y, result.dtype)
        ends = [exact(p, q) for p, q in product(value_limits(a), value_limits(b))]
        if _holds(result.dtype, (min(ends), max(ends))):
            return result
        return _raising(read(result), overflows(a, b))

    return apply


def _holds(dtype: DType, limits: Limits) -> bool:
    low, high = dtype_limits(dtype)
    return low <= limits[0] and limits[1] <= high


@implements(_OF_SCALARS["__neg__"])
def negative(x: TracedScalar) -> Any:
    result = call(np.negative, x)
    if not _is_heard(result):
        return result
    value, least = read(x), dtype_limits(x.dtype)[0]
    low, high = value_limits(value)
    if _holds(x.dtype, (-high, -low)):
        return result
    is_off = ops.ne(value, full((), 0, x.dtype)) if least == 0 else ops.eq(value, full((), least, x.dtype))
    return _raising(read(result), is_off)


@implements(_OF_SCALARS["__abs__"])
def absolute(x: TracedScalar) -> Any:
    result = call(np.absolute, x)
    least = dtype_limits(x.dtype)[0]
    if not _is_heard(result) or value_limits(read(x))[0] > least or least == 0:
        return result
    return _raising(read(result), ops.eq(read(x), full((), least, x.dtype)))


@implements(_OF_SCALARS["__mod__"])
def remainder(x: Any, y: Any) -> Any:
    """The operator of float16 scalars makes the quotient as well, which may overflow."""
    result = call(np.remainder, x, y)
    if type(result) is not TracedScalar or result.dtype != _F16 or isinstance(x, TracedArray) or isinstance(y, TracedArray):
        return result
    a, b = (astype(value_of(part, _F16), F32) for part in (x, y))
    return _raising(read(result), ops.ge(ops.abs(a), ops.abs(b) * _MOST_OF_F16))


for _operator in _BINARY:
    implements(_operator)(_binary(_operator))
