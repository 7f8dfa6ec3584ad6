"""Background work: what makes programs faster while they already answer calls, one job after the other, in a thread of its own.

The thread lives as long as there are jobs. Python waits for it when it ends: jobs that another process would have to do again are
done, up to `_LAST` seconds of them, and no others. In the child of a fork a new thread goes on, once somebody asks for a job.
"""

from __future__ import annotations

import threading
from collections import deque
from time import monotonic
from typing import Protocol

from jitml.forks import in_child, lock
from jitml.interrupts import has_room_to_start

MANY = 64  # jobs that wait: their texts are held meanwhile
_LAST = 2.0  # seconds after which no other job begins once the interpreter is ending: about what quick code has saved


class Job(Protocol):
    """A piece of work, which says by itself what has become of it."""

    @property
    def outlasts(self) -> bool:
        """Whether later processes have something of it."""

    def run(self) -> None: ...

    def give_up(self, why: str) -> None:
        """It is not going to be run, or has raised."""


class Background:
    """The jobs of a process, in the order in which they came."""

    def __init__(self) -> None:
        self._lock = lock()
        self._waiting: deque[Job] = deque()
        self._current: Job | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_full(self) -> bool:
        """Whether it is better to do a piece of work at once."""
        return len(self._waiting) >= MANY

    def take(self, job: Job) -> None:
        with self._lock:
            self._waiting.append(job)
        self.go_on()

    def go_on(self) -> threading.Thread | None:
        """Have a thread for what there is to do; None if that is nothing, or none is to be had, and so it is given up."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return self._thread
            if not self._waiting:
                return None
            self._thread = threading.Thread(target=self._work, name="jitml-background", daemon=False)  # whoever starts it
            if has_room_to_start(self._thread.start):
                return self._thread
            self._thread, left = None, [*self._waiting]
            self._waiting.clear()
        for job in left:
            job.give_up("no thread is to be had")
        return None

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all is done; False if that takes longer."""
        end = None if timeout is None else monotonic() + timeout
        while (thread := self.go_on()) is not None:
            thread.join(None if end is None else max(0.0, end - monotonic()))
            if thread.is_alive():
                return False
        return True

    def _work(self) -> None:
        last: float | None = None
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                self._current = job = self._waiting.popleft()
            if last is None and not threading.main_thread().is_alive():
                last = monotonic() + _LAST
            if last is not None and (monotonic() > last or not job.outlasts):
                job.give_up("Python ends")
            else:
                _do(job)
            self._current = None

    def renew(self) -> None:
        """In the child of a fork, which has no thread: what that was about waits again."""
        if self._current is not None:
            self._waiting.appendleft(self._current)
        self._current = self._thread = None


def _do(job: Job) -> None:
    try:
        job.run()
    except BaseException as error:  # this thread has nobody to tell it to; the code that there is goes on to answer
        job.give_up(f"{type(error).__name__}: {error}")


BACKGROUND = Background()
in_child(BACKGROUND.renew)


def settle(timeout: float | None = None) -> bool:
    """Wait until jitml does nothing in the background: from then on, what has been compiled runs as fast as it ever will.

    A program is first compiled in a hurry. A thread then compiles it with care, and the better code takes over. Call this before
    you measure how long compiled code takes.

    Args:
        timeout: seconds to wait at the most; None for as long as it takes.

    Returns:
        Whether all is done.

    Example:
        >>> import numpy as np, jitml
        >>> f = jitml.jit(lambda x: np.sin(x) + 1)
        >>> y = f(np.ones(100))
        >>> jitml.settle()
        True
    """
    return BACKGROUND.settle(timeout)


__all__ = ["BACKGROUND", "Job", "settle"]
