"""`math`: what do the functions of `math`, and `round`, make of traced values?  What NumPy's do, as plain Python numbers.

Where Python raises (`math.sqrt(-1)`, `math.exp(1000)`) the compiled function comes upon a floating-point flag, and Python itself
answers the call. `math.floor` and its kin give integers, which have to fit 64 bits.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import C64, C128, F32, F64
from jitml.numpy.python.builtins import number_of, whole
from jitml.trace.host_calls.rules import require_allowed
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import active_trace
from jitml.trace.rewrite.driver_protocol import OpenType
from jitml.trace.symbolic.sizes import span
from jitml.trace.values.boxing import TracedArray, is_traced, read
from jitml.trace.values.numbers import TracedNumber, combine
from jitml.trace.values.python_arithmetic import raising_as_python, unheard
from jitml.trace.values.registry import call, full_name, implements, named
from jitml.trace.values.type_unions import doubt_of, types_of

if TYPE_CHECKING:
    from jitml.trace.host_calls import call as host_call
else:
    host_call = late("jitml.trace.host_calls.call")


_SAME: dict[Callable[..., Any], np.ufunc] = {
    math.sqrt: np.sqrt, math.exp: np.exp, math.expm1: np.expm1, math.log2: np.log2, math.log10: np.log10, math.log1p: np.log1p,
    math.sin: np.sin, math.cos: np.cos, math.tan: np.tan, math.asin: np.arcsin, math.acos: np.arccos, math.atan: np.arctan,
    math.sinh: np.sinh, math.cosh: np.cosh, math.tanh: np.tanh, math.asinh: np.arcsinh, math.acosh: np.arccosh,
    math.atanh: np.arctanh, math.atan2: np.arctan2, math.hypot: np.hypot, math.pow: np.power, math.fabs: np.fabs,
    math.copysign: np.copysign, math.fmod: np.fmod, math.degrees: np.degrees, math.radians: np.radians, math.isnan: np.isnan,
    math.isinf: np.isinf, math.isfinite: np.isfinite, math.log: np.log,
}  # fmt: skip
_OVERFLOWING = {math.exp, math.expm1, math.sinh, math.cosh, math.pow}
_TOTAL = {math.atan, math.atan2, math.hypot, math.fabs, math.copysign, math.degrees, math.radians, math.asinh, math.tanh}
_WHOLE: dict[Callable[..., Any], Op] = {
    math.floor: ops.floor, math.ceil: ops.ceil, math.trunc: ops.trunc, builtins.round: ops.rint,
}  # fmt: skip
_OTHERS = (
    "cbrt", "comb", "erf", "erfc", "exp2", "factorial", "frexp", "gamma", "gcd", "isclose", "isqrt", "lcm",
    "ldexp", "lgamma", "modf", "nextafter", "perm", "remainder", "ulp",
)  # fmt: skip


def _is_unknown(x: Any) -> bool:
    """Whether only the compiled program knows a number."""
    return x.slot is None if type(x) is TracedNumber else is_traced(x) and x.sizes in ((), (1,))


def _call_math(function: Callable[..., Any], *args: Any) -> Any:
    if function is math.hypot and len(args) == 1 and np.ndim(args[0]) == 0:
        return _call_math(math.fabs, *args)
    if function is math.hypot and len(args) != 2 and any(map(_is_unknown, args)):
        return _length(args)
    if not any(map(_is_unknown, args)):
        return combine(function, *args) if any(type(x) is TracedNumber for x in args) else function(*args)
    if function is math.log and len(args) == 2:
        return _call_math(math.log, args[0]) / _call_math(math.log, args[1])
    floats = [number_of(float, x) for x in args]
    operands = [x.as_value() if type(x) is TracedNumber else float(x) for x in floats]
    with raising_as_python(function, operands):
        result = call(_SAME[function], *operands)
    value = read(result)
    if active_trace().errors.is_transformed:  # where floating-point errors are not reported
        value = _raising(function, [read(x) for x in floats], value)
    return TracedNumber.of_value(active_trace(), value)


def _raising(function: Callable[..., Any], operands: Sequence[Value], result: Value) -> Value:
    """The result, by Python's rule: nan of numbers that are none is outside of the domain, and so is infinity of finite ones."""
    if result.dtype != F64 or function in _TOTAL:
        return result
    with unheard():
        were_numbers = ops.bit_not(functools.reduce(ops.bit_or, map(ops.isnan, operands)))
        is_outside = ops.bit_and(ops.isnan(result), were_numbers)
        were_finite = functools.reduce(ops.bit_and, map(ops.isfinite, operands))
        is_beyond = ops.bit_and(ops.isinf(result), were_finite)
        if function in _OVERFLOWING:
            if function is math.pow:  # of 0 to a negative power
                is_pole = ops.bit_and(is_beyond, ops.eq(operands[0], 0.0))
                is_outside, is_beyond = ops.bit_or(is_outside, is_pole), ops.bit_and(is_beyond, ops.bit_not(is_pole))
            result = ops.check(result, ops.bit_not(is_beyond), error="OverflowError", message="math range error")
        else:
            is_outside = ops.bit_or(is_outside, is_beyond)
        made: Value = ops.check(result, ops.bit_not(is_outside), error="ValueError", message="math domain error")
    return made


def _length(coordinates: Sequence[Any]) -> Any:
    """`math.hypot` of any number of coordinates: scaled by the largest, which makes no difference to the slope."""
    values = [read(number_of(float, x)) for x in coordinates]
    sizes = [ops.stop_gradient(ops.abs(v)) for v in values]
    one, infinity = (ops.full(value=value, shape=(), dtype=F64) for value in (1.0, math.inf))
    with unheard():
        largest = functools.reduce(ops.maximum, sizes)
        scale = ops.select(ops.bit_and(ops.gt(largest, 0.0), ops.lt(largest, math.inf)), largest, one)
        total = functools.reduce(ops.add, (ops.mul(part, part) for part in (ops.div(v, scale) for v in values)))
        is_zero = ops.eq(total, 0.0)
        length = ops.mul(ops.select(is_zero, total, ops.sqrt(ops.select(is_zero, one, total))), scale)
        is_infinite = functools.reduce(ops.bit_or, (ops.eq(size, math.inf) for size in sizes))
        return TracedNumber.of_value(active_trace(), ops.select(is_infinite, infinity, length))


def _round_to_integer(function: Callable[..., Any], x: Any, *digits: Any) -> Any:
    method = f"__{function.__name__}__"
    if function in (round, math.trunc) and type(x) is TracedArray:
        raise TypeError(f"type numpy.ndarray doesn't define {method} method")
    if digits and type(x) is TracedNumber and x.slot is None:  # decimal places, by Python's own exact rounding
        return _on_host(round, x, *digits)
    if digits or not _is_unknown(x):
        return function(x, *digits)
    if function in (round, math.trunc) and not all(hasattr(which, method) for which in types_of(x)):
        if doubt_of(x) is not None:
            raise OpenType(x)
        raise TypeError(f"type numpy.{x.dtype} doesn't define {method} method")
    if x.dtype.kind != "f":
        return number_of(int, x)
    return TracedNumber.of_value(active_trace(), whole(_WHOLE[function](read(number_of(float, x)))))


def _on_host(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function that NumPy has not: Python is called for it where the arguments are not known while tracing."""
    traced = [x for x in flatten((args, kwargs))[0] if is_traced(x)]
    if any(type(x) is not TracedNumber or x.slot is None for x in traced):
        require_allowed(full_name(function))
        return host_call.record(ops.host_call, full_name(function), function, args, kwargs)
    return combine(function, *args) if any(map(is_traced, args)) and not kwargs else function(*args, **kwargs)


def _exact_sum(items: Iterable[Any], /) -> Any:
    """`math.fsum`: of numbers that are an array, if they are not."""
    if type(items) is not TracedArray:
        items = list(items)
        if any(map(_is_unknown, items)) and not any(map(np.ndim, items)):
            items = call(np.array, items)
    return _on_host(math.fsum, items)


def _distance(p: Any, q: Any, /) -> Any:
    """`math.dist`: the length of the difference."""
    points = [x if type(x) is TracedArray else tuple(x) for x in (p, q)]
    if not any(type(x) is TracedArray or any(map(_is_unknown, x)) for x in points) or any(
        np.ndim(x[0]) for x in points if len(x)
    ):
        return _on_host(math.dist, p, q)
    if len(points[0]) != len(points[1]):
        raise ValueError("both points must have the same number of dimensions")
    floats = (map(functools.partial(number_of, float), x) for x in points)
    return _call_math(math.hypot, *(a - b for a, b in zip(*floats))) if len(points[0]) else 0.0


@implements(math.prod)
def _product(factors: Iterable[Any], /, *, start: Any = 1) -> Any:
    """One factor after the other; of an array of floats in a loop, as np.prod has them, too."""
    if type(factors) is TracedArray and factors.sizes != (0,):
        is_float = factors.dtype in (F32, F64, C64, C128) and type(start) in (int, float)
        if not is_float or factors.ndim != 1 or span(factors.sizes[0])[0] < 1:  # of nothing it is a number of Python's
            return _on_host(math.prod, factors, start=start)
        dtype = np.multiply.resolve_dtypes((factors.dtype, type(start), None))[2]
        with named("scalar multiply"):
            return call(np.prod, factors, axis=0, dtype=dtype, initial=start)
    for factor in factors:
        start = start * factor
    return start


for _function in _SAME:
    implements(_function)(functools.partial(_call_math, _function))
for _function in _WHOLE:
    implements(_function)(functools.partial(_round_to_integer, _function))
_OF_MANY: dict[Any, Callable[..., Any]] = {math.fsum: _exact_sum, math.dist: _distance}
for _function in _OF_MANY:
    implements(_function)(_OF_MANY[_function])
for _name in _OTHERS:
    implements(getattr(math, _name))(functools.partial(_on_host, getattr(math, _name)))
