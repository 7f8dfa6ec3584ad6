"""Arrays from elsewhere: NumPy's, and those of other libraries on a device, by DLPack or `__cuda_array_interface__`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from jitml.device.array import Array, of_block, to_device
from jitml.device.memory import ArrayDevice, MemoryBlock
from jitml.device.registry import CPU, device_named, device_of_kind, require_known
from jitml.diagnostics.tracebacks import entry
from jitml.errors import DTypeError, JitmlError
from jitml.imports.late import late
from jitml.ir.types import is_supported

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitml.device import dlpack
else:
    dlpack = late("jitml.device.dlpack")

_HOST_KINDS = (1, 3)  # DLPack's: memory of the host, ordinary or pinned
_LEGACY_STREAM = 1


if TYPE_CHECKING:

    @overload
    def asarray(x: Array, dtype: Any = None, *, device: None = None, copy: bool | None = None) -> Array: ...
    @overload
    def asarray(x: Any, dtype: Any = None, *, device: Literal["cpu"], copy: bool | None = None) -> NDArray[Any]: ...
    @overload
    def asarray(x: Any, dtype: Any = None, *, device: Literal["cuda"], copy: bool | None = None) -> Array: ...
    @overload
    def asarray(x: Any, dtype: Any = None, *, device: str | None = None, copy: bool | None = None) -> Any: ...


@entry
def asarray(x: Any, dtype: Any = None, *, device: str | None = None, copy: bool | None = None) -> Any:
    """An array on a device, or NumPy's on the CPU.

    Arrays of other libraries that are on a GPU (PyTorch, CuPy, JAX, Numba) come in without a copy: what one side writes the other
    sees.

    Args:
        x: an array, or what `numpy.asarray` takes.
        dtype: None for that of x.
        device: `cpu`, `cuda`; None for where x is.
        copy: True for new memory in any case, False for none.

    Raises:
        UnsupportedError: there is no such device.
        NoDeviceError: it is not here, or cannot be used.
        DTypeError: arrays of this dtype are not computed with.
        ValueError: `copy=False`, and a copy is needed.

    >>> asarray([1.0, 2.0], device="cpu")
    array([1., 2.])
    """
    if device is not None and device != CPU:
        require_known(device)
    found = x if isinstance(x, Array) else _shared(x)
    if found is None:
        host = np.asarray(x, dtype) if copy is not True else np.array(x, dtype)
        if device in (None, CPU):
            return host if copy is not False or host is x or np.may_share_memory(host, x) else _refuse_copy(device)
        if copy is False:
            _refuse_copy(device)
        return to_device(_checked(host), device_named(device))
    if device is not None and found.device != device:
        if copy is False:
            _refuse_copy(device)
        moved = found.to_device(device)
        return moved if dtype is None else moved.astype(dtype)
    if dtype is not None and found.dtype != dtype:
        return _refuse_copy(device) if copy is False else found.astype(dtype)
    return found.copy() if copy else found


@entry
def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Any:
    """The array of another library, by DLPack: without a copy where it stays on its device.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3))
    array([0, 1, 2])
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"a {type(x).__qualname__} has no __dlpack__")
    if x.__dlpack_device__()[0] in _HOST_KINDS and not isinstance(x, Array):
        return asarray(np.from_dlpack(x), device=device, copy=copy)
    return asarray(x, device=device, copy=copy)


def _refuse_copy(device: str | None) -> Any:
    raise ValueError(f"copy=False, but an array on {device or CPU} cannot be made of this without a copy")


def _checked(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if not is_supported(host.dtype.newbyteorder("=")):
        raise DTypeError(f"arrays of {host.dtype} cannot be on a device", remedy="Convert it with .astype(...) first.")
    return host


def is_foreign(x: Any) -> bool:
    """Whether this is another library's array on a device."""
    kind = type(x)
    if kind is Array or isinstance(x, (np.ndarray, np.generic)):
        return False
    if hasattr(kind, "__cuda_array_interface__"):
        return _interface(x) is not None
    return hasattr(kind, "__dlpack_device__") and hasattr(kind, "__dlpack__") and x.__dlpack_device__()[0] not in _HOST_KINDS


def is_on_device(x: Any) -> bool:
    """Whether this is an array on a device, ours or another library's."""
    return type(x) is Array or is_foreign(x)


def ours(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with the arrays of other libraries on a device as ours, without a copy."""
    if not any(map(is_foreign, (*args, *kwargs.values()))):
        return tuple(args), dict(kwargs)
    taken = tuple(asarray(x) if is_foreign(x) else x for x in args)
    return taken, {name: asarray(x) if is_foreign(x) else x for name, x in kwargs.items()}


def _interface(x: Any) -> Any:
    try:
        return x.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError):  # how PyTorch says that a tensor is on the CPU, or needs a derivative
        return None


def _shared(x: Any) -> Array | None:
    """Another library's array on a device, without a copy; None if it is none."""
    if not is_foreign(x):
        return None
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        kind = tuple(int(n) for n in x.__dlpack_device__())
        device = device_of_kind((kind[0], kind[1]))
        return _of_tensor(dlpack.take(_capsule(x, device)), device)
    return _of_interface(_interface(x), x)


def _capsule(x: Any, device: ArrayDevice) -> Any:
    """The other library lets our stream wait for its own."""
    stream = device.memory.stream or None
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # of before DLPack 1.0
        return x.__dlpack__(stream=stream)


def _of_tensor(tensor: dlpack.SharedTensor, device: ArrayDevice) -> Array:
    if not is_supported(tensor.dtype):
        tensor.release()
        _checked(np.empty(0, tensor.dtype))
    return _over(device, tensor.address, tensor.dtype, tensor.shape, tensor.strides, tensor.is_readonly, tensor.release)


def _of_interface(known: Any, x: Any) -> Array:
    """By `__cuda_array_interface__`, as Numba's arrays come in."""
    device = device_named("cuda")
    dtype = np.dtype(known["typestr"])
    if known.get("mask") is not None or not dtype.isnative:
        raise DTypeError(f"an array of {dtype} that has a mask, or bytes in another order, cannot be used")
    _checked(np.empty(0, dtype))
    if stream := known.get("stream"):
        device.memory.wait_for(stream)
    address, is_readonly = known["data"]
    held = [x]
    return _over(device, address or 0, dtype, tuple(known["shape"]), known.get("strides"), is_readonly, held.clear)


def _over(
    device: ArrayDevice,
    address: int,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    is_readonly: bool,
    release: Callable[[], object],
) -> Array:
    """The array over memory of others', which they may use again after all that we have asked for."""
    if strides is None:
        strides = tuple(dtype.itemsize * math.prod(shape[n + 1 :]) for n in range(len(shape)))
    steps = [(n - 1) * s for n, s in zip(shape, strides)]
    low = address + sum(min(step, 0) for step in steps)
    size = dtype.itemsize + sum(map(abs, steps)) if 0 not in shape else 0

    def give_back() -> None:
        with suppress(JitmlError):  # as in `MemoryBlock`
            device.memory.hold_back(_LEGACY_STREAM)
        release()

    return of_block(MemoryBlock(device, low, size, give_back, is_readonly), dtype, shape, strides, address - low)
