"""Functions of `scipy.special` that NumPy code leans on. SciPy is not imported for them: they join when the user has."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import is_complex
from jitml.numpy.support.arguments import result_of, value_of
from jitml.numpy.ufuncs.ufunc import implement
from jitml.trace.record.recording import unsupported
from jitml.trace.values.boxing import laid_out
from jitml.trace.values.registry import REGISTRY, implements


def _xlogy(x: Value, y: Value) -> Any:
    # 0 where x is 0 and there is no logarithm to multiply; elsewhere the slope in x is that logarithm, at 0 too.
    is_zero = ops.bit_and(ops.eq(x, 0.0), ops.bit_or(ops.le(y, 0.0), ops.isinf(y)))
    one = ops.full(value=1.0, shape=y.shape, dtype=y.dtype)
    return x * ops.log(ops.select(is_zero, one, y))


def _logit(x: Value) -> Any:
    return ops.log(x / (1.0 - x))


def _constant(x: Any) -> Any:
    """What is only subtracted to be added again: derivatives need not know of it."""
    value = ops.stop_gradient(value_of(x))
    return laid_out(value, x, "K") if value.ndim else result_of(value)


def softmax(x: Any, axis: Any = None) -> Any:
    e = np.exp(x - _constant(np.amax(x, axis=axis, keepdims=True)))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    x = x - _finite(_constant(np.amax(x, axis=axis, keepdims=True)))
    with np.errstate(divide="ignore"):
        return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(exp(a))) without overflow; `b` scales the terms, and where it is 0 there is none; -inf of nothing.

    Raises:
        UnsupportedError: `return_sign` is given, of complex numbers.
    """
    a = np.atleast_1d(a).astype(np.result_type(a, 1.0 if b is None else b, 1.0), copy=False)
    if return_sign and is_complex(a.dtype):
        unsupported("logsumexp(return_sign=True) of complex numbers is not supported in jitted code", "Leave return_sign out.")
    if b is not None:
        a = np.where(b == 0, -np.inf, a)
    top = _finite(_constant(np.amax(np.real(a), axis=axis, keepdims=True, initial=-np.inf)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        e = np.exp(a - top)
        total = np.sum(e if b is None else b * e, axis=axis, keepdims=True)
        results = (np.log(np.abs(total)) + top, np.sign(total)) if return_sign else (np.log(total) + top,)
    results = results if keepdims else tuple(np.squeeze(x, axis=axis)[()] for x in results)
    return results if return_sign else results[0]


def _finite(top: Any) -> Any:
    """What to subtract: nothing where that would be an infinity or NaN."""
    return np.where(np.isfinite(top), top, np.zeros_like(top))


@REGISTRY.when_imported("scipy.special")
def register(special: Any) -> None:
    """Fill the tables with the functions of an imported `scipy.special`."""
    implement({special.erf: ops.erf, special.expit: ops.logistic, special.xlogy: _xlogy, special.logit: _logit})
    for function in (softmax, log_softmax, logsumexp):
        implements(getattr(special, function.__name__))(function)
