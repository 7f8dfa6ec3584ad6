"""Device memory: who owns the bytes behind an array, and what is asked of the device that has them.

A `MemoryBlock` frees what it owns when the last array over it is gone, in the order of the device's stream: what was launched
before still finds its data. Memory that others share with us, or we with them, is used on their streams as well: the block waits
for these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from jitml.errors import JitmlError
from jitml.records import dataclass, field

HostArray = np.ndarray[Any, Any]


class DeviceMemory(Protocol):
    """What arrays need of a device. Work on it is asynchronous, in the order of one stream.

    Attributes:
        ordinal: its number among those of its kind.
        stream: the driver's handle of the stream, for others who work on the same arrays.
    """

    @property
    def ordinal(self) -> int: ...

    @property
    def stream(self) -> int: ...

    def allocate(self, nbytes: int) -> int:
        """New memory, aligned to 256 bytes, with any contents; 0 for none.

        Raises:
            DeviceMemoryError: there is not so much.
        """

    def free(self, address: int) -> None:
        """Give memory back, once what has been asked for so far is done; 0 is nothing."""

    def copy_in(self, address: int, host: HostArray) -> None:
        """Copy a C-contiguous array to the device. The array may be changed as soon as this returns."""

    def copy_out(self, *pairs: tuple[HostArray, int]) -> None:
        """Fill C-contiguous arrays from the device; waits until they are there.

        Raises:
            DeviceFault: work before it has failed on the device.
        """

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy on the device; the two may not overlap, unless they are the same."""

    def synchronize(self) -> None:
        """Wait until all is done.

        Raises:
            DeviceFault: some of it has failed on the device.
        """

    def wait_for(self, stream: int) -> None:
        """Let what is asked for from now on wait for another stream."""

    def wait_later(self, stream: int) -> None:
        """The same for what is freed from now on; a collector may ask for it, as for `free`, in any thread."""

    def hold_back(self, stream: int) -> None:
        """Let another stream wait for what has been asked for here."""


@dataclass(slots=True)
class CopyCount:
    """Copies between the host and a device since the process began."""

    to_device: int = 0
    bytes_to_device: int = 0
    to_host: int = 0
    bytes_to_host: int = 0


@dataclass(frozen=True, eq=False)
class ArrayDevice:
    """A device as users know it.

    Args:
        name: `cuda`.
        dlpack_type: DLPack's number for devices of its kind.
        memory: what does the work.
        backend: what compiles for it (`config.BACKENDS`).
        program: the function that calls a compiled program, by what is `given`.
        given: what its programs take for a view of its memory; remembered as the view's `argument`, if that is worth it.
        taken: the view of what they return: new memory.
    """

    name: str
    dlpack_type: int
    memory: DeviceMemory = field(repr=False)
    backend: str = field(repr=False)
    program: Callable[[Any], Callable[..., Sequence[Any]]] = field(repr=False)
    given: Callable[[Any], Any] = field(repr=False)
    taken: Callable[[ArrayDevice, Any], Any] = field(repr=False)
    copies: CopyCount = field(default_factory=CopyCount, repr=False)

    @property
    def dlpack(self) -> tuple[int, int]:
        return self.dlpack_type, self.memory.ordinal


class MemoryBlock:
    """A range of device memory.

    Args:
        release: gives it back, called once; None for memory that the device has allocated.

    Attributes:
        streams: others that use it as well.
    """

    __slots__ = ("__weakref__", "_release", "address", "device", "nbytes", "readonly", "streams")

    def __init__(
        self,
        device: ArrayDevice,
        address: int,
        nbytes: int,
        release: Callable[[], object] | None = None,
        readonly: bool = False,
    ) -> None:
        self.device, self.address, self.nbytes, self._release, self.readonly = device, address, nbytes, release, readonly
        self.streams: set[int] = set()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """By which NumPy keeps the block alive as the base of a `DeviceView`."""
        return {"data": (self.address, self.readonly), "shape": (self.nbytes,), "typestr": "|u1", "version": 3}

    def __del__(self, suppress: Any = suppress, of_ours: Any = JitmlError) -> None:  # names are gone when Python ends
        for stream in self.streams:
            with suppress(of_ours):  # of a stream or a device that is gone, nobody uses the memory any more
                self.device.memory.wait_later(stream)
        if self._release is None:
            self.device.memory.free(self.address)
        else:
            self._release()


def new_block(device: ArrayDevice, nbytes: int) -> MemoryBlock:
    """New memory on a device; what is in it is not known."""
    return MemoryBlock(device, device.memory.allocate(nbytes), nbytes)
