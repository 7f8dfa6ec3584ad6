"""Verification: is a variant's first answer NumPy's?  The plain function is called on the same state, and both are compared.

What the call can reach is saved before it (`saved_state.py`). After it the state is put back, the plain function runs on the very
same objects, so that views alias and keys are what they are, and what it returns, raises and has changed is compared
(`outcomes.py`). Then everything is as the compiled program has left it. Where the two differ, the plain function is asked again:
if it contradicts itself, nothing can be said; nor where the program's own graph gives other numbers as soon as it is rounded
otherwise (`rounding.py`). What remains is a wrong answer: the user is told, has NumPy's, and the variant answers no more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from jitml.config import CONFIG, FIRST, NEVER
from jitml.dispatch.entry import MISS, Admission, admission, bind, reached
from jitml.dispatch.renting import PURSE
from jitml.dispatch.specialize import Variant, call_of
from jitml.dispatch.timing import DirectCalls, Timed
from jitml.errors import CompilerError, FailedCheck, JitmlError, WrongResultWarning
from jitml.imports.late import late
from jitml.interrupts import pass_on
from jitml.ir.execute.debug_nans import runs_as_python
from jitml.ir.execute.kept_inputs import keeping
from jitml.ir.graph import Node
from jitml.records import dataclass, field, replace
from jitml.trace.record.recording import frames_of_ours
from jitml.trace.record.threads import others_run
from jitml.trace.traced import Traced
from jitml.verification.looks import Watching, look, told_by
from jitml.verification.outcomes import CallOutcome, Difference
from jitml.verification.repeatable_calls import host_nodes, why_not, writes_by_itself
from jitml.verification.saved_state import GENERATORS, SavedState, Unsaved
from jitml.verification.time_limits import OutOfTime
from jitml.verification.trial import Trial

if TYPE_CHECKING:
    from jitml.verification import reproduce
else:
    reproduce = late("jitml.verification.reproduce")


Enter = Callable[[Sequence[Any]], Any]
Call = tuple[tuple[Any, ...], dict[str, Any]]
_LONG = 0.1  # seconds of plain Python, that nobody shall wait for again
_BRIEF = 0.05  # seconds of the compiled program, that it may run twice in its first call
_COLD = 0.005  # seconds of plain Python, of whose first run most may be what is done once
_LATER = 1.0  # seconds that further checks may take, each
_MOST_TRIES = 3  # calls in which other threads run


@dataclass(eq=False)
class Verification:
    """Stands for a variant's `enter` as long as answers are to be checked.

    Args:
        function: the plain one.
        enter: the compiled one.
        admits: whether a call is for the variant.
        call_of: the arguments that flattened ones stand for.
        every: see `jitml.config.cadence`.
        fast: whether arithmetic is not NumPy's own.
        settle: takes what `enter` is to be from now on, and what is to be said of the variant.
        took: takes what the compiled program and the plain function took, in seconds, for an answer that was right.
    """

    function: Callable[..., Any]
    name: str
    enter: Enter
    traced: Traced
    admits: Admission
    call_of: Callable[[Sequence[Any]], Call]
    every: int
    fast: bool
    settle: Callable[[Enter, str], None]
    took: Callable[[float, float], None] = lambda compiled, plain: None
    is_timed: bool = False  # whether the variant is to be used only if it is faster
    calls: int = 0
    tries: int = 0
    watching: Watching | None = None
    callers: dict[object, None] = field(default_factory=dict)  # the first one checks: an interrupt may leave a lock closed
    seconds: float = 0.0  # that the last compiled call took

    @cached_property
    def host_nodes(self) -> tuple[Node, ...]:
        return host_nodes(self.traced.graph)

    @property
    def spent(self) -> float:
        """Seconds that looking at arguments has taken."""
        return 0.0 if self.watching is None else self.watching.seconds

    def __call__(self, leaves: Sequence[Any]) -> Any:
        if runs_as_python():
            return self.enter(leaves)
        me = object()
        try:
            self.callers[me] = None
            if list(self.callers).index(me):
                return self.enter(leaves)
            if not self._may_be_due:
                return self._answer(leaves)
            if self._misses(leaves):
                return MISS
            self.calls += 1
            return self._verified_further(leaves) if self._is_due(leaves) else self.enter(leaves)
        finally:
            self.callers.pop(me, None)

    @property
    def _may_be_due(self) -> bool:
        """Whether the next call may be one whose answer is checked."""
        if self.every > 0:
            return self.calls % self.every == 0
        return self.watching is None or not self.watching.answers or self.watching.is_due

    def _answer(self, leaves: Sequence[Any]) -> Any:
        """The answer to a call at which nobody looks."""
        result = self.enter(leaves)
        if result is not MISS:
            self.calls += 1
            if self.watching is not None:
                self.watching.calls += 1
                if self.every == FIRST and self.watching.is_over:  # what looks may take has been spent
                    self.settle(self.enter, self.watching.verdict())
        return result

    def _misses(self, leaves: Sequence[Any]) -> bool:
        """Whether the variant is for other calls; not for the first one, for which it was made."""
        if not self.calls:
            return False
        began = PURSE.began()
        found = not self.admits(leaves)
        if self.watching is not None:
            self.watching.seconds += PURSE.ended(began)
        return found

    def _is_due(self, leaves: Sequence[Any]) -> bool:
        """Whether the answer to this call is to be checked."""
        if self.every > 0:
            return (self.calls - 1) % self.every == 0
        if self.watching is None or not self.watching.answers:  # the call that was to be checked has been interrupted
            return True
        self.watching.begin_look()  # what guards have taken since it was due does not put it off
        began = PURSE.began()
        try:
            roots = _named(self.function, *self.call_of(leaves))
            is_other = self.watching.sees_other(look(self.function, self.name, roots, with_code=self.watching.with_code))
        except Unsaved:
            self.settle(self.enter, self.watching.verdict())
            return False
        finally:
            self.watching.seconds += PURSE.ended(began)
        if self.watching.is_over and not is_other:
            self.settle(self.enter, self.watching.verdict())
        return is_other

    def _verified_further(self, leaves: Sequence[Any]) -> Any:
        began, self.seconds = PURSE.began(), 0.0
        try:
            return self._answer_and_verify(leaves)
        finally:
            seconds = PURSE.ended(began, self.seconds)
            if self.watching is not None:
                self.watching.one_check = seconds
                self.watching.check_seconds += seconds if self.calls > 1 else 0.0

    def _answer_and_verify(self, leaves: Sequence[Any]) -> Any:
        args, kwargs = self.call_of(leaves)
        reason = why_not(self.host_nodes)
        if not reason and others_run():
            self.tries += 1
            if self.tries < _MOST_TRIES:
                return self._unchecked(leaves)
            reason = "other threads run the program at the same time"
        began = PURSE.began()
        try:
            state = None if reason else self._saved(leaves, args, kwargs)
        except (Unsaved, MemoryError) as error:
            reason = str(error) or "there is no memory for copies"
        if reason:
            self.settle(self.enter, f"not checked: {reason}")
            return self._unchecked(leaves)
        assert state is not None
        seen = told_by(state, _named(self.function, args, kwargs)) if self.every == FIRST else {}
        looking = PURSE.ended(began)
        result, raised = self._run_compiled(leaves, state)
        if self.is_timed and self.calls == 1 and result is not MISS and raised is None and self.seconds < _BRIEF:
            state.put_back()  # a program's first run says little of how long it takes
            result, raised = self._run_compiled(leaves, state)
        if result is MISS:
            return MISS
        if self.watching is None:
            self.watching = Watching(seen, looking)
        got = CallOutcome(raised, result, state.changes())
        if strays := [state.name_of(state.constants[n]) for n in got.now if n in state.constants]:
            self.settle(
                bind(self.traced, _refuse), f"wrong in call {self.calls}: it writes {strays[0]}; plain Python answers since then"
            )
            raise CompilerError(
                f"{self.name} was compiled wrongly: its program has written {strays[0]}, of which there is no copy",
                remedy="This is a bug in jitml: please report it. Further calls like this one run as plain Python.",
            )
        return self._compare_with_plain(got, state, leaves, args, kwargs)

    def _unchecked(self, leaves: Sequence[Any]) -> Any:
        began = perf_counter()
        try:
            return self.enter(leaves)
        finally:
            self.seconds = perf_counter() - began

    def _saved(self, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> SavedState:
        """All that can be reached, from the function and its arguments, and what else the program changes, as it is now."""
        found = reached(self.traced, leaves)
        inputs, changed, lent = found or ((), (), ())
        written: list[Any] | None = None  # nobody knows
        if found is not None and not self.traced.copied and writes_by_itself(self.host_nodes):
            written = [inputs[entry] for entry in self.traced.aliases.values()]
        others = [*changed, *((x, name) for x, name in lent if isinstance(x, GENERATORS))]  # a library may keep them, or a cache
        roots = [(self.function, self.name), *_named(self.function, args, kwargs)]
        return SavedState([*others, *roots], CONFIG.verify_bytes, written=written)

    def _run_compiled(self, leaves: Sequence[Any], state: SavedState) -> tuple[Any, Exception | None]:
        began = perf_counter()
        try:
            run = partial(self.enter, leaves)
            return keeping(run) if writes_by_itself(self.host_nodes) else run(), None
        except FailedCheck:
            state.put_back()
            raise
        except (JitmlError, MemoryError):
            raise
        except Exception as error:
            pass_on(error)
            return None, error
        finally:
            self.seconds = perf_counter() - began

    def _compare_with_plain(
        self, got: CallOutcome, state: SavedState, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        limit = None if self.every > 0 else _LATER if self.calls > 1 else CONFIG.verify_seconds
        trial = Trial(
            self.function, self.traced, bool(self.host_nodes), self.fast, self.every > 0, limit, state, leaves, args, kwargs
        )
        try:
            expected = trial.plainly(got.now)
            found = trial.compared(got, expected)
            if state.constants and (found or expected.error is not None):  # it may want to write what was not to be written
                state.copy_constants()
                expected = trial.plainly()
                found = trial.compared(got, expected)
            if found:
                expected = replace(expected, now=state.kept(expected.now))
                found = trial.without_excuse(found, expected)
            found = found or trial.wrong_slope()
            if not found and self.is_timed and self.calls == 1 and trial.plain_seconds < _COLD:
                trial.plainly()  # as the program, twice
        except OutOfTime:
            state.put_back(got.now)
            self._give_up(f"the plain function had not ended after {limit} s")
            return _answered(got)
        except Unsaved as error:
            state.put_back(got.now)
            self._give_up(str(error))
            return _answered(got)
        except (RecursionError, MemoryError) as error:
            state.put_back(got.now)
            self._give_up(f"the plain function raised {type(error).__name__}")
            return _answered(got)
        except BaseException:  # an interrupt: as if there had been no call
            state.put_back()
            raise
        if not found:
            state.put_back(got.now, {*got.now, *expected.now} - trial.alike if trial.calls == 1 else None)
            self._go_on(trial)
            return _answered(got)
        state.put_back()
        reproduce.remember(self.function, self.name, args, kwargs, f"{self.name}: {found[0]}")
        state.put_back(expected.now)
        self.settle(bind(self.traced, _refuse), f"wrong in call {self.calls}: {found[0]}; plain Python answers since then")
        self._warn(found[0])
        return _answered(expected)

    def _give_up(self, why: str) -> None:
        """No answer is checked any more."""
        answers = self.watching.answers if self.watching is not None else []
        self.settle(self.enter, f"{'; '.join(answers)}; no further one" if answers else f"not checked: {why}")

    def _go_on(self, trial: Trial) -> None:
        """After an answer that was right."""
        watching = self.watching
        assert watching is not None
        watching.answers.append(trial.verdict(self.calls))
        self.took(self.seconds, trial.plain_seconds)
        watching.is_slow = trial.seconds > _LONG
        if self.is_timed:
            watching.plain_seconds = trial.plain_seconds
        is_done = self.every == FIRST and watching.is_over
        self.settle(self.enter if is_done else self, watching.verdict() if self.every == FIRST else watching.answers.pop())

    def _warn(self, difference: Difference) -> None:
        text = (
            f"{self.name} was compiled wrongly: {difference}. This call has NumPy's answer, and so have others like it from now "
            f"on. This is a bug in jitml: please report it with what `jitml.reproduce()` writes, a script and the arguments."
        )
        warnings.warn(text, WrongResultWarning, stacklevel=frames_of_ours() + 1)


def have_checked(
    function: Callable[..., Any],
    name: str,
    every: int,
    fast: bool,
    is_timed: bool,
    direct: DirectCalls | None,
    variant: Variant,
    key: Hashable,
) -> None:
    """Have a new variant's answers compared with plain Python's, and what both take.

    Args:
        is_timed: whether it is to be used only if it is faster; not so on a device, where calls return before all is computed,
            and plain Python would have each operation compiled.
        direct: how calls are made that are short; None for a section, which is told what both took.
        key: the structure of its arguments.
    """
    is_noted = direct is None and CONFIG.trial and variant.traced.device is None
    is_timed = is_timed and variant.traced.device is None
    if every == NEVER and not is_timed:
        return
    admits = admission(variant.enter)
    check: Verification | None = None
    spent = lambda: 0.0 if check is None else check.spent  # noqa: E731  # what stands for it is made below
    timed = Timed(variant, variant.enter, admits, spent, direct if every in (FIRST, NEVER) else None, key) if is_timed else None

    def settle(enter: Enter, said: str) -> None:
        variant.checked = said
        if timed is None:
            variant.enter = enter
        else:
            timed.settled(enter, is_last=enter is not check)

    if every != NEVER:
        check = Verification(function, name, variant.enter, variant.traced, admits, partial(call_of, key), every, fast, settle)
        if timed is not None or is_noted:
            check.took, check.is_timed = variant.took if timed is None else timed.took, True
    first = check or variant.enter
    if timed is not None:
        timed.settled(first, is_last=check is None)
        variant.failed = timed.failed
    variant.enter = timed or first


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[Any, str]]:
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    named = [(x, names[n] if n < len(names) else f"args[{n}]") for n, x in enumerate(args)]
    return [*named, *((x, name) for name, x in kwargs.items())]


def _answered(outcome: CallOutcome) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.result


def _refuse(*_: Any) -> Any:
    raise FailedCheck("an answer of this variant was not NumPy's")
