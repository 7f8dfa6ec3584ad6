"""Kinds of calls: which split of a function answers?  What breaks for one kind of arguments says nothing of others.

A kind is types and dtypes, no sizes and no values. After a few kinds, further ones share one split, and so what breaks in any.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from jitml.config import CONFIG
from jitml.diagnostics.tracebacks import passed_over
from jitml.dispatch.renting import IN_NONE, RUNNING, USUAL, Rent
from jitml.errors import forget_frames
from jitml.forks import lock
from jitml.imports.late import late

if TYPE_CHECKING:
    from jitml.sections import report
    from jitml.sections import split as splitting
    from jitml.sections.callees import HotCallees
    from jitml.sections.section import Compiled
    from jitml.sections.split import SplitFunction
else:
    report, splitting = late("jitml.sections.report"), late("jitml.sections.split")  # functions that are compiled whole need none

MOST_KINDS = 4
_ANY = "any"


def kind_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
    """Types and dtypes of arguments."""
    return tuple(_kind(x) for x in args), tuple((name, _kind(x)) for name, x in kwargs.items())


def _kind(x: Any) -> Hashable:
    return (type(x), x.dtype, x.ndim) if isinstance(x, np.ndarray) else (type(x),)


class Splits:
    """The splits of one function.

    Args:
        is_whole: whether it can be compiled whole for some arguments; a generator cannot.

    Attributes:
        running: where this thread is, which whoever calls a split has to say.
    """

    running = RUNNING

    def __init__(
        self,
        function: Callable[..., Any],
        compiled: Callable[[FunctionType, bool, Rent], Compiled],
        callees: Callable[[], HotCallees],
        *,
        is_whole: bool,
    ) -> None:
        self._function = function.__func__ if isinstance(function, MethodType) else function
        self.first = (function.__self__,) if isinstance(function, MethodType) else ()
        self._compiled, self._callees, self._is_whole = compiled, callees, is_whole
        self._splits: dict[Hashable, SplitFunction] = {}
        self._lock = lock()
        self._unsplit, self._patience = 0.0, USUAL  # seconds since a split has answered, and until one is to do so again
        self._is_told = False

    def __bool__(self) -> bool:
        return bool(self._splits) or not self._is_whole

    def __iter__(self) -> Iterator[SplitFunction]:
        return iter(dict.fromkeys(self._splits.values()))

    @property
    def is_possible(self) -> bool:
        """Whether it can be split."""
        return type(self._function) is FunctionType and splitting.is_possible(self._function)

    @property
    def _broken(self) -> SplitFunction | None:
        """One of which it is known where it breaks, and that has something compiled, if there is such a one."""
        broken = [split for split in self if split.breaks]
        return next((split for split in broken if split.has_compiled), next(iter(broken), None))

    @property
    def are_compiled(self) -> bool:
        """Whether there is something that may answer other kinds, too."""
        return any(split.has_compiled for split in self if split.breaks)

    @property
    def is_inside(self) -> bool:
        """Whether a function around is one that has been split."""
        return self.running.level > IN_NONE

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> SplitFunction | None:
        """The split that answers calls of this kind; None if they are tried whole."""
        found = self.known(args, kwargs)
        if found is None:
            return None if self._is_whole else self._add(args, kwargs)
        if found.rent is not None and found.rent.is_due():
            found.rent, found.is_asleep = None, True
        return None if found.is_asleep else found

    def known(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> SplitFunction | None:
        """The split that has answered calls of this kind."""
        return self._splits.get(kind_of(args, kwargs)) or self._splits.get(_ANY)

    def refused(self, error: BaseException, args: Sequence[Any], kwargs: Mapping[str, Any]) -> SplitFunction | None:
        """The split for calls of a kind that was refused as a whole; None if it cannot be split. The refusal loses its frames."""
        with self._lock:
            split = self._add(args, kwargs)
            if split is not None:
                split.rent, split.is_asleep = None, False
                if not split.breaks:  # else another thread was told the same
                    split.learn(error)
        if not getattr(error, "leaves_changes", False):
            forget_frames(error)
        return split

    def if_refused(self, error: BaseException) -> SplitFunction | None:
        """The split that answers calls once the whole has been refused so; None if it cannot be split. Nothing is kept of it."""
        if type(self._function) is not FunctionType:
            return None
        split = splitting.SplitFunction(self._function, self._compiled, self._callees())
        if not split.is_possible or (self._is_whole and not split.learn(error)):
            return None
        split.prepare()
        return split

    def rented(self, rent: Rent, args: Sequence[Any], kwargs: Mapping[str, Any], dear: BaseException | None = None) -> bool:
        """Whether a split answers calls of this kind until the rent of the whole is due.

        What is known of another kind is taken to be so for this one, too, until then.

        Args:
            dear: where the whole is too dear, if it has been tried.
        """
        split = self._add(args, kwargs, self._broken) if dear is None else self.refused(dear, args, kwargs)
        if split is not None:
            split.rent, split.is_asleep = rent, False
        return split is not None

    def wake(self) -> bool:
        """The whole has been compiled: what was asleep until then is forgotten. Answers whether there was such a one."""
        asleep = [split for split in self if split.is_asleep]
        for split in asleep:
            self.drop(split)
        return bool(asleep)

    @property
    def is_plain(self) -> bool:
        """Whether no split has anything that is compiled."""
        return CONFIG.trial and all(split.is_plain for split in self)

    def paid(self, seconds: float, calls: int = 1) -> bool:
        """The function as it was written has run so often for so long; whether its splits are to answer again.

        They are where something may be compiled, and now and then, to see what takes its time.
        """
        splits, spent = [*self], seconds * calls
        self._unsplit += spent
        are_due = [split.paid(spent / len(splits)) for split in splits]
        if self._unsplit < self._patience and not (any(are_due) and self._patience <= USUAL):
            return False
        self._unsplit = 0.0
        return True

    def is_over(self, split: SplitFunction) -> bool:
        """Whether the function as it was written is as good, or has been faster than this."""
        if split.race.is_lost:  # it is seen again, after some time
            split.race = splitting.Race()
            self._patience *= 4
            return True
        return self.is_plain

    @passed_over
    def tried(self, split: SplitFunction, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A call of what could not be traced, since that raised; if this does, too, that tells nothing of other calls."""
        try:
            return function(*args, **kwargs)
        except BaseException:
            self.drop(split)
            raise

    def drop(self, split: SplitFunction) -> None:
        with self._lock:
            self._splits = {kind: known for kind, known in self._splits.items() if known is not split}

    def answer_all(self, split: SplitFunction) -> None:
        """Have one split answer calls of every kind."""
        self._splits = {_ANY: split}

    def _add(self, args: Sequence[Any], kwargs: Mapping[str, Any], like: SplitFunction | None = None) -> SplitFunction | None:
        if type(self._function) is not FunctionType:
            return None
        kind = kind_of(args, kwargs) if len(self._splits) < MOST_KINDS else _ANY
        with self._lock:
            if kind not in self._splits:
                made = splitting.SplitFunction(self._function, self._compiled, self._callees())
                if like is not None:
                    made.know(like)
                self._splits = {**self._splits, kind: made}
            return self._splits[kind]

    def complaint(self) -> str:
        """What to tell the user, once, if most of the function's time is plain Python's."""
        if self._is_told:
            return ""
        splits = [*self]
        found = report.complaint(splits, sum(split.seconds for split in splits))
        self._is_told = bool(found)
        return found

    def clear(self) -> None:
        self._splits = {}


__all__ = ["Splits"]
