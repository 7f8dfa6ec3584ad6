"""Device arrays: `Array`, an array whose memory is on a device and which NumPy's functions compute with there.

Metadata and basic views are a `DeviceView`'s; all that needs elements is compiled, an operation at a time (`operations.py`).
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.device.memory import ArrayDevice, HostArray, MemoryBlock, new_block
from jitml.device.operations import apply, install, namespace
from jitml.device.registry import CPU, device_named
from jitml.device.view import DeviceView, address, block_of, device_of, device_view, fetch, store
from jitml.diagnostics.tracebacks import entry
from jitml.imports.late import late

if TYPE_CHECKING:
    from jitml.device import dlpack
else:
    dlpack = late("jitml.device.dlpack")


_BASIC = (int, np.integer, slice, EllipsisType, type(None))
_SMALL = 100  # elements that are shown
_LEGACY_STREAM = 1  # what others use who name no stream


class Array:
    """An array on a device, such as a GPU. `jitml.asarray(x, device="cuda")` makes one; on the CPU, arrays are NumPy's.

    NumPy's functions, operators and methods compute with it on the device, and so do jitted functions. Their results are arrays
    there. What NumPy would return as a scalar is an array of shape ().

    Calls return before the device is done. What takes values to the host waits for it: `numpy.asarray(x)`, `x.item()`,
    `float(x)`, `if x:`, printing a small array. It also raises what has gone wrong on the device.
    """

    __slots__ = ("__weakref__", "_device", "_view")
    _view: DeviceView
    _device: ArrayDevice
    __hash__ = None  # type: ignore[assignment]  # as of NumPy's arrays, `==` compares elements
    __array_priority__ = 1000

    if TYPE_CHECKING:  # what `install` adds

        def __getattr__(self, name: str) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = operator.add
        __pow__ = __mod__ = __floordiv__ = __and__ = __or__ = __xor__ = __lt__ = __le__ = __gt__ = __ge__ = operator.add
        __neg__ = __pos__ = __abs__ = __invert__ = operator.neg

    def __init__(self) -> None:
        raise TypeError('an Array is made by jitml.asarray(x, device="cuda"), or by what computes on a device')

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._view.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._view.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, for each axis."""
        return self._view.strides

    @property
    def ndim(self) -> int:
        return self._view.ndim

    @property
    def size(self) -> int:
        return self._view.size

    @property
    def itemsize(self) -> int:
        return self._view.itemsize

    @property
    def nbytes(self) -> int:
        return self._view.nbytes

    @property
    def device(self) -> str:
        """The name of the device: `cuda`."""
        return self._device.name

    @entry
    def to_device(self, device: str, /, *, stream: object = None) -> Any:
        """This array if it is there already, else a copy: on the CPU, a NumPy array.

        Args:
            stream: None; jitml's arrays have one stream.
        """
        if stream is not None:
            raise ValueError(f"to_device: arrays of jitml have one stream; stream={stream!r} cannot be used")
        if device == self.device:
            return self
        if device == CPU:
            return fetch(self._view)
        return to_device(fetch(self._view), device_named(device))

    @property
    def T(self) -> Array:
        return array_of(self._view.T)

    @property
    def mT(self) -> Array:
        """The matrices of a stack transposed."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return array_of(self._view.swapaxes(-1, -2))

    @entry
    def transpose(self, *axes: Any) -> Array:
        return array_of(self._view.transpose(*axes))

    @entry
    def swapaxes(self, first: int, second: int) -> Array:
        return array_of(self._view.swapaxes(first, second))

    @entry
    def squeeze(self, axis: Any = None) -> Array:
        return array_of(self._view.squeeze(axis))

    @entry
    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """A view where strides allow it, else a copy."""
        if not copy:
            try:
                return array_of(self._view.reshape(*shape, order=order))
            except ValueError:
                if copy is False:
                    raise
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return apply(np.reshape, self.copy(), tuple(wanted), order=order)

    def ravel(self, order: Any = "C") -> Any:
        return self.reshape(-1, order=order)

    @entry
    def __getitem__(self, key: Any) -> Any:
        """A view for basic indices; one element, which is a scalar in NumPy, and what arrays index are copies."""
        items = key if isinstance(key, tuple) else (key,)
        if all(isinstance(item, _BASIC) and not isinstance(item, bool) for item in items):
            view = self._view[key]
            return array_of(view if view.ndim or any(item is ... for item in items) else _copied_element(view))
        return apply(operator.getitem, self, key)

    @entry
    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is Array and np.may_share_memory(self._view, value._view):  # as in `x[1:] += y`
            value = value.copy()
        apply(operator.setitem, self, key, value)

    @entry
    def __len__(self) -> int:
        return len(self._view)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[n] for n in range(len(self)))

    @entry
    def item(self, *place: Any) -> Any:
        """An element as a Python number; waits for the device."""
        if not place:
            if self.size != 1:
                raise ValueError("can only convert an array of size 1 to a Python scalar")
            return fetch(self._view).item()
        at = place[0] if len(place) == 1 and isinstance(place[0], tuple) else place
        if len(at) == 1 and self.ndim != 1:
            at = np.unravel_index(at[0] % max(self.size, 1), self.shape)
        return fetch(self._view[tuple(int(n) for n in at)]).item()

    def tolist(self) -> Any:
        return fetch(self._view).tolist()

    def _on_host(self) -> HostArray:
        """Its element on the host; where there are more, or none, what NumPy refuses to make a number of in the same words."""
        return fetch(self._view) if self.size == 1 else np.empty(self.shape, self.dtype)

    @entry
    def __bool__(self) -> bool:
        return bool(self._on_host())

    @entry
    def __float__(self) -> float:
        return float(self._on_host())

    @entry
    def __int__(self) -> int:
        return int(self._on_host())

    def __complex__(self) -> complex:
        return complex(self._on_host())

    @entry
    def __index__(self) -> int:
        return operator.index(self._on_host())

    def block_until_ready(self) -> Array:
        """Wait for all that the device has been asked for.

        Raises:
            DeviceFault: some of it has failed.
        """
        self._device.memory.synchronize()
        return self

    @entry
    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> HostArray:
        """A copy on the host, which `jitml.copies` counts.

        Raises:
            ValueError: `copy=False`.
        """
        if copy is False:
            raise ValueError(f"an array on {self.device} cannot be a NumPy array without a copy")
        host = fetch(self._view)
        return host if dtype is None else host.astype(dtype, copy=False)

    @entry
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = out[0] if len(out) == 1 else out
        return apply(ufunc if method == "__call__" else getattr(ufunc, method), *inputs, **kwargs)

    @entry
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply(function, *args, **kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """`jitml.numpy`, whose functions are NumPy's."""
        return namespace()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3, for CuPy, Numba and others; the array is theirs to use on their streams."""
        block = block_of(self._view)
        block.streams.add(_LEGACY_STREAM)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (address(self._view) if self.size else 0, not self._view.flags.writeable),
            "strides": None if self._view.flags.c_contiguous else self.strides,
            "version": 3,
            "stream": self._device.memory.stream or None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.dlpack

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule that shows this memory, without a copy unless one is asked for.

        Args:
            stream: where the consumer works: it waits for ours. -1: it waits by itself.

        Raises:
            BufferError: another device is asked for.
        """
        if dl_device is not None and tuple(dl_device) != self._device.dlpack:
            raise BufferError(f"this array is on {self.device}; use to_device, or numpy.asarray for the CPU")
        shown = self.copy() if copy else self
        view, memory = shown._view, self._device.memory
        theirs = _LEGACY_STREAM if stream is None else stream
        if theirs not in (-1, memory.stream):
            memory.hold_back(theirs)
            block_of(view).streams.add(theirs)
        return dlpack.export(
            view, address(view), self._device.dlpack, is_versioned=max_version is not None and max_version[0] >= 1
        )

    @entry
    def view(self, dtype: Any = None) -> Array:
        """The same memory, perhaps as another dtype."""
        return array_of(self._view.view() if dtype is None else self._view.view(np.dtype(dtype)))

    @property
    def flags(self) -> Any:
        return self._view.flags

    @property
    def real(self) -> Any:
        return array_of(self._view.real) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> Any:
        return array_of(self._view.imag) if self.dtype.kind == "c" else apply(np.zeros_like, self)

    def conj(self) -> Any:
        return apply(np.conjugate, self)

    def copy(self, order: Any = "C") -> Any:
        return apply(np.copy, self, order=order)

    def __copy__(self) -> Any:
        return apply(np.copy, self, order="K")

    def __deepcopy__(self, memo: Any) -> Any:
        return apply(np.copy, self, order="K")

    def __reduce__(self) -> Any:
        return _unpickled, (fetch(self._view), self.device)

    def __repr__(self) -> str:
        if self.size <= _SMALL:
            text = np.array2string(fetch(self._view), separator=", ", prefix="Array(")
            return f"Array({text}, dtype={self.dtype}, device={self.device!r})"
        return f"Array(shape={self.shape}, dtype={self.dtype}, device={self.device!r})"

    def __str__(self) -> str:
        return str(fetch(self._view)) if self.size <= _SMALL else repr(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.ndim else format(str(self), spec)


def array_of(view: Any) -> Array:
    """The `Array` that shows a view: the one that does so already, or a new one."""
    known: Array | None = view.owner() if view.owner is not None else None
    if known is not None:
        return known
    array = object.__new__(Array)
    array._view = view
    array._device = block_of(view).device
    view.owner = weakref.ref(array)
    return array


def _copied_element(view: Any) -> DeviceView:
    copy = new_view(device_of(view), view.dtype, ())
    device_of(view).memory.copy(address(copy), address(view), view.itemsize)
    return copy


def new_view(device: ArrayDevice, dtype: Any, shape: tuple[int, ...]) -> DeviceView:
    """New memory on a device, in C order."""
    dtype = np.dtype(dtype)
    return device_view(new_block(device, dtype.itemsize * int(np.prod(shape, dtype=np.int64))), dtype, shape)


def to_device(host: HostArray, device: ArrayDevice) -> Array:
    """A copy of a NumPy array on a device; Fortran order stays."""
    is_fortran = host.flags.f_contiguous and not host.flags.c_contiguous
    view: Any = new_view(device, host.dtype.newbyteorder("="), host.shape[::-1] if is_fortran else host.shape)
    view = view.T if is_fortran else view
    store(view, host)
    return array_of(view)


def of_block(block: MemoryBlock, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int) -> Array:
    """The `Array` over others' memory."""
    return array_of(device_view(block, dtype, shape, strides, offset))


def _unpickled(host: HostArray, device: str) -> Array:
    return to_device(host, device_named(device))


def view_of_array(array: Array) -> DeviceView:
    """What the guards and programs of compiled functions see of an array."""
    return array._view


install(Array)
