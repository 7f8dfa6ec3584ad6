"""Looks at calls: all that may differ between two of them but for the contents of arrays and the states of generators, by name.

A guard that is missing does not show in the first call. It shows when a number, a text or an object is another one and the
variant answers nevertheless: such a call is worth checking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from math import inf
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from jitml.trace.record.container_contents import contents, to_count
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import is_users_class
from jitml.trace.record.references import MISSING
from jitml.verification.cells import GeneratorState
from jitml.verification.saved_state import SavedState

_VALUES = (float, complex, np.generic, np.dtype)
_SHORT = {bool, int, str, bytes, type(None)}  # values that are compared as they are
_MOST_ITEMS = 64
# After how many calls it is looked for what is another one, and whether in functions and classes, too.
_LOOKS = ((2, True), (3, False), (4, True), (6, False), (8, False), (12, False), (16, True))
_SHARE = 0.2  # of what plain Python takes, for the sake of which there is compiled code, that looks may take, with the next one
_MOST_SECONDS = 0.05  # that all looks at a variant's calls may take, guards included: there may be much to look at
_MOST_OTHERS = 3  # of them that are checked


def look(function: Any, name: str, roots: Iterable[tuple[Any, str]], *, with_code: bool) -> Mapping[str, Hashable]:
    """What is reached from a function and its arguments, by their names.

    Args:
        with_code: whether functions and classes are looked into.

    Raises:
        Unsaved: of something nobody knows what is in it.
    """
    state = SavedState([(function, name), *(roots := list(roots))], 0, with_arrays=False, with_code=with_code)
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
    kind: Any = type(x)
    if kind in _SHORT or (kind in (float, np.float64) and x and x == x):
        return kind, x
    if isinstance(x, (*_SHORT, *_VALUES)):
        return None if kind is GeneratorState else (kind, repr(x))
    if isinstance(x, (list, tuple, set, frozenset, deque, dict)):
        items = contents(x)
        return (kind, len(items), *map(_told_inside, items[:_MOST_ITEMS])) if items else None
    if isinstance(x, FunctionType):
        return None if is_library(x) else id(x.__code__)
    if x is MISSING or isinstance(x, (np.ndarray, ModuleType)) or (isinstance(x, type) and not is_users_class(x)):
        return None
    return kind, 0 if is_users_class(kind) else id(x)


def _told_inside(x: Any) -> Hashable:
    """The same of an item; one that has a cell of its own is told by that."""
    return (type(x), to_count(x)(x)) if isinstance(x, (list, set, deque, dict)) else _told(x)


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
        self._looks = 0
        self.seconds = self._look_seconds = seconds
        self.check_seconds = 0.0  # that checks of further answers have taken
        self.one_check = 0.0  # that the last check has taken
        self.plain_seconds = inf  # that a call takes as Python

    @property
    def is_over(self) -> bool:
        is_dear = self.is_slow or self.seconds > _MOST_SECONDS
        return not self.seen or self._looks == len(_LOOKS) or len(self.answers) > _MOST_OTHERS or is_dear

    @property
    def is_due(self) -> bool:
        """Whether to look at what there is in the next call."""
        calls = self.calls + 1
        is_due = self._looks < len(_LOOKS) and calls >= _LOOKS[self._looks][0]
        next_ones = self._look_seconds + self.one_check  # which comes if there is something new
        return is_due and self.seconds + self.check_seconds + next_ones <= _SHARE * calls * self.plain_seconds

    def begin_look(self) -> None:
        """There is such a call."""
        self.calls += 1
        self._looks += 1

    @property
    def with_code(self) -> bool:
        """Whether at functions and classes, too."""
        return _LOOKS[self._looks - 1][1]

    def sees_other(self, now: Mapping[str, Hashable]) -> bool:
        """Take note of it; whether there is something new to check."""
        looked_at = self.seen.keys() | now.keys() if self.with_code else now.keys()
        new = {name for name in looked_at - self.known if self.seen.get(name) != now.get(name)}
        self.seen = now if self.with_code else {**self.seen, **now}
        self.known |= new
        return bool(new) and len(self.answers) <= _MOST_OTHERS and not self.is_slow

    def verdict(self) -> str:
        first, *others = self.answers
        return f"{first}; so for other values: {'; '.join(others)}" if others else first
