"""Rounding and closeness: round, fix, isclose, allclose, array_equal, and a few functions of one number."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import factorial, pi
from sys import float_info
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, F64, is_complex, is_float, is_inexact
from jitml.numpy.arrays.indexing import getitem
from jitml.numpy.reductions.reductions import finish, is_given, reduce_values
from jitml.numpy.support.arguments import (
    as_int,
    astype,
    broadcast_value,
    common_dtype,
    common_shape,
    full,
    kind_of,
    not_compiled,
    result_of,
    value_of,
)
from jitml.numpy.ufuncs.ufunc import call_ufunc
from jitml.trace.record.array_memory import disjoint
from jitml.trace.record.guards import Slot
from jitml.trace.record.recording import active_trace, current_trace
from jitml.trace.regions.identity import require_known
from jitml.trace.symbolic.broadcasting import common_sizes, never_equal
from jitml.trace.symbolic.sizes import smaller, value_of_size
from jitml.trace.values.aliases import storages_of
from jitml.trace.values.boxing import LiftedArrays, TracedArray, TracedNumber, fresh
from jitml.trace.values.numbers import of_size
from jitml.trace.values.registry import implements
from jitml.trace.values.type_unions import settled


def _round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Half to even, after a scaling by a power of ten: NumPy's formula, with its rounding errors."""
    x, digits = value_of(a), as_int(decimals)
    if is_complex(x.dtype):
        parts = (value_of(_round(result_of(part), decimals)) for part in (ops.real(x), ops.imag(x)))
        return finish(ops.complex(*parts), None, out, x.ndim)
    if not is_float(x.dtype):
        if digits and x.dtype == BOOL:
            raise TypeError("Cannot cast ufunc 'multiply' output from dtype('float64') to dtype('bool')")
        if digits < 0:
            not_compiled(
                "round", "of integers to a negative number of decimals", "(x + n // 2) // n * n rounds to multiples of n."
            )
        return finish(astype(x, np.dtype(np.float16)) if x.dtype == BOOL else x, None, out, x.ndim)
    if digits == 0:
        return finish(ops.rint(x), None, out, x.ndim)
    if abs(digits) > float_info.max_10_exp:
        not_compiled("round", f"to {digits} decimals", "That is beyond what a float64 has.")
    scale = float(10.0 ** abs(digits))
    result = ops.rint(x * scale) / scale if digits > 0 else ops.rint(x / scale) * scale
    if is_given(out) and not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise TypeError(f"Cannot cast ufunc output from {result.dtype!r} to {out.dtype!r} with casting rule 'same_kind'")
    return finish(result, None, out, x.ndim)


implements(np.round)(_round)
implements(np.around)(_round)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return call_ufunc(np.trunc, x, out=out)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return result_of(_close(a, b, rtol, atol, equal_nan))


def _close(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Value:
    """|a - b| <= atol + rtol |b|, or equal (which infinities need)."""
    dtype = common_dtype(a, b, *([] if any(_is_inexact_kind(v) for v in (a, b)) else [1.0]))
    x, y = value_of(a, dtype), value_of(b, dtype)
    shape = common_shape("isclose", x.shape, y.shape)
    x, y = broadcast_value(x, shape), broadcast_value(y, shape)
    size = ops.abs(y)
    bound = size * broadcast_value(value_of(rtol, size.dtype), shape) + broadcast_value(value_of(atol, size.dtype), shape)
    near = ops.bit_and(ops.le(ops.abs(ops.sub(x, y)), bound), ops.isfinite(y))
    result = ops.bit_or(near, ops.eq(x, y))
    return ops.bit_or(result, ops.bit_and(ops.isnan(x), ops.isnan(y))) if equal_nan else result


def _is_inexact_kind(x: Any) -> bool:
    kind = kind_of(x)
    return kind in (float, complex) or (isinstance(kind, np.dtype) and is_inexact(kind))


def _python_bool(value: Value) -> TracedNumber:
    trace = current_trace()
    assert trace is not None, "implementations run in a trace"
    return TracedNumber.of_value(trace, value)


def _everywhere(x: Value) -> Value:
    return reduce_values(ops.reduce_all, x, tuple(range(x.ndim)))


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> TracedNumber:
    return _python_bool(_everywhere(_close(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = value_of(a1), value_of(a2)
    if x.ndim != y.ndim or any(never_equal(n, m) for n, m in zip(x.shape, y.shape)):
        return False
    if x.shape == y.shape:
        return _python_bool(_everywhere(_equal(x, y, equal_nan)))
    # What both have is compared, and the sizes themselves.
    common = tuple(slice(of_size(smaller(n, m))) for n, m in zip(x.shape, y.shape))
    x_part, y_part = (value_of(getitem(fresh(v), common)) for v in (x, y))
    same = _everywhere(_equal(x_part, y_part, equal_nan))
    for n, m in zip(x.shape, y.shape):
        same = ops.bit_and(same, ops.eq(value_of_size(n), value_of_size(m)))
    return _python_bool(same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = value_of(a1), value_of(a2)
    try:
        shape = common_sizes(x.shape, y.shape)
    except ValueError:
        return False
    return _python_bool(_everywhere(_equal(broadcast_value(x, shape), broadcast_value(y, shape), False)))


def _equal(x: Value, y: Value, equal_nan: bool) -> Value:
    shape = common_shape("equal", x.shape, y.shape)  # one for both, which may be written in other sizes
    x, y = broadcast_value(x, shape), broadcast_value(y, shape)
    same = call_ufunc(np.equal, fresh(x), fresh(y))
    result: Value = value_of(same)
    if equal_nan and is_inexact(x.dtype) and is_inexact(y.dtype):
        result = ops.bit_or(result, ops.bit_and(ops.isnan(x), ops.isnan(y)))
    return result


# 1 - a²/3! + a⁴/5! - ...: exact to the last place for a below a quarter.
_SINC_TERMS = tuple((-1) ** n / factorial(2 * n + 1) for n in range(7))


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x); around 0 its series, of which derivatives lose no digits either."""
    value = value_of(x)
    angle = (value if is_inexact(value.dtype) else astype(value, F64)) * pi
    square = angle * angle
    near = ops.lt(ops.abs(square), full(square.shape, 1 / 16, ops.abs(square).dtype))
    series: Any = full(angle.shape, _SINC_TERMS[-1], angle.dtype)
    for term in _SINC_TERMS[-2::-1]:
        series = series * square + term
    far = ops.select(near, full(angle.shape, 1.0, angle.dtype), angle)
    return result_of(ops.select(near, series, ops.div(ops.sin(far), far)))


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    return _signed_infinity(x, float("inf"), out)


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    return _signed_infinity(x, float("-inf"), out)


def _signed_infinity(x: Any, infinity: float, out: Any) -> Any:
    value = value_of(x)
    if is_complex(value.dtype):
        raise TypeError(f"This operation is not supported for {value.dtype} values because it would be ambiguous.")
    found = ops.eq(value, infinity) if is_float(value.dtype) else full(value.shape, False, BOOL)
    return finish(found, None, out, value.ndim)


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    given = arrays_and_dtypes
    kinds = [np.dtype(a) if isinstance(a, (type, np.dtype, str)) else kind_of(a) for a in given]
    dtype: np.dtype[Any] = settled(given, kinds, lambda kinds: np.result_type(*map(_sample_of, kinds)))
    return dtype


def _sample_of(kind: Any) -> Any:
    return kind() if isinstance(kind, type) else kind


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    kind = from_ if isinstance(from_, (type, np.dtype, str)) else kind_of(from_)
    if kind is not from_ and isinstance(kind, type):
        raise TypeError("can_cast() does not support Python ints, floats, and complex")
    return np.can_cast(kind, to, casting)


def _sharing(function: Callable[..., bool]) -> Callable[..., bool]:
    """NumPy's own answer, of arrays that lie in memory as the traced ones do in NumPy's; they are never looked into."""

    def shares(a: Any, b: Any, max_work: Any = None) -> bool:
        if not (isinstance(a, TracedArray) and isinstance(b, TracedArray)):
            return False
        if a.storage is not b.storage:
            require_known(a, b)
            for one, other in product(_memories(a), _memories(b)):
                _require_disjoint(one, other, function.__name__)
            return False
        base = np.empty(1, a.dtype)
        return function(_in_memory(base, a), _in_memory(base, b), max_work)

    return shares


def _memories(x: TracedArray) -> list[Slot]:
    """The arrays from outside that this one may be a part of."""
    return [s.slot for s in storages_of(x.storage) if s.is_external]


def _require_disjoint(slot: Slot, other: Slot, name: str) -> None:
    """Two arrays from outside that do not overlap in this call do not in any that the program answers."""
    root = active_trace().root
    if not disjoint(root.call[LiftedArrays].inputs[slot][0], root.call[LiftedArrays].inputs[other][0]):
        not_compiled(name, "of two arrays from outside that overlap, and are no parts of one array to the program")
    root.host.require(root.host.compute(disjoint, (slot, other)), True)


def _in_memory(base: np.ndarray[Any, Any], x: TracedArray) -> Any:
    strides = tuple(s * x.itemsize for s in x.storage.strides)
    place: Any = np.lib.stride_tricks.as_strided(base, x.storage.value.shape, strides)
    for step in x.steps:
        place = step.show(place, {})
    return place


implements(np.shares_memory)(_sharing(np.shares_memory))
implements(np.may_share_memory)(_sharing(np.may_share_memory))
