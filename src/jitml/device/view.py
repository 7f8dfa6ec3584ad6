"""Views of device memory: dtype, shape, strides and address as an ndarray, of which no element is ever touched.

NumPy computes with strides and addresses, keeps the chain of bases, and tells what overlaps; so do the guards of compiled
functions. The addresses are the device's, where the processor must not read. A `DeviceView` therefore has only those methods that
look at no element, and raises where NumPy would look; code that must see values copies them to the host (`fetch`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds

from jitml.device.memory import ArrayDevice, HostArray, MemoryBlock
from jitml.errors import CompilerError

Shape: TypeAlias = tuple[int, ...]

_CAN_REFUSE_COPIES = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # in `reshape`

_BASIC = (int, np.integer, slice, EllipsisType, type(None))
# What reads no element. NumPy's functions ask `__array_function__` first; its methods do not.
_HARMLESS_FUNCTIONS = {
    *(np.shares_memory, np.may_share_memory, np.broadcast_to, np.reshape, np.shape, np.ndim, np.size),
    *(np.transpose, np.moveaxis, np.swapaxes, np.squeeze, np.expand_dims, np.flip),
}
_HARMLESS = {
    *("view", "transpose", "swapaxes", "squeeze", "diagonal", "setflags", "__len__", "__array_finalize__", "__class_getitem__"),
    *("_set_dtype", "_set_shape"),  # `view` calls them from NumPy 2.5 on
    *("__new__", "__array_wrap__", "__array_interface__", "__array_struct__", "__array_priority__", "__doc__"),
}


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise CompilerError(
        "jitml has read device memory as if it were the host's",
        remedy="This is a bug in jitml: please report it with the traceback.",
    )


class DeviceView(np.ndarray[Any, Any]):
    """An ndarray whose memory is a device's; see the module.

    Attributes:
        owner: the weak reference to the `Array` that shows it, if one does.
        argument: what programs take for it, once one has been called with it.
    """

    owner: Callable[[], Any] | None = None
    argument: Any = None

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(item, _BASIC) and not isinstance(item, bool) for item in items):
            _refuse()
        # NumPy would read an element where all axes are indexed; with `...` it shows it.
        return super().__getitem__(items if any(item is ... for item in items) else (*items, ...))

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        """The same elements in another shape; they are not copied.

        Raises:
            ValueError: strides do not allow it.
        """
        if _CAN_REFUSE_COPIES:
            return super().reshape(*shape, order=order, copy=False)
        view = (self.T if order == "F" else self).view()
        wanted = shape[0] if len(shape) == 1 else shape
        try:
            view.shape = wanted[::-1] if order == "F" else wanted
        except AttributeError as error:
            raise ValueError(str(error)) from None
        return view.T if order == "F" else view

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in _HARMLESS_FUNCTIONS:
            _refuse()
        if function is np.broadcast_to:
            kwargs = {**kwargs, "subok": True}
        return super().__array_function__(function, types, args, kwargs)

    def __repr__(self) -> str:
        return f"<device memory at {address(self):#x}: {self.dtype}{list(self.shape)}>"

    __str__ = __repr__


def _guard_elements() -> None:
    own = vars(DeviceView)
    for name, member in vars(np.ndarray).items():
        if name not in own and name not in _HARMLESS and callable(member):
            setattr(DeviceView, name, _refuse)
    DeviceView.flat = property(_refuse)  # type: ignore[assignment]


_guard_elements()


def device_view(block: MemoryBlock, dtype: Any, shape: Shape, strides: Shape | None = None, offset: int = 0) -> DeviceView:
    """Memory of a block as an array.

    Args:
        strides: in bytes; None for C order.
        offset: of the first element, in bytes.
    """
    raw = np.asarray(block)
    if not block.nbytes:
        return raw.view(dtype).reshape(shape).view(DeviceView)
    return DeviceView(shape, dtype, raw, offset, strides)


def address(view: HostArray) -> int:
    """Where the first element is."""
    return int(view.__array_interface__["data"][0])


def block_of(view: HostArray) -> MemoryBlock:
    """The block that a view of device memory shows."""
    base: Any = view.base
    while type(base) is not MemoryBlock:
        base = base.base  # also of what NumPy's `as_strided` puts between
    return base


def device_of(view: HostArray) -> ArrayDevice:
    return block_of(view).device


def fetch(view: DeviceView) -> HostArray:
    """A copy on the host, in memory as on the device; waits for what has been launched."""
    device = device_of(view)
    count = device.copies
    count.to_host += 1
    if not view.size:
        return np.empty(view.shape, view.dtype)
    low, high = byte_bounds(view)
    count.bytes_to_host += high - low
    host = np.empty(high - low, np.uint8)
    device.memory.copy_out((host, low))
    shown = np.ndarray(view.shape, view.dtype, host, address(view) - low, view.strides)
    return shown if high - low == view.nbytes else shown.copy()


def store(view: DeviceView, source: HostArray) -> None:
    """Replace what a view of device memory shows by an array of the host's, of the same shape and dtype."""
    device = device_of(view)
    count = device.copies
    count.to_device += 1
    if not view.size:
        return
    low, high = byte_bounds(view)
    count.bytes_to_device += high - low
    host = np.empty(high - low, np.uint8)
    if high - low != view.nbytes:  # what lies between its elements stays as it is
        count.to_host += 1
        count.bytes_to_host += high - low
        device.memory.copy_out((host, low))
    np.ndarray(view.shape, view.dtype, host, address(view) - low, view.strides)[...] = source
    device.memory.copy_in(low, host)
