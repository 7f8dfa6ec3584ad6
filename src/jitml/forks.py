"""fork() copies one thread alone: what becomes of the locks that others hold?  They are made anew in the child, or waited for.

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


class Lock(Protocol):
    """What the locks of `lock` and `hold_at_fork` can do."""

    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> Any: ...


def lock() -> Lock:
    """A reentrant lock that is free in the child of a fork, unless the thread that forks holds it.

    It is written in C, so that no exception comes between taking it and the block of its `with`.
    """
    made = threading.RLock()
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
