"""Operands and promotion: what does an argument mean to NumPy?

Its part in dtype promotion, and its `Value` in the dtype that is computed in.

Python numbers and `TracedNumber` are weak (NEP 50): they take the dtype of the arrays beside them. Everything else is
strong. All other files of this package get their Values here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from jitml.errors import ShapeError
from jitml.imports.late import late
from jitml.ir import ops
from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.dims import Dim, Size
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, F64, I64, DType, dtype_name, is_complex, is_float, is_integer, normalize_axis
from jitml.numpy.support.versions import one_element_is_a_number
from jitml.trace.lists.sequences import Range
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.recording import active_trace, unsupported, user_source
from jitml.trace.symbolic.broadcasting import common_sizes, insist_at_least, never_equal, require_sizes, stretch
from jitml.trace.symbolic.sizes import HIGHEST, LOWEST, number, span, value_limits, value_of_size
from jitml.trace.values.boxing import TracedArray, TracedNumber, TracedScalar, fresh, is_traced, read, scalar
from jitml.trace.values.registry import call
from jitml.trace.values.type_unions import doubt_of, dtype_of, only_numpys, own_type, require_type, settled

if TYPE_CHECKING:
    from jitml.trace.lists import number_lists
    from jitml.trace.regions import type_specialization
else:
    number_lists = late("jitml.trace.lists.number_lists")
    type_specialization = late("jitml.trace.regions.type_specialization")


Shape = tuple[int, ...]
# A strong dtype, or the Python type of a weak number: what `np.ufunc.resolve_dtypes` takes.
Kind = DType | type[int] | type[float] | type[complex]

# What NumPy says when an array of one element is taken for a number.
_DEPRECATED = (
    "Conversion of an array with ndim > 0 to a scalar is deprecated, and will error in future. Ensure you extract a single "
    "element from your array before performing this operation. (Deprecated NumPy 1.25.)"
)

_SAMPLES: dict[type, int | float | complex] = {int: 0, float: 0.0, complex: 0j}


def not_compiled(name: str, what: str, remedy: str = "") -> NoReturn:
    """Refuse one way of calling a NumPy function, at the user's line."""
    unsupported(f"np.{name}: {what}", remedy)


def present(*names: str) -> list[Callable[..., Any]]:
    """The functions of these names, as far as this NumPy has them."""
    return [getattr(np, name) for name in names if hasattr(np, name)]


def kind_of(x: Any) -> Kind:
    """x's part in promotion.

    Raises:
        UnsupportedError: an object, string or date dtype.
    """
    if type(x) is TracedArray:
        return x.dtype
    if type(x) in _SAMPLES:
        return type(x)
    if isinstance(x, TracedNumber):
        return BOOL if x.kind is bool else x.kind
    dtype = x.dtype if is_traced(x) or isinstance(x, (Value, np.ndarray, np.generic)) else value_of(x).dtype
    dtype_name(dtype)
    return dtype


def common_dtype(*xs: object) -> DType:
    """The dtype that NumPy finds for several operands of one function, `np.result_type` with weak numbers."""
    dtype: DType = settled(xs, [*map(kind_of, xs)], lambda kinds: np.result_type(*map(_sample, kinds)))
    return dtype


def promoted(*xs: object) -> list[Value]:
    """Operands in their common dtype, where NumPy makes arrays of numbers too before it looks for one."""
    values = [value_of(x) for x in xs]
    dtype = np.result_type(*(v.dtype for v in values))
    return [astype(v, dtype) for v in values]


def require_no_objects(*xs: object) -> None:
    """Refuse Python ints of more than 64 bits: of those NumPy makes objects where it has no array's dtype to give them."""
    for x in xs:
        if type(x) is TracedNumber and x.kind is int and x.slot is not None:
            require_no_objects(x.concrete)
            active_trace().host.require_range(x.slot, LOWEST, HIGHEST)
        elif type(x) is int and not LOWEST <= x <= HIGHEST:
            unsupported("a NumPy function is given an int of more than 64 bits", "Write it as a float.")


def _sample(kind: Kind) -> Any:
    return _SAMPLES[kind] if isinstance(kind, type) else kind


def value_of(x: object, dtype: DType | None = None) -> Value:
    """Anything array-like as a Value, converted to `dtype` if given.

    Raises:
        OverflowError: a Python integer does not fit the dtype (NumPy's message).
    """
    if type(x) is TracedArray:
        return astype(read(x), dtype)
    x = _with_its_type(x, dtype)
    if isinstance(x, np.flatiter):  # a traced one has its elements as a line
        x = getattr(x, "line", x)
    if isinstance(x, TracedNumber):
        return astype(x.as_value(), dtype) if x.kind is complex else x.as_value(dtype)
    if isinstance(x, (Value, np.ndarray)) or is_traced(x):
        return astype(read(x), dtype)
    if type(x) is TracedList and (whole := x.whole()) is not None:
        return astype(whole, dtype)
    if type(x) is Range:
        insist_at_least(x.trip, 1)  # of no numbers NumPy makes an array of no float64
        return astype(read(call(np.arange, *x.bounds)), dtype)
    if isinstance(x, (list, tuple)) and holds_traced(x):
        numbers = number_lists.array_of_numbers(x, dtype)
        return astype(_stacked(x, dtype), dtype) if numbers is None else numbers
    if type(x) in (bool, int, float, complex, list, tuple):
        return constant(np.asarray(x, dtype))
    return astype(constant(np.asarray(x)), dtype)


def _with_its_type(x: Any, dtype: DType | None) -> Any:
    """A number of which it is open whether it is Python's as the one that it is, if that shows in an array of this dtype."""
    found = doubt_of(x)
    if found is None:
        return x
    if dtype is None:
        shows = any(dtype_of(which) != x.dtype for which in found.cases)
    else:
        shows = dtype.kind in "iu" and dtype not in (I64, x.dtype)  # where Python's ints have to fit; if they have one, they do
    which = require_type(x) if shows else own_type(x)
    if which is None or which is own_type(x):
        is_wider = not shows and dtype is not None and dtype.itemsize > x.dtype.itemsize
        return only_numpys(x) if is_wider else x
    return type_specialization.as_type(x, which)


def constant(array: np.ndarray[Any, Any]) -> Value:
    """A concrete array in the graph; one number repeated is a `full`."""
    dtype_name(array.dtype)
    if array.ndim == 0 and (number := array.item()) == number:
        return full((), number, array.dtype)
    if array.size == 0 or ((array == array.flat[0]).all() and not _mixed_zeros(array)):
        return full(array.shape, array.flat[0].item() if array.size else 0, array.dtype)
    return ops.array(value=np.array(array, order="C"), shape=array.shape, dtype=array.dtype)


def _mixed_zeros(array: np.ndarray[Any, Any]) -> bool:
    """Whether equal elements may differ in the sign of zero."""
    if is_complex(array.dtype):
        return _mixed_zeros(array.real) or _mixed_zeros(array.imag)
    return array.dtype.kind == "f" and array.flat[0] == 0 and np.signbit(array).any() and not np.signbit(array).all()


def mask_of(where: Any) -> Value:
    """A `where=` argument: of arrays bool alone, of Python's objects their truth.

    Raises:
        TypeError: an array of another dtype.
    """
    if not isinstance(where, (np.ndarray, np.generic)) and not is_traced(where):
        return value_of(np.asarray(where, BOOL) if not holds_traced(where) else where, BOOL)
    mask = value_of(where)
    if mask.dtype != BOOL and type(where) is not TracedNumber:
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    return astype(mask, BOOL)


def holds_traced(x: object) -> bool:
    """Whether x is a tracer, or a nested list or tuple with one inside."""
    if isinstance(x, (list, tuple)):
        return any(map(holds_traced, x))
    return is_traced(x) or isinstance(x, Value)


def arrays_of_lists(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with arrays in the place of lists that hold what is traced."""
    return tuple(map(_listed, args)), {name: _listed(x) for name, x in kwargs.items()}


def _listed(x: Any) -> Any:
    return call(np.array, x) if type(x) in (list, tuple) and holds_traced(x) else x


def _stacked(items: Sequence[object], wanted: DType | None) -> Value:
    """A nested sequence as `np.array` reads it: every number in it is strong, and Python integers must fit the dtype wanted."""
    values = [_item(item, wanted) for item in items]
    dtype = np.result_type(*(v.dtype for v in values))
    shape = values[0].shape
    if any(len(v.shape) != len(shape) or any(map(never_equal, v.shape, shape)) for v in values):
        message = f"setting an array element with a sequence: the parts have the shapes {[v.shape for v in values]}"
        raise ShapeError(message, source=user_source())
    rows = [ops.reshape(astype(require_sizes(v, shape), dtype), shape=(1, *shape)) for v in values]
    return ops.concat(*rows, axis=0)


def through_python(value: Any, stored: Value) -> Value:
    """What a NumPy scalar becomes in signed integers, and Python's float in any: it goes through Python's int, which has to fit.

    Of another dtype, and the scalar not where an index array says the places. In unsigned integers it is cast.
    """
    is_float = isinstance(value, TracedNumber) and value.kind is float
    if not (is_float or isinstance(value, TracedScalar)) or stored.dtype.kind not in ("iu" if is_float else "i"):
        return stored
    if value.dtype == stored.dtype or value.dtype.kind not in "iuf":
        return stored
    given, (low, high) = value_of(value), dtype_limits(stored.dtype)
    if given.dtype.kind == "f":
        number = ops.trunc(astype(given, F64))
        fits = ops.bit_and(ops.ge(number, float(low)), ops.lt(number, float(high + 1)))
    else:
        least, most = value_limits(given)
        if low <= least and most <= high:
            return stored
        fits = ops.eq(astype(stored, given.dtype), given)
        if given.dtype.kind == "u":
            fits = ops.bit_and(fits, ops.ge(stored, full((), 0, stored.dtype)))
    message = f"Python integer out of bounds for {stored.dtype}"
    checked: Value = ops.check(stored, fits, error="OverflowError", message=message)
    return checked


def one_element(value: Value, message: str = "setting an array element with a sequence.") -> Value:
    """What one element is set to: a value without axes.

    Raises:
        ValueError: it has axes, and this NumPy takes no array of one element for a number, or it has more than that.
    """
    if not value.ndim:
        return value
    if not one_element_is_a_number() or any(never_equal(n, 1) for n in value.shape):
        raise ValueError(message)
    call(warnings.warn, _DEPRECATED, DeprecationWarning)
    return reshape_value(require_sizes(value, (1,) * value.ndim, message), ())


def _item(item: object, wanted: DType | None) -> Value:
    if _must_fit(item, wanted):
        return value_of(item, wanted)
    value = value_of(item)
    return value if wanted is None or wanted == value.dtype else through_python(item, astype(value, wanted))


def _must_fit(item: object, wanted: DType | None) -> bool:
    is_int = type(item) is int or (isinstance(item, TracedNumber) and item.kind is int)
    return wanted is not None and wanted.kind in "iu" and (is_int or isinstance(item, (list, tuple)))


def as_array(x: object) -> TracedArray:
    """x itself if it is a traced array, else a new one with its contents: what `np.asarray` gives."""
    if isinstance(x, np.flatiter) and type(x) is not np.flatiter:
        whole: TracedArray = x.as_array()  # a traced one
        return whole
    return x if isinstance(x, TracedArray) else fresh(value_of(x))


def full(shape: Iterable[int], value: int | float | complex | bool, dtype: DType) -> Value:
    return ops.full(value=value, shape=tuple(shape), dtype=dtype)


def astype(x: Value, dtype: DType | None) -> Value:
    """x in another dtype (unchecked, as `casting="unsafe"`).

    Raises:
        UnsupportedError: imaginary parts would be lost, of which NumPy warns.
    """
    if dtype is None or x.dtype == dtype:
        return x
    if is_complex(x.dtype) and not is_complex(dtype) and dtype != BOOL:
        unsupported(f"{x.aval} is converted to {dtype_name(dtype)}, which loses imaginary parts", "Write x.real.")
    return ops.convert(x, dtype=dtype)


def without_imaginary(x: Value, dtype: DType) -> Value:
    """x, or its real parts where a dtype has no place for others, of which NumPy warns."""
    if not is_complex(x.dtype) or is_complex(dtype) or dtype == BOOL:
        return x
    call(warnings.warn, "Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
    real: Value = ops.real(x)
    return real


def broadcast_value(x: Value, shape: Sequence[int]) -> Value:
    """x stretched to `shape` by NumPy's rules; sizes that only the running program knows are checked by it."""
    return stretch(x, shape)


def reshape_value(x: Value, shape: Iterable[int]) -> Value:
    shape = tuple(shape)
    return x if x.shape == shape else ops.reshape(x, shape=shape)


def spread_size(size: Size, shape: Sequence[int], dtype: DType = I64) -> Value:
    """A size as a number in every place of a shape."""
    if not isinstance(size, Dim):
        return full(shape, size, dtype)
    return ops.broadcast(astype(value_of_size(size), dtype), shape=tuple(shape), axes=())


def nonempty(x: Value, axes: Iterable[int], message: str) -> Value:
    """x, which has elements along these axes.

    Raises:
        ShapeError: it has none; where that is not known, the program ends with ValueError.
    """
    for axis in axes:
        size = x.shape[axis]
        if span(size)[1] <= 0:
            raise ShapeError(message, source=user_source())
        if span(size)[0] <= 0:
            x = ops.check(x, ops.gt(value_of_size(size), number(0)), error="ValueError", message=message)
    return x


def common_shape(name: str, *shapes: Shape) -> Shape:
    """The shape that operands broadcast to.

    Raises:
        ShapeError: naming the shapes and the axis, counted from the last, where they differ.
    """
    try:
        return common_sizes(*shapes)
    except ValueError:
        listed = " and ".join(str(s) for s in shapes)
        message = f"{name}: operands could not be broadcast together with shapes {listed}{_misfit(shapes)}"
        raise ShapeError(message, source=user_source()) from None


def _misfit(shapes: Sequence[Shape]) -> str:
    for back in range(1, max(map(len, shapes)) + 1):
        sizes = dict.fromkeys(s[-back] for s in shapes if len(s) >= back and s[-back] != 1)
        if len(sizes) > 1:
            listed = sorted(sizes) if all(type(n) is int for n in sizes) else sizes
            return f" (axis {-back}: {' and '.join(map(str, listed))})"
    return ""


def integers(indices: Any, *, cut: bool = False) -> Value:
    """An index as NumPy's functions take it; some cut numbers, and lists of them, to integers, but no arrays.

    Raises:
        TypeError: it is of no integers.
    """
    index = value_of(np.empty(0, np.intp) if isinstance(indices, (list, tuple)) and not indices else indices)
    if cut and is_float(index.dtype) and not isinstance(indices, (TracedArray, np.ndarray)):
        fits = ops.lt(ops.abs(index), 2.0**63)
        fits = ops.reduce_all(fits, axes=tuple(range(fits.ndim))) if fits.ndim else fits
        index = ops.check(index, fits, error="OverflowError", message="cannot convert a float that is no 64-bit integer")
    elif not is_integer(index.dtype) and index.dtype != BOOL:
        raise TypeError(f"Cannot cast array data from {index.dtype!r} to dtype('int64') according to the rule 'safe'")
    return index if is_integer(index.dtype) else astype(index, I64)


def checked_index(index: Value, size: int) -> Value:
    """The index itself; at run time IndexError unless 0 <= index < size (a gather counts negative ones from the end)."""
    index = astype(index, I64)
    inside = ops.select(ops.lt(index, 0), spread_size(size, index.shape), index)
    return ops.gather(ops.iota(shape=(size,), axis=0, dtype=I64), inside, axis=0)


def index_in_mode(index: Value, size: Size, mode: Any) -> Value:
    """An index brought into range as `mode=` says; "raise" leaves it to the check of what is indexed.

    Raises:
        ValueError: there is no such mode.
    """
    if mode in ("wrap", 1):
        return ops.remainder(astype(index, I64), spread_size(size, index.shape))
    if mode in ("clip", 0):
        return ops.minimum(ops.maximum(astype(index, I64), 0), spread_size(size - 1, index.shape))
    if mode not in ("raise", 2, None):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return index


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """An `axis=` argument as sorted non-negative axes; None means all.

    Raises:
        AxisError: an axis out of range. ValueError: an axis given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(distinct_axes(given, ndim)))


def one_axis(axis: Any, ndim: int) -> int:
    """An axis that is one number, not negative.

    Raises:
        AxisError: out of range. TypeError: no integer.
    """
    return normalize_axis(as_int(axis), ndim)


def strict_axis(axis: Any, ndim: int) -> int:
    """The same where NumPy takes none of Python's bools for an integer."""
    return one_axis(no_truth(axis), ndim)


def distinct_axes(given: Sequence[Any], ndim: int) -> tuple[int, ...]:
    """Axes in the order in which they are given, none negative."""
    axes = tuple(one_axis(a, ndim) for a in given)
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return axes


def reduced_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The same for reductions: of a number they accept the axes 0 and -1, and reduce nothing."""
    return () if ndim == 0 and axis in (0, -1) else summed_axes(axis, ndim)


def summed_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """`axes_of` where a list will not do."""
    if isinstance(axis, list):
        raise TypeError("'list' object cannot be interpreted as an integer")
    for n in () if axis is None else axis if isinstance(axis, tuple) else (axis,):
        no_truth(n)
    return axes_of(axis, ndim)


def with_axis(x: Value, axis: Any) -> Value:
    """A number as an array of one element, which some functions make of it where an axis 0 or -1 is asked for."""
    return reshape_value(x, (1,)) if x.ndim == 0 and axis in (0, -1) else x


def as_int(x: Any) -> int:
    """A concrete integer; of a traced one the trace takes the value under a guard, or refuses."""
    return int(x.__index__())


def no_truth(n: Any) -> Any:
    """An integer argument where NumPy takes none of Python's bools for one."""
    if isinstance(n, bool):
        raise TypeError("an integer is required")
    return n


def whole(x: Any) -> Any:
    """An integer argument that NumPy takes with `int`: of floats what is before the point."""
    return int(x) if isinstance(x, (float, np.floating)) else x


def result_of(x: Value) -> Any:
    """What a ufunc or a reduction returns: a NumPy scalar where there are no axes, else a new array."""
    return fresh(x) if x.ndim else scalar(x)
