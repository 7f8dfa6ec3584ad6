"""Values that outlive their tape: what do lists and objects hold that a differentiated function has put there?

Plain arrays and numbers, as if it had run by itself.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from types import CellType, FrameType, ModuleType
from typing import Any

import numpy as np

from jitml.autograd.tape.tape import Tape
from jitml.autograd.tape.values import Taped

_DEPTH = 4  # how far containers in containers are looked into
_LEVELS = 3  # of tuples in tuples that are made anew


def close(tape: Tape) -> None:
    """End a tape: what is left of its values becomes plain, wherever it is held."""
    containers, tape.changed = tape.changed, []
    if any(reference() is not None for reference in tape.values):
        while containers:
            _settle(containers.pop(), _DEPTH)
    alive = list(_alive(tape))
    if alive:
        _replace(alive)
    for x in alive:
        x.number = None
        if x.storage is not None:
            x.storage.before_write()
            x.storage.slot = None
    tape.values.clear()


def _alive(tape: Tape) -> Iterator[Taped]:
    for reference in tape.values:
        x = reference()
        if x is not None:
            yield x


def settled(x: Any, depth: int = _DEPTH) -> Any:
    """What takes the place of `x`: a plain value, a tuple of such, or `x` itself with plain values in it."""
    kind = type(x)
    if kind is Taped:
        if x.storage is not None:
            x.storage.before_write()  # its new owner may write it
        return x.value
    if depth and isinstance(x, tuple):
        parts = [settled(part, depth - 1) for part in x]
        if any(a is not b for a, b in zip(parts, x)):
            return kind(*parts) if hasattr(x, "_fields") else kind(parts)
    elif depth and kind in (list, dict, set, deque):
        _settle(x, depth - 1)
    return x


def _settle(x: Any, depth: int) -> None:
    """Make values in a container plain."""
    kind = type(x)
    if isinstance(x, (list, deque)):
        for n, part in enumerate(x):
            _put(x, n, part, depth)
    elif isinstance(x, dict):
        for key, part in [*x.items()]:
            _put(x, key, part, depth)
    elif kind is CellType:
        x.cell_contents = settled(x.cell_contents, depth)
    elif not isinstance(x, (ModuleType, FrameType, np.ndarray, type)) and kind is not Taped:
        own = getattr(x, "__dict__", None)
        if type(own) is dict:
            _settle(own, depth)
        for name in _slots(kind):
            part = getattr(x, name, None)
            new = settled(part, depth)
            if new is not part:
                object.__setattr__(x, name, new)


def _put(container: Any, place: Any, part: Any, depth: int) -> None:
    if type(part) not in (int, float, str, np.ndarray):
        new = settled(part, depth)
        if new is not part:
            container[place] = new


def _slots(kind: type) -> Iterable[str]:
    for cls in kind.__mro__[:-1]:
        names = vars(cls).get("__slots__", ())
        yield from ((names,) if isinstance(names, str) else names)


def _replace(alive: list[Taped]) -> None:
    """Find who holds values that nobody has told of, and make them plain there."""
    wanted: list[Any] = [*alive]
    for _ in range(_LEVELS):
        tuples = []
        for holder in gc.get_referrers(*wanted):
            if holder is wanted or holder is alive or isinstance(holder, (FrameType, Taped)):
                continue
            if isinstance(holder, tuple):
                tuples.append(holder)
            else:
                _settle(holder, 1 + _LEVELS)
        if not tuples:
            return
        wanted = tuples
