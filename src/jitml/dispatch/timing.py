"""Timing: a variant stays only where it is faster than the plain function.

Until that is known, its calls are answered by both in turns; `jit` runs the plain function where it is given a `PlainTurn`.
As long as better code is being made, compiled code answers, and loses nothing by it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from jitml.dispatch.contest import FIRST_LOOK, Contest
from jitml.dispatch.entry import MISS, Admission
from jitml.dispatch.renting import BRIEF, PlainTurn, TimedTurn
from jitml.dispatch.specialize import Variant, call_of

Enter = Callable[[Sequence[Any]], Any]
CLOSE = 1.25  # times what compiled code takes: what is not slower by as much is not worth calls that might be slow
_MORE = 4  # times what plain Python took when it won: then the work is another, and so may be the winner
_WORTH = 1e-4  # seconds of plain Python for which that is asked
_WATCHED = 1e-5  # seconds more that a call takes as long as its arguments are looked at, about
_DISPATCH = 1.5e-6  # seconds more that it takes to find the variant of a call than to call the plain function
_FORWARD = 2e-7  # the same where machine code does so, and what a turn of plain Python has around it
_OTHERS, _LONG = 3, 0.01  # calls for which that is so, or seconds of one; of fewer the machine may be the reason
TINY = 5e-4  # seconds of plain Python, of which some calls are nobody's time
_PAID = 0.02  # seconds of such calls that are worth a contest
_LOOKS = 100  # times what one look at the arguments takes: a contest has as many calls that are watched as makes it a twentieth
_FAILURES = 20  # times what it has cost to fail, until code that has not answered yet is asked again: a twentieth of the time
_PAUSE = 0.1  # seconds of calls after which it is seen again who is faster


class Rest:
    """Calls that plain Python answers, since it was faster, or too fast to be worth a contest; not for ever.

    Args:
        plain: seconds that such a call has taken.
        seconds: after which it is time to see again which is faster, or
        calls: the same.

    Attributes:
        last, is_brief: what `PlainTurn` asks.
    """

    def __init__(self, plain: float, seconds: float, calls: int) -> None:
        self.plain, self._most_seconds, self._most_calls = plain, seconds, calls
        self.last, self.is_brief = plain, plain < BRIEF
        self._seconds, self._calls, self._others = 0.0, 0, 0

    def is_over(self, seconds: float, calls: int = 1) -> bool:
        """Whether it is time to see again which is faster, after calls that took so long each."""
        self._calls += calls
        self._seconds += seconds * calls
        self._others += seconds > max(_MORE * self.plain, _WORTH)
        is_other = self._others >= _OTHERS or (seconds > _LONG and seconds > _MORE * self.plain)
        return is_other or self._calls >= self._most_calls or self._seconds >= self._most_seconds

    def longer(self, plain: float) -> Rest:
        """The next one."""
        return Rest(plain, self._most_seconds * 4, self._most_calls * 2)


class DirectCalls(NamedTuple):
    """How calls come to machine code without Python in between.

    Args:
        make: an entry for a variant, given the structure of its arguments, the variant and its `enter`; it says `MISS` where that
            does, or fails.
        begin: has that be the way of the next calls.
        is_often: whether calls come often, as those of a loop do.
    """

    make: Callable[[Hashable, Variant, Enter], Callable[..., Any]]
    begin: Callable[[], None]
    is_often: Callable[[], bool] = lambda: False


class Timed:
    """Stands for a variant's `enter`, as long as it is open which is faster, and where plain Python is.

    Args:
        enter: the compiled one, which may check its answers yet; `settled` gives another.
        admits: whether a call is for it.
        spent: seconds that it has spent for that, in all.
        direct: how calls that are short are to be made, if they can be: what looks at arguments first is not to be compared.
        key: the structure of the arguments.
    """

    def __init__(
        self,
        variant: Variant,
        enter: Enter,
        admits: Admission,
        spent: Callable[[], float],
        direct: DirectCalls | None = None,
        key: Hashable = 0,
    ) -> None:
        self.variant, self.enter, self._admits, self._spent = variant, enter, admits, spent
        self._direct, self._key, self._last = direct, key, enter
        self._entry: Callable[..., Any] | None = None
        self.contest = Contest()
        self._is_first = True
        self._is_settled = False
        self._entered = 0.0  # when it was last asked
        self.rest: Rest | None = None  # while plain Python answers
        self._next = Rest(0.0, _PAUSE, FIRST_LOOK)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        if self._is_first or self.contest.is_won:
            self._is_first, self._entered = False, perf_counter()
            result = self.enter(leaves)
            if self.contest.is_won and result is not MISS:
                self.contest.compiled_answered()
                if self._is_settled:
                    self.variant.enter = self.enter
            return result
        if self.rest is None and not self.contest.is_plains_turn:
            return self._timed(leaves)
        return PlainTurn(self._plain_took, self.rest) if self._admits(leaves) else MISS

    def _timed(self, leaves: Sequence[Any]) -> Any:
        call, more = self._direct_call(leaves), _FORWARD
        turn, self._entered = TimedTurn(), perf_counter()
        result = call()
        if result is MISS:
            result, more = self.enter(leaves), _DISPATCH
        ended = perf_counter()
        if result is not MISS and turn.is_usual(seconds := turn.until(ended)) and not self.variant.is_made_better:
            self.contest.compiled_took(seconds + more)
            self._decide()
        return result

    def _direct_call(self, leaves: Sequence[Any]) -> Callable[[], Any]:
        """A call without Python in between; one that says `MISS` if that would change little, or is not possible."""
        if self._direct is None or not self.contest.is_short:
            return _no_answer
        if self._entry is None:
            self._entry = self._direct.make(self._key, self.variant, self._last)
        args, kwargs = call_of(self._key, leaves)
        return partial(self._entry, *args, **kwargs)

    def failed(self) -> None:
        """Plain Python answers a call that compiled code could not."""
        self.contest.compiled_failed()
        self.variant.enter = self  # and so knows whether the next calls are answered
        if self.rest is not None:
            return
        if self.contest.is_won is False:
            self._decide()
        elif not self.contest.has_answered:
            self._begin(Rest(math.inf, _FAILURES * (perf_counter() - self._entered), FIRST_LOOK))

    def took(self, compiled: float, plain: float) -> None:
        """Both have computed the first answer, for it to be checked: that may be enough to know."""
        if plain > 2 * (compiled + _WATCHED):
            self.contest.both_took(compiled, plain)
            self._decide()
        elif plain < TINY and (plain < compiled or self._direct is None or not self._direct.is_often()):
            self._begin(Rest(plain, max(_PAID, _LOOKS * self._spent()), sys.maxsize))
        elif plain < compiled * CLOSE and not self.variant.is_made_better:
            self._begin(Rest(plain, _PAUSE, FIRST_LOOK))

    def settled(self, enter: Enter, *, is_last: bool) -> None:
        """What answers from now on; the last one to come, perhaps."""
        self.enter, self._is_settled = enter, is_last
        if is_last and enter is not self._last:
            self._last, self._entry = enter, None
        self._decide()

    def plain_answered(self, seconds: float, calls: int = 1) -> bool:
        """After calls in a rest: whether that is over."""
        if self.rest is None or not self.rest.is_over(seconds, calls):
            return False
        self.rest, self.variant.saves = None, math.inf
        self.contest.again()
        return True

    def _plain_took(self, seconds: float) -> None:
        if self.rest is None:
            self.contest.plain_took(seconds)
            self._decide()
        else:
            self.plain_answered(seconds)

    def _decide(self) -> None:
        if self.contest.is_won is None:
            return
        self.variant.timed = f"{'used' if self.contest.is_won else 'not used'}: {self.contest}"
        if not self.contest.is_won:
            self._next = self._next.longer(math.inf if self.contest.never_answers else self.contest.plain_seconds)
            self._begin(self._next)
            return
        self.variant.saves = self.contest.plain_seconds - self.contest.seconds
        if self._is_settled:
            self.variant.enter = self.enter
            if self._direct is not None and self._entry is not None:
                self._direct.begin()

    def _begin(self, rest: Rest) -> None:
        self.rest, self.variant.saves = rest, 0.0


def _no_answer() -> Any:
    return MISS


class Resting:
    """A function none of whose variants is faster than the plain one, which is called without asking them."""

    def __init__(self, timed: Sequence[Timed]) -> None:
        self._timed = timed
        self.plain = min((t.rest.plain for t in timed if t.rest is not None), default=math.inf)  # seconds of a call
        self.is_tiny = all(t.rest is not None and t.rest.plain < TINY for t in timed)  # nor are functions that it calls

    def paid(self, seconds: float, calls: int = 1) -> bool:
        """Whether it is over, after calls that took so long each."""
        return sum(timed.plain_answered(seconds, calls) for timed in self._timed) > 0


def resting(variants: Sequence[Variant]) -> Resting | None:
    """The rest of a function that has these variants, if all of them have lost."""
    timed = [v.enter for v in variants if isinstance(v.enter, Timed) and v.enter.rest is not None]
    return Resting(timed) if 0 < len(timed) == len(variants) else None


__all__ = ["DirectCalls", "Resting", "Timed", "resting"]
