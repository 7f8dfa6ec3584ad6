"""Variants: which specialisation of a program answers a call?  `Variants` tries them, most recent first, and has one made.

A variant's `enter` takes the flattened arguments and checks its own guards; it answers `MISS` where they do not hold, having
changed nothing. Where it has taken for granted what the call does otherwise, it raises `WrongPath`, and where a loop runs out of
room, `MoreIterations`: then others are tried, or made. `jit` has them compiled; transforms outside it have them run by NumPy.

Reading is lock-free (tuples are replaced, never changed).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, TypeVar

from jitml.dispatch.entry import MISS
from jitml.errors import FailedCheck, MoreIterations, UnsupportedError, WrongPath, forget_frames
from jitml.forks import lock
from jitml.interrupts import is_own_thread
from jitml.ir.capacity import learn
from jitml.records import dataclass, field
from jitml.trace.speculation.paths import Path, other_path
from jitml.trace.traced import Traced

# A program with more specialisations than this forgets the one that was not used for longest.
MOST_VARIANTS = 64


@dataclass(slots=True, eq=False)
class Specialization:
    """What answers calls of a kind: `enter` is made of `traced`."""

    enter: Callable[[Sequence[Any]], Any] = field(repr=False)
    traced: Traced = field(repr=False)

    def replayed(self, failure: FailedCheck) -> None:
        """Note that plain Python answers a call that belongs to this one."""


P = TypeVar("P", bound=Specialization)


class Tries(Generic[P]):
    """What has been tried for one call.

    failed: those whose guards hold, but not what they assume of the call, and how; they are not tried again.
    last: the one that was entered last.
    """

    __slots__ = ("failed", "last")

    def __init__(self) -> None:
        self.failed: dict[P, WrongPath] = {}
        self.last: P | None = None

    def path(self) -> Path:
        """What is known of the call."""
        return other_path([(v.traced.key.path, failure) for v, failure in self.failed.items()]) if self.failed else Path()


Make = Callable[[tuple[P, ...], Tries[P]], P]  # given those of the same argument structure, most recent first


class Variants(Generic[P]):
    """The variants of one program, grouped by the structure (`key`) of its arguments.

    Args:
        making: is held while one is made, so that threads that want the same wait for it.
    """

    def __init__(self, making: AbstractContextManager[Any] | None = None) -> None:
        self._making = nullcontext() if making is None else making
        self._lock = lock()  # never held for long
        self._groups: dict[Hashable, tuple[P, ...]] = {}

    def call(self, key: Hashable, leaves: Sequence[Any], tries: Tries[P] | None = None) -> Any:
        """The result of the first variant whose guards and assumptions hold, or `MISS`.

        Raises:
            FailedCheck: the variant that the call belongs to cannot answer it; nothing has been changed.
        """
        for position, variant in enumerate(self._groups.get(key, ())):
            if tries is not None:
                if variant in tries.failed:
                    continue
                tries.last = variant
            try:
                result = variant.enter(leaves)
            except WrongPath as failure:
                forget_frames(failure)
                if tries is not None:
                    tries.failed[variant] = failure
            except MoreIterations as failure:  # the next one has more room
                learn(failure)
                self._forget(key, variant)
            except FailedCheck as failure:
                variant.replayed(failure)
                raise
            else:
                if result is not MISS:
                    if position:
                        self._bring_forward(key, variant)
                    return result
        return MISS

    def of(self, *keys: Hashable) -> Iterator[P]:
        """Those for arguments of these structures, most recent first."""
        return (variant for key in keys for variant in self._groups.get(key, ()))

    def items(self) -> Iterator[tuple[Hashable, P]]:
        """All of them, with the structures of their arguments, most recent first for each of these."""
        return ((key, variant) for key, group in self._groups.items() for variant in group)

    def fitting(self, key: Hashable, leaves: Sequence[Any]) -> P | None:
        """The variant whose guards hold for these arguments; what it assumes of the call is not looked at."""
        return next((v for v in self._groups.get(key, ()) if not v.traced.host.first_failure(leaves)), None)

    def make(self, key: Hashable, leaves: Sequence[Any], make: Make[P], tries: Tries[P]) -> Any:
        """The result of a new variant, unless another thread has made a fitting one in the meantime.

        What a new one assumes of the call is a guess. Where that is wrong, the next one knows better and takes its place.

        Raises:
            WrongPath: plain Python is to answer the call.
        """
        # A finalizer that runs while Python collects may call what just this compilation waits for.
        making = nullcontext() if is_own_thread() else self._making
        guess: P | None = None
        while True:
            with making:
                result = self.call(key, leaves, tries)
                if result is not MISS:
                    return result
                variant = self._made(key, make, tries, guess)
            result = self.call(key, leaves, tries)
            if result is not MISS:
                return result
            guess = variant if variant in tries.failed else None
            if guess is None and variant in self._groups.get(key, ()):
                raise _changed()

    def _made(self, key: Hashable, make: Make[P], tries: Tries[P], guess: P | None) -> P:
        """A new variant, in the place of one that has failed."""
        try:
            made = make(self._without(key, guess), tries)
        except WrongPath as failure:
            for variant, known in tries.failed.items():
                if known is failure:
                    variant.replayed(failure)
            raise
        if guess is not None:
            self._forget(key, guess)
        with self._lock:
            groups = {k: v for k, v in self._groups.items() if k != key}
            groups[key] = (made, *self._groups.get(key, ()))
            if sum(map(len, groups.values())) > MOST_VARIANTS:
                oldest = next(iter(groups))
                groups[oldest] = groups[oldest][:-1]
                if not groups[oldest]:
                    del groups[oldest]
            self._groups = groups
        return made

    def _forget(self, key: Hashable, variant: P) -> None:
        with self._lock:
            self._groups = {**self._groups, key: self._without(key, variant)}

    def _bring_forward(self, key: Hashable, variant: P) -> None:
        with self._lock:
            if variant in self._groups.get(key, ()):
                self._groups = {**self._groups, key: (variant, *self._without(key, variant))}

    def _without(self, key: Hashable, variant: P | None) -> tuple[P, ...]:
        return tuple(v for v in self._groups.get(key, ()) if v is not variant)

    def clear(self) -> None:
        with self._lock:
            self._groups = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Iterator[P]:
        return (variant for group in self._groups.values() for variant in group)


def _changed() -> UnsupportedError:
    return UnsupportedError(
        "the function changed, while it was traced, something that it also depends on (a global, a list, an attribute)",
        remedy="Compute from arguments alone, and return what is new.",
    )
