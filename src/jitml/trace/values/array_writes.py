"""Writes to traced arrays: may one be written, and how is all of it replaced?  `numpy/` decides what `x[i] = v` changes."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from jitml.errors import DTypeError, LentMemory, ShapeError
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.trace.record.guards import WRITEABLE
from jitml.trace.record.recording import active_trace, refuse
from jitml.trace.storage.index_maps import Step
from jitml.trace.storage.storage import Storage, write_through
from jitml.trace.storage.strides import Ints
from jitml.trace.symbolic.broadcasting import common_sizes, never_equal, stretch
from jitml.trace.values.boxing import LiftedArrays, read
from jitml.trace.values.tracers import TracedArray, is_traced, refuse_concrete_target

_AS_WRITEABLE = {ops.slice, ops.dynamic_slice, ops.flip, ops.transpose, ops.reshape}


def is_writeable(x: TracedArray) -> bool:
    """What NumPy says: an object's own array, which the program does not write, may be written.

    That an array from outside is read-only holds at each call that the program answers.
    """
    if x.writeable:
        return True
    rely_on_flag(x.storage, WRITEABLE)
    return x.storage.of_object and all(type(step) is Step and step.op in _AS_WRITEABLE for step in x.steps)


def rely_on_flag(storage: Storage, bit: int) -> bool:
    """Whether an array from outside has a flag, as it then has to be at each call that the program answers."""
    root = active_trace().root
    array, _ = root.call[LiftedArrays].inputs.get(storage.slot, (None, None))
    if type(array) is not np.ndarray:  # the function has made it, or it is on a device
        return False
    holds = bool(array.flags.num & bit)
    root.host.require_flag(storage.slot, bit, holds)
    return holds


def require_writeable(x: TracedArray, message: str) -> None:
    """Raise what NumPy raises where an array is written that is read-only, and `LentMemory` where it is not in NumPy."""
    if x.writeable:
        return
    if is_writeable(x):
        refuse_lent()
    raise ValueError(message)


def refuse_lent() -> NoReturn:
    """Refuse to write an array that shows memory of a library's object.

    Raises:
        LentMemory: always.
    """
    refuse(LentMemory("an array is written, or set read-only, that shows memory of a library's object"))


def assign(x: TracedArray, value: Value) -> None:
    """Replace x's contents; the value's aval must be x's own.

    Raises:
        ValueError: x is read-only, in NumPy's words.
    """
    require_writeable(x, "assignment destination is read-only")
    if value.aval != x.aval:
        raise ShapeError(f"an array of {x.aval} cannot be assigned {value.aval}")
    write_through(x.storage, x.steps, value)


def assign_cast(x: Any, result: Any, name: str) -> Any:
    """Write a ufunc's result to `out=x` (and so of `x += y`): same-kind casts only, x's shape decides. Returns x.

    Raises:
        DTypeError, ValueError: in NumPy's words.
    """
    if type(x) is not TracedArray:
        if isinstance(x, np.ndarray) and not is_traced(x):
            refuse_concrete_target()
        raise TypeError("return arrays must be of ArrayType")
    require_writeable(x, "output array is read-only")
    value = read(result)
    if not np.can_cast(value.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"Cannot cast ufunc '{name}' output from {value.dtype!r} to {x.dtype!r} with casting rule 'same_kind'")
    if value.shape != x.sizes:
        common = common_sizes(value.shape, x.sizes)
        if value.ndim > x.ndim or any(m == 1 and never_equal(n, 1) for m, n in zip(x.sizes, common)):
            raise ValueError(
                f"non-broadcastable output operand with shape {_shape_text(x.sizes)} "
                f"doesn't match the broadcast shape {_shape_text(common)}"
            )
        value = stretch(value, x.sizes)
    assign(x, value if value.dtype == x.dtype else ops.convert(value, dtype=x.dtype))
    return x


def _shape_text(shape: Ints) -> str:
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
