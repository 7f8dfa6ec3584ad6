"""Settings of the whole Python process that compilation needs otherwise: changed while it runs, and given back.

Threads may compile at once: the first one in changes a setting, the last one out gives it back.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from jitml.forks import in_child, lock
from jitml.interrupts import is_abandoned, owner, preserve

T = TypeVar("T")


class Setting(Generic[T]):
    """A setting of the process that is another one inside `with changed():`, whichever threads are inside.

    Code that runs inside may set it as well: that is what it is afterwards.

    >>> value = [1]
    >>> setting = Setting(lambda: value[0], lambda new: value.__setitem__(0, new), lambda own: 10 * own)
    >>> with setting.changed():
    ...     value
    [10]
    >>> value
    [1]
    """

    def __init__(self, read: Callable[[], T], write: Callable[[T], None], meanwhile: Callable[[T], T]) -> None:
        self._read, self._write, self._meanwhile = read, write, meanwhile
        self._lock = lock()  # reentrant: a finalizer may compile, too, wherever Python comes to collect
        self._inside = 0
        self._threads: dict[int, int] = {}  # how often each is inside, or what works for it
        self._own: T
        self._ours: T | None = None  # while it is in place, so that it is never taken for the program's own
        # A new tuple each time, so that it is always given back: a thread may be between two steps of what changes it.
        preserve(lambda: (self._depth(),), lambda depth: self._cut(*depth))
        in_child(self._forget_others)

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Raises what writing the setting raises, which leaves it as it was."""
        before = self._depth()
        try:
            self._enter()
            yield
        finally:
            try:
                self._cut(before)
            finally:  # should an exception from outside come meanwhile
                self._cut(before)

    def _depth(self) -> int:
        return self._threads.get(owner(), 0)

    def _enter(self) -> None:
        with self._lock:
            if is_abandoned():
                return
            if (own := self._read()) != self._ours:
                self._write(own)  # may fail: what could not be given back is not changed
                self._own, self._ours = own, self._meanwhile(own)
                self._write(self._ours)
            self._count(self._depth() + 1)

    def _cut(self, depth: int) -> None:
        """Have this thread inside so many times and no more; again is harmless."""
        with self._lock:
            if is_abandoned():  # who has waited has given the setting back
                return
            self._count(depth)
            if not self._inside:
                self._give_back()

    def _count(self, depth: int) -> None:
        others = {thread: n for thread, n in self._threads.items() if thread != owner()}
        self._threads = {**others, owner(): depth} if depth else others
        self._inside = sum(self._threads.values())

    def _give_back(self) -> None:
        if self._ours is not None and self._read() == self._ours:
            try:
                self._write(self._own)
            except RecursionError:  # this thread is deeper than the program's limit: the next one out gives it back
                return
        self._ours = None

    def _forget_others(self) -> None:
        """In the child of a fork there are no other threads."""
        depth, self._threads = self._depth(), {}
        self._cut(depth)


# Python frames: a branch in a loop body may lie in hundreds of others, and each pass takes some frames for each. CPython 3.11
# goes that deep in a stack of 8 MiB; later ones guard the stack themselves.
_DEPTH = 10_000

# Only for our own code, which follows nested statements: recursion of the program's own keeps Python's limit.
_recursion = Setting(sys.getrecursionlimit, sys.setrecursionlimit, lambda own: max(own, _DEPTH))
room_for_nests = _recursion.changed

# New objects before Python looks for cycles among them. A compilation makes hundreds of thousands that live as long as it does;
# at Python's 700 that search, which comes back to old objects as well, takes up to a quarter of its time.
_YOUNG = 200_000


def _less_often(own: tuple[int, int, int]) -> tuple[int, int, int]:
    young, *older = own
    return (max(young, _YOUNG) if young else 0, *older)  # type: ignore[return-value]  # two remain


_collection = Setting(gc.get_threshold, lambda own: gc.set_threshold(*own), _less_often)
fewer_collections = _collection.changed


_MANY = 8  # modules
_IMMORTAL = 1000  # objects: Python 3.12 itself keeps some hundreds, which are never let go, where a program freezes its own


@contextmanager
def importing() -> Iterator[None]:
    """Around imports of many modules.

    What they make lives as long as the process: Python need not look for cycles among it, which would take a tenth of the time.
    """
    before = len(sys.modules)
    with fewer_collections():
        yield
        if len(sys.modules) >= before + _MANY and hasattr(gc, "freeze") and gc.get_freeze_count() < _IMMORTAL:
            try:
                gc.freeze()
            finally:
                gc.unfreeze()  # among the old ones, which are looked through when there are many new ones beside them


def collected_at_its_end(make: Callable[[], T]) -> T:
    """The result of a compilation, at whose end Python looks for cycles among what it leaves, and not in a later call."""
    with fewer_collections():
        result = make()
        if gc.isenabled():
            gc.collect(1)
    return result


# What Python says of a text that it compiles ("\d" is no escape, ~True) it has said when the program was compiled.
_OF_TEXTS = re.compile("invalid|Bitwise inversion '~' on bool")
_SAID: list[Any] = [("ignore", None, SyntaxWarning, None, 0), ("ignore", _OF_TEXTS, DeprecationWarning, None, 0)]


def _set_filters(own: list[Any]) -> None:
    # In the same list, and of the same version as far as registries know: nothing is shown once more because of it.
    warnings.filters[:] = own  # type: ignore[index]  # a list


_filters: Setting[list[Any]] = Setting(lambda: [*warnings.filters], _set_filters, lambda own: [*_SAID, *own])
silent_syntax = _filters.changed


_TRIES = 16


def parsed(text: str) -> ast.Module:
    """The syntax tree of a text: SyntaxError or ValueError where it is no Python.

    CPython 3.11 counts the depth of its constructors of trees for all threads together, and raises SystemError where another
    thread parses in between: https://github.com/python/cpython/issues/106905. That says nothing of the text.
    """
    with silent_syntax():
        for _ in range(_TRIES - 1):
            try:
                return ast.parse(text)
            except SystemError:
                continue
        return ast.parse(text)
