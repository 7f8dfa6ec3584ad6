"""The driver without the back end: kernels of plain text, compiled, loaded, launched and timed: what can a device do at all?"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cuda.bindings import driver, nvrtc

Array = np.ndarray[Any, Any]


class DriverError(RuntimeError):
    """A call of the driver, or of NVRTC, was not a success."""


def ask(function: Callable[..., tuple[Any, ...]], *args: Any) -> Any:
    """Call a function of the bindings; its values without the error, which is raised."""
    error, *values = function(*args)
    if int(error):
        raise DriverError(f"{function.__name__}: {error.name}")
    return None if not values else values[0] if len(values) == 1 else values


class Raw:
    """The first device: its primary context, which all libraries of a process share, and a stream."""

    def __init__(self) -> None:
        ask(driver.cuInit, 0)
        self.device = ask(driver.cuDeviceGet, 0)
        self.context = ask(driver.cuDevicePrimaryCtxRetain, self.device)
        ask(driver.cuCtxSetCurrent, self.context)
        self.stream = ask(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        major, minor = (self.attribute(f"COMPUTE_CAPABILITY_{name}") for name in ("MAJOR", "MINOR"))
        self.arch = f"sm_{major}{minor}"
        self._modules: dict[tuple[str, str], Any] = {}

    def attribute(self, name: str) -> int:
        return int(
            ask(driver.cuDeviceGetAttribute, getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), self.device)
        )

    def function(self, source: str, name: str, arch: str | None = None) -> Any:
        """A kernel of a text, loaded; the module stays."""
        key = source, arch or self.arch
        if key not in self._modules:
            self._modules[key] = ask(driver.cuModuleLoadData, cubin(*key))
        return ask(driver.cuModuleGetFunction, self._modules[key], name.encode())

    def array(self, x: Array) -> int:
        """Memory on the device with the contents of an array; for the life of the process."""
        pointer = self.room(x.nbytes)
        ask(driver.cuMemcpyHtoD, pointer, x.ctypes.data, x.nbytes)
        return pointer

    def room(self, nbytes: int) -> int:
        return int(ask(driver.cuMemAlloc, max(nbytes, 1)))

    def fetch(self, pointer: int, like: Array) -> Array:
        self.wait()
        result = np.empty_like(like)
        ask(driver.cuMemcpyDtoH, result.ctypes.data, pointer, result.nbytes)
        return result

    def launch(self, function: Any, blocks: int, threads: int, args: Sequence[Any], shared: int = 0) -> None:
        packed = Packed(args)  # it has to live until the driver has copied it
        ask(driver.cuLaunchKernel, function, blocks, 1, 1, threads, 1, 1, shared, self.stream, packed.address, 0)

    def wait(self) -> None:
        ask(driver.cuStreamSynchronize, self.stream)

    def seconds(self, work: Callable[[], object], times: int = 1) -> float:
        """Of the device, for one of so many pieces of work on the stream, by its events."""
        start, end = (ask(driver.cuEventCreate, 0) for _ in range(2))
        ask(driver.cuEventRecord, start, self.stream)
        for _ in range(times):
            work()
        ask(driver.cuEventRecord, end, self.stream)
        ask(driver.cuEventSynchronize, end)
        return float(ask(driver.cuEventElapsedTime, start, end)) * 1e-3 / times


class Packed:
    """Arguments of a kernel as the driver wants them: pointers to their values, which are of 64 bits if nothing else is said."""

    def __init__(self, args: Sequence[Any]) -> None:
        self._values = [x if isinstance(x, ctypes._SimpleCData) else ctypes.c_longlong(int(x)) for x in args]
        addresses = [ctypes.addressof(value) for value in self._values]
        self._pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        self.address = ctypes.addressof(self._pointers)


def cubin(source: str, arch: str, options: Sequence[str] = ("--fmad=false", "--std=c++17")) -> bytes:
    """Machine code for an architecture; no driver is needed.

    Raises:
        DriverError: with the compiler's log.
    """
    program = ask(nvrtc.nvrtcCreateProgram, source.encode(), b"check.cu", 0, [], [])
    flags = [option.encode() for option in (f"--gpu-architecture={arch}", *options)]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    if int(error):
        log = bytearray(ask(nvrtc.nvrtcGetProgramLogSize, program))
        ask(nvrtc.nvrtcGetProgramLog, program, log)
        raise DriverError(f"NVRTC: {error.name}: {log.decode(errors='replace')}")
    code = bytearray(ask(nvrtc.nvrtcGetCUBINSize, program))
    ask(nvrtc.nvrtcGetCUBIN, program, code)
    ask(nvrtc.nvrtcDestroyProgram, program)
    return bytes(code)
