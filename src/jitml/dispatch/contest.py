"""Contests: is compiled code faster than plain Python?  Both take turns of real work, so nothing is done twice to find out."""

from __future__ import annotations

import math

TURNS = 5  # of each before one is dropped
CLEAR = 1e-4  # seconds of plain Python above which one turn shows which is faster, if it is by far
FAST, BRIEF = 3, 2e-5  # times what compiled code takes, and seconds, of plain Python, for which two turns of each are enough
SLOW = 1.2  # times what plain Python takes: two turns of each are enough to know
SLOWEST = 1.5  # the same after one turn of plain Python
FIRST_LOOK = 1024  # calls after which both are timed again
FAILED = 8  # answers in a row that plain Python had to give in place of compiled code (it warns, say): then that is of no use
FAILED_AT_FIRST = 3  # the same of code that has never answered
SHORT = 5e-5  # seconds of plain Python of which the way of a call through Python is a large part
LOST = 3  # contests that are lost before compiled code which has won one is dropped


class Contest:
    """Compares minima of seconds, since what else runs on the machine only ever makes them more.

    is_won: whether compiled code is used; None as long as that is open.
    """

    def __init__(self) -> None:
        self._compiled = _Turns()
        self._plain = _Turns()
        self._lost = 0
        self._failed = 0
        self._answered = False
        self._has_won = False
        self.is_won: bool | None = None

    @property
    def is_plains_turn(self) -> bool:
        return self._compiled.count > self._plain.count

    @property
    def seconds(self) -> float:
        """That compiled code takes; 0 if it has had no turn."""
        return self._compiled.least if self._compiled.count else 0.0

    @property
    def plain_seconds(self) -> float:
        return self._plain.least if self._plain.count else 0.0

    @property
    def is_short(self) -> bool:
        """Whether plain Python is known to take so little that machine code has to be called without Python in between."""
        return 0.0 < self.plain_seconds < SHORT

    @property
    def is_in_doubt(self) -> bool:
        """Whether compiled code has lost since it has last won, but not often enough to be dropped."""
        return self._lost > 0

    @property
    def has_answered(self) -> bool:
        """Whether compiled code has ever answered, and not plain Python after it."""
        return self._has_won or self._answered or self._compiled.count > 0

    @property
    def never_answers(self) -> bool:
        """Whether compiled code has lost because plain Python had to answer after it."""
        return self._failed >= (FAILED if self.has_answered else FAILED_AT_FIRST)

    def compiled_took(self, seconds: float) -> None:
        self._failed = 0
        self._compiled.add(seconds)
        self._decide()

    def both_took(self, compiled: float, plain: float) -> None:
        """The same work, twice each."""
        self._failed = 0
        for _ in range(2):
            self._compiled.add(compiled)
            self._plain.add(plain)
        self._decide()

    def compiled_failed(self) -> None:
        """Plain Python has to answer after it: its call was for nothing."""
        self._failed += 1
        if self.never_answers:
            self.is_won = False

    def compiled_answered(self) -> None:
        """The same, but that nobody has looked at the clock."""
        self._answered = True
        if self._failed:
            self._failed = 0

    def plain_took(self, seconds: float) -> None:
        self._plain.add(seconds)
        self._decide()

    def again(self) -> None:
        """Begin another one."""
        self._compiled, self._plain, self.is_won = _Turns(), _Turns(), None

    def _decide(self) -> None:
        if not (self._compiled.count and self._plain.count):
            return
        compiled, plain = self.seconds, self.plain_seconds
        slow = SLOW if self._plain.count >= 2 else SLOWEST
        is_slow = compiled > max(slow * plain, SHORT) and self._compiled.count >= 2  # what is short may have been in no cache
        is_fast = plain > FAST * compiled and plain > BRIEF and min(self._compiled.count, self._plain.count) >= 2
        is_clear = plain > max(2 * compiled, CLEAR) or is_fast or is_slow
        if not is_clear and min(self._compiled.count, self._plain.count) < TURNS:
            return
        if compiled <= plain:
            self._lost, self._has_won, self.is_won = 0, True, True
        else:  # a noisy minute decides nothing
            self._lost += 1
            self.is_won = self._has_won and self._lost < LOST

    def __str__(self) -> str:
        if self.never_answers:
            return f"plain Python had to answer {self._failed} calls in a row"
        if not (self._compiled.count and self._plain.count):
            return "not timed yet"
        return f"{in_us(self.plain_seconds)} plain, {in_us(self.seconds)} compiled"


class _Turns:
    """How many there were, and what the shortest took."""

    def __init__(self) -> None:
        self.count, self.least = 0, math.inf

    def add(self, seconds: float) -> None:
        self.count += 1
        self.least = min(self.least, seconds)


def in_us(seconds: float) -> str:
    """
    >>> in_us(0.00123), in_us(2e-6)
    ('1,230 us', '2.0 us')
    """
    return f"{seconds * 1e6:,.1f} us" if seconds < 1e-5 else f"{seconds * 1e6:,.0f} us"


__all__ = ["CLEAR", "FIRST_LOOK", "SHORT", "Contest", "in_us"]
