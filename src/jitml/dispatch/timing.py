"""Timing: a variant stays only where it is faster than the plain function.

Until that is known, its calls are answered by both in turns; `jit` runs the plain function where it is given a `PlainTurn`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

from jitml.dispatch.contest import FIRST_LOOK, Contest, PlainTurn
from jitml.dispatch.entry import MISS, admitting
from jitml.dispatch.specialize import Variant

Enter = Callable[[Sequence[Any]], Any]
_MORE = 4  # times what plain Python took when it won: then the work is another, and so may be the winner
_WORTH = 1e-4  # seconds of plain Python for which that is asked


class Rest:
    """Calls that plain Python answers, since it was faster; not for ever."""

    def __init__(self, contest: Contest) -> None:
        self._contest = contest
        self._calls = 0
        self._next_look = FIRST_LOOK

    def is_over(self, seconds: float) -> bool:
        """Whether it is time to see again which is faster, after a call that took so long."""
        self._calls += 1
        if self._calls < self._next_look and seconds <= max(_MORE * self._contest.plain_seconds, _WORTH):
            return False
        self._calls, self._next_look = 0, self._next_look * 2
        return True


class Timed:
    """Stands for a variant's `enter`, as long as it is open which is faster, and where plain Python is.

    Args:
        enter: the compiled one, which may check its answers yet; `settled` gives another.
        spent: seconds that it has spent for that, in all.
    """

    def __init__(self, variant: Variant, enter: Enter, spent: Callable[[], float]) -> None:
        self.variant, self.enter, self._spent = variant, enter, spent
        self.contest = Contest()
        self._is_first = True
        self._is_settled = False
        self.rest = Rest(self.contest)

    @cached_property
    def _admits(self) -> Enter:
        return admitting(self.variant.traced)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        contest = self.contest
        if contest.is_won is None and not self._is_first and not contest.is_plains_turn:
            return self._timed(leaves)
        if (contest.is_won is None and not self._is_first) or contest.is_won is False:
            return MISS if self._admits(leaves) is MISS else PlainTurn(self._plain_took)
        self._is_first = False
        return self.enter(leaves)

    def _timed(self, leaves: Sequence[Any]) -> Any:
        before, began = self._spent(), perf_counter()
        result = self.enter(leaves)
        if result is not MISS:
            self.contest.compiled_took(perf_counter() - began - (self._spent() - before))
            self._decide()
        return result

    def took(self, compiled: float, plain: float) -> None:
        """Both have computed the first answer, for it to be checked: that may be enough to know."""
        if plain > max(2 * compiled, _WORTH):
            self.contest.compiled_took(compiled)
            self.contest.plain_took(plain)
            self._decide()

    def settled(self, enter: Enter, *, is_last: bool) -> None:
        """What answers from now on; the last one to come, perhaps."""
        self.enter, self._is_settled = enter, is_last
        self._decide()

    def _plain_took(self, seconds: float) -> None:
        if self.contest.is_won is None:
            self.contest.plain_took(seconds)
            self._decide()
        elif self.rest.is_over(seconds):
            self.contest.again()

    def _decide(self) -> None:
        if self.contest.is_won and self._is_settled:
            self.variant.enter = self.enter
        if self.contest.is_won is not None:
            self.variant.timed = f"{'used' if self.contest.is_won else 'not used'}: {self.contest}"


class Resting:
    """A function none of whose variants is faster than the plain one, which is called without asking them."""

    def __init__(self, timed: Sequence[Timed]) -> None:
        self._timed = timed
        self._rests = [t.rest for t in timed]

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, bool]:
        """What it gives, and whether that is over."""
        began = perf_counter()
        result = function(*args, **kwargs)
        seconds = perf_counter() - began
        over = [t for t, rest in zip(self._timed, self._rests) if rest.is_over(seconds)]
        for t in over:
            t.contest.again()
        return result, bool(over)


def resting(variants: Sequence[Variant]) -> Resting | None:
    """The rest of a function that has these variants, if all of them have lost."""
    timed = [v.enter for v in variants if isinstance(v.enter, Timed) and v.enter.contest.is_won is False]
    return Resting(timed) if 0 < len(timed) == len(variants) else None


__all__ = ["Resting", "Timed", "resting"]
