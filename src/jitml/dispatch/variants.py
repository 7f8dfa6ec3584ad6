"""Variants: which compiled variant answers a call?  `Variants`: the specialisations of one function, tried most recent first.

A variant's `enter` takes the flattened arguments and checks its own guards; it answers `miss` where they do not hold,
having changed nothing. Reading is lock-free (tuples are replaced, never changed); compiling takes the lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from jitml.errors import FailedCheck, MoreIterations, RaisingBranch, UnsupportedError, WrongPath
from jitml.forks import lock
from jitml.interrupts import is_own_thread
from jitml.ir.capacity import learn

# A function with more specialisations than this forgets the one that was not used for longest.
MOST_VARIANTS = 64


@dataclass(slots=True, eq=False)
class Variant:
    """One specialisation. `reason` says why it was compiled; `traced` and `executable` are for reports.

    enter: what answers calls; another one once its first answer has been checked, which `checked` tells of.
    assumes: what it takes for granted of the branches that a call takes; a call that takes others is not answered by it.
    replays: calls that were answered by the function itself, by the reason why.
    """

    enter: Callable[[Sequence[Any]], Any] = field(repr=False)
    reason: str
    traced: Any = field(repr=False)
    executable: Any = field(repr=False)
    checks: tuple[str, ...] = field(default=(), repr=False)
    assumes: tuple[str, ...] = field(default=(), repr=False)
    replays: Counter[str] = field(default_factory=Counter)
    checked: str = ""


Failed = list[tuple[Variant, WrongPath]]


class Variants:
    """The variants of one function, grouped by the structure (`key`) of its arguments.

    Args:
        miss: what `Variant.enter` answers where a guard fails.
    """

    def __init__(self, miss: object) -> None:
        self._miss = miss
        self._lock = lock()
        self._groups: dict[Hashable, tuple[Variant, ...]] = {}

    def call(self, key: Hashable, leaves: Sequence[Any], failed: Failed | None = None) -> Any:
        """The result of the first variant whose guards and assumptions hold, or `miss`.

        Args:
            failed: takes the variants whose guards hold, but not their assumptions.

        Raises:
            FailedCheck: the variant that the call belongs to cannot answer it; nothing has been changed.
        """
        group = self._groups.get(key, ())
        for position, variant in enumerate(group):
            try:
                result = variant.enter(leaves)
            except WrongPath as failure:
                if failed is not None:
                    failed.append((variant, failure))
                continue
            except MoreIterations as failure:  # the next one has more room
                learn(failure)
                self._forget(key, variant)
                continue
            except FailedCheck as failure:
                variant.replays[failure.message] += 1
                raise
            if result is not self._miss:
                if position:
                    self._bring_forward(key, variant)
                return result
        return self._miss

    def fitting(self, key: Hashable, leaves: Sequence[Any]) -> Variant | None:
        """The variant whose guards hold for these arguments; what it assumes of the call is not looked at."""
        return next((v for v in self._groups.get(key, ()) if not v.traced.host.first_failure(leaves)), None)

    def compile(self, key: Hashable, leaves: Sequence[Any], make: Callable[[tuple[Variant, ...], Failed], Variant]) -> Any:
        """Call with a new variant, unless another thread has made a fitting one in the meantime.

        Args:
            make: makes the variant, given those of the same argument structure, most recent first, and which of them, or of
                those made before for this very call, did not fit it.
        """
        failed: Failed = []
        # A finalizer that runs while Python collects may call what just this compilation waits for.
        guard = nullcontext() if is_own_thread() else self._lock
        with guard:
            result = self.call(key, leaves, failed)
            if result is not self._miss:
                return result
            variant = _made(make, self._groups.get(key, ()), failed)
            self._add(key, variant)
        while True:
            try:
                result = variant.enter(leaves)
            except WrongPath as failure:  # what was assumed of the call was a guess: one of no use, if there is a better one
                failed.append((variant, failure))
                with guard:
                    better = _made(make, self._without(key, variant), failed)
                    if not isinstance(failure, RaisingBranch):
                        self._forget(key, variant)
                    self._add(key, better)
                    variant = better
            except MoreIterations as failure:
                learn(failure)
                self._forget(key, variant)
                with guard:
                    result = self.call(key, leaves, failed)  # another thread may have learned it, too
                    if result is not self._miss:
                        return result
                    variant = _made(make, self._groups.get(key, ()), failed)
                    self._add(key, variant)
            except FailedCheck as failure:
                variant.replays[failure.message] += 1
                raise
            else:
                break
        if result is self._miss:
            raise UnsupportedError(
                "the function changed, while it was traced, something that it also depends on (a global, a list, an attribute)",
                remedy="Compute from arguments alone, and return what is new.",
            )
        return result

    def _without(self, key: Hashable, variant: Variant) -> tuple[Variant, ...]:
        return tuple(v for v in self._groups.get(key, ()) if v is not variant)

    def _forget(self, key: Hashable, variant: Variant) -> None:
        with self._lock:
            self._groups = {**self._groups, key: self._without(key, variant)}

    def _add(self, key: Hashable, variant: Variant) -> None:
        groups = {k: v for k, v in self._groups.items() if k != key}
        groups[key] = (variant, *self._groups.get(key, ()))
        if sum(map(len, groups.values())) > MOST_VARIANTS:
            oldest = next(iter(groups))
            groups[oldest] = groups[oldest][:-1]
            if not groups[oldest]:
                del groups[oldest]
        self._groups = groups

    def _bring_forward(self, key: Hashable, variant: Variant) -> None:
        with self._lock:
            group = self._groups.get(key, ())
            if variant in group:
                self._groups = {**self._groups, key: (variant, *self._without(key, variant))}

    def clear(self) -> None:
        with self._lock:
            self._groups = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __iter__(self) -> Any:
        return (variant for group in self._groups.values() for variant in group)


def _made(make: Callable[[tuple[Variant, ...], Failed], Variant], others: tuple[Variant, ...], failed: Failed) -> Variant:
    """A variant for a call that these have failed to answer.

    Raises:
        WrongPath: one of the failures, if plain Python is to answer the call; it counts as a replay.
    """
    try:
        return make(others, failed)
    except WrongPath as failure:
        for variant, known in failed:
            if known is failure:
                variant.replays[failure.message] += 1
        raise
