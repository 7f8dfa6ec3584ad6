"""A device whose memory is the host's, so that arrays on a device are tested where there is none."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from jitml.device.array import new_view
from jitml.device.memory import ArrayDevice
from jitml.device.registry import add_device, remove_device
from jitml.device.view import DeviceView, address

CUDA = 2  # DLPack's number
APART = 1 << 56  # from the host's memory to the device's addresses


class HostMemory:
    """The host's memory, at addresses where the processor has none: who reads it as an array of the host's dies.

    It notes what other streams have been asked to wait for, and what is still in use.
    """

    ordinal = 0
    stream = 1234

    def __init__(self) -> None:
        self.used: dict[int, np.ndarray[Any, Any]] = {}
        self.waits: list[tuple[str, int]] = []
        self.synchronized = 0

    def allocate(self, nbytes: int) -> int:
        memory = np.full(nbytes + 256, 0xA5, np.uint8)
        address = -(-memory.ctypes.data // 256) * 256 + APART
        self.used[address] = memory
        return address

    def free(self, address: int) -> None:
        del self.used[address]

    def copy_in(self, address: int, host: np.ndarray[Any, Any]) -> None:
        assert host.flags.c_contiguous
        ctypes.memmove(address - APART, host.ctypes.data, host.nbytes)

    def copy_out(self, *pairs: tuple[np.ndarray[Any, Any], int]) -> None:
        for host, source in pairs:
            assert host.flags.c_contiguous
            ctypes.memmove(host.ctypes.data, source - APART, host.nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target - APART, source - APART, nbytes)

    def synchronize(self) -> None:
        self.synchronized += 1

    def wait_for(self, stream: int) -> None:
        self.waits.append(("wait_for", stream))

    wait_later = wait_for

    def hold_back(self, stream: int) -> None:
        self.waits.append(("hold_back", stream))


def _program(executable: Any) -> Any:
    return executable


def _given(view: DeviceView) -> Any:
    """What programs for the host take."""
    if not view.size:
        return np.empty(view.shape, view.dtype)
    low, high = byte_bounds(view)
    memory = (ctypes.c_char * (high - low)).from_address(low - APART)
    shown: Any = np.ndarray(view.shape, view.dtype, memory, address(view) - low, view.strides)
    shown.flags.writeable = view.flags.writeable
    return shown


def _taken(device: ArrayDevice, result: Any) -> DeviceView:
    view = new_view(device, result.dtype, result.shape)
    np.copyto(_given(view), result)
    return view


@contextmanager
def host_device(name: str = "cuda", backend: str = "llvm") -> Iterator[ArrayDevice]:
    """A device of this name, for the time of the block; all of its memory is given back in the end."""
    device = ArrayDevice(name, CUDA, HostMemory(), backend, _program, _given, _taken)
    add_device(name, lambda: device)
    try:
        yield device
    finally:
        remove_device(name)
