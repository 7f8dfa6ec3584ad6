"""Contests: is compiled code faster than plain Python?  Both take turns of real work, so nothing is done twice to find out."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter

TURNS = 5  # of each before one is dropped
CLEAR = 1e-4  # seconds of plain Python above which one turn shows which is faster, if it is by far
SLOW = 1.5  # times what plain Python takes: two turns are enough to know
FIRST_LOOK = 1024  # calls after which both are timed again
PRICE = 0.1  # seconds that a compilation is expected to take before there has been one
MOST_PRICE = 1.0  # seconds: the first compilation in a process takes longer than others
FEW_PROGRAMS = 4  # of a function, each for other arguments, that are usual
LOST = 3  # contests that are lost before compiled code which has won one is dropped


class PlainTurn:
    """A turn of plain Python: `seen` is called when it has ended."""

    __slots__ = ("_began", "_told")

    def __init__(self, told: Callable[[float], None]) -> None:
        self._told, self._began = told, perf_counter()

    def begin(self) -> None:
        self._began = perf_counter()

    def seen(self) -> None:
        self._told(perf_counter() - self._began)


class Prices:
    """Rent or buy: a further program is compiled when plain Python has run, since the last compilation, for as long as one takes.

    So whatever comes (other values in each call, say) costs at most twice what is best; and less and less, where many programs
    have been of no use to the calls after them.
    """

    def __init__(self) -> None:
        self._spent = 0.0
        self._price = 0.0

    def rented(self, programs: int, *, is_inside: bool) -> PlainTurn | None:
        """A turn of plain Python, if that is the better deal, for a function that has so many programs.

        Args:
            is_inside: whether a statement calls it that runs as Python in another jitted function.
        """
        usual = self._price or (PRICE if is_inside else 0.0)
        price = usual * 2 ** max(0, programs - FEW_PROGRAMS)
        return None if self._spent >= price else PlainTurn(self._ran)

    def bought(self, seconds: float) -> None:
        """So long it has taken to compile one, or to find out that it cannot be compiled."""
        self._price, self._spent = min(seconds, MOST_PRICE), 0.0

    def _ran(self, seconds: float) -> None:
        self._spent += seconds


class Contest:
    """Compares minima of seconds, since what else runs on the machine only ever makes them more.

    is_won: whether compiled code is used; None as long as that is open.
    """

    def __init__(self) -> None:
        self._compiled = _Turns()
        self._plain = _Turns()
        self._lost = 0
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

    def compiled_took(self, seconds: float) -> None:
        self._compiled.add(seconds)
        self._decide()

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
        is_clear = plain > max(2 * compiled, CLEAR) or (compiled > SLOW * plain and self._compiled.count >= 2)
        if not is_clear and min(self._compiled.count, self._plain.count) < TURNS:
            return
        if compiled <= plain:
            self._lost, self._has_won, self.is_won = 0, True, True
        else:  # a noisy minute decides nothing
            self._lost += 1
            self.is_won = self._has_won and self._lost < LOST

    def __str__(self) -> str:
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


__all__ = ["FIRST_LOOK", "PRICE", "Contest", "PlainTurn", "Prices", "in_us"]
