"""Singletons of the process: native code and tables that are made once, whichever thread asks first."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from jitml.forks import lock

T = TypeVar("T")
_making = lock()  # one for all, since making one asks for others


def once(make: Callable[[], T]) -> Callable[[], T]:
    """`functools.cache` would let threads that ask at the same time have one each: two pools, two words that signals set."""
    made: list[T] = []

    @wraps(make)
    def get() -> T:
        if not made:
            with _making:
                if not made:
                    made.append(make())
        return made[0]

    return get
