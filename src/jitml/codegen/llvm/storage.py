"""Which buffers of a program share bytes?  What emitted functions may promise LLVM about their pointers."""

from __future__ import annotations

from collections.abc import Iterable

from jitml.memory.program import Place, Program


def storage_groups(program: Program, names: Iterable[str]) -> dict[str, str]:
    """Of each buffer, the first one that it shares bytes with: itself, or the one that it updates in place."""
    groups: dict[str, str] = {}
    seen: list[tuple[Place, int, str]] = []
    for name in names:
        place, size = program.places[name], program.kernels.buffers[name].nbytes
        group = next((owner for other, length, owner in seen if _overlap(place, size, other, length)), name)
        groups[name] = group
        seen.append((place, size, group))
    return groups


def _overlap(a: Place, size: int, b: Place, length: int) -> bool:
    if a.space != b.space or a.space != "arena":
        return (a.space, a.index) == (b.space, b.index)
    return a.offset < b.offset + length and b.offset < a.offset + size
