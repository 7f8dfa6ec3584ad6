"""Alias information: which buffers of a program share bytes?  What emitted functions may promise about their pointers."""

from __future__ import annotations

from collections.abc import Iterable

from jitml.memory.program import Place, Program
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class BufferStorage:
    """Where a buffer lies, as far as it matters to a function: two of one storage begin at one address.

    group: the first buffer that it shares bytes with: itself, or the one that it updates in place.
    offset: bytes from there.
    """

    group: str
    offset: int = 0


def storages(program: Program, names: Iterable[str]) -> dict[str, BufferStorage]:
    """Of each buffer, where it lies beside the others."""
    found: dict[str, BufferStorage] = {}
    seen: list[tuple[Place, int, str, int]] = []
    for name in names:
        place, size = program.places[name], program.kernels.buffers[name].nbytes
        group, start = next(
            ((owner, start) for other, length, owner, start in seen if _overlap(place, size, other, length)), (name, place.offset)
        )
        found[name] = BufferStorage(group, place.offset - start)
        seen.append((place, size, group, start))
    return found


def _overlap(a: Place, size: int, b: Place, length: int) -> bool:
    if a.space != b.space or a.space != "arena":
        return (a.space, a.index) == (b.space, b.index)
    return a.offset < b.offset + length and b.offset < a.offset + size
