"""Layout of a call's device memory: one allocation for the arena, scratch, and arrays that come from the host.

The head is written by one copy: the error record, all zeros, and what is small of the inputs, each number of a size or a place
among them.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.memory.arena import aligned
from jitml.records import dataclass

ALIGNMENT = 256
_SMALL = 1 << 10  # bytes of an input that travels in the head
ELSEWHERE = -1


@dataclass(frozen=True, slots=True)
class CallLayout:
    """Offsets in bytes.

    Args:
        head: bytes from the start that are copied in at each call.
        inputs, outputs: None for what lies elsewhere.
        in_head: positions of the inputs that the head holds.
    """

    head: int
    scratch: int
    arena: int
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    in_head: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, words: int, scratch: int, arena: int, inputs: Sequence[int], outputs: Sequence[int]) -> CallLayout:
        """
        Args:
            words: of 64 bits, in the error record.
            inputs, outputs: their bytes, or ELSEWHERE.

        >>> CallLayout.of(1, 0, 100, [8, 4096, ELSEWHERE], [64]).inputs
        (256, 768, None)
        """
        at = aligned(8 * words, ALIGNMENT)
        places: dict[int, int] = {}
        in_head = tuple(n for n, nbytes in enumerate(inputs) if 0 <= nbytes <= _SMALL)
        for n in in_head:
            places[n], at = at, at + aligned(max(1, inputs[n]), ALIGNMENT)  # none where another is
        head = at
        scratch_at, at = at, at + aligned(scratch, ALIGNMENT)
        arena_at, at = at, at + aligned(arena, ALIGNMENT)
        for n, nbytes in enumerate(inputs):
            if nbytes > _SMALL:
                places[n], at = at, at + aligned(nbytes, ALIGNMENT)
        results: list[int | None] = []
        for nbytes in outputs:
            results.append(None if nbytes == ELSEWHERE else at)
            at += 0 if nbytes == ELSEWHERE else aligned(max(1, nbytes), ALIGNMENT)
        given = tuple(places.get(n) for n in range(len(inputs)))
        return cls(head, scratch_at, arena_at, given, tuple(results), in_head, at)
