"""What only array objects have: copies and other views of their memory, their flags, and changes in place."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np
import optree

from jitml.ir import ops
from jitml.ir.types import BOOL, F64, I64, Aval
from jitml.numpy.arrays.flat import TracedFlat, repeated
from jitml.numpy.arrays.reshaping import complete_shape, reshaped, same
from jitml.numpy.support.arguments import astype as converted
from jitml.numpy.support.arguments import not_compiled, one_element, reshape_value, value_of, without_imaginary
from jitml.trace.host_calls.array_ownership import own_arrays
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.guards import OWNS, WRITEABLE, HostConst
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.storage.index_maps import Reinterpreted, reinterpret
from jitml.trace.storage.storage import Storage
from jitml.trace.storage.strides import is_contiguous
from jitml.trace.values.array_writes import assign, is_writeable, refuse_lent, rely_on_flag
from jitml.trace.values.boxing import (
    LiftedArrays,
    TracedArray,
    constant,
    fresh,
    is_fortran,
    laid_out,
    lies_in,
    lift,
    named_order,
    read,
    scalar,
)
from jitml.trace.values.kinds import Kind
from jitml.trace.values.registry import call, implements
from jitml.trace.values.tracers import Tracer


@implements(np.ndarray.view)
def view(x: Any, dtype: Any = None, type: Any = None) -> Any:
    """The same memory in another array object, perhaps as numbers of another dtype of the same width."""
    if dtype is np.ndarray:
        dtype = None
    if type not in (None, np.ndarray):
        not_compiled("ndarray.view", f"as a {type}", "Arrays are plain NumPy arrays here.")
    target = x.dtype if dtype is None else np.dtype(dtype)
    if target == x.dtype:
        return same(x) if isinstance(x, TracedArray) else x
    if {target.kind, x.dtype.kind} - set("iuf") or target.itemsize != x.dtype.itemsize:
        not_compiled("ndarray.view", f"of {x.dtype} as {target}", "Take the view outside; .astype(...) converts values.")
    if not isinstance(x, TracedArray):
        return scalar(reinterpret(read(x), target))
    steps = (*x.steps, Reinterpreted.of(x.aval, target))
    return TracedArray(x.storage, steps, x.aval.with_dtype(target), x.layout, x.writeable)


@implements(np.frombuffer)
def frombuffer(buffer: Any, dtype: Any = float, count: Any = -1, offset: Any = 0, *, like: Any = None) -> Any:
    """A view of an array's elements in one row."""
    if not isinstance(buffer, Tracer):
        return _of_buffer(buffer, np.dtype(dtype), operator.index(count), operator.index(offset))
    if not isinstance(buffer, TracedArray):
        not_compiled("frombuffer", "of a NumPy scalar, whose bytes compiled programs do not know", "Take an array.")
    if not buffer.is_contiguous:
        raise ValueError("ndarray is not C-contiguous")
    row = call(np.ndarray.view, buffer.reshape(-1), np.dtype(dtype))  # None is float64 here
    count, offset = operator.index(count), operator.index(offset)
    if offset % row.itemsize:
        not_compiled("frombuffer", f"from within an element, at offset {offset}", "Take the view outside of the jitted function.")
    start, length = offset // row.itemsize, operator.index(row.sizes[0])
    if not 0 <= start <= start + max(count, 0) <= length:
        raise ValueError("buffer is smaller than requested size")
    return row[start:] if count < 0 else row[start : start + count]


def _of_buffer(buffer: Any, dtype: np.dtype[Any], count: int, offset: int) -> Any:
    """An array on memory that is no array's: another one at each call, which the program does not write."""
    box = [np.frombuffer(buffer, dtype, count, offset)]
    trace = active_trace().root
    place = trace.outside.places.get(id(buffer))
    if place is None or not box[0].flags.writeable:
        own_arrays(box)
        return box.pop()
    options = (place, HostConst(dtype), HostConst(count), HostConst(offset))
    slot = trace.host.compute(np.frombuffer, options, f"np.frombuffer({trace.host.name(place)})")
    result: TracedArray = lift(box[0], slot)[...]
    result.writeable, result.storage.of_object = False, True  # what is written there would be lost
    return result


@implements(np.ndarray.copy)
def copy(x: TracedArray, order: str = "C") -> TracedArray:
    """x.copy(): by rows, unlike np.copy."""
    return laid_out(read(x), x, order)


@implements(np.ndarray.tolist)
def tolist(x: TracedArray) -> Any:
    """A list of Python's numbers, in one dimension, that is too long to be known one by one."""
    wide = {"b": BOOL, "f": F64, "i": I64}[x.dtype.kind]
    numbers = fresh(converted(read(x), wide))
    stack = TracedList((), optree.treespec_leaf(), [Kind("number", Aval((), wide))], [numbers])
    active_trace().outside.own[id(stack)] = stack
    return stack


@implements(np.ndarray.astype)
def astype(
    x: Tracer, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool | None = True
) -> Tracer:
    """x in another dtype; of a scalar another scalar."""
    target = np.dtype(dtype)
    if not np.can_cast(x.dtype, target, casting):  # type: ignore[arg-type]  # casting's literals are checked by NumPy
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to {target!r} according to the rule '{casting}'")
    value = without_imaginary(read(x), target)
    if not isinstance(x, TracedArray):
        return x if target == x.dtype else scalar(converted(value, target))
    if target == x.dtype and not copy and lies_in(x, order):
        return x
    return laid_out(converted(value, target), x, order)


@implements(np.ndarray.flatten)
def flatten(x: Tracer, order: str = "C") -> TracedArray:
    """A copy in one dimension."""
    order = "C" if order is None else named_order(order)
    if not isinstance(x, TracedArray):
        return fresh(ops.reshape(read(x), shape=(1,)))
    if order == "K" and not x.is_contiguous and not is_fortran(x):
        unsupported("flatten(order='K') of an array that is not contiguous is not supported", "Say which order: 'C' or 'F'.")
    by_columns = order == "F" or (order in "AK" and is_fortran(x))
    return fresh(ops.reshape(read(x.T if by_columns else x), shape=(x.aval.size,)))


@implements(np.ndarray.fill)
def fill(x: TracedArray, value: Any) -> None:
    """x.fill(value)"""
    x[...] = fresh(one_element(value_of(value, x.dtype))) if np.ndim(value) else value


@implements(np.ndarray.sort)
def sort(x: TracedArray, axis: int = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None) -> None:
    """In place."""
    assign(x, read(call(np.sort, x, axis, kind, order, stable=stable)))


class TracedFlags:
    """`x.flags`."""

    __slots__ = ("_array",)
    _SHORT = {"C": "c_contiguous", "F": "f_contiguous", "W": "writeable", "O": "owndata", "A": "aligned"}  # noqa: RUF012
    aligned = True
    writebackifcopy = False

    def __init__(self, array: TracedArray) -> None:
        self._array = array

    @property
    def writeable(self) -> bool:
        rely_on_flag(self._array.storage, WRITEABLE)
        return is_writeable(self._array)

    @writeable.setter
    def writeable(self, value: Any) -> None:
        setflags(self._array, write=value)

    @property
    def c_contiguous(self) -> bool:
        return self._array.is_contiguous

    @property
    def f_contiguous(self) -> bool:
        return is_contiguous(self._array.sizes[::-1], self._array.layout[::-1])

    contiguous = c_contiguous

    @property
    def fnc(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    @property
    def owndata(self) -> bool:
        storage = self._array.storage
        return not self._array.steps and (not storage.is_external or rely_on_flag(storage, OWNS))

    def _name(self, key: str) -> str:
        name = self._SHORT.get(key, key.lower())
        if name.startswith("_") or not hasattr(self, name):
            raise KeyError("Unknown flag")
        return name

    def __getitem__(self, key: str) -> bool:
        return bool(getattr(self, self._name(key)))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._name(key), value)


@implements(np.ndarray.flags)
def flags(x: TracedArray) -> TracedFlags:
    """x.flags"""
    made = TracedFlags(x)
    active_trace().outside.own[id(made)] = made
    return made


_REQUIREMENTS = {
    "C": "C", "CONTIGUOUS": "C", "C_CONTIGUOUS": "C", "F": "F", "FORTRAN": "F", "F_CONTIGUOUS": "F", "A": "A", "ALIGNED": "A",
    "W": "W", "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E",
}  # fmt: skip


@implements(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> TracedArray:
    wanted = {_REQUIREMENTS[name.upper()] for name in requirements or ()}
    if wanted >= {"C", "F"}:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = "F" if "F" in wanted else "C" if "C" in wanted else "A" if wanted else "K"
    made = call(np.array, a, dtype, copy=None, order=order)
    if "O" in wanted and made.storage.is_external:
        not_compiled("require", "that an array from outside owns its memory", "Copy it.")
    lacks = any(not TracedFlags(made)[flag] for flag in wanted & {"W", "O"})
    return call(np.array, made, order=order) if lacks else made


@implements(np.ndarray.setflags)
def setflags(x: TracedArray, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Of arrays that the function made; on a caller's array it would have to outlive the call."""
    if write is None or bool(write) == is_writeable(x):
        return
    if x.storage.of_object:
        refuse_lent()
    if x.slot is not None:
        not_compiled("ndarray.setflags", "on an argument or another array from outside", "Take a view first: x = x[...].")
    if write and not may_write(x):
        raise ValueError("cannot set WRITEABLE flag to True of this array")
    x.writeable = bool(write)


def may_write(x: TracedArray) -> bool:
    """Whether the memory of a read-only array can be written, in another way."""
    if any(step.op is ops.broadcast for step in x.steps):
        return False
    outside = active_trace().call[LiftedArrays].inputs.values()
    return not x.storage.is_external or any(tracer.storage is x.storage and tracer.writeable for _, tracer in outside)


@implements(np.ndarray.shape.__set__)  # type: ignore[attr-defined]  # a descriptor
def set_shape(x: TracedArray, shape: Any) -> None:
    """x.shape = shape, in place: other views of the memory keep theirs."""
    if x.slot is not None:
        not_compiled("ndarray.shape", "set on an argument or another array from outside", "Use y = x.reshape(...), a view.")
    changed = reshaped(x, complete_shape(shape, x.aval.size))
    if changed.storage is not x.storage:
        raise AttributeError(
            "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape."
        )
    _become(x, changed)


def _become(x: TracedArray, other: TracedArray) -> None:
    x.storage, x.steps, x.aval, x.layout = other.storage, other.steps, other.aval, other.layout


@implements(np.ndarray.flat.__set__)  # type: ignore[attr-defined]  # a descriptor
def set_flat(x: TracedArray, values: Any) -> None:
    """x.flat = values, repeated as often as needed."""
    TracedFlat(x)[:] = values


@implements(np.ndarray.resize)
def resize(x: TracedArray, *new_shape: Any, refcheck: Any = True) -> None:
    """In place, of an array that the function made and of which it has taken no view: that, NumPy finds out by counting."""
    wanted = new_shape[0] if len(new_shape) == 1 else new_shape
    if wanted is None or new_shape == ():
        return
    shape = complete_shape(wanted, -1 if isinstance(wanted, int) and wanted < 0 else prod(np.atleast_1d(wanted).tolist()))
    if not (x.is_contiguous or is_contiguous(x.sizes[::-1], x.layout[::-1])):
        raise ValueError("resize only works on single-segment arrays")
    if x.storage.is_external and not x.steps and shape != x.sizes:
        raise ValueError(
            "cannot resize an array that references or is referenced\nby another array in this way.\n"
            "Use the np.resize function or refcheck=False"
        )
    if shape == x.sizes:
        return
    if x.steps:
        raise ValueError("cannot resize this array: it does not own its data")
    count, line = prod(shape), reshape_value(read(x), (x.aval.size,))
    kept = repeated(line, min(count, x.aval.size))
    more = [constant(np.zeros(count - x.aval.size, x.dtype))] if count > x.aval.size else []
    filled = ops.concat(kept, *more, axis=0) if more else kept
    value = reshape_value(filled, shape)
    made = Storage(active_trace(), value)
    _become(x, TracedArray(made, (), value.aval, made.strides, True))


@implements(np.ndarray.partition)
def partition(x: TracedArray, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    """In place; sorted, which satisfies its contract."""
    assign(x, read(np.partition(x, kth, axis, kind, order)))  # type: ignore[call-overload]  # a tracer dispatches
