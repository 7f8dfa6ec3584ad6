"""Exceptions from outside, at a moment that a test says."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Alarm(BaseException):
    """What the handler raises."""


@contextmanager
def alarms() -> Iterator[Callable[[float], None]]:
    """Has an exception come so many seconds from now; 0 calls it off."""

    def raise_alarm(*args: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, raise_alarm)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
