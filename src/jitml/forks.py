"""fork() copies one thread alone: what becomes of the locks that others hold?  They are made anew in the child, or waited for.

An exception from outside, as Ctrl-C raises it, leaves none of them taken.

A lock that guards a few Python statements is made anew (`Lock`). What another thread may be in the midst of for good reason, and
what a child cannot begin again (an import, a call into LLVM), the fork waits for (`hold_at_fork`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Protocol
from weakref import ref

# Without callbacks, which are Python code: an exception from outside that comes in one is lost.
_LOCKS: list[ref[Any]] = []
_MANY = 1024
_ONCE = (True,)


class Lock(Protocol):
    """What the locks of `lock` and `hold_at_fork` can do."""

    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> Any: ...


class InterruptSafeLock(type(threading.RLock())):  # type: ignore[misc]
    """A reentrant lock that no `with` leaves taken, whenever an exception comes from outside.

    That of a lock in C does, from Python 3.14 on: Python looks for signals after the call of `__enter__`, where the block has not
    begun. It never does when a function in Python has returned, nor before it calls an `__exit__` in C.
    """

    __slots__ = ()

    def __enter__(self) -> bool:
        _take(self)
        return True


class holding:
    """`with holding(lock)`, for another library's lock in C, is as the `with` of an `InterruptSafeLock`."""

    __slots__ = ("__exit__", "_lock")

    def __init__(self, lock: Any) -> None:
        self._lock, self.__exit__ = lock, lock.__exit__

    def __enter__(self) -> None:
        _take(self._lock)


def _take(lock: Any) -> None:
    taken: list[bool] = []
    try:
        taken.extend(map(lock.acquire, _ONCE))  # one call into C: it is taken and this is noted, or neither
    except BaseException:
        if taken:
            lock.release()
        raise


def lock() -> Lock:
    """A reentrant lock that is free in the child of a fork, unless the thread that forks holds it."""
    made = InterruptSafeLock()
    _LOCKS.append(ref(made))
    if not len(_LOCKS) % _MANY:
        _LOCKS[:] = [known for known in _LOCKS if known() is not None]
    return made


def in_child(function: Callable[[], object]) -> None:
    """Let `function` run in the child of each fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def hold_at_fork(held: Lock) -> None:
    """Have forks wait until nobody else holds a reentrant lock, which stays as it was on both sides."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=held.acquire, after_in_parent=held.release, after_in_child=held.release)


@in_child
def _renew() -> None:
    for known in _LOCKS:
        made = known()
        if made is not None and not made._is_owned():
            made._at_fork_reinit()
