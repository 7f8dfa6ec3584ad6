"""Polynomials as NumPy's older functions have them: coefficients from the highest power down."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import F64, is_complex, is_inexact
from jitml.numpy.support.arguments import as_array, as_int, full, not_compiled, result_of, value_of
from jitml.trace.values.boxing import fresh, read
from jitml.trace.values.registry import call, implements


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Horner's scheme."""
    coefficients = as_array(p)
    point: Any = result_of(value_of(x))
    result: Any = result_of(full(point.sizes, 0, point.dtype))
    for n in range(as_int(coefficients.shape[0])):
        result = result * point + coefficients[n]
    return result


def _coefficients(name: str, p: Any) -> Any:
    if isinstance(p, np.poly1d):
        not_compiled(name, "of a poly1d", "Pass its coefficients, p.coeffs.")
    return call(np.atleast_1d, as_array(p))


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    x, y = _same_length("polyadd", a1, a2)
    return x + y


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    x, y = _same_length("polysub", a1, a2)
    return x - y


def _same_length(name: str, a1: Any, a2: Any) -> tuple[Any, Any]:
    x, y = _coefficients(name, a1), _coefficients(name, a2)
    more = as_int(y.shape[0]) - as_int(x.shape[0])
    return (call(np.pad, x, (more, 0)), y) if more > 0 else (x, call(np.pad, y, (-more, 0)))


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """NumPy leaves out leading zeros first; a program that meets some leaves the call to it."""
    factors = []
    for given in (a1, a2):
        p = _coefficients("polymul", given)
        there = ops.ne(value_of(p[0]), 0) if as_int(p.shape[0]) > 1 else None
        value = read(p)
        message = "np.polymul: the first coefficient is zero"
        factors.append(fresh(value if there is None else ops.check(value, there, error="ValueError", message=message)))
    return call(np.convolve, *factors)


@implements(np.polyder)
def polyder(p: Any, m: Any = 1) -> Any:
    order, result = as_int(m), _coefficients("polyder", p)
    if np.ndim(p) == 0:
        raise TypeError("len() of unsized object")
    if order < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    for _ in range(order):
        n = as_int(result.shape[0]) - 1
        result = result[:-1] * call(np.arange, n, 0, -1)
    return result


@implements(np.polyint)
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    order, result = as_int(m), _coefficients("polyint", p)
    if order < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    added = call(np.zeros, order) if k is None else call(np.atleast_1d, as_array(k))
    if as_int(added.shape[0]) == 1 and order > 1:
        added = added[0] * call(np.ones, order)
    if as_int(added.shape[0]) < order:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for n in range(order):
        result = call(np.append, result / call(np.arange, as_int(result.shape[0]), 0, -1), added[n])
    return result


_MOST_ROOTS = 64  # each is a convolution of its own


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial of these roots."""
    roots = as_array(seq_of_zeros)
    if roots.ndim == 0:
        raise TypeError("dispatcher for __array_function__ did not return an iterable")
    count = as_int(roots.shape[0])
    if roots.ndim != 1 or is_complex(roots.dtype) or not 0 < count <= _MOST_ROOTS:
        not_compiled("poly", "of a matrix, or of complex roots or many", "Multiply the factors with np.convolve.")
    roots = roots if is_inexact(roots.dtype) else roots.astype(F64)
    result: Any = fresh(full((1,), 1.0, roots.dtype))
    for n in range(count):
        result = call(np.convolve, result, call(np.array, [1.0, -roots[n]], dtype=roots.dtype))
    return result


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    """By least squares of scaled powers."""
    if full or cov or np.ndim(deg) != 0:
        not_compiled("polyfit", "with full, cov or several degrees", "np.linalg.lstsq of np.vander(x, deg + 1) gives the rest.")
    order = as_int(deg) + 1
    at, values = (call(np.add, as_array(v), 0.0) for v in (x, y))
    if not (at.aval.is_static and values.aval.is_static):
        not_compiled("polyfit", "of points whose number only the running program knows", "Move it out of the jitted function.")
    if order < 1:
        raise ValueError("expected deg >= 0")
    if at.ndim != 1:
        raise TypeError("expected 1D vector for x")
    count = as_int(at.shape[0])
    if count == 0:
        raise TypeError("expected non-empty vector for x")
    if values.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if as_int(values.shape[0]) != count:
        raise TypeError("expected x and y to have same length")
    cutoff = count * float(np.finfo(at.dtype).eps) if rcond is None else rcond
    powers = call(np.vander, at, order)
    if w is not None:
        weights = call(np.add, as_array(w), 0.0)
        if weights.ndim != 1 or as_int(weights.shape[0]) != count:
            raise TypeError("expected w and y to have the same length")
        powers = powers * weights[:, None]
        values = values * (weights if values.ndim == 1 else weights[:, None])
    scale = call(np.sqrt, call(np.sum, powers * powers, axis=0))
    found, _, rank, _ = call(np.linalg.lstsq, powers / scale, values, cutoff)
    enough = ops.eq(value_of(rank), order)
    return fresh(_checked(read((found.T / scale).T), enough))


def _checked(found: Value, enough: Value) -> Value:
    checked: Value = ops.check(found, enough, error="RuntimeWarning", message="Polyfit may be poorly conditioned")
    return checked
