"""Time limits: a function of the user's is stopped by an exception after some seconds, between two steps of the user's own code.

One thread waits for all limits, as long as there are some and a little longer: to start one takes longer than a small function.
When a limit is over, it waits until the function is in a frame of the user's: in the midst of a library, an exception might leave
something half done. Where user code catches it, it comes again. It never comes after `limited` has returned.
"""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from jitml.diagnostics.code_owners import is_users
from jitml.forks import InterruptSafeLock

T = TypeVar("T")
_BETWEEN = 0.005  # seconds between looks at where the function is
_AGAIN = 1.0  # seconds until the exception comes again
_IDLE = 1.0  # seconds that the thread sleeps at most
_ATTEMPTS = tuple(range(8))


class OutOfTime(BaseException):
    """A function has run for longer than it may."""


def limited(function: Callable[[], T], seconds: float | None, *, anywhere: bool = False) -> T:
    """The result of `function`, which may take that long; for ever if nobody says, or if there is no thread to watch it.

    Args:
        anywhere: it may be stopped between any two steps.

    Raises:
        OutOfTime: it has taken longer.
    """
    if seconds is None:
        return function()
    limit = _TimeLimit(seconds, 0.0 if anywhere else seconds)
    try:
        try:
            _WATCH.begin(limit)
            result = function()
        finally:
            _end(limit)
    finally:  # should the exception have come before that had begun
        _end(limit)
    return result


def _end(limit: _TimeLimit) -> None:
    """End it, whatever comes in between."""
    interrupt: BaseException | None = None
    for _ in _ATTEMPTS:
        try:
            limit.end()
            _WATCH.limits.pop(limit, None)
            for _ in _ATTEMPTS:  # what has been sent arrives where a loop turns
                pass
            break
        except OutOfTime:
            continue
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


class _TimeLimit:
    """Of one function, in the thread that has made it."""

    def __init__(self, seconds: float, patience: float) -> None:
        self.until = monotonic() + seconds  # when it is looked at next
        self.forced = self.until + patience  # from when on the exception may come anywhere
        self.thread = threading.get_ident()
        self.lock = InterruptSafeLock()
        self.is_over = False

    def end(self) -> None:
        with self.lock:
            self.is_over = True

    def enforce(self) -> None:
        """Send the exception, if the function is where it may come."""
        self.until = monotonic() + _BETWEEN
        with self.lock:
            if not self.is_over and (self._is_in_users_code() or monotonic() > self.forced):
                # There is no taking it back: with NULL, CPython 3.11 would look for it for ever, and not trace meanwhile.
                set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
                set_exception(ctypes.c_ulong(self.thread), ctypes.py_object(OutOfTime))
                self.until = monotonic() + _AGAIN

    def _is_in_users_code(self) -> bool:
        frame = sys._current_frames().get(self.thread)
        return frame is not None and is_users(frame.f_code.co_filename)


class _Watch:
    """The thread, and the limits that it waits for. Nothing of it is locked: an interrupt might leave a lock closed."""

    def __init__(self) -> None:
        self.limits: dict[_TimeLimit, None] = {}
        self.thread = 0  # there may be two for a moment, which does no harm; the child of a fork has none
        self.until = 0.0  # when it wakes at the latest
        self.sleep = threading.Lock()  # is released to wake it
        self.sleep.acquire()

    def begin(self, limit: _TimeLimit) -> None:
        self.limits[limit] = None
        if self.thread not in sys._current_frames():
            self._start_thread()
        elif limit.until < self.until:
            self._wake()

    def _start_thread(self) -> None:
        started = threading.Lock()
        started.acquire()
        try:
            _thread.start_new_thread(self._enforce_limits, (started,))
        except RuntimeError:  # there is no further thread, or the interpreter ends
            return
        started.acquire()  # until then, CPython takes the new thread for this one, and might send it an exception of ours

    def _wake(self) -> None:
        try:
            self.sleep.release()
        except RuntimeError:  # it is about to wake
            return

    def _enforce_limits(self, started: threading.Lock) -> None:
        self.thread = mine = threading.get_ident()
        started.release()
        while self.thread == mine:
            self.until = monotonic() + _IDLE  # before it looks: who comes later, and has less time, wakes it
            limits = list(self.limits)
            for limit in limits:
                if limit.until <= monotonic():
                    limit.enforce()
            self.until = min([self.until, *(limit.until for limit in limits)])
            is_woken = self.sleep.acquire(timeout=max(0.0, self.until - monotonic()))
            if not (is_woken or limits or self.limits):
                self.thread = 0
                if self.limits:  # who has come in between may have seen that there was a thread
                    self.thread = mine


_WATCH = _Watch()
