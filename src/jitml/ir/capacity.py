"""Loop capacity: for how many iterations is room reserved, where nobody knows how many a loop will run?

As many as it has been seen to.

What a loop saves for its derivative lies in arrays of a fixed length. A program that is made inside `learning` begins with short
ones; a loop that runs further leaves it with `MoreIterations`, and whoever has called it makes it again (`learn`), with more room
for that loop, up to what there may be. What has been learned of a line of the user's holds for all programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jitml.errors import MoreIterations, Source
from jitml.forks import lock
from jitml.interrupts import unset
from jitml.records import dataclass

GROWTH = 4  # what has run out is made so many times as long

_Line = tuple[str, int, str]

_learns: ContextVar[bool] = ContextVar("jitml_learns", default=False)
_lines: dict[_Line, int] = {}  # a number for each, in order
_learned: dict[_Line, int] = {}
_lock = lock()


@dataclass(frozen=True, slots=True)
class Room:
    """So many iterations; `line` is the number under which a loop learns that it needs more, None if there can be no more."""

    iterations: int
    line: int | None = None


@contextmanager
def learning() -> Iterator[None]:
    """Inside the block programs are made by one who will make them again where there is too little room."""
    token = _learns.set(True)
    try:
        yield
    finally:
        unset(_learns, token)


def is_learning() -> bool:
    return _learns.get()


def reserved(source: Source | None, first: int, most: int) -> Room:
    """The room for a loop, inside of `learning`.

    Args:
        first: iterations, as long as nothing else is known.
        most: what there may be.
    """
    line = _line(source)
    iterations = max(first, _learned.get(line, 0))
    if iterations >= most:
        return Room(most)
    with _lock:
        return Room(iterations, _lines.setdefault(line, len(_lines)))


def learn(failure: MoreIterations) -> None:
    """Have room for what has run out of it, from now on."""
    number, times, room = failure.fact
    with _lock:
        line = list(_lines)[number]
        _learned[line] = max(_learned.get(line, 0), GROWTH * room, 1 << (times - 1).bit_length())


def _line(source: Source | None) -> _Line:
    return ("", 0, "") if source is None else (source.file, source.line, source.function)
