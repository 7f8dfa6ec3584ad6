"""Functions that are left alone: they run as they were written, and few of their calls are timed, as long as nothing is due."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import repeat
from types import FrameType
from typing import Any
from weakref import ref

from jitml.diagnostics.tracebacks import passed_over, shorten
from jitml.dispatch.renting import Sampling, TimedTurn
from jitml.functions import ALWAYS, Switch, unseen


class Rented(Switch):
    """A function that is left alone at times: it runs as it was written, and what is not timed of it has no frame of ours."""

    __slots__ = ("alone",)
    alone: LeftAlone | None

    def leave_alone(
        self,
        paid: Callable[[float, int], bool],
        *,
        run: Callable[..., Any] | None = None,
        known: float = math.inf,
    ) -> None:
        """Have the function as it was written answer, until enough has been paid.

        Args:
            paid: is told of the seconds that a call has taken, and how many it stands for; whether that is enough.
            run: is called in its place where it is timed.
            known: seconds that a call takes, if it is known already.
        """
        self.alone = LeftAlone(self, paid, run or self.function, known)
        self.alone.begin()

    def instead(self, args: tuple[Any, ...], kwargs: dict[str, Any], skipped: int) -> Callable[..., Any] | None:
        """What is to answer a call that would be timed; None if that is well.

        Args:
            skipped: calls since the last one that was timed.
        """
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Whether the next call is to be timed, since it may show that more are likely to follow."""
        return False

    def go_on(self) -> None:
        """Enough has been paid."""
        raise NotImplementedError


def is_called_plainly() -> bool:
    """Whether a jitted function that is left alone is among the callers: what that calls is hardly worth more."""
    rented = (x for x in unseen() if isinstance(x, Rented) and x.alone is not None)  # others are answered by machine code
    plain = {x.function.__code__ for x in rented if hasattr(x.function, "__code__")}
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in plain:
            return True
        frame = frame.f_back
    return False


class LeftAlone:
    """Times some of the calls of a function that runs as it was written, more of long ones.

    While one is timed, no other is: what recurs has all of Python's stack, and its time is counted once.
    """

    def __init__(self, switch: Rented, paid: Callable[[float, int], bool], run: Callable[..., Any], known: float) -> None:
        self._switch = ref(switch)  # which holds this; who calls it holds both
        self._function, self._run = switch.function, run
        self._sampling = Sampling(paid)
        self._sampling.skip(known)

    def begin(self) -> None:
        self._answer(self._function, self._sampling.untimed)

    @passed_over
    def timed(self, *args: Any, **kwargs: Any) -> Any:
        switch = self._switch()
        assert switch is not None
        try:
            if (instead := switch.instead(args, kwargs, self._sampling.skipped)) is not None:
                return instead(*args, **kwargs)
        except BaseException as error:
            shorten(error)
            raise
        self._answer(self._function)
        turn = TimedTurn()
        try:
            return self._run(*args, **kwargs)
        except BaseException as error:
            shorten(error)
            raise
        finally:
            self._took(switch, turn.seconds)

    def _took(self, switch: Rented, seconds: float) -> None:
        is_over = self._sampling.took(seconds)
        if switch.is_open and self._sampling.is_new:
            self._sampling.at_once()
        if switch.alone is self and is_over:
            switch.go_on()
        else:
            self._answer(self._function, self._sampling.untimed)

    def _answer(self, function: Callable[..., Any], times: int = ALWAYS) -> None:
        """Have the next calls answered by this, and timed after that."""
        switch = self._switch()
        if switch is not None and switch.alone is self:
            switch.answer_in_turn(repeat(self.timed), function, times)


__all__ = ["LeftAlone", "Rented", "is_called_plainly"]
