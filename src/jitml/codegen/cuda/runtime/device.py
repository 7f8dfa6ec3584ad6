"""Device protocol: memory, copies, code and launches of one GPU, as everything above the driver sees it.

The driver (`driver.py`) fills it in for a real GPU; the tests have one whose memory is the host's and whose kernels g++ compiles.
Addresses are plain integers. All work goes to one stream and happens in the order of the calls: what is freed is given back
after the launches before it, so nobody waits for the GPU but `copy_out` and `synchronize`. A method may be called by any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol
from weakref import WeakSet

import numpy as np

from jitml.device.memory import DeviceMemory
from jitml.ir.types import DType
from jitml.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Peaks:
    """What a device can do at most, by its data sheet or as measured; 0 where nobody knows.

    Args:
        copy: bytes a nanosecond, read and written, of a copy in its memory.
        f32, f64, matrix16: operations a nanosecond; the last of its tensor cores on 16-bit floats.
    """

    copy: float = 0.0
    f32: float = 0.0
    f64: float = 0.0
    matrix16: float = 0.0


class DeviceArgument(NamedTuple):
    """An array in the device's memory, as a program takes and gives it.

    Args:
        address: of the first element, which negative strides put above the lowest one.
        strides: in bytes; C order if None.
        owned: of a program's output, the address that whoever gets it has to free; 0 for what was the caller's before.
        nbytes: of the memory at that address.
    """

    address: int
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...] | None = None
    owned: int = 0
    nbytes: int = 0


class DeviceCode(Protocol):
    """Code that a device has loaded: its kernels by name. Unloaded once nobody holds it."""

    def __getitem__(self, entry: str) -> DeviceFunction:
        """
        Raises:
            KeyError: there is no kernel of that name.
        """


class DeviceFunction(Protocol):
    """A kernel that can be launched."""

    @property
    def entry(self) -> str: ...


class DeviceGraph(Protocol):
    """Launches, copies and fills that have been recorded, to be done again with one call."""

    def replay(self, changes: Sequence[tuple[int, Sequence[int]]] = ()) -> None:
        """
        Args:
            changes: launches, by their number among those of the graph, and what their parameters are from now on.
        """


class Keeper(Protocol):
    """What keeps memory for later, and can do without."""

    def give_up(self) -> None:
        """Free it. The device's lock is held."""


class Device(DeviceMemory, Protocol):
    """What programs need of a device, beside memory.

    Attributes:
        name: for people: `NVIDIA H100 80GB HBM3`.
        arch: what code is compiled for: `sm_90`.
        lock, turn: what a thread asks for inside of `with device.lock, device.turn` comes one after the other, and is asked for
            in less time. Methods take both by themselves.
        keepers: who is asked to give up memory before an allocation fails.
    """

    @property
    def name(self) -> str: ...

    @property
    def arch(self) -> str: ...

    @property
    def multiprocessors(self) -> int: ...

    @property
    def peaks(self) -> Peaks: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def turn(self) -> AbstractContextManager[Any]: ...

    @property
    def keepers(self) -> WeakSet[Keeper]: ...

    @property
    def has_libraries(self) -> bool:
        """Whether NVIDIA's libraries can work on its stream."""

    @property
    def has_conditions(self) -> bool:
        """Whether graphs may have conditions."""

    def workspace(self, nbytes: int) -> int:
        """Memory for those libraries, one piece for all programs: their work is done in the order of the stream."""

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set every byte to `byte`."""

    def load(self, source: str) -> DeviceCode:
        """Compile CUDA C++ text, and load it.

        Raises:
            CompilerError: the compiler refuses it.
        """

    def launch(self, function: DeviceFunction, blocks: int, threads: int, shared: int, addresses: Sequence[int]) -> None:
        """Run a kernel.

        Args:
            shared: bytes of dynamic shared memory for each block.
            addresses: its parameters: pointers, and integers of 64 bits.
        """

    def record(self, work: Callable[[], None]) -> DeviceGraph:
        """What `work` asks for, not done but recorded. It may launch, copy on the device and fill, and nothing else.

        What it asks for inside of `conditional` depends on a condition, and cannot be changed; it is not counted as launches.
        """

    def new_condition(self) -> int:
        """A condition of the graph that is being recorded. Kernels of it set it, before it is asked for; a run begins without."""

    def conditional(self, kind: Literal["if", "while"], condition: int, work: Callable[[], None]) -> None:
        """Record what is to be done if a condition holds, or as long as it does."""

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and bytes that there are."""
