"""Arena layout: where does each buffer stand in the arena?  Arithmetic on intervals: lifetimes and sizes in, byte offsets out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jitml.memory.liveness import Lifetime, peak
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class Packing:
    """Byte offsets by name, the arena's size, and the peak of live bytes that it could not fall below."""

    offsets: Mapping[str, int]
    size: int
    lower_bound: int


def aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def pack(sizes: Mapping[str, int], lives: Mapping[str, Lifetime], alignment: int = 64) -> Packing:
    """Place buffers in one arena so that no two live at once overlap.

    One after the other at the lowest offset that is free over its lifetime, largest first ("greedy by size", Pisarchyk
    and Lee 2020, arXiv:2001.03288); if that exceeds the peak of live bytes, also longest-lived first and in order of
    first use, and the smallest arena wins. O(n²) for each order.

    Args:
        alignment: of every offset, in bytes.

    >>> lives = {"a": Lifetime(0, 1), "b": Lifetime(1, 2), "c": Lifetime(2, 3)}
    >>> pack({"a": 100, "b": 64, "c": 100}, lives)
    Packing(offsets={'a': 0, 'b': 128, 'c': 0}, size=192, lower_bound=192)
    """
    rounded = {name: aligned(size, alignment) for name, size in sizes.items()}
    bound = peak(rounded, lives)
    orders: tuple[Callable[[str], tuple[int, ...]], ...] = (
        lambda name: (-rounded[name], lives[name].first),
        lambda name: (lives[name].first - lives[name].last, -rounded[name]),
        lambda name: (lives[name].first, -rounded[name]),
        lambda name: (-lives[name].last, -rounded[name]),
    )
    best: Packing | None = None
    for order in orders:
        offsets = _place_first_fit(sorted(rounded, key=order), rounded, lives)
        size = max((offsets[name] + rounded[name] for name in offsets), default=0)
        if best is None or size < best.size:
            best = Packing({name: offsets[name] for name in sizes}, size, bound)
        if best.size == bound:
            break
    assert best is not None
    return best


def _place_first_fit(order: Sequence[str], sizes: Mapping[str, int], lives: Mapping[str, Lifetime]) -> dict[str, int]:
    offsets: dict[str, int] = {}
    taken: list[tuple[int, int, Lifetime]] = []  # offset, end, lifetime; by offset
    for name in order:
        size, life = sizes[name], lives[name]
        at = 0
        for start, end, other in taken:
            if other.overlaps(life):
                if start - at >= size:
                    break
                at = max(at, end)
        offsets[name] = at
        if size:
            taken.append((at, at + size, life))
            taken.sort(key=lambda t: t[:2])
    return offsets
