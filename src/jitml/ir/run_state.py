"""State of running programs, by thread: effects postponed until nothing can fail any more, and generators that programs made."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from jitml.interrupts import preserve

T = TypeVar("T")


class _Postponed(threading.local):
    """What running programs will do for others to see once they have succeeded, by thread; None where it is done at once."""

    def __init__(self) -> None:
        self.effects: list[Callable[[], None]] | None = None


_POSTPONED = _Postponed()


def postpone(effect: Callable[[], None]) -> None:
    """Do something that cannot be undone as soon as nothing can fail any more."""
    if _POSTPONED.effects is None:
        effect()
    else:
        _POSTPONED.effects.append(effect)


def postponing(run: Callable[..., T], *args: Any) -> tuple[T, list[Callable[[], None]]]:
    """Runs something: its result and what it would do for others to see, for the caller to do or to drop."""
    before = _POSTPONED.effects
    effects: list[Callable[[], None]] = []
    try:
        _POSTPONED.effects = effects
        return run(*args), effects
    finally:
        _POSTPONED.effects = before


def _set_effects(effects: list[Callable[[], None]] | None) -> None:
    _POSTPONED.effects = effects


preserve(lambda: _POSTPONED.effects, _set_effects)


class _MadeByThread(threading.local):
    """Generators that running programs have made, by thread: nothing else knows of them but by their addresses."""

    def __init__(self) -> None:
        self.generators: list[object] = []


MADE = _MadeByThread()
preserve(lambda: len(MADE.generators), lambda mark: MADE.generators.__delitem__(slice(mark, None)))


@contextmanager
def keeping_made() -> Iterator[None]:
    """What is made inside the block lives until its end."""
    mark = len(MADE.generators)
    try:
        yield
    finally:
        del MADE.generators[mark:]


def generator_at(address: int) -> Any:
    """The generator that an address stands for."""
    return ctypes.cast(address, ctypes.py_object).value
