"""Every ufunc, by one driver: find the loop's dtypes as NumPy does, lift, broadcast, compute, convert, store.

What is computed stands in `loops.py`. NumPy's own `resolve_dtypes` decides the dtypes, so that promotion (NEP 50 with
weak Python numbers), casting errors and their messages are NumPy's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from jitml.errors import ShapeError
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import DTYPES, F64, I64, DType, dtype_name, is_inexact
from jitml.numpy.support.arguments import (
    astype,
    broadcast_value,
    common_shape,
    full,
    kind_of,
    mask_of,
    not_compiled,
    require_no_objects,
    result_of,
    value_of,
    without_imaginary,
)
from jitml.numpy.support.memory_order import put_in_order
from jitml.numpy.support.versions import ellipsis_is_an_output
from jitml.numpy.ufuncs.loops import COMPARISONS, LOOPS, Loop
from jitml.numpy.ufuncs.powers import replace_power
from jitml.trace.record.recording import user_source
from jitml.trace.symbolic.broadcasting import never_equal
from jitml.trace.values.array_writes import assign
from jitml.trace.values.boxing import TracedArray, TracedNumber, fresh, fresh_like, is_fortran, named_order, read
from jitml.trace.values.registry import call, implements
from jitml.trace.values.type_unions import settled


def call_ufunc(
    ufunc: np.ufunc,
    *args: Any,
    out: Any = None,
    where: Any = True,
    casting: Any = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    signature: Any = None,
    sig: Any = None,
) -> Any:
    """What `ufunc(*args, ...)` returns: a scalar for 0-d operands, `out` if given, a tuple for several results.

    Raises:
        TypeError: a wrong number of arguments, no loop for the dtypes, or a cast that `casting` forbids.
        ShapeError: the operands do not broadcast.
        OverflowError: a Python integer does not fit the dtype of the arrays beside it.
    """
    args, outs = _split_out(ufunc, args, out)
    if ufunc in COMPARISONS and dtype is None and signature is None:
        folded = _out_of_range(ufunc, args)
        args = args if folded is None else folded
    if ufunc is np.power:
        ufunc, args = replace_power(*args)
    dtypes = _resolve(ufunc, args, outs, dtype, signature or sig, casting)
    values = [value_of(a, d) for a, d in zip(args, dtypes)]
    mask = None if where is True else mask_of(where)
    results = _compute(ufunc, values, outs, mask)
    stored = _store(ufunc, args, results, dtypes[ufunc.nin :], outs, mask, casting)
    order = order if order == "K" else named_order(order)
    for result in stored if type(stored) is tuple else (stored,):
        if order != "K" and type(result) is TracedArray and not any(result is out for out in outs):
            _put_in(order, result, args)
    return stored


def _put_in(order: str, result: TracedArray, args: tuple[Any, ...]) -> None:
    """Let a new array lie by rows ("C") or by columns ("F"); "A": by columns if all operands do."""
    arrays = [a for a in args if type(a) is TracedArray]
    by_columns = order == "F" or (order == "A" and bool(arrays) and all(map(is_fortran, arrays)))
    put_in_order(result, range(result.ndim)[::-1] if by_columns else range(result.ndim))


def _split_out(ufunc: np.ufunc, args: tuple[Any, ...], out: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    if not ufunc.nin <= len(args) <= ufunc.nargs:
        takes = f"{ufunc.nin} to {ufunc.nargs}"
        raise TypeError(f"{ufunc.__name__}() takes from {takes} positional arguments but {len(args)} were given")
    if out is None and len(args) == ufunc.nin:
        return args, (None,) * ufunc.nout
    if out is None:
        out = args[ufunc.nin :]
    elif len(args) > ufunc.nin:
        raise TypeError("cannot specify 'out' as both a positional and keyword argument")
    outs = out if isinstance(out, tuple) else (out,)
    outs = (*outs, *[None] * (ufunc.nout - len(outs)))
    for o in outs:
        if not (o is None or isinstance(o, TracedArray) or (o is Ellipsis and ellipsis_is_an_output())):
            raise TypeError("return arrays must be of ArrayType")
    if _share(*(o for o in outs if isinstance(o, TracedArray))):
        # NumPy stores their elements in turns, as many at once as it has room for.
        not_compiled(
            ufunc.__name__, "into two arrays that share memory", "Let it make new arrays, and store one after the other."
        )
    return args[: ufunc.nin], outs


def _share(*outs: TracedArray) -> bool:
    """Whether two outputs overlap, as far as that is known while tracing."""
    if len(outs) < 2 or len({id(o.storage) for o in outs}) > 1:
        return False
    is_known = not any(step.starts for o in outs for step in o.steps)
    is_known &= all(type(n) is int for o in outs for n in (*o.storage.value.shape, *o.sizes))
    return is_known and bool(call(np.shares_memory, *outs))


def _resolve(
    ufunc: np.ufunc, args: tuple[Any, ...], outs: tuple[Any, ...], dtype: Any, signature: Any, casting: Any
) -> tuple[DType, ...]:
    if dtype is not None:
        signature = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    kinds = (*map(kind_of, args), *(o.dtype if isinstance(o, TracedArray) else None for o in outs))
    options = {} if signature is None else {"signature": signature}
    if casting == "equiv" and any(isinstance(kind, type) for kind in kinds):  # NumPy 2.4 ends the process if it is asked
        raise TypeError("cannot cast a Python number under the casting rule 'equiv'")
    resolved = settled(args, kinds, lambda kinds: ufunc.resolve_dtypes(tuple(kinds), casting=casting, **options))
    if all(isinstance(kind, type) for kind in kinds[: len(args)]):
        require_no_objects(*args)
    # Beside an int8, a uint64 is compared by C's long long, which equals int64 and yet is another type of scalars.
    return tuple(DTYPES[dtype_name(d)] for d in resolved)


def _compute(ufunc: np.ufunc, values: list[Value], outs: tuple[Any, ...], mask: Value | None) -> tuple[Value, ...]:
    arrays = [o for o in outs if isinstance(o, TracedArray)]
    masks = [] if mask is None else [mask.shape]
    shape = common_shape(ufunc.__name__, *[v.shape for v in values], *masks, *[o.sizes for o in arrays])
    if arrays and any(o.ndim != len(shape) or any(n == 1 and never_equal(m, 1) for n, m in zip(o.sizes, shape)) for o in arrays):
        message = f"non-broadcastable output operand with shape {arrays[0].sizes} doesn't match the broadcast shape {shape}"
        raise ShapeError(message, source=user_source())
    if arrays:
        shape = tuple(1 if any(o.sizes[axis] == 1 for o in arrays) else n for axis, n in enumerate(shape))
    operands = [broadcast_value(v, shape) for v in values]
    if mask is not None and ufunc not in _LINEAR:
        operands = [_computed(ufunc, v, mask) for v in operands]
    results = LOOPS[ufunc](*operands)
    return results if isinstance(results, tuple) else (results,)


# Their slopes are numbers whatever the operands are.
_LINEAR = {np.add, np.subtract, np.negative, np.positive, np.conjugate, *COMPARISONS}


def _computed(ufunc: np.ufunc, x: Value, mask: Value) -> Value:
    """An operand with a harmless number where NumPy computes nothing: a slope there has to be finite, to vanish times 0."""
    if not is_inexact(x.dtype):
        return x
    harmless = 2.0 if ufunc is np.arccosh else 0.5
    chosen: Value = ops.select(broadcast_value(mask, x.shape), x, full(x.shape, harmless, x.dtype))
    return chosen


def _store(
    ufunc: np.ufunc,
    args: tuple[Any, ...],
    results: tuple[Value, ...],
    dtypes: tuple[DType, ...],
    outs: tuple[Any, ...],
    mask: Value | None,
    casting: Any,
) -> Any:
    stored = []
    for result, dtype, out in zip(results, dtypes, outs):
        result = astype(result, dtype)
        if isinstance(out, TracedArray):
            if mask is not None:  # NumPy takes what may stay into its buffers, and warns of that
                astype(without_imaginary(read(out), dtype), dtype)
            store(out, result, mask, casting=casting)
            stored.append(out)
            continue
        if mask is not None:
            # NumPy leaves the masked places uninitialised: any value is right there.
            result = ops.select(broadcast_value(mask, result.shape), result, full(result.shape, 0, dtype))
        stored.append(fresh_like(result, *args) if out is Ellipsis or result.ndim else result_of(result))
    return stored[0] if ufunc.nout == 1 else tuple(stored)


def store(out: TracedArray, result: Value, mask: Value | None = None, *, casting: Any = "same_kind") -> TracedArray:
    """Write a result into an `out=` array, where the mask holds.

    Raises:
        TypeError: `casting` forbids the conversion to out's dtype.
    """
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(f"Cannot cast output from {result.dtype!r} to {out.dtype!r} with casting rule {casting!r}")
    value = broadcast_value(astype(result, out.dtype), out.sizes)
    if mask is not None:
        value = ops.select(broadcast_value(mask, out.sizes), value, read(out))
    assign(out, value)
    return out


def _out_of_range(ufunc: np.ufunc, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Comparison operands with a Python integer replaced where it does not fit the integer array beside it.

    NumPy compares these exactly instead of raising: any number beyond the range gives what ±infinity would.
    """
    x, y = args
    if kind_of(x) is int and kind_of(y) is not int:
        other, number, swap = y, x, True
    elif kind_of(y) is int and kind_of(x) is not int:
        other, number, swap = x, y, False
    else:
        return None
    kind = kind_of(other)
    if not isinstance(kind, np.dtype) or kind.kind not in "iu":
        return None
    bounds = np.iinfo(kind)  # type: ignore[type-var]  # an integer dtype, by its kind
    if isinstance(number, TracedNumber) and number.slot is None:
        low, high = number.limits
        if kind == np.uint64 or (low >= bounds.min and high <= bounds.max):
            return None
        wide = (fresh(value_of(other, I64)), fresh(value_of(number, I64)))
        return wide[::-1] if swap else wide
    if isinstance(number, TracedNumber) and (bounds.min <= number.concrete <= bounds.max):
        return None
    n = int(number)
    if bounds.min <= n <= bounds.max:
        return None
    beyond = value_of(float("inf") if n > 0 else float("-inf"), F64)
    widened = value_of(other, F64)
    return (beyond, widened) if swap else (widened, beyond)


def implement(loops: Mapping[np.ufunc, Loop]) -> None:
    """Ufuncs compute so."""
    LOOPS.update(loops)
    for ufunc in loops:
        implements(ufunc)(partial(call_ufunc, ufunc))


implement(LOOPS)
