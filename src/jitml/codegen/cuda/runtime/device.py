"""Device protocol: memory, copies, code and launches of one GPU, as everything above the driver sees it.

The driver (`driver.py`) fills it in for a real GPU; the tests have one whose memory is the host's and whose kernels g++ compiles.
Addresses are plain integers. All work goes to one stream and happens in the order of the calls: what is freed is given back
after the launches before it, so nobody waits for the GPU but `copy_out` and `synchronize`. A method may be called by any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

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


@dataclass(frozen=True, slots=True)
class DeviceArgument:
    """An array in the device's memory, as a program takes and gives it.

    Args:
        address: of the first element, which negative strides put above the lowest one.
        strides: in elements; C order if None.
        owned: of a program's output, the address that whoever gets it has to free; 0 for what was the caller's before.
    """

    address: int
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...] | None = None
    owned: int = 0


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

    def replay(self) -> None: ...


class Device(Protocol):
    """
    Attributes:
        name: for people: `NVIDIA H100 80GB HBM3`.
        arch: what code is compiled for: `sm_90`.
        stream: the driver's handle of the one stream, for others who work on the same arrays.
    """

    @property
    def ordinal(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def arch(self) -> str: ...

    @property
    def multiprocessors(self) -> int: ...

    @property
    def peaks(self) -> Peaks: ...

    @property
    def stream(self) -> int: ...

    @property
    def has_libraries(self) -> bool:
        """Whether NVIDIA's libraries can work on its stream."""

    def allocate(self, nbytes: int) -> int:
        """New memory, aligned to 256 bytes, with any contents; 0 for none.

        Raises:
            DeviceMemoryError: there is not so much.
        """

    def free(self, address: int) -> None:
        """Give memory back after all that has been asked for so far; 0 is nothing."""

    def copy_in(self, address: int, host: Array) -> None:
        """Copy a C-contiguous array to the device. The array may be changed as soon as this returns."""

    def copy_out(self, *pairs: tuple[Array, int]) -> None:
        """Fill C-contiguous arrays from the device; waits until they are there.

        Raises:
            DeviceFault: work before it has failed on the device.
        """

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy on the device; the two may not overlap, unless they are the same."""

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

    def together(self) -> AbstractContextManager[None]:
        """What this thread asks for inside comes one after the other, and takes less time to ask for."""

    def synchronize(self) -> None:
        """Wait until all is done.

        Raises:
            DeviceFault: some of it has failed on the device.
        """

    def record(self, work: Callable[[], None]) -> DeviceGraph:
        """What `work` asks for, not done but recorded. It may launch, copy on the device and fill, and nothing else."""

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and bytes that there are."""

    def wait_for(self, stream: int) -> None:
        """Let what is asked for from now on wait for what another stream has been asked for."""

    def wait_later(self, stream: int) -> None:
        """The same for what is freed from now on; a collector may ask for it, as for `free`, in any thread."""

    def hold_back(self, stream: int) -> None:
        """Let another stream wait for what has been asked for here."""
