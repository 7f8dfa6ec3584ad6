"""Rent or buy: when is a program worth its compilation?  When plain Python has run, at its place, for as long as that takes.

So whatever comes (other values in each call, say) costs at most twice what is best. All places (functions, their further
programs, sections, callees) have one purse in addition: an advance, and a share of the time that has passed. Only what is likely
to run for long (`work.py`) is bought before it has paid, so that a process that ends soon compiles little.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable
from time import perf_counter, process_time, thread_time
from typing import Any

USUAL = 0.1  # seconds that a compilation is expected to take before there has been one
MOST = 1.0  # seconds: the first compilation in a process takes longer than others
STARTUP = 0.3  # seconds more for the first one, which brings the compiler
SHARE = 0.1  # of the time that has passed, which may be spent on what may be for nothing
ADVANCE = 1.0  # seconds that may be spent before: what is likely to run for long is to be compiled at its first call
FRAME = 0.02  # seconds that it takes to write the frame of a function in sections, about
LONG = 1e-3  # seconds of plain Python in one call that are worth a compilation, if there will be more such calls
SMALL = 1e-5  # seconds of plain Python in one turn for which nothing is compiled in a hurry
COLD = 1e-4  # the same of a first turn, in which all is in no cache yet
_SMALLEST = 2e-6  # the same of which all would go for the way into compiled code
_MANY = 8  # misses
_PAUSE = 0.01  # seconds for which variants are not asked at first
_TIMING = 5e-3  # a hundred times the seconds that it takes to time a call, whose code is in no cache
FIRST = 4  # times as long as later ones a first call takes, or more: nothing of it is in a cache
_STRIDE, _LONGEST_STRIDE = 400, 2000  # calls at the most after one that is timed: at first, and once there have been as many
BRIEF = 1e-4  # seconds of a turn in which others hardly have the processor
_SOON = 2e-4  # seconds between two turns, at the most, if they are those of a loop
_AWAY = 100  # times as long, if it is others who have the processor meanwhile
_SKIPPED = 20  # calls after the first one, at the most, until one is timed again: it may have been another kind of call
_IN_A_ROW = 2  # turns, each soon after another one, from which on more are to be expected
_ROW, _LONG_ROW = 4, 5e-4  # turns in a row, and seconds of them, of a loop outside of jitted functions that is likely to go on
FEW = 50  # turns after which it is known to be small


IN_NONE, IN_SECTIONS, IN_FIRST_CALL = range(3)


class _Running(threading.local):
    """Where this thread is: in no function in sections, in one, or in the first call of one that could not be compiled whole.

    Whoever has waited for that waits for what else the purse can pay: parts that have run for long in such a call are bought.
    """

    level = IN_NONE


RUNNING = _Running()


class Purse:
    """Seconds that may be spent on compilations, each of which may be for nothing.

    Args:
        clock: seconds that have passed.
        startup: seconds more that the first one takes.
        most: seconds that have passed at the most, if a clock that is read sooner tells.

    Attributes:
        spent: seconds of its clock, on all of them, and on what could not be compiled.
        away: the same, and what checks of answers take, on the clock by which turns are timed. It goes on where other processes
            have the processor.
    """

    def __init__(self, clock: Callable[[], float], startup: float = STARTUP, most: Callable[[], float] | None = None) -> None:
        self.clock, self._most = clock, most or clock
        self.spent = self.away = 0.0
        self.startup = startup  # until there has been one

    def affords(self, seconds: float) -> bool:
        lacks = seconds + self.spent + self.startup - ADVANCE
        return lacks <= 0 or (lacks <= SHARE * self._most() and lacks <= SHARE * self.clock())

    def has_earned(self, seconds: float) -> bool:
        """Whether there is so much without the advance."""
        return self.affords(ADVANCE + seconds)

    @property
    def left(self) -> float:
        return ADVANCE + SHARE * self.clock() - self.spent - self.startup

    def began(self) -> tuple[float, float]:
        """When something of a compilation or of a check begins, for `ended`."""
        return self.clock(), perf_counter() - self.away

    def ended(self, began: tuple[float, float], answer: float = 0.0) -> float:
        """So long it has taken, which is to be paid; what is in it that has ended already is away once.

        Args:
            answer: seconds of it in which a call was answered.
        """
        self.away = max(self.away, perf_counter() - began[1] - answer)
        return self.clock() - began[0]

    def pay(self, seconds: float) -> None:
        """So long it has taken to prepare one."""
        self.spent += seconds

    def brought(self, seconds: float) -> None:
        """So long it has taken to import what is needed for the first one."""
        self.spent += seconds
        self.startup = max(0.0, self.startup - seconds)

    @property
    def is_rich(self) -> bool:
        """Whether all first calls may be compiled before anything has been paid for them."""
        return self.has_earned(MOST)


def _startup() -> float:
    """Python compiles our modules in each process where it may not keep what it has compiled."""
    return STARTUP if __spec__ is not None and __spec__.cached and os.path.exists(__spec__.cached) else 4 * STARTUP


_BEGAN = perf_counter() - min(process_time(), 1.0)  # as long ago the process has begun, or longer


def _passed() -> float:
    """What waits, for other processes too, is not the time that a compilation adds to."""
    return min(_since(), process_time())


def _since() -> float:
    return perf_counter() - _BEGAN


PURSE = Purse(_passed, _startup(), _since)


class Unpaid(Exception):
    """A program is too dear for what plain Python has cost so far; `refusal` says where that is so."""

    def __init__(self, refusal: Exception) -> None:
        self.refusal = refusal


class TimedTurn:
    """A turn that is timed, without what is compiled or checked in it."""

    __slots__ = ("_away", "_began")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._away, self._began = PURSE.away, perf_counter()

    @property
    def seconds(self) -> float:
        return self.until(perf_counter())

    def until(self, ended: float) -> float:
        """Seconds of one that ended then: of what is short, to ask for them takes longer than it has taken."""
        return ended - self._began - (PURSE.away - self._away)

    def is_usual(self, seconds: float) -> bool:
        """Whether others take as long: after a compilation or a check nothing is in the caches."""
        return PURSE.away - self._away <= seconds


class PlainTurn(TimedTurn):
    """A turn of plain Python: `seen` is called when it has ended.

    Args:
        told: is told of its seconds.
        known: what such turns take, if that is known: `last`, in seconds, and whether the next one `is_brief`. Of brief turns the
            time of the processor, a call of the system, is not asked for: others may have had the processor in one that is not,
            which counts as the one before it.
    """

    __slots__ = ("_busy", "_known", "_told")

    def __init__(self, told: Callable[[float], object], known: Any = None) -> None:
        self._told, self._known = told, known if known is not None and known.is_brief else None
        self.begin()

    def begin(self) -> None:
        self._busy = thread_time() if self._known is None else 0.0
        super().begin()

    def seen(self, ended: float | None = None) -> None:
        seconds = self.until(perf_counter() if ended is None else ended)
        if seconds > BRIEF and self._known is not None:
            self._told(self._known.last)
            self._known.is_brief = False
            return
        if seconds > BRIEF and self.is_usual(0.0):  # others may have had the processor for a while
            busy = thread_time() - self._busy
            seconds = min(seconds, busy) if busy > 0.0 else seconds  # else it has ended in another thread
        self._told(seconds)


class Rent:
    """What plain Python has cost at one place since the last compilation there.

    spent: seconds, in so many turns.
    price: seconds that a compilation takes, about.
    compiling: seconds that all compilations here have taken.
    last: seconds of the last turn.
    is_brief: whether the next one is likely to be brief.
    in_a_row: turns of which each began soon after another one had ended, as those of a loop do.
    is_often: whether there have been some.
    is_first_row: whether each turn so far began soon after the one before it. Later rows are no reason to hurry: a function whose
        first loop was short is likely to be called by more such loops.
    before: sizes of the arguments of the last turn, if that has been looked at.
    """

    __slots__ = (
        "_away",
        "_busy",
        "_ended",
        "before",
        "compiling",
        "in_a_row",
        "is_brief",
        "is_first_row",
        "is_often",
        "last",
        "price",
        "spent",
        "turns",
    )

    def __init__(self) -> None:
        self.spent, self.price, self.turns, self.compiling = 0.0, USUAL, 0, 0.0
        self.in_a_row, self._ended, self._busy, self._away, self.last = 0, -math.inf, 0.0, 0.0, 0.0
        self.is_often, self.is_brief, self.is_first_row = False, False, True
        self.before: tuple[tuple[int, ...] | None, ...] | None = None

    def paid(self, seconds: float, calls: int = 1) -> bool:
        """Plain Python has run so often for so long; whether it is due."""
        self.spent += seconds * calls
        self.turns += calls
        self.last, self.is_brief = seconds, seconds < BRIEF
        self._end()
        return self.is_due()

    def _end(self) -> None:
        """A turn has ended."""
        self._busy = thread_time() if self.is_open or RUNNING.level == IN_FIRST_CALL else 0.0  # a call of the system
        self._ended, self._away = perf_counter(), PURSE.away

    def comes(self, skipped: int = 0) -> None:
        """Another turn is about to begin.

        Args:
            skipped: turns that nobody has seen since the last one.
        """
        away = PURSE.away - self._away  # in which something else was compiled
        since, turns = perf_counter() - self._ended - away, skipped + 1
        most = turns * max(_SOON, self.last / 4) + skipped * self.last
        is_soon = since < most or (self._busy > 0.0 and since < _AWAY * most and thread_time() - self._busy - away < most)
        is_soon |= since < away  # what has to be done before and after a compilation takes its time, too
        is_soon &= self.last < LONG  # else it is likely to recur, or to be called by what does as much between
        self.is_first_row &= is_soon or since == math.inf
        self.in_a_row = self.in_a_row + turns if is_soon else 0
        self.is_often |= self.in_a_row >= _IN_A_ROW

    def grow(self, share: float) -> bool:
        """Plain Python has cost this share more, where nobody has looked at the clock; whether it is due."""
        self.spent *= 1.0 + share
        return self.is_due()

    def is_due(self, times: float = 1.0, *, may_be_soon: bool = False) -> bool:
        """Whether to buy.

        Args:
            times: as dear as usual, since so many programs have been of no use to later calls.
            may_be_soon: whether it may be bought sooner, for the turn that begins, if turns follow each other.
        """
        price = self.price * times
        if self.spent >= price + PURSE.startup and PURSE.affords(price):
            return True
        is_likely_long = self.spent >= LONG and RUNNING.level == IN_FIRST_CALL
        is_likely_long |= self.in_a_row >= _IN_A_ROW and may_be_soon and RUNNING.level == IN_FIRST_CALL
        is_likely_long |= self._is_in_long_row and may_be_soon and RUNNING.level == IN_NONE
        least = SMALL if self.turns > 1 else COLD  # by its first turn alone, nothing seems small
        is_small = self.spent < self.turns * least or self.last < least
        return is_likely_long and not is_small and PURSE.affords(price)

    @property
    def is_open(self) -> bool:
        """Whether this may become a long first row yet: then its turns, which are few, are timed with care."""
        return self.is_first_row and self.turns < FEW and self.last > SMALL and RUNNING.level == IN_NONE

    @property
    def _is_in_long_row(self) -> bool:
        return self.is_first_row and self.in_a_row >= _ROW and self.spent >= _LONG_ROW

    def most(self, *, is_asked: bool) -> float:
        """Seconds that a compilation may take now: about what plain Python has, or for what has not run yet all that there is.

        Args:
            is_asked: whether it is to be whatever it costs.
        """
        if is_asked or not (self.spent or PURSE.affords(USUAL)):  # for arrays on a device
            return math.inf
        most = max(USUAL, PURSE.left)
        return min(most, max(USUAL, 2 * self.spent)) if self.spent and RUNNING.level < IN_FIRST_CALL else most

    @property
    def is_small(self) -> bool:
        """Whether what runs here is known to be too small to be worth anything."""
        return self.turns >= FEW and self.spent < self.turns * _SMALLEST

    def bought(self, seconds: float, *, is_made: bool) -> None:
        """So long it has taken to compile, or to find out that it cannot be compiled."""
        PURSE.spent += seconds
        self.compiling += seconds
        self.price = min(max(seconds - is_made * PURSE.startup, USUAL), MOST)
        self.spent, self.turns, self.in_a_row = 0.0, 0, 0
        self._end()
        if is_made:
            PURSE.startup = 0.0


class Sampling:
    """Which turns of plain Python are timed?  Few of short ones: timing shall cost a hundredth at most.

    Args:
        paid: is told of the seconds that a turn has taken, and how many it stands for; whether that is enough.

    Attributes:
        untimed: so many turns are not timed until the next one is.
    """

    __slots__ = ("_paid", "_stride", "_turns", "untimed")

    def __init__(self, paid: Callable[[float, int], bool]) -> None:
        self._paid = paid
        self._stride = self.untimed = self._turns = 0

    @property
    def skipped(self) -> int:
        """Turns since the last one that was timed, if the next one is."""
        return self._stride

    @property
    def is_new(self) -> bool:
        return self._turns < FEW

    def passes(self) -> bool:
        """Whether the next turn is not timed."""
        if self.untimed:
            self.untimed -= 1
            return True
        return False

    def took(self, seconds: float) -> bool:
        """A turn has taken so long; whether enough has been paid."""
        turns = self._stride + 1
        is_enough = self._paid(seconds, turns)
        self._turns += turns
        self.skip(seconds / FIRST if self._turns == 1 else seconds)
        return is_enough

    def skip(self, seconds: float) -> None:
        """Time none for a while, since it is known how long they take."""
        most = _SKIPPED if self._turns == 1 and seconds > SMALL else min(max(self._turns, _STRIDE), _LONGEST_STRIDE)
        stride = 0 if RUNNING.level == IN_FIRST_CALL else min(int(_TIMING / max(seconds, 1e-7)), most)
        self._stride = self.untimed = stride

    def at_once(self) -> None:
        """Time the next turn, which stands for itself."""
        self._stride = self.untimed = 0


class Misses:
    """Calls for which a function has no variant: each takes long to find that out, so after a few it is left alone for a while.

    Args:
        rent: of the next variant.

    Attributes:
        in_a_row: so many, since a variant has answered.
    """

    def __init__(self, rent: Rent) -> None:
        self._rent = rent
        self.in_a_row, self._lost, self._pause, self._spent = 0, 0.0, _PAUSE, 0.0

    def are_many(self, began: float | None = None, saves: Iterable[float] = ()) -> bool:
        """Whether there are, with one more: as much time may be lost as the next answer of a variant saves.

        Args:
            began: when the variants began to be asked.
            saves: seconds that an answer of each saves.
        """
        self._lost = self._lost if self.in_a_row else 0.0
        self.in_a_row += 1
        if began is None:
            return self.in_a_row >= _MANY
        self._lost += 2 * (perf_counter() - began)  # and as long around the turn
        return self.in_a_row >= _MANY or self._lost >= max(saves)

    def paid(self, seconds: float, calls: int = 1) -> bool:
        """The function as it was written has run so often for so long; whether its variants are to be asked again."""
        self._spent += seconds * calls
        if self._rent.paid(seconds, calls) or self._spent >= self._pause:
            self._pause = min(2 * self._pause, USUAL)
            self.in_a_row, self._spent = 0, 0.0
            return True
        return False


__all__ = [
    "BRIEF",
    "FEW",
    "FIRST",
    "FRAME",
    "IN_FIRST_CALL",
    "IN_NONE",
    "IN_SECTIONS",
    "LONG",
    "MOST",
    "PURSE",
    "RUNNING",
    "USUAL",
    "Misses",
    "PlainTurn",
    "Purse",
    "Rent",
    "Sampling",
    "TimedTurn",
    "Unpaid",
]
