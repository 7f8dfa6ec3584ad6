"""Rent or buy: when is a program worth its compilation?  When plain Python has run, at its place, for as long as that takes.

So whatever comes (other values in each call, say) costs at most twice what is best. What may be compiled for nothing at many
places (sections, callees, further programs of one function) has one purse in addition, which is a share of the time that has
passed: a process that ends soon compiles few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from time import perf_counter

from jitml.ir.execute.debug_nans import begin_python, end_python

USUAL = 0.1  # seconds that a compilation is expected to take before there has been one
MOST = 1.0  # seconds: the first compilation in a process takes longer than others
STARTUP = 0.3  # seconds more for the first one, which brings the compiler
SHARE = 0.1  # of the time that has passed, which may be spent on what may be for nothing
SMALL = 1e-5  # seconds of plain Python that are not worth the call of a section
_MANY = 8  # misses
_PAUSE = 0.01  # seconds for which variants are not asked at first
_BRIEF, _STRIDE = 5e-5, 15  # seconds of a call after which so many are not timed
FEW = 50  # turns after which it is known to be small


class Purse:
    """Seconds that may be spent on compilations which are guesses.

    Args:
        clock: seconds that have passed.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock, self._began = clock, clock()
        self.spent = 0.0  # on all of them, and on what could not be compiled
        self.startup = STARTUP  # until there has been one

    def affords(self, seconds: float) -> bool:
        return self.spent + seconds + self.startup <= SHARE * (self._clock() - self._began)

    @property
    def is_empty(self) -> bool:
        return self.spent > MOST and not self.affords(0.0)


PURSE = Purse()


class Unpaid(Exception):
    """A program is too dear for what plain Python has cost so far."""


class PlainTurn:
    """A turn of plain Python: `seen` is called when it has ended."""

    __slots__ = ("_began", "_spent", "_told")

    def __init__(self, told: Callable[[float], object]) -> None:
        self._told = told
        self.begin()

    def begin(self) -> None:
        self._spent, self._began = PURSE.spent, perf_counter()

    def seen(self) -> None:
        self._told(perf_counter() - self._began - (PURSE.spent - self._spent))


class Rent:
    """What plain Python has cost at one place since the last compilation there.

    spent: seconds.
    price: seconds that a compilation takes, about.
    turns: of plain Python.
    compiling: seconds that all compilations here have taken.
    """

    __slots__ = ("compiling", "price", "spent", "turns")

    def __init__(self) -> None:
        self.spent, self.price, self.turns, self.compiling = 0.0, USUAL, 0, 0.0

    def paid(self, seconds: float, calls: int = 1) -> bool:
        """Plain Python has run so often for so long; whether it is due."""
        self.spent += seconds * calls
        self.turns += calls
        return self.is_due()

    def is_due(self, times: float = 1.0) -> bool:
        """Whether to buy.

        Args:
            times: as dear as usual, since so many programs have been of no use to later calls.
        """
        price = self.price * times
        return self.spent >= price + PURSE.startup and PURSE.affords(price)

    @property
    def most(self) -> float:
        """Seconds that a compilation may take now."""
        return max(USUAL, 2 * self.spent)

    @property
    def is_small(self) -> bool:
        """Whether what runs here is known to be too small to be worth anything."""
        return self.turns == FEW and self.spent < FEW * SMALL

    def bought(self, seconds: float, *, is_guess: bool, is_made: bool) -> None:
        """So long it has taken to compile, or to find out that it cannot be compiled."""
        if is_guess:
            PURSE.spent += seconds
        if is_made:
            PURSE.startup = 0.0
        self.compiling += seconds
        self.price, self.spent = min(max(seconds, USUAL), MOST), 0.0


class Misses:
    """Calls for which a function has no variant: each takes long to find that out, so after a few it is left alone for a while.

    Args:
        rent: of the next variant.

    Attributes:
        in_a_row: so many, since a variant has answered.
    """

    def __init__(self, rent: Rent) -> None:
        self._rent = rent
        self.in_a_row, self._pause, self._spent = 0, _PAUSE, 0.0

    def are_many(self) -> bool:
        """Whether there are, with one more."""
        self.in_a_row += 1
        return self.in_a_row >= _MANY

    def paid(self, seconds: float, calls: int = 1) -> bool:
        """The function as it was written has run so often for so long; whether its variants are to be asked again."""
        self._spent += seconds * calls
        if self._rent.paid(seconds, calls) or self._spent >= self._pause:
            self._pause = min(2 * self._pause, USUAL)
            self.in_a_row, self._spent = 0, 0.0
            return True
        return False


class LeftAlone:
    """What counts the calls of a function that runs as it was written; some of them are timed, more of long ones.

    Who calls it asks, and does not call through this one: each frame between the calls of a function that recurs would bring it
    nearer to Python's limit.

    Args:
        paid: is told of the seconds that a call has taken, and how many it stands for; whether that is enough.
        ended: is called then.
        is_alone: whether jitted functions that it calls run as Python where it is timed.
    """

    __slots__ = ("_ended", "_is_alone", "_left", "_paid", "_stride")

    def __init__(self, paid: Callable[[float, int], bool], ended: Callable[[], None], *, is_alone: bool = False) -> None:
        self._paid, self._ended, self._is_alone = paid, ended, is_alone
        self._stride = self._left = 0

    def is_timed(self) -> bool:
        """Whether the next call is: then `begin` and `end` are to be called."""
        if self._left > 0:
            self._left -= 1
            return False
        return True

    def begin(self) -> tuple[float, float, Token[bool] | None]:
        return PURSE.spent, perf_counter(), begin_python() if self._is_alone else None

    def end(self, begun: tuple[float, float, Token[bool] | None]) -> None:
        before, began, token = begun
        if token is not None:
            end_python(token)
        seconds = perf_counter() - began - (PURSE.spent - before)
        is_over = self._paid(seconds, self._stride + 1)
        self._stride = self._left = _STRIDE if seconds < _BRIEF else 0
        if is_over:
            self._ended()


__all__ = ["FEW", "PURSE", "USUAL", "LeftAlone", "Misses", "PlainTurn", "Purse", "Rent", "Unpaid"]
