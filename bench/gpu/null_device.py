"""A GPU that does nothing, with which all the host does around a call can be timed where there is none.

`NullGpu` is the back end's own device over a driver that answers at once: memory is a number, what is freed is given again to who
asks for as much, and launches, copies and graphs do nothing. What NVIDIA's driver takes itself, and its bindings, is not in it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

from cuda.bindings import driver as real

from jitml.codegen.cuda.runtime import gpu as runtime
from jitml.codegen.cuda.runtime.devices import replaced
from jitml.codegen.cuda.runtime.gpu import CudaCode, Gpu

_DONE = (real.CUresult.CUDA_SUCCESS,)
_ATTRIBUTES = {"COMPUTE_CAPABILITY_MAJOR": 9, "MEMORY_POOLS_SUPPORTED": 1, "MULTIPROCESSOR_COUNT": 132}
_MEMORY = 80 << 30


class NullDriver:
    """The functions of `cuda.bindings.driver`. What it is asked for is counted, by name, in `asked` if that is not None."""

    def __init__(self) -> None:
        self._numbers = count(1 << 20, 256)
        self._free: dict[int, list[int]] = {}
        self._sizes: dict[int, int] = {}
        self._pinned: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu") or not callable(getattr(real, name, None)):
            return getattr(real, name)
        found = _new_handle if name in _HANDLES else _done
        setattr(self, name, found)
        return found

    def cuDeviceGetCount(self) -> tuple[Any, int]:
        return *_DONE, 1

    def cuDeviceGetName(self, length: int, device: Any) -> tuple[Any, bytes]:
        return *_DONE, b"null GPU"

    def cuDeviceGetAttribute(self, attribute: Any, device: Any) -> tuple[Any, int]:
        return *_DONE, _ATTRIBUTES.get(attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_"), 0)

    def cuCtxGetCurrent(self) -> tuple[Any, int]:
        return *_DONE, _CONTEXT

    def cuDevicePrimaryCtxRetain(self, device: Any) -> tuple[Any, int]:
        return *_DONE, _CONTEXT

    def cuDriverGetVersion(self) -> tuple[Any, int]:
        return *_DONE, 12000  # which has no conditions of graphs

    def cuGraphGetNodes(self, graph: Any) -> tuple[Any, list[Any], int]:
        return *_DONE, [], 0

    def cuMemGetInfo(self) -> tuple[Any, int, int]:
        return *_DONE, _MEMORY, _MEMORY

    def cuMemAllocFromPoolAsync(self, nbytes: int, pool: Any, stream: Any) -> tuple[Any, int]:
        free = self._free.setdefault(nbytes, [])
        address = free.pop() if free else (next(self._numbers) << 20)
        self._sizes[address] = nbytes
        return *_DONE, address

    def cuMemFreeAsync(self, address: int, stream: Any) -> tuple[Any]:
        self._free[self._sizes[address]].append(address)
        return _DONE

    def cuMemHostAlloc(self, nbytes: int, flags: int) -> tuple[Any, int]:
        self._pinned.append((ctypes.c_char * nbytes)())
        return *_DONE, ctypes.addressof(self._pinned[-1])


_CONTEXT = 1 << 12
_HANDLES = {
    *("cuDeviceGet", "cuStreamCreate", "cuEventCreate", "cuModuleLoadData", "cuModuleGetFunction", "cuMemPoolCreate"),
    *("cuStreamEndCapture", "cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiate", "cuMemPoolGetAttribute"),
}


def _done(*args: Any) -> tuple[Any]:
    return _DONE


def _new_handle(*args: Any) -> tuple[Any, int]:
    return *_DONE, 1


class NullGpu(Gpu):
    """Kernels of any text are in it, and do nothing."""

    def load(self, source: str) -> CudaCode:
        with self.lock, self.turn:
            return CudaCode(self, b"")


@contextmanager
def null_gpu() -> Iterator[NullGpu]:
    """Programs of the CUDA back end run on such a device meanwhile."""
    with patch.object(runtime, "bindings", NullDriver):
        device = NullGpu()
    with replaced(device):
        yield device
