"""An emulated GPU: the device protocol with the host's memory, kernels that g++ compiles, and an account of what is not freed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import RLock
from typing import Any, Literal, NoReturn
from weakref import WeakSet

import numpy as np

from jitml.codegen.cuda.runtime.device import DeviceCode, DeviceFunction, DeviceGraph, Keeper, Peaks
from jitml.codegen.cuda.runtime.devices import replaced
from jitml.errors import CompilerError, DeviceFault, DeviceMemoryError
from support.cuda_emulation import BuildError, EmulatedModule, GuardedMemory, KernelFault, build

Array = np.ndarray[Any, Any]

_ENDLESS = 10_000
_UNSET = 0xFFFFFFFF  # what a condition is before a kernel has set it


class EmulatedFunction:
    def __init__(self, code: EmulatedCode, entry: str) -> None:
        self.code, self.entry = code, entry


class EmulatedCode:
    """Text that is built with all others that wait, when the first kernel of one of them is launched."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.module: EmulatedModule | None = None

    def __getitem__(self, entry: str) -> EmulatedFunction:
        if f" {entry}(" not in self.source:
            raise KeyError(entry)
        return EmulatedFunction(self, entry)


class EmulatedGraph:
    """
    Args:
        conditions: those of the graph; a handle is the address of one.
    """

    def __init__(self, work: Sequence[Callable[[], None]], conditions: Sequence[ctypes.c_uint]) -> None:
        self._work, self._conditions = [*work], conditions
        self._launches = [n for n, function in enumerate(work) if isinstance(function, partial)]
        self.replays = self.changes = 0

    def replay(self, changes: Sequence[tuple[int, Sequence[int]]] = ()) -> None:
        self.replays += 1
        self.changes += len(changes)
        for n, addresses in changes:
            launch: Any = self._work[self._launches[n]]
            self._work[self._launches[n]] = partial(launch.func, *launch.args[:-1], tuple(addresses))
        for condition in self._conditions:
            condition.value = _UNSET
        for function in self._work:
            function()


class EmulatedDevice:
    """
    Args:
        order: in which threads and blocks run.
        capacity: bytes of memory.
        has_conditions: whether graphs may have them.
        level: of the host compiler's optimization, as in `build`.

    Attributes:
        copied_in, copied_out: bytes, so far.
        launches, graphs: how many, so far; replayed launches count.
    """

    ordinal = 0
    name = "emulated GPU"
    arch = "sm_90"
    multiprocessors = 4
    peaks = Peaks()
    stream = 0x57
    has_libraries = False
    turn = nullcontext()

    def __init__(self, order: int = 0, capacity: int = 1 << 28, *, has_conditions: bool = True, level: str = "g") -> None:
        self.order, self.capacity, self.has_conditions, self.level = order, capacity, has_conditions, level
        self.lock = RLock()
        self.memories: dict[int, GuardedMemory] = {}
        self.copied_in = self.copied_out = self.launches = 0
        self.graphs: list[EmulatedGraph] = []
        self._waiting: list[EmulatedCode] = []
        self._recorded: list[Callable[[], None]] | None = None
        self._conditions: dict[int, ctypes.c_uint] = {}  # of the graph that is recorded, and which of them are taken
        self._taken: set[int] = set()
        self._fault: str | None = None
        self.keepers: WeakSet[Keeper] = WeakSet()
        self.orders: list[tuple[str, int]] = []  # what other streams have been ordered with

    @property
    def used(self) -> int:
        return sum(memory.size for memory in self.memories.values())

    def allocate(self, nbytes: int) -> int:
        self._look()
        assert self._recorded is None, "memory is taken while a graph is recorded"
        if not nbytes:
            return 0
        if self.used + nbytes > self.capacity:
            for keeper in [*self.keepers]:
                keeper.give_up()
        if self.used + nbytes > self.capacity:
            raise DeviceMemoryError(f"{self.name} has not {nbytes:,} bytes: {self.capacity - self.used:,} are free")
        memory = GuardedMemory(nbytes, 256)
        self.memories[memory.address] = memory
        return memory.address

    def workspace(self, nbytes: int) -> int:
        raise AssertionError("there are no libraries")

    def free(self, address: int) -> None:
        if address and self._fault is None:
            self.memories.pop(address).check()

    def copy_in(self, address: int, host: Array) -> None:
        self._look()
        assert self._recorded is None and host.flags.c_contiguous
        self.copied_in += host.nbytes
        self._view(address, host.nbytes)[...] = host.reshape(-1).view(np.uint8)

    def copy_out(self, *pairs: tuple[Array, int]) -> None:
        self._look()
        assert self._recorded is None
        for host, address in pairs:
            assert host.flags.c_contiguous
            self.copied_out += host.nbytes
            host.reshape(-1).view(np.uint8)[...] = self._view(address, host.nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._do(lambda: np.copyto(self._view(target, nbytes), self._view(source, nbytes)))

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        self._do(lambda: self._view(address, nbytes).fill(byte))

    def load(self, source: str) -> DeviceCode:
        code = EmulatedCode(source)
        self._waiting.append(code)
        return code

    def launch(self, function: DeviceFunction, blocks: int, threads: int, shared: int, addresses: Sequence[int]) -> None:
        assert isinstance(function, EmulatedFunction)
        self._do(partial(self._launch, function, blocks, threads, shared, tuple(addresses)))

    def synchronize(self) -> None:
        self._look()

    def record(self, work: Callable[[], None]) -> DeviceGraph:
        self._look()
        self._recorded = recorded = []
        self._conditions, self._taken = {}, set()
        try:
            work()
        finally:
            self._recorded = None
        assert self._taken == self._conditions.keys(), "a condition without a node of its own"
        self.graphs.append(EmulatedGraph(recorded, [*self._conditions.values()]))
        return self.graphs[-1]

    def new_condition(self) -> int:
        assert self.has_conditions and self._recorded is not None
        condition = ctypes.c_uint(_UNSET)
        self._conditions[ctypes.addressof(condition)] = condition
        return ctypes.addressof(condition)

    def conditional(self, kind: Literal["if", "while"], condition: int, work: Callable[[], None]) -> None:
        assert self._recorded is not None and condition in self._conditions and condition not in self._taken
        self._taken.add(condition)
        state, around = self._conditions[condition], self._recorded
        self._recorded = inside = []
        try:
            work()
        finally:
            self._recorded = around

        def run() -> None:
            assert state.value in (0, 1), "a condition that no kernel has set"
            times = 0
            while state.value and times < (1 if kind == "if" else _ENDLESS):
                for function in inside:
                    function()
                times += 1
            assert times < _ENDLESS, "a loop that does not end"

        self._do(run)

    def memory(self) -> tuple[int, int]:
        return self.capacity - self.used, self.capacity

    def wait_for(self, stream: int) -> None:
        self.orders.append(("wait for", stream))

    wait_later = wait_for

    def hold_back(self, stream: int) -> None:
        self.orders.append(("hold back", stream))

    def _do(self, work: Callable[[], None]) -> None:
        self._look()
        if self._recorded is not None:
            self._recorded.append(work)
        else:
            work()

    def _launch(self, function: EmulatedFunction, blocks: int, threads: int, shared: int, addresses: Sequence[int]) -> None:
        self.launches += 1
        given = map(np.uint64, addresses)
        if function.code.module is None:
            self._build()
        assert function.code.module is not None
        try:
            function.code.module.launch(function.entry, blocks, threads, *given, shared=shared, order=self.order)
        except KernelFault as fault:
            self._fail(str(fault))

    def _build(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            modules = build([code.source for code in waiting], self.level)
        except BuildError as error:
            raise CompilerError(f"g++: {error}") from error
        for code, module in zip(waiting, modules):
            code.module = module

    def _fail(self, message: str) -> NoReturn:
        self._fault = message
        self.memories.clear()
        raise DeviceFault(f"code has failed on {self.name}: {message}")

    def _look(self) -> None:
        if self._fault is not None:
            raise DeviceFault(f"{self.name} does nothing more for this process: {self._fault}")

    def _view(self, address: int, nbytes: int) -> Array:
        """Bytes of the device's memory, which somebody has allocated."""
        if not nbytes:
            return np.empty(0, np.uint8)
        inside = any(start <= address and address + nbytes <= start + m.size for start, m in self.memories.items())
        if not inside:
            self._fail(f"{nbytes} bytes at {address:#x} are not allocated")
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))


@contextmanager
def emulated(
    order: int = 0, capacity: int = 1 << 28, *, has_conditions: bool = True, level: str = "g"
) -> Iterator[EmulatedDevice]:
    """Programs of the CUDA back end run on an emulated device meanwhile, which has all its memory back at the end."""
    device = EmulatedDevice(order, capacity, has_conditions=has_conditions, level=level)
    with replaced(device):
        yield device
