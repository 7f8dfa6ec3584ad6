"""Time limits: a function of the user's is stopped by an exception after some seconds, between two steps of the user's own code.

A thread waits that long, and then until the function is in a frame of the user's: in the midst of a library, an exception might
leave something half done. Where user code catches it, it comes again. It never comes after `limited` has returned.
"""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from jitml.trace.record.recording import is_users

T = TypeVar("T")
_BETWEEN = 0.005  # seconds between looks at where the function is
_AGAIN = 1.0  # seconds until the exception comes again
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
    watch = _Timer(seconds, 0.0 if anywhere else seconds)
    try:
        try:
            watch.begin()
            result = function()
        finally:
            _end(watch)
    finally:  # should the exception have come before that had begun
        _end(watch)
    return result


def _end(watch: _Timer) -> None:
    """End it, whatever comes in between."""
    interrupt: BaseException | None = None
    for _ in _ATTEMPTS:
        try:
            watch.end()
            for _ in _ATTEMPTS:  # what has been sent arrives where a loop turns
                pass
            break
        except OutOfTime:
            continue
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


class _Timer:
    """Sends the exception to the thread that has made it, until it is ended."""

    def __init__(self, seconds: float, patience: float) -> None:
        self.until = monotonic() + seconds
        self.forced = self.until + patience  # from when on the exception may come anywhere
        self.thread = threading.get_ident()
        self.lock = threading.Lock()
        self.over = threading.Lock()  # released when it is
        self.over.acquire()
        self.started = threading.Lock()
        self.started.acquire()
        self.is_over = False

    def begin(self) -> None:
        try:
            _thread.start_new_thread(self._work, ())
        except RuntimeError:  # there is no further thread, or the interpreter ends
            return
        self.started.acquire()  # until then, CPython takes the new thread for this one, and might send it an exception of ours

    def end(self) -> None:
        with self.lock:
            if not self.is_over:
                self.is_over = True
                self.over.release()

    def _work(self) -> None:
        self.started.release()
        wait = max(0.0, self.until - monotonic())
        while not self.over.acquire(timeout=wait):
            wait = _BETWEEN
            with self.lock:
                if not self.is_over and (self._is_in_users_code() or monotonic() > self.forced):
                    # There is no taking it back: with NULL, CPython 3.11 would look for it for ever, and not trace meanwhile.
                    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
                    set_exception(ctypes.c_ulong(self.thread), ctypes.py_object(OutOfTime))
                    wait = _AGAIN

    def _is_in_users_code(self) -> bool:
        frame = sys._current_frames().get(self.thread)
        return frame is not None and is_users(frame.f_code.co_filename)
