"""`cmath`: what do the functions of `cmath` make of traced values?

What NumPy's do, as plain complex numbers, with Python's errors.

NumPy's complex functions set no floating-point flags that would tell where Python raises, so that each result is checked.
"""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.numpy.python.builtins import number_of
from jitml.trace.record.recording import active_trace
from jitml.trace.values.boxing import is_traced, read
from jitml.trace.values.numbers import TracedNumber, combine
from jitml.trace.values.python_arithmetic import unheard
from jitml.trace.values.registry import call, implements

_SAME: dict[Callable[..., Any], np.ufunc] = {
    cmath.sqrt: np.sqrt, cmath.exp: np.exp, cmath.log: np.log, cmath.log10: np.log10, cmath.sin: np.sin, cmath.cos: np.cos,
    cmath.tan: np.tan, cmath.asin: np.arcsin, cmath.acos: np.arccos, cmath.atan: np.arctan, cmath.sinh: np.sinh,
    cmath.cosh: np.cosh, cmath.tanh: np.tanh, cmath.asinh: np.arcsinh, cmath.acosh: np.arccosh, cmath.atanh: np.arctanh,
    cmath.isnan: np.isnan, cmath.isinf: np.isinf, cmath.isfinite: np.isfinite,
}  # fmt: skip
_OVERFLOWING = {cmath.exp, cmath.sin, cmath.cos, cmath.sinh, cmath.cosh, cmath.polar}


def _are_known(xs: Sequence[Any]) -> bool:
    return all(x.slot is not None if type(x) is TracedNumber else not is_traced(x) for x in xs)


def _of_known(function: Callable[..., Any], *args: Any) -> Any:
    return combine(function, *args) if any(map(is_traced, args)) else function(*args)


def _call_cmath(function: Callable[..., Any], x: Any, *base: Any) -> Any:
    if _are_known((x, *base)):
        return _of_known(function, x, *base)
    if base:
        return _call_cmath(function, x) / _call_cmath(function, *base)
    z = number_of(complex, x)
    with unheard():
        result = read(call(_SAME[function], z.as_value() if type(z) is TracedNumber else z))
        return TracedNumber.of_value(active_trace(), _raising(function, read(z), result))


def _raising(function: Callable[..., Any], x: Value, result: Value) -> Value:
    """The result, by Python's rule: what is infinite of finite numbers, and nan of numbers that are none, is an error."""
    if result.dtype.kind == "b":
        return result
    was_finite, is_finite = ops.isfinite(x), ops.isfinite(result)
    has_nan = ops.bit_and(ops.isnan(result), ops.bit_not(ops.isnan(x)))
    error, message = ("OverflowError", "math range error") if function in _OVERFLOWING else ("ValueError", "math domain error")
    result = ops.check(result, ops.bit_or(is_finite, ops.bit_not(was_finite)), error=error, message=message)
    made: Value = ops.check(result, ops.bit_not(has_nan), error="ValueError", message="math domain error")
    return made


@implements(cmath.phase)
def phase(x: Any, /) -> Any:
    if _are_known((x,)):
        return _of_known(cmath.phase, x)
    z = number_of(complex, x)
    return call(math.atan2, z.imag, z.real)


@implements(cmath.polar)
def polar(x: Any, /) -> Any:
    if _are_known((x,)):
        return _of_known(cmath.polar, x)
    z = number_of(complex, x)
    with unheard():
        size = TracedNumber.of_value(active_trace(), _raising(cmath.polar, read(z), read(abs(z))))
    return size, phase(z)


@implements(cmath.rect)
def rect(r: Any, phi: Any, /) -> Any:
    if _are_known((r, phi)):
        return _of_known(cmath.rect, r, phi)
    return call(complex, r * call(math.cos, phi), r * call(math.sin, phi))


for _function in _SAME:
    implements(_function)(functools.partial(_call_cmath, _function))
