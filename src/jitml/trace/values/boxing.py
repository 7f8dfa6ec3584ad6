"""Boxing: how do implementations make and read what user code sees in a trace?  Arrays, scalars and views of values.

`read`, `fresh`, `scalar`, `wrap`, `view`, and `assign` of `array_writes.py`, are all that they need; `lift` is how a concrete
array gets in. How new arrays lie in memory stands here, too (`fresh_like`, `laid_out`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NoReturn

import numpy as np

from jitml.device.array import Array
from jitml.device.view import DeviceView
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder, Value
from jitml.ir.op import Op, active_recorder, recording
from jitml.ir.types import Aval, is_supported
from jitml.records import dataclass, field
from jitml.trace.record.array_memory import is_native, native_copy, same_view, view_of
from jitml.trace.record.device_arrays import is_on_device, shown_memory
from jitml.trace.record.guards import HostConst, Slot, extent
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace, leaked, unsupported
from jitml.trace.storage.index_maps import Step
from jitml.trace.storage.storage import Storage
from jitml.trace.storage.strides import Ints, c_strides, copied_strides, in_elements, is_contiguous, kept_strides, view_strides
from jitml.trace.values.numbers import TracedNumber
from jitml.trace.values.tracers import TracedArray, TracedScalar, Tracer, is_traced


def read(x: Any) -> Value:
    """The current value of a tracer; of an array, NumPy scalar, Python number or nested sequence of those, a value too.

    A concrete array enters as a hidden input, read again at every call; small literals and scalars as constants.

    Raises:
        UnsupportedError: objects, strings and other dtypes that are not compiled.
        TraceError: a tracer that outlived its trace.
    """
    kind = type(x)
    if kind in (TracedArray, TracedScalar):
        return x.contents()
    if kind is TracedNumber:
        return x.as_value()
    if kind is Value:
        return x
    if kind is np.ndarray or kind is Array:
        return read(lift(x))
    return constant(x)


def constant(x: Any) -> Value:
    """A literal in the graph being recorded."""
    array = np.asarray(x)
    if not is_supported(array.dtype):
        refuse_dtype(array)
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray:
        refuse_dtype(x)
    recorder = active_recorder()
    if not isinstance(recorder, GraphBuilder):
        raise leaked()
    return recorder.constant(array)


@dataclass
class LiftedArrays(CallPart):
    """Arrays from outside.

    known: what stands for them, by id; the host program keeps them alive.
    inputs: those that are inputs of the graph, and what stands for them.
    views: of these, by the memory that they show (`view_of`).
    again: by id of what stands for an array, other slots that hold it, and its own.
    shown: arrays on devices, by id and slot, and what stands for them.
    """

    known: dict[int, TracedArray] = field(default_factory=dict)
    inputs: dict[Slot, tuple[np.ndarray[Any, Any], TracedArray]] = field(default_factory=dict)
    views: dict[Hashable, Slot] = field(default_factory=dict)
    again: dict[int, list[tuple[Slot, Slot]]] = field(default_factory=dict)
    shown: dict[tuple[int, Slot | None], tuple[Array, TracedArray]] = field(default_factory=dict)

    def written(self) -> list[tuple[Slot, np.ndarray[Any, Any], Storage]]:
        """The inputs that the function has written."""
        return [(slot, array, x.storage) for slot, (array, x) in self.inputs.items() if x.storage.mutated]


def lift(array: Any, slot: Slot | None = None, position: int | None = None) -> TracedArray:
    """The TracedArray of a concrete array met in a trace, on a device or not; its contents are read anew at every call.

    One storage per piece of memory: the same view met twice is one array. `slot` is where the host program finds
    the array; without one it is always this very object. `position` is its place among the arguments, if it is one.
    """
    root = active_trace().root
    lifted = root.call[LiftedArrays]
    if is_on_device(array):
        return _lift_from_device(root, array, slot)
    known = lifted.known.get(id(array))
    host = root.host
    if known is not None:
        if slot is not None:
            meet_again(known, slot)
        return known
    if type(array) not in (np.ndarray, DeviceView) or not is_supported(array.dtype.newbyteorder("=")):
        refuse_dtype(array, "" if slot is None else host.name(slot))
    if slot is None:
        slot = host.hold(array, "an array")
    places = [] if position is None else [(position, axis) for axis in range(array.ndim)]
    opened = {place[1]: place for place in places if place in root.inputs.opened}
    if opened:
        host.require_open_array(slot, array, opened)
    else:
        host.require_array(slot, array)
    view = view_of(array)
    if (other := lifted.views.get(view)) is not None:
        tracer = lifted.inputs[other][1]
        host.require_same_view(slot, other, same_view)
        if array.flags.writeable != tracer.writeable:
            host.require_writeable(slot, array.flags.writeable)
        twin = TracedArray(tracer.storage, (), tracer.aval, tracer.layout, array.flags.writeable)
        lifted.known[id(array)] = twin
        twin.slot = slot
        return twin
    shape: Any = array.shape
    for axis, place in opened.items():
        size = root.open_size(place, host.compute(extent, (slot, HostConst(axis))), array.shape[axis])
        shape = (*shape[:axis], size, *shape[axis + 1 :])
    entry = slot
    aval = Aval(shape, np.dtype(array.dtype.type))
    is_dense = array.flags.c_contiguous
    layout = c_strides(shape) if opened and is_dense else in_elements(array.strides, array.itemsize)
    if not is_native(array) or (opened and not is_dense):
        entry = host.compute(native_copy, (slot,), host.name(slot))
    if opened:
        host.require_layout(slot, array, is_aligned=entry == slot)
    storage = Storage(root, _input(root, aval, entry), strides=layout, slot=slot, entry=entry)
    known = lifted.known[id(array)] = TracedArray(storage, (), aval, layout, array.flags.writeable)
    lifted.inputs[slot] = (array, known)
    root.inputs.arrays[entry] = array
    lifted.views[view] = slot
    known.slot = slot
    return known


def _lift_from_device(root: Trace, array: Array, slot: Slot | None) -> TracedArray:
    known = root.call[LiftedArrays].shown
    place = id(array), slot
    if place not in known:
        found = shown_memory(root, array, root.host.hold(array, "an array") if slot is None else slot)
        known[place] = array, lift(*found)
    return known[place][1]


def meet_again(array: TracedArray, slot: Slot) -> None:
    """An array from outside is in another place as well. That it is one object matters to those who can tell (`require_one`)."""
    root, own = array.storage.trace.root, array.slot
    if own is None:
        array.slot = slot
    elif slot != own:
        root.host.require_same_view(slot, own, same_view)
        root.call[LiftedArrays].again.setdefault(id(array), []).append((slot, own))


def require_one(array: TracedArray) -> None:
    """All places that hold this array hold one object, and not two that show the same memory."""
    root = array.storage.trace.root
    for slot, own in root.call[LiftedArrays].again.get(id(array), ()):
        root.host.require_identity(slot, own, True)


def _input(root: Trace, aval: Aval, entry: Slot) -> Value:
    """An array as the graph gets it: flat if only the running program knows its strides."""
    if all(isinstance(n, int) for n in aval.shape[1:]):
        return root.add_input(aval, entry)
    flat = root.add_input(aval.with_shape((aval.size,)), entry)
    with recording(root.builder):
        value: Value = ops.reshape(flat, shape=aval.shape)
    return value


def refuse_dtype(x: Any, name: str = "") -> NoReturn:
    """No array of this kind can be compiled. `name`: how users write it, if it has a name."""
    dtype, name = getattr(x, "dtype", None), f"{name}: " if name else ""
    if type(x) is not np.ndarray and isinstance(x, np.ndarray):
        is_masked = isinstance(x, np.ma.MaskedArray)
        remedy = "Use x.filled(value): np.asarray(x) would forget the mask." if is_masked else "Use np.asarray(x)."
        kind: type = x.__class__  # that of the object itself, where x stands for one
        unsupported(f"{name}arrays of {kind.__module__}.{kind.__qualname__} are not supported", remedy)
    if dtype is not None and dtype.kind in "OSUV":
        unsupported(
            f"{name}an array of {dtype} is not supported: only numbers are compiled", "Do this part outside the jitted function."
        )
    unsupported(
        f"{name}dtype {dtype} is not supported: jitml compiles bool, integers, float16, float32, float64, complex64 and "
        "complex128",
        "Convert the array with .astype(...) before the jitted call, or leave this part outside jit.",
    )


def fresh(value: Value, strides: Ints | None = None) -> TracedArray:
    """A new array holding `value`; `strides` (in elements) where NumPy would not make it C-contiguous."""
    storage = Storage(active_trace(), value, strides=strides)
    return TracedArray(storage, (), value.aval, storage.strides, True)


def fresh_like(value: Value, *operands: Any) -> TracedArray:
    """A new array, in memory as NumPy lays out one that is computed from these operands (`order="K"`)."""
    layouts = [layout_of(x) for x in operands if type(x) in (TracedArray, np.ndarray)]
    return fresh(value, kept_strides(layouts, value.shape)) if layouts else fresh(value)


def layout_of(x: TracedArray | np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Shape, and strides in elements."""
    return (x.sizes, x.layout) if type(x) is TracedArray else (x.shape, in_elements(x.strides, x.itemsize))


def laid_out(value: Value, x: Any, order: str | None) -> TracedArray:
    """A new array with contents computed from x, in memory as `order` says.

    Raises:
        ValueError: there is no such order.
    """
    order = named_order(order)
    if order == "F" or (order == "A" and type(x) is TracedArray and is_fortran(x)):
        return fresh(value, tuple(reversed(c_strides(value.shape[::-1]))))
    if order != "K" or type(x) not in (TracedArray, np.ndarray):
        return fresh(value)
    return fresh(value, copied_strides(layout_of(x), value.shape))


def named_order(order: str | None) -> str:
    """An `order=` argument: C, F, A or K (which None is, too)."""
    if order is not None and order.upper() not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    return "K" if order is None else order.upper()


def lies_in(x: TracedArray, order: str | None) -> bool:
    """Whether memory has this order already."""
    order = named_order(order)
    if order == "A":
        return x.is_contiguous or is_fortran(x)
    if order == "C":
        return x.is_contiguous
    return order != "F" or is_contiguous(x.sizes[::-1], x.layout[::-1])


def is_fortran(x: TracedArray) -> bool:
    """Whether x lies in memory by columns, and not by rows too."""
    return not x.is_contiguous and is_contiguous(x.sizes[::-1], x.layout[::-1])


def scalar(value: Value) -> TracedScalar:
    """The NumPy scalar holding a value of shape ()."""
    assert value.shape == (), f"a scalar of shape {value.shape}"
    return TracedScalar(active_trace(), value)


def wrap(value: Value) -> TracedArray | TracedScalar:
    """What NumPy's functions return: a scalar for shape (), else a new array."""
    return scalar(value) if value.shape == () else fresh(value)


def view(x: TracedArray, op: Op, *starts: Value, **params: Any) -> TracedArray:
    """`x` seen through an index map (`ops.slice`, `dynamic_slice`, `flip`, `transpose`, `reshape`, `broadcast`).

    Writes through the result reach x, and the other way about. A broadcast is read-only. A reshape that NumPy would
    answer with a copy (because of x's strides) is one here.

    Args:
        starts: of a `dynamic_slice`.
    """
    aval = op.aval(x.aval, *(start.aval for start in starts), **params)
    assert isinstance(aval, Aval)
    layout = view_strides(op, params, x.sizes, x.layout)
    if layout is None:
        return fresh(op(read(x), **params))
    writeable = x.writeable and op is not ops.broadcast
    return TracedArray(x.storage, (*x.steps, Step(op, params, x.aval, starts)), aval, layout, writeable)


__all__ = [
    "TracedArray",
    "TracedNumber",
    "TracedScalar",
    "Tracer",
    "constant",
    "fresh",
    "fresh_like",
    "is_fortran",
    "is_traced",
    "laid_out",
    "layout_of",
    "lies_in",
    "lift",
    "named_order",
    "read",
    "refuse_dtype",
    "scalar",
    "view",
    "wrap",
]  # fmt: skip
