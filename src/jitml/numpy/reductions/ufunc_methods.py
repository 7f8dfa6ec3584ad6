"""The methods of ufuncs: `reduce`, `accumulate`, `outer`, `at`, by ops where there are any, else as loops (`ufunc_folds.py`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.op import Op
from jitml.ir.types import BOOL, I64, is_complex, is_float, is_integer
from jitml.numpy.arrays.indexing import broadcast_assigned, locate
from jitml.numpy.arrays.reshaping import reshaped
from jitml.numpy.reductions.reductions import (
    accumulator,
    all_of,
    any_of,
    finish,
    is_given,
    maximum_of,
    minimum_of,
    product_of,
    sum_of,
)
from jitml.numpy.reductions.ufunc_folds import folds, one_by_one, target
from jitml.numpy.support.arguments import as_array, astype, kind_of, not_compiled, strict_axis, value_of
from jitml.numpy.ufuncs.loops import LOOPS
from jitml.numpy.ufuncs.ufunc import call_ufunc
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, fresh, read
from jitml.trace.values.registry import FUNCTIONS, implements


def _reducing(function: Callable[..., Any], *, takes_dtype: bool) -> Callable[..., Any]:
    """`ufunc.reduce`, which is the function over axis 0."""

    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        options: dict[str, Any] = {"out": out, "keepdims": keepdims, "where": where}
        if function not in (all_of, any_of):
            options["initial"] = initial
        if takes_dtype:
            options["dtype"] = dtype
        elif is_given(dtype):
            if function in (all_of, any_of):
                not_compiled("ufunc.reduce", f"of truth values with dtype={dtype}", "Leave dtype out.")
            array = fresh(astype(value_of(array), np.dtype(dtype)))
        return function(array, axis, **options)

    return reduce


implements(np.add.reduce)(_reducing(sum_of, takes_dtype=True))
implements(np.multiply.reduce)(_reducing(product_of, takes_dtype=True))
implements(np.maximum.reduce)(_reducing(maximum_of, takes_dtype=False))
implements(np.minimum.reduce)(_reducing(minimum_of, takes_dtype=False))
implements(np.logical_and.reduce)(_reducing(all_of, takes_dtype=False))
implements(np.logical_or.reduce)(_reducing(any_of, takes_dtype=False))


def _accumulating(op: Op, *, widens: bool) -> Callable[..., Any]:
    def accumulate(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        x = value_of(array)
        x = astype(x, accumulator(x.dtype, dtype, out) if widens else dtype)
        return finish(op(x, axis=strict_axis(axis, x.ndim), reverse=False), None, out, x.ndim)

    return accumulate


implements(np.add.accumulate)(_accumulating(ops.cumsum, widens=True))
implements(np.multiply.accumulate)(_accumulating(ops.cumprod, widens=True))
implements(np.maximum.accumulate)(_accumulating(ops.cummax, widens=False))
implements(np.minimum.accumulate)(_accumulating(ops.cummin, widens=False))


def _outer(ufunc: np.ufunc, a: Any, b: Any, /, **options: Any) -> Any:
    x, y = as_array(a), as_array(b)
    return call_ufunc(ufunc, reshaped(x, (*x.sizes, *(1,) * y.ndim)), y, **options)


def _at(combine: str) -> Callable[..., None]:
    """`ufunc.at`: combined in index order, so that repeated places count every time."""

    def at(a: TracedArray, indices: Any, b: Any, /) -> None:
        if not _stays_in(a, b, combine):
            return one_by_one(getattr(np, _UFUNCS[combine]), a, indices, b)
        found = locate(a, indices)
        new = broadcast_assigned(_wrapped(b, a), found.shape)
        into = target(found)
        base = read(into)
        if not found.indices:
            result = {"add": ops.add, "mul": ops.mul, "max": ops.maximum, "min": ops.minimum}[combine](base, new)
        else:
            result = ops.scatter(base, new, *found.indices, axis=found.axis, combine=combine)
        assign(into, result)

    return at


def _wrapped(b: Any, a: TracedArray) -> Value:
    return astype(value_of(b, I64 if kind_of(b) is int else a.dtype), a.dtype)


_UFUNCS = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _stays_in(a: TracedArray, b: Any, combine: str) -> bool:
    """Whether combining in a's dtype, all at once, gives what NumPy's loop, perhaps of a wider one, gives.

    Python numbers are not weak there.
    """
    if combine != "add" and is_complex(a.dtype):
        return False
    wide = np.result_type(np.dtype(kind_of(b)), a.dtype)
    if wide == a.dtype or (combine in ("add", "mul") and is_integer(wide) and is_integer(a.dtype)):
        return True
    if is_integer(wide) != is_integer(a.dtype):  # uint64 and an int: in float64, which has fewer digits
        return False
    # Rounded once in float64 and once more, a result of two smaller floats is what it is rounded at once.
    return (type(b) is int or (type(b) is float and is_float(a.dtype))) and _is_exact(b, a.dtype)


def _is_exact(number: int | float, dtype: np.dtype[Any]) -> bool:
    with np.errstate(over="ignore"):
        return dtype != BOOL and bool(np.asarray(number).astype(dtype).item() == number)


implements(np.add.at)(_at("add"))
implements(np.multiply.at)(_at("mul"))
implements(np.maximum.at)(_at("max"))
implements(np.minimum.at)(_at("min"))


@implements(np.subtract.at)
def subtract_at(a: TracedArray, indices: Any, b: Any, /) -> None:
    if a.dtype != BOOL and _stays_in(a, b, "add"):
        _at("add")(a, indices, fresh(ops.neg(_wrapped(b, a))))
    else:
        one_by_one(np.subtract, a, indices, b)


for _ufunc in LOOPS:
    if _ufunc.nin == 2:
        implements(_ufunc.outer)(partial(_outer, _ufunc))
    if _ufunc.nin == 2 and _ufunc.nout == 1:
        for _method, _fold in folds(_ufunc).items():
            if _method not in FUNCTIONS:
                implements(_method)(_fold)
