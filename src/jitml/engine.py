"""The engine of a jitted function, where all layers meet: calls answered by variants, or traced and compiled, or by sections.

Importing this takes about a tenth of a second, and `jitted.py` is what decides when.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, Any
from warnings import warn
from weakref import ref

from jitml.config import CONFIG
from jitml.device.convert import is_foreign, is_on_device, ours
from jitml.diagnostics import log
from jitml.diagnostics.progress import in_sight
from jitml.diagnostics.tracebacks import passed_over, shorten
from jitml.dispatch.entry import MISS
from jitml.dispatch.left_alone import is_called_plainly
from jitml.dispatch.on_device import copies_of, device_for
from jitml.dispatch.renting import FIRST, FRAME, PURSE, USUAL, Misses, PlainTurn, Rent, Unpaid
from jitml.dispatch.specialize import CallArguments, Specializer, Untraced, Variant, plain_key
from jitml.dispatch.timing import DirectCalls, resting
from jitml.dispatch.variants import Tries, Variants
from jitml.dispatch.work import has_loop, is_called_once, is_driver, is_worth_a_first_call
from jitml.errors import (
    Cause,
    CompilerError,
    FailedCheck,
    LoweringError,
    ManyPrograms,
    NoDeviceError,
    RecompileWarning,
    ScheduleError,
    Source,
    SourceNotFound,
    StarvedError,
    TraceError,
    UncompiledWarning,
    UnsupportedError,
    forget_frames,
)
from jitml.forks import lock
from jitml.functions import is_disabled
from jitml.headroom import require_compiler
from jitml.imports.late import late
from jitml.interrupts import contained
from jitml.ir.execute.debug_nans import as_python, called_as_python, runs_as_python
from jitml.jitted import Jit
from jitml.options import Options, is_resumed, name_of, static_names
from jitml.process import collected_at_its_end
from jitml.sections.kinds import Splits
from jitml.sections.requirements import LIMITS, MOST_VARIANTS, require_no_calls
from jitml.trace.record.pytree import flatten, is_countable, is_nested
from jitml.trace.record.recording import current_trace, frames_of_ours, outside_trace
from jitml.trace.speculation.limits import NO_LIMITS
from jitml.trace.traced import Traced
from jitml.verification.verification import have_checked
from jitml.wiring import compile_traced, join, kept_variants, lower_traced

if TYPE_CHECKING:
    from optree import PyTreeSpec

    from jitml.native_entry import entries
    from jitml.outline import Explanation
    from jitml.pipeline import Lowered
    from jitml.sections import callees
    from jitml.sections import split as splitting
    from jitml.trace import asynchronous
    from jitml.trace import trace as tracing
    from jitml.trace.environment import arguments
    from jitml.trace.hooks import convert as conversion
else:
    callees, splitting = late("jitml.sections.callees"), late("jitml.sections.split")
    entries = late("jitml.native_entry.entries")
    # What is on disk is not traced.
    tracing, asynchronous = late("jitml.trace.trace"), late("jitml.trace.asynchronous")
    arguments, conversion = late("jitml.trace.environment.arguments"), late("jitml.trace.hooks.convert")

# Answers after which a native entry is made: making it takes about as long as they save. The first one of a process takes longer.
OFTEN, OFTEN_AT_FIRST = (2, 2) if CONFIG.check else (200, 1000)
FEW_PROGRAMS = 4  # of a function, each for other arguments, that are usual
SHORT = 1e-3  # seconds of a call in which no part is worth anything


class Engine:
    """Compiles a function, or sections of it, and answers calls by what it has compiled.

    Args:
        require: raises what is to be said of a program that is not to be compiled.
        is_timed: whether compiled code is timed against plain Python; None for what the configuration says.
        jitted: the function's object; sections have none.
        rent: what plain Python has cost so far.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: Options,
        require: Callable[[Traced], None] | None = None,
        *,
        is_timed: bool | None = None,
        jitted: Jit | None = None,
        rent: Rent,
    ) -> None:
        self.function = function
        self.options, self._require = options, require
        self._jitted = None if jitted is None else ref(jitted)  # which holds this; who calls it holds both
        self._variants = Variants[Variant](making=lock())
        self._rent, self._misses = rent, Misses(rent)
        self._entries: entries.NativeEntries | None = None
        self._answers, self._often = 0, OFTEN
        self._is_renting = is_timed is None and CONFIG.trial and not options.strict  # which refuses in the very call
        is_timed = CONFIG.trial and options.device in (None, "cpu") if is_timed is None else is_timed
        direct = None if jitted is None else DirectCalls(self._make_entry, self._enter_soon, lambda: rent.is_often)
        made = partial(have_checked, function, name_of(function), options.verify, bool(options.fastmath), is_timed, direct)
        self._limits = NO_LIMITS if options.strict else LIMITS
        makes = partial(Specializer, function, self._variants, made, dynamic=options.dynamic, host_calls=options.host_calls)
        kept = None if jitted is None else kept_variants(function, options)
        self._specializer = makes(is_taken=options.takes_memory, is_part=jitted is None, kept=kept)
        self._statics = static_names(function, options)
        self._is_unread = False  # whether it, or what it calls, has no source
        self.splits = Splits(function, partial(_section, options), partial(_callees, options), is_whole=not is_resumed(function))
        self._is_special = bool(self.splits)  # calls may be answered otherwise than by a variant of the whole function

    @property
    def jitted(self) -> Jit:
        jitted = None if self._jitted is None else self._jitted()
        assert jitted is not None
        return jitted

    @passed_over
    def answer_seen(self, *args: Any, **kwargs: Any) -> Any:
        """A call while somebody sees calls, or the first one."""
        alone, is_plain = self.jitted.alone, is_disabled()
        if (alone is None and not is_plain) or current_trace() is not None:
            return self(*args, **kwargs)
        for leaf in flatten((args, kwargs))[0]:  # on a tape, perhaps
            if (as_taped := getattr(type(leaf), "__calling__", None)) is not None:
                return as_taped(self.function)(*args, **kwargs)
        if alone is None or is_plain:
            self.jitted.be_plain()
            return self.function(*args, **kwargs)
        alone.begin()
        return alone.timed(*args, **kwargs)

    @passed_over
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if current_trace() is not None:
                return self._call_inside(args, kwargs)
            if self._is_special or runs_as_python():
                if self._is_unread or runs_as_python():
                    return self.function(*args, **kwargs)
                result = self._call_specially(args, kwargs)
                if type(result) is splitting.SplitFunction:  # called from here: one frame less for what recurs
                    around, turn = self.splits.running.level, result.begin()
                    try:
                        if result.race.is_plain:
                            return self.function(*args, **kwargs)
                        self.splits.running.level = around or result.level  # later calls of what is around are no first ones
                        return result.frame(*self.splits.first, *args, **kwargs)
                    finally:
                        self.splits.running.level = around  # first: exceptions from outside come after calls
                        self._ended(result, turn)
                if result is not MISS:
                    return result
            why, broken, refusal, dear, run = "", None, None, None, self.function
            try:
                result = self._call_compiled(args, kwargs)
                return result if type(result) is not PlainTurn else self._take(result, args, kwargs)
            except FailedCheck as failure:
                forget_frames(failure)
                self._leave_native()
            except Unpaid as error:
                dear = error.refusal
            except StarvedError as error:
                why = f"was not compiled: {error.message}; each call tries again"
            except Untraced as error:
                run = partial(called_as_python, run) if isinstance(error.__cause__, RecursionError) else run  # nor are its calls
                if self.options.strict:
                    why = f"was not compiled: tracing it raised {error.__cause__!r}; each call tries again"
                else:
                    self._is_special, broken = True, error
            except (UnsupportedError, TraceError, CompilerError, LoweringError) as error:
                self._is_unread = isinstance(error, SourceNotFound) and (self.options.strict or not self.splits.is_possible)
                if not self._is_unread and (self.options.strict or isinstance(error, ScheduleError | NoDeviceError)):
                    log.refused(self.function, "not compiled", error)
                    raise
                self._is_special = True
                if error.leaves_changes:
                    self.splits.refused(error, *ours(args, kwargs))
                    raise
                refusal, why = (None, error.message) if self._is_unread else (error, "")
            # The arguments are as they were: NumPy itself raises, or answers. What it raises has no exception of ours behind it.
            args, kwargs = ours(args, kwargs)
            if dear is not None and not self._variants:
                self._rent_out(args, kwargs, dear)
                dear = None
                return self.jitted(*args, **kwargs)
            if refusal is not None:
                split, refusal = self.splits.refused(refusal, args, kwargs), None
                return self.function(*args, **kwargs) if split is None else self.jitted(*args, **kwargs)
            if self._is_unread:
                self._warn(f"runs as plain Python from now on: {why}")
                return self.function(*args, **kwargs)
            if broken is not None and (split := self.splits.refused(broken, args, kwargs)) is not None:
                run = partial(self.splits.tried, split, self.jitted if run is self.function else run)
            result = run(*args, **kwargs)
            self._warn(why)
            return result
        except BaseException as error:
            shorten(error)
            raise

    def _call_inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not asynchronous.is_aside(self.function):
            return conversion.convert(self.function)(*args, **kwargs)
        with outside_trace():
            return self.jitted(*args, **kwargs)

    def _warn(self, what: str, kind: type[Warning] = UncompiledWarning) -> None:
        if what:
            log.told(self.function, what)
            warn(f"{name_of(self.function)} {what}", kind, stacklevel=frames_of_ours() + 1)

    def _call_specially(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that may not be answered by the whole function's variants: the result, or what gives it; else `MISS`."""
        split = self.splits.of(args, kwargs)
        if split is None:
            return MISS
        if self._variants and not self._statics:  # sizes for which it has been compiled whole, say
            try:
                result = self._variants.call(*plain_key(args, kwargs))
            except FailedCheck as failure:
                forget_frames(failure)
                result = MISS
            if result is not MISS and type(result) is not PlainTurn:
                return result
        return split

    @passed_over
    def _take(self, turn: PlainTurn, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A turn of plain Python."""
        self._leave_native()
        args, kwargs = ours(args, kwargs)
        if not self._variants:  # what it is to be compiled for is not known yet
            self._rent_out(args, kwargs)
            return self.jitted(*args, **kwargs)
        with as_python():  # functions inside are not to be compiled for it
            turn.begin()
            result = self.function(*args, **kwargs)
            ended = perf_counter()
        turn.seen(ended)
        self._rest()
        return result

    def _rest(self) -> None:
        if not self.options.strict and (found := resting(self.variants)) is not None:  # else each call is compiled or refused
            tiny = {"run": partial(called_as_python, self.function)} if found.is_tiny else {}
            self._leave_alone(found.paid, known=found.plain, **tiny)

    def _leave_alone(self, paid: Callable[[float, int], bool], **how: Any) -> None:
        self.jitted.awaits_frame = False
        self.jitted.leave_alone(paid, **how)

    def _ended(self, split: splitting.SplitFunction, turn: PlainTurn) -> None:
        """A call of the split function has ended."""
        turn.seen()
        if split.rent is not None and split.rent.spent < SHORT and split.is_plain:
            self.splits.drop(split)
            if not self._variants:  # else calls of this kind are misses
                self._leave_alone(split.rent.paid, known=split.rent.last)
        elif self.jitted.alone is None and not self._variants and self.splits.is_over(split):
            self._leave_alone(self.splits.paid, known=split.seconds / FIRST)
        if why := self.splits.complaint():
            self._warn(f"takes most of its time as plain Python: {why}. jitml.explain shows all of it")

    def _call_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._statics:
            args, kwargs = arguments.marked(self.function, name_of(self.function), self._statics, args, kwargs)
        key, leaves = plain_key(args, kwargs) if kwargs else (len(args), args)
        began = perf_counter() if self._misses.in_a_row else 0.0
        result = self._variants.call(key, leaves)
        if result is MISS:
            return self._call_slowly(key, args, kwargs, began or perf_counter())
        if began:
            self._misses.in_a_row = 0
        self._answered()
        return result

    def _answered(self) -> None:
        """A variant has answered a call from Python: machine code does, if that is often so."""
        self._answers += 1
        if self._answers < self._often or self._jitted is None:
            return
        if self._answers < OFTEN_AT_FIRST and "jitml.native_entry.entries" not in sys.modules:
            self._often = OFTEN_AT_FIRST
            return
        self._often = self._answers + 4 * OFTEN_AT_FIRST  # others may be settled then
        if not (self.jitted.alone or self._is_special):
            self._entries = self._entries or entries.NativeEntries(self._jitted)
            self._entries.take_over(self._variants.items(), self.__call__)

    def _make_entry(self, key: Hashable, variant: Variant, enter: Callable[[Sequence[Any]], Any]) -> Callable[..., Any]:
        return entries.missed if self._is_special else entries.alone(key, variant, enter)

    def _enter_soon(self) -> None:
        self._often = 0

    def _leave_native(self) -> None:
        """Python answers again, which sees what comes of calls."""
        if self._entries is not None and self._entries.leave():
            self._answers, self._often = 0, OFTEN

    def _call_slowly(self, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any], began: float) -> Any:
        if any(map(is_foreign, (*args, *kwargs.values()))):
            return self._call_compiled(*ours(args, kwargs))
        leaves, spec = self._taken_apart(args, kwargs)
        for leaf in leaves:  # of derivatives that are taken as Python runs, in code that is not rewritten for that
            if (as_taped := getattr(type(leaf), "__calling__", None)) is not None:
                return as_taped(self.function)(*args, **kwargs)
        if is_nested(spec):
            key = spec
            leaves.append((args, kwargs))
            result = self._variants.call(key, leaves)
            if result is not MISS:
                self._misses.in_a_row = 0
                self._answered()
                return result
        if self._is_renting:
            if len([*self._variants.of(key)]) >= MOST_VARIANTS:
                claim, source = self._why_not(leaves, key)
                self._warn(self._specializer.compilations.is_refused(claim), RecompileWarning)
                raise ManyPrograms(MOST_VARIANTS, claim, source)
            if not self._is_due(args, kwargs, leaves):
                if self._entries is not None and self._entries.have_answered():
                    self._misses.in_a_row = 0
                if self._variants and self._misses.are_many(began, (v.saves for v in self._variants)):
                    self._leave_alone(self._misses.paid)
                return PlainTurn(self._rent.paid, self._rent)

        def make(others: tuple[Variant, ...], tries: Tries[Variant]) -> Variant:
            require_compiler()
            call = CallArguments(key, args, kwargs, leaves)
            return self._bought(partial(self._specializer.make, call, self._compile, others, tries))

        self._leave_native()
        result = self._variants.make(key, leaves, make, Tries())
        self._warn(self._specializer.compilations.complaint(), RecompileWarning)
        if self.splits.wake():
            self._is_special = bool(self.splits)
        self._rest()
        return result

    def _bought(self, make: Callable[[], Variant]) -> Variant:
        """A variant; `Unpaid` is raised if it would cost more than it may."""
        rent = self._rent
        most = rent.most(is_asked=self.options.is_asked or not CONFIG.trial)
        self._specializer.limits = limits = self._limits.within(most, max(USUAL, most / 2))  # the rest is for its parts
        self._specializer.before, rent.before = rent.before, None
        is_made, is_unpaid, began = False, False, PURSE.began()
        try:
            with in_sight(self.function):
                variant = contained(partial(collected_at_its_end, make))
            is_made = True
            return variant
        except UnsupportedError as error:
            is_unpaid = limits != self._limits and error.cause in (Cause.UNROLLED, Cause.SLOW)
            if not is_unpaid:
                raise
            raise Unpaid(error) from None
        finally:
            rent.bought(PURSE.ended(began), is_made=is_made)
            if is_unpaid:
                rent.price = 2 * most

    def _is_due(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any]) -> bool:
        """Whether to compile another program; a first one unpaid, if there is enough and it is likely to be of use."""
        rent = self._rent
        if programs := len(self.variants):
            rent.comes()
            return rent.is_due(2.0 ** max(0, programs - FEW_PROGRAMS), may_be_soon=programs == 1)
        if self.options.is_asked or rent.is_due(may_be_soon=True) or any(map(is_on_device, leaves)):
            return True
        is_plain = not is_worth_a_first_call(self.function, args, kwargs) or self.splits.is_inside or is_called_plainly()
        return not (is_plain or (is_driver(self.function, args, kwargs) and is_called_once()))

    def _rent_out(self, args: tuple[Any, ...], kwargs: dict[str, Any], dear: Exception | None = None) -> None:
        """Let plain Python answer until the rent is due. Loops may have compiled bodies; of what is `dear`, at once."""
        self._is_special = True
        is_short = dear is None and (not has_loop(self.function) or is_called_plainly())
        is_paid = PURSE.affords(USUAL) if dear else self.splits.are_compiled or PURSE.has_earned(FRAME)
        may_split = not is_short and is_paid
        if not may_split or not self.splits.rented(self._rent, args, kwargs, dear):
            self._leave_alone(self._rent.paid)
            self.jitted.awaits_frame = not is_short

    def _taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], PyTreeSpec]:
        if not self._variants and not is_countable((args, kwargs)):  # later calls do not pay for it
            arguments.require_countable(self.function, args, kwargs)
        return flatten((args, kwargs))

    def _compile(self, traced: Traced) -> Callable[..., Any]:
        if self._require is not None:
            self._require(traced)
        return compile_traced(traced, self.options, name_of(self.function))

    answer = _call_compiled

    def known_answer(self, args: tuple[Any, ...]) -> Any:
        """What a variant that there is gives, or `MISS`.

        Raises:
            FailedCheck: it cannot answer; nothing has been changed.
        """
        result = self._variants.call(len(args), args)
        if result is MISS and any(x is None or isinstance(x, tuple) for x in args):
            leaves, spec = flatten((args, {}))
            result = self._variants.call(spec, [*leaves, (args, {})])
        return result

    def entries(self, following: Callable[..., Any], names: tuple[str, ...], held: tuple[int, ...]) -> entries.SectionEntries:
        """The native entries of a section."""
        return entries.SectionEntries(self._variants.items(), following, names, held)

    def why_not_known(self, args: tuple[Any, ...]) -> tuple[str, Source | None]:
        """What a variant that there is takes for granted, and is not so for these arguments, and where that was claimed."""
        leaves, spec = flatten((args, {}))
        return self._why_not([*leaves, (args, {})] if is_nested(spec) else args, spec, len(args))

    def _why_not(self, leaves: Sequence[Any], *keys: Hashable) -> tuple[str, Source | None]:
        failing = (v.traced.host.failing(leaves) for v in self._variants.of(*keys))
        return next((found for found in failing if found[0]), ("what it reads", None))

    def lower(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
        return lower_traced(contained(partial(self._trace, args, kwargs)), self.options, name_of(self.function))

    def explain(self, title: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
        from jitml import report  # as in _compile

        if (split := self.splits.known(args, kwargs)) is not None and split.is_possible:
            return report.explain_sections(title, split)
        try:
            traced = contained(partial(self._trace, args, kwargs))
        except (UnsupportedError, TraceError) as error:
            if self.options.strict or isinstance(error, NoDeviceError):
                raise
            return report.explain_refused(title, self.function, self.splits.if_refused(error), error)
        device = device_for(traced, self.options.device, name_of(self.function))
        copies = [] if device is None else copies_of(traced, device)
        return report.explain_program(title, self.lower(args, kwargs), traced, copies, self.variants)

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        if self._statics:
            args, kwargs = arguments.marked(self.function, name_of(self.function), self._statics, args, kwargs)
        args, kwargs = ours(args, kwargs)
        leaves, spec = self._taken_apart(args, kwargs)
        if is_nested(spec):
            leaves.append((args, kwargs))
        known = self._variants.fitting(*plain_key(args, kwargs)) or self._variants.fitting(spec, leaves)
        if known is not None:
            return known.traced
        return tracing.trace(self.function, args, kwargs, host_calls=self.options.host_calls, rooted=True)

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(self._variants)

    @property
    def all_variants(self) -> tuple[Variant, ...]:
        sections = (section for split in self.splits for section in split.sections)
        return (*self._variants, *(variant for section in sections if section.compiled for variant in section.compiled.variants))

    def clear(self) -> None:
        """Forget every specialisation."""
        self._variants.clear()
        self._specializer.forget()
        self.splits.clear()
        self._is_unread, self._is_special = False, bool(self.splits)


def _section(options: Options, function: FunctionType, is_exact: bool, rent: Rent) -> Engine:
    """What compiles a section."""
    return Engine(function, options.of_part(), require_no_calls if is_exact else None, is_timed=False, rent=rent)


@cache
def _callees(options: Options) -> callees.HotCallees:
    """What compiles the functions that statements between sections call."""
    return callees.HotCallees(lambda function, rent: Jit(function, options.of_part(), rent=rent))


join()

__all__ = ["Engine"]
