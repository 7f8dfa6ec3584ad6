"""Traffic of emulated kernels: how many bytes do warps move for those they want, and do lanes share banks?"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from support.cuda_emulation.build import build
from support.cuda_emulation.launch import machine


@dataclass(frozen=True, slots=True)
class Traffic:
    """What warps have asked for.

    Args:
        nbytes, sectors: of the device's memory: bytes that lanes wanted, and stretches of 32 bytes that hold them.
        least_rounds, rounds: of shared memory, whose 32 banks have one word a round: were there no conflicts, and in truth.
    """

    nbytes: int
    sectors: int
    least_rounds: int
    rounds: int

    @property
    def overhead(self) -> float:
        """Bytes that are moved for each that is wanted."""
        return 32 * self.sectors / self.nbytes


@contextmanager
def counted() -> Iterator[Callable[[], Traffic]]:
    """Count the traffic of what is launched inside; gives a function that says how much it has been so far."""
    build(['extern "C" __global__ void nothing() {}'])  # there is a machine from the first one on
    machine().emulation_count_traffic(1)

    def traffic() -> Traffic:
        counts = (ctypes.c_uint64 * 4)()
        machine().emulation_traffic(counts)
        return Traffic(*counts)

    try:
        yield traffic
    finally:
        machine().emulation_count_traffic(0)
