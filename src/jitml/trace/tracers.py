"""What does user code see in a trace?  Stand-ins that behave as NumPy's arrays and scalars and Python's numbers do.

`TracedArray` is a window on a `Storage`; `TracedScalar` is what NumPy returns as a scalar: immutable; `TracedNumber`
is a weakly typed Python number (see `numbers.py`). What their methods and operators compute is looked up in `registry`; this
module decides what may be seen without computing: shapes, dtypes, views, and what is refused.

`read`, `fresh`, `scalar`, `wrap`, `view`, `assign` are all that implementations need.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from jitml.errors import DTypeError, ShapeError, TraceError
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder, Value
from jitml.ir.op import Op, active_recorder, recording
from jitml.ir.types import Aval, is_supported
from jitml.trace.broadcasting import common_sizes, stretch
from jitml.trace.context import Trace, active_trace, leaked, refuse, unsupported
from jitml.trace.host import Const, Slot, extent
from jitml.trace.known import constant_of
from jitml.trace.memory import is_native, native_copy, same_view
from jitml.trace.numbers import TracedNumber, of_size
from jitml.trace.registry import call
from jitml.trace.storage import (
    Ints,
    Step,
    Storage,
    c_strides,
    is_contiguous,
    kept_strides,
    read_through,
    surely_contiguous,
    view_strides,
    write_through,
)

_NOT_A_BRANCH = "something that is not a branch or a loop of the jitted function needs the truth of a traced value"
_INSTEAD_OF_BRANCHES = (
    "np.where(condition, a, b) chooses between values; for max, min, sorted, all, any, and, or: np.maximum, np.minimum, np.sort, "
    "np.all, np.any, np.logical_and, np.logical_or."
)


class Traced:
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

    @property
    def real(self) -> Any:
        return self

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
        refuse(
            TraceError(
                f"a traced {self.aval} cannot become a concrete NumPy array while the function is being traced",
                remedy="Something here wants the numbers themselves: a NumPy function that cannot be traced, or library code. "
                "Compute this part outside the jitted function.",
            )
        )

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            if not self.aval.size:
                raise ValueError(
                    "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that it is not empty."
                )
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        return bool(self._concrete(_NOT_A_BRANCH, _INSTEAD_OF_BRANCHES))

    def __int__(self) -> int:
        return int(self._number("int()", "astype(int)"))

    def __float__(self) -> float:
        return float(self._number("float()", "astype(float)"))

    def __complex__(self) -> complex:
        return complex(self._number("complex()", "astype"))

    def _number(self, what: str, instead: str) -> Any:
        if self.ndim > 0:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        remedy = f"Keep it an array; .{instead} converts without leaving the compiled code."
        return self._concrete(f"{what} of a traced value needs its number before it is computed", remedy)

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
        chosen = self if not index else self[index if len(index) > 1 else index[0]]
        if chosen.aval.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        kind = {"b": bool, "f": float}.get(self.dtype.kind, int)
        return call(kind, chosen if not chosen.ndim else chosen.reshape(()))

    def tolist(self) -> Any:
        return self._concrete(
            ".tolist() needs the numbers before they are computed", "Return the array and convert it outside.", as_list=True
        )

    def _concrete(self, message: str, remedy: str, *, as_list: bool = False) -> Any:
        """The value itself if it does not depend on arrays from outside; otherwise refused."""
        known = constant_of(read(self))
        if known is None:
            unsupported(f"{message} ({self.aval})", remedy)
        return known.tolist() if as_list else known.item()

    def __str__(self) -> str:  # noqa: PLE0307  # never returns
        unsupported("printing or formatting a traced value is not supported yet", "Return the value and print it outside.")

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    def __reduce__(self) -> NoReturn:
        unsupported(f"a traced {self.aval} cannot be pickled")

    def __getitem__(self, index: Any) -> Any:
        return call(operator.getitem, self, index)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            unsupported(f"ndarray.{name} is not supported in jitted code", "Move this part out of the jitted function.")
        raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")

    def conj(self) -> Any:
        return self

    conjugate = conj

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        return call(np.reshape, self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        return call(np.transpose, self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, mod: Any = None) -> Any:
        return call(operator.pow, self, other)

    def __rpow__(self, other: Any, mod: Any = None) -> Any:
        return call(np.power, other, self)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "lshift": np.left_shift, "rshift": np.right_shift, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "matmul": np.matmul,
}  # fmt: skip
COMPARE = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
# Methods whose meaning is that of a function, with the array first.
METHODS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "clip", "compress",
    "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "put", "ravel", "repeat", "round",
    "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
)  # fmt: skip
# Methods that only arrays have.
ARRAY_METHODS = ("partition", "resize", "setflags", "view")


class TracedArray(Traced):
    """A window on a storage: `storage` seen through `steps`; its `strides` count elements.

    `isinstance(x, np.ndarray)` holds. `__hash__` is None, as for arrays.
    """

    __slots__ = ("layout", "steps", "storage", "writeable")
    __hash__ = None  # type: ignore[assignment]  # arrays are unhashable

    def __init__(self, storage: Storage, steps: tuple[Step, ...], aval: Aval, layout: Ints, writeable: bool) -> None:
        self.storage = storage
        self.steps = steps
        self.aval = aval
        self.layout = layout  # strides in elements
        self.writeable = writeable

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return np.ndarray

    @property
    def strides(self) -> tuple[Any, ...]:
        return tuple(of_size(s * self.itemsize) for s in self.layout)

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

    def __ipow__(self, other: Any, mod: Any = None) -> Any:
        return assign_cast(self, call(operator.pow, self, other), "power")

    def __contains__(self, item: Any) -> bool:
        return bool(call(np.any, call(np.equal, self, item)))

    def __setitem__(self, index: Any, value: Any) -> None:
        call(operator.setitem, self, index, value)

    def __copy__(self) -> TracedArray:
        return fresh(read(self))

    def __deepcopy__(self, memo: Any) -> TracedArray:
        return fresh(read(self))

    def copy(self, order: str = "C") -> TracedArray:
        return self._laid_out(read(self), order)

    def _laid_out(self, value: Value, order: str) -> TracedArray:
        """A new array with contents computed from this one, in memory as `order` says."""
        if order == "F" or (order == "A" and self._is_fortran):
            return fresh(value, tuple(reversed(c_strides(value.shape[::-1]))))
        return fresh_like(value, self) if order == "K" else fresh(value)

    @property
    def _is_fortran(self) -> bool:
        return is_contiguous(self.sizes[::-1], self.layout[::-1]) and not self.is_contiguous

    def flatten(self, order: str = "C") -> TracedArray:
        if order == "K" and not self.is_contiguous and not self._is_fortran:
            unsupported("flatten(order='K') of an array that is not contiguous is not supported", "Say which order: 'C' or 'F'.")
        by_columns = order == "F" or (order in "AK" and self._is_fortran)
        return fresh(ops.reshape(read(self.T if by_columns else self), shape=(self.aval.size,)))

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool | None = True
    ) -> TracedArray:
        target = np.dtype(dtype)
        if not np.can_cast(self.dtype, target, casting):  # type: ignore[arg-type]  # casting's literals are checked by NumPy
            raise TypeError(f"Cannot cast array data from {self.dtype!r} to {target!r} according to the rule '{casting}'")
        if target == self.dtype and not copy:
            return self
        value = read(self) if target == self.dtype else ops.convert(read(self), dtype=target)
        return self._laid_out(value, order)

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, axis: int = -1, kind: str | None = None, order: Any = None, *, stable: bool | None = None) -> None:
        assign(self, read(call(np.sort, self, axis, kind, order, stable=stable)))


class TracedScalar(Traced):
    """A NumPy scalar: one value, immutable, of its own storage-free kind. `isinstance(s, np.float64)` holds."""

    __slots__ = ("trace", "value")

    def __init__(self, trace: Trace, value: Value) -> None:
        self.trace = trace
        self.value = value
        self.aval = value.aval

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return self.aval.dtype.type

    @property
    def strides(self) -> Ints:
        return ()

    def __hash__(self) -> int:
        return hash(self._number("a dict key or set member made", "astype"))

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

    def flatten(self, order: str = "C") -> TracedArray:
        return fresh(ops.reshape(read(self), shape=(1,)))

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool | None = True
    ) -> TracedScalar:
        target = np.dtype(dtype)
        return self if target == self.dtype else scalar(ops.convert(read(self), dtype=target))

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None and self.dtype.kind == "f":
            return round(self._number("round()", "round()"))
        return call(np.round, self, digits or 0)


def is_traced(x: object) -> bool:
    """Whether x is a TracedArray, TracedScalar or TracedNumber."""
    return type(x) in (TracedArray, TracedScalar, TracedNumber)


def read(x: Any) -> Value:
    """The current value of a tracer; of an array, NumPy scalar, Python number or nested sequence of those, a value too.

    A concrete array enters as a hidden input, read again at every call; small literals and scalars as constants.

    Raises:
        UnsupportedError: objects, strings and other dtypes that are not compiled.
        TraceError: a tracer that outlived its trace.
    """
    kind = type(x)
    if kind is TracedArray:
        return read_through(x.storage, x.steps)
    if kind is TracedScalar:
        if x.trace.closed or not x.trace.encloses(active_trace()):
            raise leaked()
        return x.value
    if kind is TracedNumber:
        return x.as_value()
    if kind is Value:
        return x
    if kind is np.ndarray:
        return read(lift(x))
    return constant(x)


def constant(x: Any) -> Value:
    """A literal in the graph being recorded."""
    array = np.asarray(x)
    if not is_supported(array.dtype):
        refuse_dtype(array)
    recorder = active_recorder()
    if not isinstance(recorder, GraphBuilder):
        raise leaked()
    return recorder.constant(array)


def lift(array: np.ndarray[Any, Any], slot: Slot | None = None, position: int | None = None) -> TracedArray:
    """The TracedArray of a concrete array met in a trace; its contents are read anew at every call.

    One storage per piece of memory: the same view met twice is one array. `slot` is where the host program finds
    the array; without one it is always this very object. `position` is its place among the arguments, if it is one.
    """
    root = active_trace().root
    known: TracedArray | None = root.lifted.get(id(array))
    host = root.host
    if known is not None:
        if slot is not None and slot != known.storage.slot:
            host.require_same_view(slot, known.storage.slot, same_view)
        return known
    if type(array) not in (np.ndarray, np.memmap) or not is_supported(array.dtype.newbyteorder("=")):
        refuse_dtype(array)
    if slot is None:
        slot = host.hold(array, "an array")
    places = [] if position is None else [(position, axis) for axis in range(array.ndim)]
    opened = {place[1]: place for place in places if place in root.opened}
    if opened:
        host.require_open_array(slot, array, opened)
    else:
        host.require_array(slot, array)
    for other, (concrete, tracer) in root.arrays.items():
        if same_view(array, concrete):
            host.require_same_view(slot, other, same_view)
            twin = TracedArray(tracer.storage, (), tracer.aval, tracer.layout, array.flags.writeable)
            root.lifted[id(array)] = twin
            return twin
    shape: Any = array.shape
    for axis, place in opened.items():
        size = root.open_size(place, host.compute(extent, (slot, Const(axis))), array.shape[axis])
        shape = (*shape[:axis], size, *shape[axis + 1 :])
    entry = slot
    aval = Aval(shape, array.dtype.newbyteorder("="))
    layout = tuple(s // array.itemsize for s in array.strides)
    if not is_native(array) or (opened and not array.flags.c_contiguous):
        entry = host.compute(native_copy, (slot,), host.name(slot))
        layout = c_strides(shape)
    elif opened:
        host.require_dense(slot)
        layout = c_strides(shape)
    storage = Storage(root, _input(root, aval, entry), strides=layout, slot=slot, entry=entry)
    known = root.lifted[id(array)] = TracedArray(storage, (), aval, layout, array.flags.writeable)
    root.arrays[slot] = (array, known)
    return known


def _input(root: Trace, aval: Aval, entry: Slot) -> Value:
    """An array as the graph gets it: flat if only the running program knows its strides."""
    if all(isinstance(n, int) for n in aval.shape[1:]):
        return root.add_input(aval, entry)
    flat = root.add_input(aval.with_shape((aval.size,)), entry)
    with recording(root.builder):
        value: Value = ops.reshape(flat, shape=aval.shape)
    return value


def refuse_dtype(x: Any) -> NoReturn:
    """No array of this kind can be compiled."""
    dtype = getattr(x, "dtype", None)
    if type(x) is not np.ndarray and isinstance(x, np.ndarray):
        unsupported(f"arrays of {type(x).__module__}.{type(x).__qualname__} are not supported", "Use np.asarray(x).")
    if dtype is not None and dtype.kind in "OSUV":
        unsupported(
            f"an array of {dtype} is not supported: only numbers are compiled", "Do this part outside the jitted function."
        )
    unsupported(
        f"dtype {dtype} is not supported: jitml compiles bool, integers and float16, float32, float64",
        "Convert the array with .astype(...) before the jitted call, or leave this part outside jit.",
    )


def refuse_concrete_target() -> NoReturn:
    """A concrete array is written with a traced value, by code that was not converted."""
    unsupported(
        "a concrete array is written with a traced value in code that could not be converted",
        "Create the array inside the jitted function, or pass it as an argument.",
    )


def fresh(value: Value, strides: Ints | None = None) -> TracedArray:
    """A new array holding `value`; `strides` (in elements) where NumPy would not make it C-contiguous."""
    storage = Storage(active_trace(), value, strides=strides)
    return TracedArray(storage, (), value.aval, storage.strides, True)


def fresh_like(value: Value, *operands: Any) -> TracedArray:
    """A new array, in memory as NumPy lays out one that is computed from these operands (`order="K"`)."""
    layouts = [(x.sizes, x.layout) for x in operands if type(x) is TracedArray]
    if not layouts or all(surely_contiguous(*layout) for layout in layouts):
        return fresh(value)
    return fresh(value, kept_strides(layouts, value.shape))


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


def assign(x: TracedArray, value: Value) -> None:
    """Replace x's contents; the value's aval must be x's own.

    Raises:
        ValueError: x is read-only, in NumPy's words.
    """
    if not x.writeable:
        raise ValueError("assignment destination is read-only")
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
    if not x.writeable:
        raise ValueError("output array is read-only")
    value = read(result)
    if not np.can_cast(value.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"Cannot cast ufunc '{name}' output from {value.dtype!r} to {x.dtype!r} with casting rule 'same_kind'")
    if value.shape != x.sizes:
        common = common_sizes(value.shape, x.sizes)
        if value.ndim > x.ndim or any(m == 1 and n != 1 for m, n in zip(x.sizes, common)):
            raise ValueError(
                f"non-broadcastable output operand with shape {_shape_text(x.sizes)} "
                f"doesn't match the broadcast shape {_shape_text(common)}"
            )
        value = stretch(value, x.sizes)
    assign(x, value if value.dtype == x.dtype else ops.convert(value, dtype=x.dtype))
    return x


def _shape_text(shape: Ints) -> str:
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _install() -> None:
    def binary(function: Any) -> Any:
        return lambda self, other: call(function, self, other)

    def reflected(function: Any) -> Any:
        return lambda self, other: call(function, other, self)

    def in_place(function: Any) -> Any:
        return lambda self, other: assign_cast(self, call(function, self, other), function.__name__)

    def unary(function: Any) -> Any:
        return lambda self: call(function, self)

    def method(home: Any, name: str) -> Any:
        function = getattr(home, name)
        return lambda self, *args, **kwargs: call(function, self, *args, **kwargs)

    for name, function in BINARY.items():
        setattr(Traced, f"__{name}__", binary(function))
        setattr(Traced, f"__r{name}__", reflected(function))
    for name, function in BINARY.items():
        setattr(TracedArray, f"__i{name}__", in_place(function))
    for name, function in COMPARE.items():
        setattr(Traced, f"__{name}__", binary(function))
    for name, function in UNARY.items():
        setattr(Traced, f"__{name}__", unary(function))
    for name in METHODS:
        setattr(Traced, name, method(np, name))
    for name in ARRAY_METHODS:
        setattr(TracedArray, name, method(np.ndarray, name))
    Traced.imag = property(method(np.ndarray, "imag"))  # type: ignore[attr-defined]  # declared here, as all others
    for name in ("flags", "flat", "shape"):
        getter = vars(Traced)["shape"].fget if name == "shape" else method(np.ndarray, name)
        setter = getattr(np.ndarray, name).__set__
        setattr(TracedArray, name, property(getter, functools.partial(call, setter)))


_install()

__all__ = [
    "Traced", "TracedArray", "TracedNumber", "TracedScalar", "assign", "assign_cast", "constant", "fresh", "fresh_like",
    "is_traced", "lift", "read", "refuse_dtype", "scalar", "view", "wrap",
]  # fmt: skip
