"""Specialization: which variant of a function is made for a call that no variant answers.

A call is tried with the paths that earlier variants have failed at, and with sizes left open where they change; the first that
can be traced and compiled is the variant. What could not be is remembered, so that no call tries it again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, Protocol

from jitml.config import CONFIG
from jitml.device.convert import is_on_device
from jitml.diagnostics import log
from jitml.diagnostics.recompiles import Compilations
from jitml.dispatch.entry import bind
from jitml.dispatch.variants import Specialization, Tries, Variants
from jitml.errors import (
    Cause,
    CompilerError,
    DTypeError,
    FailedCheck,
    JitmlError,
    LentMemory,
    ShapeError,
    VerificationError,
    forget_frames,
)
from jitml.imports.late import late
from jitml.interrupts import pass_on
from jitml.ir.capacity import learning
from jitml.records import dataclass, field
from jitml.trace.record.guards import Opened, Place
from jitml.trace.record.pytree import Static
from jitml.trace.speculation.dynamic_shapes import (
    Closed,
    SeenArgument,
    VariantKey,
    changed_sizes,
    choices,
    comparable,
    is_excessive,
    seen,
    with_fewest_calls,
)
from jitml.trace.speculation.limits import NO_LIMITS, TraceLimits, too_large
from jitml.trace.speculation.paths import Path
from jitml.trace.traced import Traced

if TYPE_CHECKING:
    from jitml.trace import trace as tracing
else:  # what is on disk is not traced
    tracing = late("jitml.trace.trace")

Compiled = Callable[[Traced], Callable[..., Any]]


@dataclass(slots=True, eq=False)
class Variant(Specialization):
    """One compiled specialisation. `reason` says why it was compiled; `executable` is for reports.

    enter: what answers calls; another one once its first answer has been checked, which `checked` tells of.
    assumes: what it takes for granted of the branches that a call takes; a call that takes others is not answered by it.
    replays: calls that were answered by the function itself, by the reason why.
    timed: whether it is used, and what it takes beside plain Python, once that is known.
    failed: is told of each replay.
    saves: seconds of plain Python that an answer saves at the most, once that is known.
    times: seconds that it and plain Python took for a first answer that was checked.
    """

    reason: str
    executable: Callable[..., Any] = field(repr=False)
    checks: tuple[str, ...] = field(default=(), repr=False)
    assumes: tuple[str, ...] = field(default=(), repr=False)
    replays: Counter[str] = field(default_factory=Counter)
    checked: str = ""
    timed: str = ""
    failed: Callable[[], None] | None = field(default=None, repr=False)
    saves: float = field(default=math.inf, repr=False)
    times: tuple[float, float] | None = field(default=None, repr=False)

    def took(self, compiled: float, plain: float) -> None:
        self.times = compiled, plain

    @property
    def is_made_better(self) -> bool:
        """Whether better code is being made for it: it is not to be judged by the one that it has."""
        return getattr(self.executable, "is_made_better", False)

    def replayed(self, failure: FailedCheck) -> None:
        self.replays[failure.message] += 1
        if self.failed is not None:
            self.failed()


class Untraced(Exception):
    """Tracing raised what the plain function may raise too."""


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The arguments of a call; `key` is their structure, and `leaves` are what stands in it."""

    key: Hashable
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: Sequence[Any]


class VariantStore(Protocol):
    """Where variants are kept for later processes."""

    def find(self, call: CallArguments, /) -> tuple[Traced, Callable[..., Any]] | None: ...

    def keep(self, call: CallArguments, traced: Traced, executable: Callable[..., Any], /) -> None: ...


class Specializer:
    """Makes the variants of one function.

    Args:
        variants: those that it has.
        made: is told of each new one, with the structure of its arguments.
        dynamic, host_calls: as in `jit`.
        is_taken: whether programs run where memory that is reserved is taken, wherever their arrays are.
        is_part: whether the function is a section of the user's.
        limits: of one program; what is beyond them is refused.
        kept: where first variants are kept.

    Attributes:
        before: sizes of arguments of plain Python's last turn; those that have changed since are left open in a first variant.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        variants: Variants[Variant],
        made: Callable[[Variant, Hashable], None],
        *,
        dynamic: bool | None,
        host_calls: bool,
        is_taken: bool = False,
        is_part: bool = False,
        limits: TraceLimits = NO_LIMITS,
        kept: VariantStore | None = None,
    ) -> None:
        self._function, self._variants, self._made = function, variants, made
        self._dynamic, self._host_calls, self.limits = dynamic, host_calls, limits
        self._is_taken, self._is_part, self.compilations = is_taken, is_part, Compilations()
        self._kept, self._begun = kept, set[Hashable]()  # structures of arguments for which there has been a variant
        self._closed: dict[Hashable, Closed] = {}
        self._exchanged: dict[Hashable, set[str]] = {}  # numbers and objects from outside that are others in each call
        self._fixed: dict[Hashable, set[str]] = {}  # those of them that have to be known
        self.before: tuple[tuple[int, ...] | None, ...] | None = None

    def forget(self) -> None:
        """Forget what was learned of earlier calls."""
        self._closed.clear()
        self._exchanged.clear()
        self._fixed.clear()

    def make(self, call: CallArguments, compiled: Compiled, others: tuple[Variant, ...], tries: Tries[Variant]) -> Variant:
        """A variant for a call.

        Args:
            compiled: makes machine code of what was traced.
            others: those of the same argument structure, most recent first.
        """
        began, number = perf_counter(), 1 + sum(1 for _ in self._variants)
        variant = self._make_for(tries.path(), call, compiled, others)
        self.compilations.note(variant.reason)
        given, seconds = call_of(call.key, call.leaves), perf_counter() - began
        log.compiled(self._function, *given, seconds, variant.reason, number=number, is_part=self._is_part)
        return variant

    def _make_for(self, path: Path, call: CallArguments, compiled: Compiled, others: tuple[Variant, ...]) -> Variant:
        """A variant for a path; sizes that change are left open, if that can be compiled."""
        earlier = [variant.traced for variant in others]
        now, closed = seen(call.leaves), self._closed.setdefault(call.key, Closed())
        for known in earlier:
            self._exchanged.setdefault(call.key, set()).update(known.host.exchanged(call.leaves))
        is_patient = not self._dynamic and sum(comparable(t.key.seen, now) for t in earlier) < CONFIG.max_paths
        is_taken = self._is_taken or any(known.device is not None for known in earlier) or any(map(is_on_device, call.leaves))
        last = thread_time() + (math.inf if self.limits.tracing is None else self.limits.tracing)
        before = [b for b, x in zip(self.before or (), call.args) if x is not None]  # which is no leaf
        kept = self._kept if not earlier and call.key not in self._begun else None
        self._begun.add(call.key)
        refused: set[Place] = set()
        closed_places = closed.places(is_patient)
        for opened in choices(earlier, now, closed_places, self._dynamic, is_taken=is_taken, before=before):
            if kept is not None and not opened and (found := kept.find(call)) is not None:
                return self._variant_of(call, *found, self._reason(call.leaves, earlier, found[0]))
            try:
                traced = self._trace_for(call, VariantKey(path, opened, now))
                if opened and is_excessive(traced.graph, opened, now, is_taken=is_taken):
                    continue
                if opened and is_patient:
                    traced = with_fewest_calls(traced, partial(self._traced_or_none, call, path, now))
                    closed.costly.update(opened.keys() - traced.key.opened.keys())
                executable = compiled(traced)
            except (JitmlError, Untraced) as error:
                is_late = thread_time() > last and getattr(error, "cause", None) in (Cause.UNROLLED, Cause.SLOW)
                if not opened or is_late or (CONFIG.check and _is_fault(error)):
                    raise
                forget_frames(error)
                refused.update(opened)
                continue
            closed.refused.update(refused - traced.key.opened.keys())
            if kept is not None and not opened:
                kept.keep(call, traced, executable)
            return self._variant_of(call, traced, executable, path.reason or self._reason(call.leaves, earlier, traced))
        raise AssertionError("the last choice is compiled or raises")

    def _variant_of(self, call: CallArguments, traced: Traced, executable: Callable[..., Any], reason: str) -> Variant:
        checks = tuple(check.text for check in traced.host.checks())
        assumes = tuple(map(str, traced.key.path.assumptions))
        variant = Variant(bind(traced, executable), traced, reason, executable, checks, assumes)
        self._made(variant, call.key)
        return variant

    def _trace_for(self, call: CallArguments, key: VariantKey) -> Traced:
        """The program of a call; what is another number or object at each call is left open, if that can be compiled."""
        fixed = self._fixed.setdefault(call.key, set())
        exchanged = self._exchanged.get(call.key, set()) - fixed
        if exchanged:
            try:
                return self._trace_with(call, key, exchanged)
            except (JitmlError, Untraced) as error:
                forget_frames(error)
                fixed.update(exchanged)
        return self._trace_with(call, key, ())

    def _trace_with(self, call: CallArguments, key: VariantKey, exchanged: Collection[str]) -> Traced:
        try:
            with learning():
                traced = tracing.trace(
                    *(self._function, call.args, call.kwargs, key),
                    host_calls=self._host_calls,
                    rooted=True,
                    limits=self.limits,
                    exchanged=exchanged,
                )
            if (error := too_large(traced, self.limits)) is not None:
                raise error
            return traced
        except (ShapeError, DTypeError, LentMemory) as error:
            raise Untraced from error
        except JitmlError:
            raise
        except Exception as error:  # the user's or NumPy's, or in a branch that the plain function does not take
            pass_on(error)
            raise Untraced from error

    def _traced_or_none(self, call: CallArguments, path: Path, now: tuple[SeenArgument, ...], opened: Opened) -> Traced | None:
        try:
            return self._trace_for(call, VariantKey(path, opened, now))
        except (JitmlError, Untraced) as error:
            forget_frames(error)
            return None

    def _reason(self, leaves: Sequence[Any], earlier: Sequence[Traced], traced: Traced) -> str:
        if not earlier:
            return "arguments of another structure" if any(True for _ in self._variants) else "first call"
        changes = changed_sizes(earlier, traced)
        return "; ".join(filter(None, [earlier[0].host.first_failure(leaves), *changes])) or "more room for what a loop saves"


def _is_fault(error: Exception) -> bool:
    """Whether something is wrong with jitml, and not only more than its verifier can prove of sizes that are open."""
    return isinstance(error, CompilerError) and not isinstance(error.__cause__, VerificationError)


def call_of(key: Hashable, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that leaves stand for, static ones as they were passed."""
    if isinstance(key, int):
        args, kwargs = tuple(leaves), {}
    elif isinstance(key, tuple):
        args, kwargs = tuple(leaves[: key[0]]), dict(zip(key[1:], leaves[key[0] :]))
    else:
        args, kwargs = leaves[-1]
    shown = [x.value if isinstance(x, Static) else x for x in args]
    return (*shown,), {name: x.value if isinstance(x, Static) else x for name, x in kwargs.items()}


def plain_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Hashable, Sequence[Any]]:
    """The key and the leaves of arguments none of which is a container."""
    if not kwargs:
        return len(args), args
    return (len(args), *kwargs), (*args, *kwargs.values())
