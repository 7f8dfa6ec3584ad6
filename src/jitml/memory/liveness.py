"""Liveness: when must a buffer's contents be kept?  From its first write to its last use, in steps of the program.

Reads of constants and of the caller's arrays cost nothing: only buffers that the program itself must store matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain

from jitml.kernels.ir import Check, Kernel, walk
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.kernels.sizes import buffers_of
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class Lifetime:
    """First and last step in which a buffer is needed, both inclusive; -1 is before the first step."""

    first: int
    last: int

    def overlaps(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Uses:
    """What one step touches: the buffers whose contents it needs at its start or loads, and those it stores to."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


def uses_of(step: Step, program: KernelProgram) -> Uses:
    reads = (*step.reads, *step.updates.values())
    return Uses(tuple(dict.fromkeys((*reads, *sizes_of((*reads, *step.writes), program)))), step.writes)


def sizes_of(names: Iterable[str], program: KernelProgram) -> tuple[str, ...]:
    """The buffers that hold the sizes of some buffers: calls into libraries and copies run to the true extents."""
    if not program.extents:
        return ()
    found = (buffers_of(program.extents.get(name, ()), program.sizes) for name in names)
    return tuple(dict.fromkeys(chain.from_iterable(found)))


def has_check(step: Step) -> bool:
    """Whether the program may end with an error in this step."""
    match step:
        case Kernel():
            return any(isinstance(s, Check) for s in walk(step.body))
        case Call(name):
            return name == "host"
        case Region():
            return any(has_check(inner) for body in step.bodies for inner in body.steps)
    return False


def lifetimes(program: KernelProgram, uses: Sequence[Uses]) -> dict[str, Lifetime]:
    """The lifetime of every buffer; outputs live to the end, one step after the last.

    A buffer that no step touches is live at no step: its lifetime ends before it begins.
    """
    first = dict.fromkeys((*program.inputs, *program.constants), -1)
    last = dict.fromkeys(first, -1)
    for n, step in enumerate(uses):
        for name in step.writes:
            first.setdefault(name, n)
        for name in (*step.reads, *step.writes):
            last[name] = n
    for name in (*program.outputs, *sizes_of(program.outputs, program)):
        last[name] = len(program.steps)
    end = len(program.steps)
    return {name: Lifetime(first.get(name, end), last.get(name, -1)) for name in program.buffers}


def peak(sizes: Mapping[str, int], lives: Mapping[str, Lifetime]) -> int:
    """The largest sum of sizes live at one step: no arena can be smaller.

    >>> peak({"a": 8, "b": 8, "c": 8}, {"a": Lifetime(0, 1), "b": Lifetime(1, 2), "c": Lifetime(2, 3)})
    16
    """
    changes: Counter[int] = Counter()
    for name, size in sizes.items():
        changes[lives[name].first] += size
        changes[lives[name].last + 1] -= size
    return max(accumulate(changes[n] for n in sorted(changes)), default=0)
