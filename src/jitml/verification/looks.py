"""Looks at calls: all that may differ between two of them but for the contents of arrays, by name.

A guard that is missing does not show in the first call. It shows when a number, a text or an object is another one and the
variant answers nevertheless: such a call is worth checking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import is_users_class
from jitml.trace.record.references import MISSING
from jitml.verification.saved_state import SavedState

_VALUES = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_MOST_ITEMS = 64
_MOST_WATCHED = 16  # calls in which it is looked for what is another one, at the price of some microseconds
_MOST_SECONDS = 0.05  # that all looks at a variant's calls may take, guards included: there may be much to look at
_MOST_OTHERS = 3  # of them that are checked


def look(function: Any, name: str, roots: Iterable[tuple[Any, str]]) -> Mapping[str, Hashable]:
    """What is reached from a function and its arguments, by their names.

    Raises:
        Unsaved: of something nobody knows what is in it.
    """
    state = SavedState([(function, name), *(roots := list(roots))], 0, with_arrays=False)
    return told_by(state, roots)


def told_by(state: SavedState, roots: Iterable[tuple[Any, str]]) -> Mapping[str, Hashable]:
    """The same of what is saved already."""
    found = {name: _told(x) for x, name in roots}
    for cell, held in zip(state.cells, state.held):
        for name, x in cell.parts(held):
            found[name] = _told(x)
    return {name: told for name, told in found.items() if told is not None}


def _told(x: Any) -> Hashable:
    """What tells a thing from others; None of what is no other one, or is looked at by its parts, and of nothing."""
    if isinstance(x, _VALUES):
        return type(x), repr(x)
    if isinstance(x, (list, tuple, set, frozenset, deque, dict)):
        items = [*x, *x.values()] if isinstance(x, dict) else [*x]
        return (type(x), len(x), *map(_told, items[:_MOST_ITEMS])) if items else None
    if isinstance(x, FunctionType):
        return None if is_library(x) else id(x.__code__)
    kind: Any = type(x)
    if x is MISSING or isinstance(x, (np.ndarray, ModuleType)) or (isinstance(x, type) and not is_users_class(x)):
        return None
    return kind, 0 if is_users_class(kind) else id(x)


class Watching:
    """The first calls of a variant after the one that was checked: is something another one that has always been the same?

    Args:
        seen: what there was in the first call (`looks.py`).
        seconds: that looking has taken; so far that of this call.
    """

    def __init__(self, seen: Mapping[str, Hashable], seconds: float) -> None:
        self.seen = seen
        self.known: set[str] = set()  # what has been another one, and the answer was checked
        self.answers: list[str] = []
        self.calls, self.is_slow = 1, False
        self.seconds = seconds

    @property
    def is_over(self) -> bool:
        is_dear = self.is_slow or self.seconds > _MOST_SECONDS
        return not self.seen or self.calls >= _MOST_WATCHED or len(self.answers) > _MOST_OTHERS or is_dear

    def sees_other(self, now: Mapping[str, Hashable]) -> bool:
        """Take note of what there is in a further call; whether there is something new to check."""
        self.calls += 1
        new = {name for name in (self.seen.keys() | now.keys()) - self.known if self.seen.get(name) != now.get(name)}
        self.seen = now
        self.known |= new
        return bool(new) and len(self.answers) <= _MOST_OTHERS and not self.is_slow

    def verdict(self) -> str:
        first, *others = self.answers
        return f"{first}; so for other values: {'; '.join(others)}" if others else first
