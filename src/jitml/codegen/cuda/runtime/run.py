"""Runs: what do the parts of a program ask of the device, and what do they share?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from jitml.codegen.cuda.calls.plan import LibraryCall
from jitml.codegen.cuda.runtime.device import Device, DeviceFunction

Array = np.ndarray[Any, Any]

NO_CONDITION = 2**64 - 1  # in place of one


class RunStopped(Exception):
    """A check has failed; nothing of what follows is to be done."""


class Run:
    """One run of a program: where it happens, and what all its parts share.

    Args:
        error: the address of the error record; 0 if the program has none.
        extents: where the caller's arrays begin and end, if the host takes part.

    Attributes:
        decides: whether the device is to decide how regions go on, and not the host: then nothing is read.
    """

    __slots__ = ("_extents", "device", "error")
    decides = False

    def __init__(self, device: Device, error: int, extents: Sequence[tuple[int, int]] = ()) -> None:
        self.device, self.error, self._extents = device, error, extents

    def there(self, memory: Array, lowest: int) -> Array:
        """The part of a buffer's bytes that the device has from this address on: of open size, a caller's array is as it is."""
        ends = [end - lowest for begin, end in self._extents if begin <= lowest < end or begin == lowest]
        return memory[: max(ends)] if ends else memory

    def launch(self, function: DeviceFunction, blocks: int, threads: int, shared: int, addresses: Sequence[int]) -> None:
        self.device.launch(function, blocks, threads, shared, addresses)

    def call_library(self, call: LibraryCall, addresses: Sequence[int]) -> None:
        with self.device.lock, self.device.turn:
            shared = [self.device.workspace(call.workspace)] if call.workspace else []
            call(self.device.stream, [*addresses, *shared])

    def read(self, *wanted: tuple[Array, int]) -> None:
        """Copy out what the host must know.

        Raises:
            RunStopped: a check has failed, so that what is there means nothing.
        """
        failed = np.zeros(1, np.int64)
        record = [(failed, self.error)] if self.error else []
        self.device.copy_out(*wanted, *record)
        if failed[0]:
            raise RunStopped

    def condition(self) -> int:
        """A new condition, as kernels take it that decide."""
        raise NotImplementedError

    def conditional(self, kind: Literal["if", "while"], condition: int, work: Callable[[], None]) -> None:
        """What `work` asks for happens if a condition holds, or as long as it does."""
        raise NotImplementedError
