"""Budget: what Python may do while a function is traced, before that is taken for endless.

Loops over Python numbers and containers, and calls, run as they are traced, perhaps a thousand times slower than plain Python
runs them. Steps that record operations are limited by the number of these (`modes.py`), which is the same on every machine.
For the others there is this: seconds of the thread, of which load takes no part, and memory.
"""

from __future__ import annotations

import os
from time import thread_time

from jitml.config import CONFIG
from jitml.interrupts import pass_on

_SELDOM = 8  # steps between two looks at the clock
_MOST_BYTES = 384 << 20
_RECORDING = 4  # times as long may it take where operations are recorded: other limits are reached before


class Budget:
    """What the attempts at tracing a function have cost.

    >>> budget = Budget()
    >>> budget.step(recorded=0)
    ''
    """

    __slots__ = ("_bytes", "_grown", "_next_bytes", "_recorded", "_spent", "_time", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self._time = self._next_bytes = thread_time()
        self._spent = 0.0
        self._bytes = 0  # nobody has looked: that takes longer than most attempts have steps for
        self._grown = 0
        self._recorded = 0

    def step(self, recorded: int) -> str:
        """One more iteration or call, after so many operations; what is used up, if anything is."""
        self.steps += 1
        return "" if self.steps % _SELDOM else self._why_exhausted(recorded)

    def _why_exhausted(self, recorded: int) -> str:
        now, is_recording = thread_time(), recorded != self._recorded
        self._spent += (now - self._time) / (_RECORDING if is_recording else 1)
        self._time, self._recorded = now, recorded
        if now >= self._next_bytes:
            self._next_bytes = now + 0.05
            before, self._bytes = self._bytes, _resident_bytes()
            self._grown += 0 if is_recording or not before else self._bytes - before
        if self.steps <= CONFIG.max_unroll:  # few that take long are no loop without end
            return ""
        if self._spent > CONFIG.trace_seconds:
            return f"{self._spent:.0f} s"
        return f"{self._grown >> 20} MiB" if self._grown > _MOST_BYTES else ""


def _resident_bytes() -> int:
    """Memory that this process has now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError as error:
        pass_on(error)
        return 0
