"""Reductions, cumulative scans and sorts. They keep the dtype: NumPy's widening of small integers is a `convert` before.

Sums may associate freely but are at least as accurate as NumPy's pairwise sums. `reduce_max` and `reduce_min` hand
NaN on; `argmax` and `argmin` give the first NaN, else the first extreme. Sorting puts NaN last; its `kind` (NumPy's
`quicksort`, `heapsort` or `stable`) decides the order of equal elements; that of an `argsort` may be any (`introselect`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.errors import DTypeError, ShapeError, UnsupportedError
from jitml.ir.op import Op
from jitml.ir.types import BOOL, I64, Aval, is_complex

Ints = tuple[int, ...]


def _reduced(x: Aval, *, axes: Ints) -> Aval:
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < x.ndim for a in axes):
        raise ShapeError(f"reduce: axes {axes} of {x}")
    return x.with_shape(n for a, n in enumerate(x.shape) if a not in axes)


def _nonempty(x: Aval, *, axes: Ints) -> Aval:
    if any(x.shape[a] == 0 for a in axes):
        raise ShapeError("zero-size array to reduction operation which has no identity")
    return _reduced(x, axes=axes)


def _logical(x: Aval, *, axes: Ints) -> Aval:
    if x.dtype != BOOL:
        raise DTypeError(f"reduce_all and reduce_any are defined for bool, not {x}")
    return _reduced(x, axes=axes)


reduce_sum = Op("reduce_sum", "reductions", _reduced, lambda x, *, axes: np.sum(x, axis=axes, dtype=x.dtype))


def _multiplied(x: Aval, *, axes: Ints) -> Aval:
    _static_if_complex(x)
    return _reduced(x, axes=axes)


def _static_if_complex(x: Aval) -> None:
    if is_complex(x.dtype) and not x.is_static:
        raise UnsupportedError(f"a product of complex numbers, {x}, as many as only the running program knows")


reduce_prod = Op("reduce_prod", "reductions", _multiplied, lambda x, *, axes: np.prod(x, axis=axes, dtype=x.dtype))
reduce_max = Op("reduce_max", "reductions", _nonempty, lambda x, *, axes: np.max(x, axis=axes))
reduce_min = Op("reduce_min", "reductions", _nonempty, lambda x, *, axes: np.min(x, axis=axes))
reduce_all = Op("reduce_all", "reductions", _logical, lambda x, *, axes: np.all(x, axis=axes))
reduce_any = Op("reduce_any", "reductions", _logical, lambda x, *, axes: np.any(x, axis=axes))


def _argreduced(x: Aval, *, axis: int) -> Aval:
    return _nonempty(x, axes=(axis,)).with_dtype(I64)


argmax = Op("argmax", "reductions", _argreduced, lambda x, *, axis: np.argmax(x, axis=axis))
argmin = Op("argmin", "reductions", _argreduced, lambda x, *, axis: np.argmin(x, axis=axis))


def _along(x: Aval, *, axis: int) -> Aval:
    if not 0 <= axis < x.ndim:
        raise ShapeError(f"axis {axis} of {x}")
    return x


def _cumulative(x: Aval, *, axis: int, reverse: bool) -> Aval:
    return _along(x, axis=axis)


def _cumulative_product(x: Aval, *, axis: int, reverse: bool) -> Aval:
    _static_if_complex(x)
    return _along(x, axis=axis)


def _cumulative_extreme(x: Aval, *, axis: int, reverse: bool) -> Aval:
    if is_complex(x.dtype):
        raise UnsupportedError("cumulative extremes of complex numbers are not compiled")
    return _along(x, axis=axis)


def _evaluate_cumulative(ufunc: np.ufunc) -> Any:
    def evaluate(x: Any, *, axis: int, reverse: bool) -> Any:
        if reverse:
            return np.flip(ufunc.accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
        return ufunc.accumulate(x, axis=axis, dtype=x.dtype)

    return evaluate


# In order, element by element: the same bits as NumPy.
cumsum = Op("cumsum", "reductions", _cumulative, _evaluate_cumulative(np.add))
cumprod = Op("cumprod", "reductions", _cumulative_product, _evaluate_cumulative(np.multiply))
cummax = Op("cummax", "reductions", _cumulative_extreme, _evaluate_cumulative(np.maximum))
cummin = Op("cummin", "reductions", _cumulative_extreme, _evaluate_cumulative(np.minimum))


def _sorted(x: Aval, *, axis: int, kind: str) -> Aval:
    return _along(x, axis=axis)


def _argsorted(x: Aval, *, axis: int, kind: str) -> Aval:
    return _along(x, axis=axis).with_dtype(I64)


def _evaluate_argsort(x: Any, *, axis: int, kind: Any) -> Any:
    return np.argsort(x, axis=axis, kind="quicksort" if kind == "introselect" else kind)


sort = Op("sort", "reductions", _sorted, lambda x, *, axis, kind: np.sort(x, axis=axis, kind=kind))
argsort = Op("argsort", "reductions", _argsorted, _evaluate_argsort)
