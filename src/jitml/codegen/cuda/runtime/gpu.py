"""NVIDIA GPUs: the device protocol on the CUDA driver.

All work goes to one stream, which no other stream waits for by itself, in the GPU's primary context, which other libraries
share. Memory comes from a pool of our own; what is freed is kept for who next asks for as much (`free_lists.py`), and the pool
keeps some of the rest. A method that asks the driver holds the device's lock, so that threads take turns; waiting for the GPU
lets other Python threads run.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import get_ident
from types import TracebackType
from typing import Any, Literal
from weakref import WeakSet

import numpy as np

from jitml.codegen.cuda.compiler import compile_cubin
from jitml.codegen.cuda.runtime.device import DeviceCode, DeviceFunction, DeviceGraph, Keeper, Peaks
from jitml.codegen.cuda.runtime.driver import Calls, bindings
from jitml.codegen.cuda.runtime.free_lists import GRAIN, FreeLists
from jitml.codegen.cuda.runtime.graphs import GraphRecording
from jitml.codegen.cuda.runtime.staging import Staging
from jitml.config import CONFIG
from jitml.errors import CompilerError, DeviceMemoryError, NoDeviceError
from jitml.forks import lock

Array = np.ndarray[Any, Any]

_OLDEST = 80  # of compute capabilities
_CONDITIONS = 12040  # drivers have conditions of graphs from CUDA 12.4 on
_STATIC_SHARED = 48 << 10  # bytes of shared memory that a kernel may have without asking
_KEPT = 4  # the pool keeps a part of the memory: one in so many bytes
_LISTED, _PART = 64 << 20, 256  # bytes of one size in the free lists, or a part of the memory, if that is less
# Copies as measured, the rest from data sheets, in bytes and operations a nanosecond.
_PEAKS = {
    "H100": Peaks(3000.0, 67_000.0, 34_000.0, 790_000.0),
    "H200": Peaks(4300.0, 67_000.0, 34_000.0, 790_000.0),
    "A100": Peaks(1400.0, 19_500.0, 9_700.0, 312_000.0),
}


class CudaFunction:
    """A kernel in the driver's hands, with room for its parameters, which the driver copies at each launch."""

    def __init__(self, entry: str, handle: Any, code: CudaCode) -> None:
        self.entry, self.handle, self._code = entry, handle, code  # the code stays loaded as long as a kernel is held
        self.shared = _STATIC_SHARED
        self._room: dict[int, tuple[Any, Any, int]] = {}

    def parameters(self, addresses: Sequence[int]) -> int:
        """The address of an array of pointers to the parameters; the next launch uses it again."""
        count = len(addresses)
        if count not in self._room:
            values = (ctypes.c_uint64 * count)()
            start = ctypes.addressof(values)
            pointers = (ctypes.c_void_p * count)(*(start + 8 * n for n in range(count)))
            self._room[count] = (values, pointers, ctypes.addressof(pointers))
        values, _, place = self._room[count]
        values[:] = addresses
        return place


class CudaCode:
    """A loaded module."""

    def __init__(self, gpu: Gpu, cubin: bytes) -> None:
        self._gpu = gpu
        self._module = gpu.calls(gpu.driver.cuModuleLoadData, cubin)
        self._functions: dict[str, Any] = {}

    def __getitem__(self, entry: str) -> CudaFunction:
        if entry not in self._functions:
            gpu = self._gpu
            with gpu.lock, gpu.turn:
                status, handle = gpu.driver.cuModuleGetFunction(self._module, entry.encode())
                if status == gpu.driver.CUresult.CUDA_ERROR_NOT_FOUND:
                    raise KeyError(entry)
                self._functions[entry] = handle if not status else gpu.calls(lambda: (status, handle))
        return CudaFunction(entry, self._functions[entry], self)

    def __del__(self) -> None:
        if hasattr(self, "_module"):
            self._gpu.later(self._gpu.driver.cuModuleUnload, self._module)


class _Turn:
    """What a thread that holds the device's lock works in: the GPU's context; after it another's is put back.

    Inside of a turn the thread is not looked at again: the context is asked for once.
    """

    def __init__(self, calls: Calls, context: Any) -> None:
        self._calls, self._context, self._address = calls, context, int(context)
        self._current = calls.driver.cuCtxGetCurrent
        self._depth = 0
        self._has_pushed = False
        self.owner = 0  # the thread

    def __enter__(self) -> None:
        if self._depth and self.owner == get_ident():
            self._depth += 1
            return
        # An exception from outside may have left a turn without its end: it begins anew.
        calls, self._has_pushed = self._calls, False
        found = int(calls(self._current))
        if found != self._address:
            # A thread that has none keeps ours: then there is nothing to put back.
            calls(calls.driver.cuCtxPushCurrent if found else calls.driver.cuCtxSetCurrent, self._context)
            self._has_pushed = found != 0
        self._depth, self.owner = 1, get_ident()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._depth -= 1
        if not self._depth:
            self.owner = 0
            if self._has_pushed and not self._calls.is_dead:
                self._calls(self._calls.driver.cuCtxPopCurrent)


class Gpu:
    """One GPU.

    Args:
        ordinal: its number, as the driver counts.

    Raises:
        NoDeviceError: there is no such GPU, or none that is recent enough.
    """

    has_libraries = True

    def __init__(self, ordinal: int = 0) -> None:
        driver = self.driver = bindings()
        status, count = driver.cuDeviceGetCount()
        if status or not 0 <= ordinal < count:
            raise NoDeviceError(f"there is no GPU {ordinal}: the driver finds {0 if status else count}")
        self.ordinal = ordinal
        self._device = driver.cuDeviceGet(ordinal)[1]
        self.name = driver.cuDeviceGetName(128, self._device)[1].split(b"\0")[0].decode()
        self.calls = calls = Calls(driver, self.name)
        major, minor = self._attribute("COMPUTE_CAPABILITY_MAJOR"), self._attribute("COMPUTE_CAPABILITY_MINOR")
        if 10 * major + minor < _OLDEST:
            raise NoDeviceError(f"{self.name} has compute capability {major}.{minor}; 8.0 or more is needed")
        if not self._attribute("MEMORY_POOLS_SUPPORTED"):
            raise NoDeviceError(f"the driver of {self.name} has no memory pools", remedy="Install a newer driver.")
        self.arch = f"sm_{major}{minor}"
        self.multiprocessors = self._attribute("MULTIPROCESSOR_COUNT")
        self._most_shared = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self.lock = lock()
        self.context = calls(driver.cuDevicePrimaryCtxRetain, self._device)
        self.turn = _Turn(calls, self.context)
        has_functions = hasattr(driver, "cuGraphConditionalHandleCreate")
        self.has_conditions = has_functions and calls(driver.cuDriverGetVersion) >= _CONDITIONS
        # What objects that nobody holds any more leave behind; `__del__` may come in the midst of anything.
        self._left: deque[tuple[Callable[..., Any], Any]] = deque()
        self._launch = driver.cuLaunchKernel
        self._recording: GraphRecording | None = None
        self._workspaces: dict[int, int] = {}  # by their bytes
        self.keepers: WeakSet[Keeper] = WeakSet()
        with self.lock, self.turn:
            self.handle = calls(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
            self._pool = self._make_pool()
            self._lists = FreeLists(min(_LISTED, int(driver.cuMemGetInfo()[2]) // _PART))
            self._staging = Staging(calls, self.handle)
        self.stream = int(self.handle)
        atexit.register(self.close)

    @cached_property
    def peaks(self) -> Peaks:
        for name, peaks in _PEAKS.items():
            if name in self.name:
                return peaks
        clock, width = self._attribute("MEMORY_CLOCK_RATE"), self._attribute("GLOBAL_MEMORY_BUS_WIDTH")
        return Peaks(copy=2 * clock * 1e3 * width / 8 / 1e9)  # kHz, two transfers a cycle, bits

    def memory(self) -> tuple[int, int]:
        driver = self.driver
        with self.lock, self.turn:
            status, free, total = driver.cuMemGetInfo()
            self.calls(lambda: (status,))
            held = self._pool_size("RESERVED_MEM_CURRENT") - self._pool_size("USED_MEM_CURRENT")
        free = int(free) + held + self._lists.held
        return max(0, min(free, CONFIG.device_bytes - self._lists.in_use)), min(int(total), CONFIG.device_bytes)

    def allocate(self, nbytes: int) -> int:
        size = -(-nbytes // GRAIN) * GRAIN
        # What waits to be undone comes first: another stream may have to be waited for.
        if not self._left and not self.calls.is_dead and (address := self._lists.take(size)):
            return address
        return self._allocated(size) if size else 0

    def _allocated(self, nbytes: int) -> int:
        """Memory from the driver."""
        driver, calls = self.driver, self.calls
        with self.lock, self.turn:
            self._clear()
            try:
                return self._from_pool(nbytes)
            except DeviceMemoryError:  # cycles may hold memory, the pool pieces of other sizes, and others wait for the stream
                gc.collect()
                for keeper in [*self.keepers]:
                    keeper.give_up()
                self.trim()
                calls(driver.cuStreamSynchronize, self.handle)
                calls(driver.cuMemPoolTrimTo, self._pool, 0)
            try:
                return self._from_pool(nbytes)
            except DeviceMemoryError:
                free, total = self.memory()
                limit = ", and JITML_DEVICE_BYTES allows no more" if total == CONFIG.device_bytes else ""
                raise DeviceMemoryError(
                    f"{self.name} has not {nbytes:,} bytes: {free:,} of {total:,} are free{limit}",
                    remedy="Let go of arrays that live there, or compute in parts.",
                ) from None

    def _from_pool(self, nbytes: int) -> int:
        lists = self._lists
        if lists.in_use + lists.held + nbytes > CONFIG.device_bytes:
            raise DeviceMemoryError(f"JITML_DEVICE_BYTES={CONFIG.device_bytes}")
        return lists.add(int(self.calls(self.driver.cuMemAllocFromPoolAsync, nbytes, self._pool, self.handle)), nbytes)

    def trim(self) -> None:
        """Give the driver all memory that is free."""
        with self.lock, self.turn:
            self._clear()
            for address in self._lists.drop_all():
                self.calls(self.driver.cuMemFreeAsync, address, self.handle)

    def workspace(self, nbytes: int) -> int:
        with self.lock:
            if nbytes not in self._workspaces:
                self._workspaces[nbytes] = self.allocate(nbytes)
            return self._workspaces[nbytes]

    def free(self, address: int) -> None:
        if address and (self._left or not self._lists.keep(address)):
            self.later(self._free_now, address)

    def copy_in(self, address: int, host: Array) -> None:
        with self.lock, self.turn:
            self._staging.copy_in(address, host)

    def copy_out(self, *pairs: tuple[Array, int]) -> None:
        with self.lock, self.turn:
            self._staging.copy_out(pairs)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        if nbytes and target != source:
            with self.lock, self.turn:
                self.calls(self.driver.cuMemcpyDtoDAsync, target, source, nbytes, self.handle)

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        if nbytes:
            with self.lock, self.turn:
                self.calls(self.driver.cuMemsetD8Async, address, byte, nbytes, self.handle)

    def load(self, source: str) -> DeviceCode:
        cubin = compile_cubin(source, self.arch)
        with self.lock, self.turn:
            self._clear()
            return CudaCode(self, cubin.code)

    def launch(self, function: DeviceFunction, blocks: int, threads: int, shared: int, addresses: Sequence[int]) -> None:
        assert isinstance(function, CudaFunction)
        if self.turn.owner != get_ident():
            with self.lock, self.turn:
                self.launch(function, blocks, threads, shared, addresses)
            return
        if not blocks:
            return
        if shared > function.shared:
            self._let_share(function, shared)
        place = function.parameters(addresses)
        if self._recording is None:
            self.calls(self._launch, function.handle, blocks, 1, 1, threads, 1, 1, shared, self.handle, place, 0)
        else:
            self._recording.launch(function, blocks, threads, shared, place)

    def synchronize(self) -> None:
        with self.lock, self.turn:
            self._clear()
            self.calls(self.driver.cuStreamSynchronize, self.handle)

    def record(self, work: Callable[[], None]) -> DeviceGraph:
        with self.lock, self.turn:
            self._clear()
            recording = self._recording = GraphRecording(self)
            try:
                work()
            except BaseException:
                recording.drop()
                raise
            finally:
                self._recording = None
            try:
                return recording.end()
            finally:
                self._clear()

    def new_condition(self) -> int:
        assert self._recording is not None
        return self._recording.new_condition()

    def conditional(self, kind: Literal["if", "while"], condition: int, work: Callable[[], None]) -> None:
        assert self._recording is not None
        self._recording.conditional(kind, condition, work)

    def wait_for(self, stream: int) -> None:
        self._order(self.driver.CUstream(stream), self.handle)

    def wait_later(self, stream: int) -> None:
        self.later(self._wait_now, self.driver.CUstream(stream))

    def hold_back(self, stream: int) -> None:
        self._order(self.handle, self.driver.CUstream(stream))

    def later(self, function: Callable[..., Any], subject: Any) -> None:
        """Undo something in the order of the stream, now if that can be.

        The collector may ask for it in any thread, one for which the holder of the lock waits included: nothing is waited for.
        """
        if self.calls.is_dead:
            return
        self._left.append((function, subject))
        if self._recording is not None or not self.lock.acquire(blocking=False):
            return
        try:
            with self.turn:
                self._clear()
        finally:
            self.lock.release()

    def close(self) -> None:
        """At the end of the interpreter: wait for what is under way, and give everything back. Later calls do nothing."""
        if self.calls.is_dead:
            return
        driver = self.driver
        with self.lock, self.turn:
            self._clear()
            driver.cuStreamSynchronize(self.handle)  # what it says nobody could hear of any more
            self._staging.free()
            driver.cuMemPoolDestroy(self._pool)
            driver.cuStreamDestroy(self.handle)
        driver.cuDevicePrimaryCtxRelease(self._device)
        self.calls.end()

    def _clear(self) -> None:
        """Do what `later` has been asked for; nothing while a graph is recorded, whose part it would be."""
        while self._left and self._recording is None:
            function, subject = self._left.popleft()
            self.calls(function, subject)

    def _free_now(self, address: int) -> tuple[Any, ...]:
        if not self._lists.keep(address):
            for each in self._lists.drop(address):
                self.calls(self.driver.cuMemFreeAsync, each, self.handle)
        return (self.driver.CUresult.CUDA_SUCCESS,)

    def _order(self, first: Any, then: Any) -> None:
        with self.lock, self.turn:
            self._order_now(first, then)

    def _order_now(self, first: Any, then: Any) -> None:
        driver, calls = self.driver, self.calls
        event = calls(driver.cuEventCreate, driver.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        calls(driver.cuEventRecord, event, first)
        calls(driver.cuStreamWaitEvent, then, event, 0)
        calls(driver.cuEventDestroy, event)

    def _wait_now(self, stream: Any) -> tuple[Any, ...]:
        self._order_now(stream, self.handle)
        return (self.driver.CUresult.CUDA_SUCCESS,)

    def _let_share(self, function: CudaFunction, shared: int) -> None:
        if shared > self._most_shared:
            raise CompilerError(
                f"{function.entry} needs {shared:,} bytes of shared memory; a block on {self.name} has {self._most_shared:,}",
                remedy="This is a bug in jitml: please report it.",
            )
        attribute = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.calls(self.driver.cuFuncSetAttribute, function.handle, attribute, shared)
        function.shared = shared

    def _make_pool(self) -> Any:
        driver, calls = self.driver, self.calls
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = self.ordinal
        pool = calls(driver.cuMemPoolCreate, properties)
        kept = driver.cuuint64_t(min(int(driver.cuMemGetInfo()[2]), CONFIG.device_bytes) // _KEPT)
        calls(driver.cuMemPoolSetAttribute, pool, driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, kept)
        return pool

    def _pool_size(self, name: str) -> int:
        attribute = getattr(self.driver.CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")
        return int(self.calls(self.driver.cuMemPoolGetAttribute, self._pool, attribute))

    def _attribute(self, name: str) -> int:
        attribute = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.calls(self.driver.cuDeviceGetAttribute, attribute, self._device))
