"""What memory planning hands down: the kernel program with a place for every buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from jitml.kernels.program import KernelProgram
from jitml.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer lives: an input, output or constant by `index` in its table, or the arena at `offset` bytes."""

    space: Literal["input", "output", "constant", "arena"]
    index: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The planner's account, in bytes; `in_place` lists (written buffer, buffer whose storage it took, step)."""

    arena: int
    lower_bound: int
    total: int  # if every intermediate had its own memory
    in_place: tuple[tuple[str, str, int], ...] = ()
    copies: tuple[str, ...] = ()  # buffers copied because an update in place was not possible


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order and an address for each buffer: all that code generation needs.

    `kernels.steps` may hold `copy` calls that the planner inserted. Places of inputs, outputs and constants index the
    entry's tables; several buffers may share one place.
    `bodies`: the plans of each region's bodies, by the region's name; their arena is the region's scratch.
    """

    kernels: KernelProgram
    places: Mapping[str, Place]
    arena_size: int
    report: MemoryReport = field(compare=False)
    bodies: Mapping[str, tuple[Program, ...]] = field(default_factory=dict)
