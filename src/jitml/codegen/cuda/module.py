"""Modules: what is there to compile and to launch of a program?  CUDA C++ text, and the launches of its steps; data."""

from __future__ import annotations

from collections.abc import Mapping

from jitml.kernels.ir import Check
from jitml.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of a `__global__` function, on a grid of one axis.

    Args:
        entry: the function's name in the source, without mangling.
        blocks, threads: of the grid, and of each block. Blocks stride over their loop, so that fewer would do as well.
        shared: bytes of dynamic shared memory.
        buffers: of the program around; the function takes a pointer into each, in this order.
        has_error: whether a last pointer follows, to the program's error record.
        starts: how many bytes behind the first element of each buffer the pointer is; for all of them 0 if there are none.
        numbers: of 64 bits, which follow the buffers. Launches that differ in starts and numbers share a function.
    """

    entry: str
    blocks: int
    threads: int
    shared: int
    buffers: tuple[str, ...]
    has_error: bool = False
    starts: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CudaModule:
    """A program as CUDA C++.

    Args:
        source: the whole text, which includes no header.
        launches: of each step, bodies of regions included, by its `id`; they run one after the other.
        checks: what may fail. The error record is `error_words` numbers of 64 bits, all 0 before the run: then 1 + the index of
            a check that has failed, and its values. Once it is set, the rest of the program does nothing.
    """

    source: str
    launches: Mapping[int, tuple[Launch, ...]]
    checks: tuple[Check, ...] = ()
    error_words: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "error_words", 1 + max((len(check.values) for check in self.checks), default=0))
