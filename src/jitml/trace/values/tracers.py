"""Tracers: what does user code see in a trace?  Stand-ins that behave as NumPy's arrays and scalars and Python's numbers do.

`TracedArray` is a window on a `Storage`; `TracedScalar` is what NumPy returns as a scalar: immutable; `TracedNumber`
is a weakly typed Python number (see `numbers.py`). This module says what may be seen without computing: shapes, dtypes, and what
is refused. Operators and methods that compute are put on the classes in `tracer_operators.py`; what they mean is looked up in
`registry`.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np

from jitml.config import CONFIG
from jitml.errors import Cause, TraceError
from jitml.ir import ops
from jitml.ir.dims import Dim
from jitml.ir.graph import Value
from jitml.ir.types import BOOL, Aval, is_complex
from jitml.trace.record.device_arrays import device_name
from jitml.trace.record.guards import Slot
from jitml.trace.record.recording import Trace, active_trace, current_trace, leaked, refuse, unsupported
from jitml.trace.record.user_code import makes_text
from jitml.trace.rewrite.driver_protocol import WantsArray
from jitml.trace.speculation import paths
from jitml.trace.storage.index_maps import Step
from jitml.trace.storage.storage import Faces, Storage, read_through
from jitml.trace.storage.strides import Ints, is_contiguous
from jitml.trace.symbolic.broadcasting import insist_at_least, is_single
from jitml.trace.symbolic.constants import constant_of
from jitml.trace.values.numbers import TracedNumber, of_size
from jitml.trace.values.registry import call, call_for_each_type, divided
from jitml.trace.values.type_unions import (
    NumberStandIn,
    doubt_of,
    is_pythons,
    require_number,
    same_value,
    types_of,
    value_as_it_is,
)

_NOT_A_BRANCH = "something that is not a branch or a loop of the jitted function needs the truth of a traced value"
_INSTEAD_OF_BRANCHES = (
    "np.where(condition, a, b) chooses between values; for max, min, sorted, all, any, and, or: np.maximum, np.minimum, np.sort, "
    "np.all, np.any, np.logical_and, np.logical_or."
)
_NOT_NUMBERS = {
    "tobytes": "makes bytes, which compiled programs do not know",
    "tofile": "writes a file, once, while the function is traced, and not at every call",
    "dump": "writes a file, once, while the function is traced, and not at every call",
    "dumps": "makes bytes, which compiled programs do not know",
    "data": "is the memory itself, which has no contents while the function is traced",
    "ctypes": "is the memory itself, which has no address while the function is traced",
    "__array_interface__": "is the memory itself, which has no address while the function is traced",
    "base": "is the array whose memory this one shares, which may be another one in compiled code",
}


def _is_integer(x: Tracer) -> Any:
    if x.dtype.kind != "f":
        return True
    return call(bool, call(np.logical_and, call(np.isfinite, x), call(np.equal, call(np.trunc, x), x)))


# Methods that NumPy's numbers have, and arrays have not.
_OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "is_integer": _is_integer,
    "bit_count": lambda x: call(int, call(np.bitwise_count, x)),
    "as_integer_ratio": lambda x: call(float, x).as_integer_ratio(),
}


class Tracer:
    """What TracedArray and TracedScalar share: NumPy's protocols, operators and methods, and the refusals."""

    __slots__ = ("__weakref__", "aval")
    aval: Aval

    @property
    def shape(self) -> tuple[Any, ...]:
        """As users see it: ints, and TracedNumbers for what only the running program knows."""
        return tuple(map(of_size, self.aval.shape))

    @property
    def sizes(self) -> Ints:
        """The shape with unknown sizes as Dims: what ops take."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def device(self) -> str:
        """Where the arrays of the program are."""
        return device_name(active_trace())

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        if stream is not None or device != self.device:
            np.empty(0).to_device(device, stream=stream)  # which raises what it raises
        return self

    @property
    def size(self) -> Any:
        return of_size(self.aval.size)

    @property
    def itemsize(self) -> int:
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return of_size(self.aval.size * self.itemsize)

    @property
    def T(self) -> Any:
        return call(np.transpose, self)

    @property
    def mT(self) -> Any:
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return call(np.swapaxes, self, -1, -2)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:  # NumPy always hands out a tuple
            outs = kwargs["out"]
            if any(isinstance(out, np.ndarray) and not is_traced(out) for out in outs):
                refuse_concrete_target()
            kwargs["out"] = outs[0] if len(outs) == 1 else outs
        return call(ufunc if method == "__call__" else getattr(ufunc, method), *inputs, **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return call(function, *args, **kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        if current_trace() is not None and active_trace().operation.takes_lists:
            raise WantsArray
        refuse(
            TraceError(
                f"a traced {self.aval} cannot become a concrete NumPy array while the function is being traced",
                remedy="Something here wants the numbers themselves: a NumPy function that cannot be traced, or library code. "
                "Compute this part outside the jitted function.",
            )
        )

    def __bool__(self) -> bool:
        if not is_single(self.aval.size):
            insist_at_least(self.aval.size, 1)
            if not self.aval.size:
                raise ValueError(
                    "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that it is not empty."
                )
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        return bool(self._concrete(_NOT_A_BRANCH, _INSTEAD_OF_BRANCHES))

    def __int__(self) -> int:
        return int(self._number("int()", "astype(int)"))

    def __float__(self) -> float:
        return float(self._number("float()", "astype(float)", is_taken=not makes_text(sys._getframe(1))))

    def __complex__(self) -> complex:
        return complex(self._number("complex()", "astype", is_taken=True))

    def _number(self, what: str, instead: str, *, is_taken: bool = False) -> Any:
        if self.ndim > 0:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        remedy = f"Keep it an array; .{instead} converts without leaving the compiled code."
        message = f"{what} of a traced value needs its number before it is computed"
        return self._concrete(message, remedy, is_taken=is_taken)

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(
            self._concrete(
                "a traced value is used as a Python integer (a shape, a range, a list index)",
                "Sizes and counts must be known before the call: pass them as Python ints, or take them from x.shape.",
            )
        )

    def item(self, *index: Any) -> Any:
        if len(index) == 1 and isinstance(index[0], tuple):
            (index,) = index
        chosen = self if not index else self[index] if len(index) > 1 or self.ndim == 1 else self.reshape((-1,))[index[0]]
        if not is_single(chosen.aval.size):
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        kind = {"b": bool, "f": float, "c": complex}.get(self.dtype.kind, int)
        return call(kind, chosen if not chosen.ndim else chosen.reshape(()))

    def tolist(self) -> Any:
        known = constant_of(self.contents())
        if known is not None:
            return known.tolist()
        if not self.aval.is_static or self.aval.size > CONFIG.max_unroll:
            if self.ndim == 1 and self.dtype.kind in "bif":
                return call(np.ndarray.tolist, self)
            unsupported(
                f".tolist() makes a Python number of every element ({self.aval})", "Work on the array itself.", Cause.UNROLLED
            )
        return [self[n].tolist() for n in range(self.shape[0])] if self.ndim else self.item()

    def _concrete(self, message: str, remedy: str, *, is_taken: bool = False) -> Any:
        """The value itself if it does not depend on arrays from outside; otherwise refused."""
        known = constant_of(self.contents())
        if known is None and self.aval.size == 1 and self.aval.is_static:
            value = self.contents() if not self.ndim else ops.reshape(self.contents(), shape=())
            return paths.number(value, f"{message} ({self.aval})", remedy, is_taken=is_taken)
        if known is None:
            unsupported(f"{message} ({self.aval})", remedy)
        return known.item()

    def __str__(self) -> str:  # noqa: PLE0307  # never returns
        unsupported(
            f"something that is not converted makes a text of a traced value ({self.aval})",
            "f-strings, str(), format() and print() in the jitted function itself are fine.",
        )

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def __reduce__(self) -> NoReturn:
        unsupported(f"a traced {self.aval} cannot be pickled")

    def __getitem__(self, index: Any) -> Any:
        return call(operator.getitem, self, index)

    def __getattr__(self, name: str) -> Any:
        kind = self.__class__
        if not name.startswith("_") and hasattr(kind, name):
            why = _NOT_NUMBERS.get(name, "is not supported in jitted code")
            unsupported(f"{kind.__name__}.{name} {why}", "Move this part out of the jitted function.")
        raise AttributeError(f"'numpy.{kind.__name__}' object has no attribute '{name}'")

    def __bytes__(self) -> bytes:  # which would ask for its elements one by one
        made: bytes = self.tobytes()  # refuses
        return made

    def conj(self) -> Any:
        return call(np.conjugate, self) if is_complex(self.dtype) else self

    conjugate = conj

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        return call(np.reshape, self, shape[0] if len(shape) == 1 else shape, order=order, copy=copy)

    def transpose(self, *axes: Any) -> Any:
        return call(np.transpose, self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    def __divmod__(self, other: Any) -> Any:
        return divided(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return divided(other, self)

    def __pow__(self, other: Any) -> Any:
        return call(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return call(np.power, other, self)


class TracedArray(Tracer):
    """A window on a storage: `storage` seen through `steps`; its `strides` count elements.

    `isinstance(x, np.ndarray)` holds. `__hash__` is None, as for arrays.
    """

    __slots__ = ("faces", "layout", "serial", "slot", "steps", "storage", "writeable")
    __hash__ = None  # type: ignore[assignment]  # arrays are unhashable

    def __init__(self, storage: Storage, steps: tuple[Step, ...], aval: Aval, layout: Ints, writeable: bool) -> None:
        self.storage = storage
        self.steps = steps
        self.aval = aval
        self.layout = layout  # strides in elements
        self.writeable = writeable
        self.slot: Slot | None = None  # where the host program has this very array; None for what the function makes, views too
        self.serial = next(Storage.count)  # which are older
        self.faces: Faces | None = None  # which objects it may be (`aliases.py`)

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return np.ndarray

    @property
    def strides(self) -> tuple[Any, ...]:
        in_bytes = (step * self.itemsize for step in self.layout)
        return tuple(of_size(step) if isinstance(step, Dim) else int(step) for step in in_bytes)

    @property
    def is_contiguous(self) -> bool:
        """C-contiguous in NumPy's memory."""
        return is_contiguous(self.sizes, self.layout)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return operator.index(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, item: Any) -> bool:
        return bool(call(np.any, call(np.equal, self, item)))

    def __setitem__(self, index: Any, value: Any) -> None:
        call(operator.setitem, self, index, value)

    def __copy__(self) -> Any:
        return call(np.ndarray.copy, self)

    def __deepcopy__(self, memo: Any) -> Any:
        return call(np.ndarray.copy, self)

    def contents(self) -> Value:
        """The current value, in the graph."""
        return read_through(self.storage, self.steps)


class TracedScalar(Tracer, NumberStandIn):
    """A NumPy scalar: one value, immutable, of its own storage-free kind. `isinstance(s, np.float64)` holds."""

    __slots__ = ("key", "trace", "value")

    def __init__(self, trace: Trace, value: Value) -> None:
        self.trace = trace
        self.value = value
        self.key: Any = None  # what it is taken to be, once it has been a key
        self.aval = value.aval

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return self.aval.dtype.type

    @property
    def strides(self) -> Ints:
        return ()

    def __getattr__(self, name: str) -> Any:
        if name in _OF_NUMBERS and hasattr(self.__class__, name):
            return partial(_OF_NUMBERS[name], self)
        return super().__getattr__(name)

    def __index__(self) -> int:
        if doubt_of(self) is not None and not all(hasattr(which, "__index__") for which in types_of(self)):
            return call_for_each_type(self, operator.index, self)
        return super().__index__()

    def __hash__(self) -> int:
        return hash(self.known())

    def known(self) -> Any:
        """The scalar itself, from now on assumed: whoever has seen its hash has to see the same one again."""
        if self.key is None and doubt_of(self) is not None:
            value, which = value_as_it_is(self)
            self.key = (TracedNumber.of_value if is_pythons(which) else TracedScalar)(self.trace, same_value(value)).known()
        if self.key is None:
            self.key = self.dtype.type(self._number("a dict key or set member made", "astype"))
        return self.key

    def __len__(self) -> int:
        raise TypeError(f"object of type '{self.__class__.__name__}' has no len()")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"'{self.__class__.__name__}' object is not iterable")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(f"'{self.__class__.__name__}' object does not support item assignment")

    def __copy__(self) -> TracedScalar:
        return self

    def __deepcopy__(self, memo: Any) -> TracedScalar:
        return self

    def copy(self, order: str = "C") -> TracedScalar:
        return self

    def contents(self) -> Value:
        """The value, in the graph.

        Raises:
            TraceError: the scalar has outlived its trace.
        """
        trace = active_trace()
        if (self.trace.closed or not self.trace.encloses(trace)) and not trace.sees(self.value):
            raise leaked(self.trace.builder)
        require_number(self)
        return self.value

    def __round__(self, digits: int | None = None) -> Any:
        if doubt_of(self) is not None:
            return call_for_each_type(self, round, self, digits)
        if self.dtype == BOOL:
            raise TypeError("type numpy.bool doesn't define __round__ method")
        if digits is None and self.dtype.kind == "f":
            return round(self._number("round()", "round()"))
        return call(np.round, self, digits or 0)


def is_traced(x: object) -> bool:
    """Whether x is a TracedArray, TracedScalar or TracedNumber."""
    return type(x) in (TracedArray, TracedScalar, TracedNumber)


def refuse_concrete_target() -> NoReturn:
    """A concrete array is written with a traced value, by code that was not converted."""
    unsupported(
        "a concrete array is written with a traced value in code that could not be converted",
        "Create the array inside the jitted function, or pass it as an argument.",
    )
