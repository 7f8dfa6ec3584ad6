"""Occupancy: how many blocks of a kernel can a multiprocessor hold at once?  By NVIDIA's rules; no device is asked."""

from __future__ import annotations

from collections.abc import Mapping

from jitml.codegen.cuda.target import WARP
from jitml.records import dataclass

_REGISTERS, _PARTS = 65536, 4  # of a multiprocessor, which is made of so many parts, each with its share of them
_REGISTER_GRAIN = 256  # registers of a warp are given out by so many
_SHARED_GRAIN, _SHARED_RESERVED = 128, 1024  # bytes of a block: what they are given out by, and what the system takes


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one multiprocessor holds at most.

    Args:
        shared: bytes of shared memory, those that the system takes of each block included.
    """

    threads: int
    blocks: int
    shared: int


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    "sm_80": Multiprocessor(2048, 32, 164 << 10),
    "sm_86": Multiprocessor(1536, 16, 100 << 10),
    "sm_89": Multiprocessor(1536, 24, 100 << 10),
    "sm_90": Multiprocessor(2048, 32, 228 << 10),
    "sm_100": Multiprocessor(2048, 32, 228 << 10),
    "sm_120": Multiprocessor(1536, 32, 100 << 10),
}


def resident_blocks(arch: str, threads: int, registers: int, shared: int) -> int | None:
    """How many blocks are resident; None if nobody has said what the architecture holds.

    Args:
        threads: of a block.
        registers: of a thread.
        shared: bytes of a block, static and dynamic.

    >>> resident_blocks("sm_90", 256, 40, 0), resident_blocks("sm_90", 256, 32, 100 << 10), resident_blocks("sm_1", 32, 32, 0)
    (6, 2, None)
    """
    if arch not in MULTIPROCESSORS:
        return None
    holds = MULTIPROCESSORS[arch]
    warps = -(-threads // WARP)
    each = -(-registers * WARP // _REGISTER_GRAIN) * _REGISTER_GRAIN
    by_registers = _REGISTERS // _PARTS // each * _PARTS // warps if each else holds.blocks
    by_shared = holds.shared // (-(-(shared + _SHARED_RESERVED) // _SHARED_GRAIN) * _SHARED_GRAIN)
    return min(holds.blocks, holds.threads // (warps * WARP), by_registers, by_shared)
