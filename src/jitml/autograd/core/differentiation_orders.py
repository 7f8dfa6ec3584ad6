"""Orders of differentiation: how many derivatives may be asked for of what is being traced?

Rules of the user's are traced for just so many.

A rule that calls its own function, as rules do, would otherwise be traced without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jitml.interrupts import unset

_levels: ContextVar[int] = ContextVar("jitml_derivatives", default=0)


def levels() -> int:
    return _levels.get()


@contextmanager
def at_level(number: int) -> Iterator[None]:
    """What is traced inside the block is differentiated at most so often."""
    token = _levels.set(number)
    try:
        yield
    finally:
        unset(_levels, token)
