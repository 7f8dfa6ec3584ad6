"""Sections: what answers in place of a run of statements?  A compiled program, if it is worth it, or nothing.

A section is called with what the run takes in. It answers with a tuple of what the run gives; or with None, or a `PlainTurn`,
having changed nothing, and then the statements run as they are written. So whatever there is to say about compiled code (a
guard that fails, a check, a refusal, a turn of plain Python that is timed) is said by not answering.

A section is compiled when its rent is due (`dispatch/renting.py`). Then both are timed in turns of real work, and what is slower
is dropped, for a while; a section that is left out costs nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from types import CellType
from typing import TYPE_CHECKING, Any, Protocol

from jitml.config import CONFIG
from jitml.diagnostics.tracebacks import passed_over
from jitml.dispatch.contest import FIRST_LOOK, Contest, in_us
from jitml.dispatch.entry import MISS
from jitml.dispatch.renting import FEW, IN_FIRST_CALL, RUNNING, Misses, PlainTurn, Rent, Sampling, TimedTurn, Unpaid
from jitml.dispatch.specialize import Untraced, Variant
from jitml.dispatch.work import is_worth_an_early_call, sizes_of
from jitml.errors import FailedCheck, JitmlError, ManyPrograms, Source, StarvedError, forget_frames
from jitml.forks import lock
from jitml.ir.execute.debug_nans import runs_as_python
from jitml.sections.requirements import MOST_VARIANTS
from jitml.sections.watchers import is_watched
from jitml.trace.record.recording import current_trace

if TYPE_CHECKING:
    from jitml.sections.frames import StatementRun

_AROUND = 3e-7  # seconds that a section takes in its frame, besides what answers
_IN_PYTHON = 1.5e-5  # the same as long as answers are checked, and Python is in between
_STEP = 5e-8  # the same of a step of its guards, in machine code, about; to make a step's code takes 10 us
OFTEN = 2 if CONFIG.check else 200  # answers from Python after which machine code answers: making it takes about as long
_LATER = 1 if CONFIG.check else 5  # times as many, where no first call is under way, which has time for that
# What is taken in by reference; nor is None an argument by itself.
_HELD = {list, dict, set, deque, defaultdict, OrderedDict, Counter, type(None)}


class Entries(Protocol):
    """Machine code that answers calls of a section."""

    called: Callable[..., Any] | None
    tried: Callable[..., Any]

    @property
    def hits(self) -> int: ...

    def answer(self, calls: int) -> None: ...


class Compiled(Protocol):
    """A function that is compiled for the kinds of arguments it is called with, as `jitml.jit` makes it."""

    @property
    def variants(self) -> tuple[Variant, ...]: ...

    def entries(self, following: Callable[..., Any], names: tuple[str, ...], held: tuple[int, ...]) -> Entries:
        """Machine code that answers calls, of the variants that there are.

        Args:
            following: answers other calls.
            names: of the arguments.
            held: which of them are attributes of one object.
        """
        ...

    def known_answer(self, args: tuple[Any, ...]) -> Any:
        """What code that there is gives, or `MISS`.

        Raises:
            FailedCheck: it cannot answer; nothing has been changed.
        """
        ...

    def why_not_known(self, args: tuple[Any, ...]) -> tuple[str, Source | None]:
        """What code that there is takes for granted, and is not so for these arguments, and where that was claimed."""
        ...

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What compiled code gives, which is made if need be.

        Raises:
            FailedCheck: it cannot answer; nothing has been changed.
            Untraced: tracing raised what the function may raise too.
            JitmlError: it cannot be compiled.
        """
        ...


class Make(Protocol):
    def __call__(self, run: StatementRun, held: tuple[str, ...], rent: Rent) -> Compiled:
        """What compiles a section, which takes in `held` as attributes of one object, its first argument."""
        ...


class Section:
    """One run of statements.

    Args:
        cell: what its frame calls; None while the section is not used.
        make: see `Make`.
        refused: is told what cannot be compiled; gives what stands in for the section as long as its frame runs.
        dropped: is told that plain Python is faster.
        function: gives the statements as a function.
    """

    def __init__(
        self,
        run: StatementRun,
        make: Make,
        refused: Callable[[Section, BaseException], Callable[..., Any] | None],
        dropped: Callable[[Section], None],
        function: Callable[[StatementRun], Callable[..., Any]],
    ) -> None:
        self.run, self._make = run, make
        self.compiled: Compiled | None = None
        self._held: tuple[int, ...] = ()
        self._holder: Callable[..., Any] = tuple
        self._refused, self._dropped, self._function = refused, dropped, function
        self._state = ""
        self.contest = Contest()
        self.rent = Rent()
        self._misses = Misses(self.rent)
        self._sampling = Sampling(self._misses.paid)
        self._calls = 0  # that were answered, or not, in Python
        self._entries: Entries | None = None
        self._entered: list[Callable[..., Any]] = []  # what they stand for
        self._answers, self._known_hits, self._often = 0, 0, OFTEN
        self._next_look = FIRST_LOOK
        self._lock = lock()
        self.cell = CellType(self._run_for_rent if CONFIG.trial else self._compile_first)

    @property
    def state(self) -> str:
        """What has become of it, to be read."""
        rent = self.rent
        return self._state or f"{in_us(rent.spent)} as Python so far, to be compiled when it is {in_us(rent.price)}"

    @property
    def has_variants(self) -> bool:
        return self.compiled is not None and bool(self.compiled.variants)

    @property
    def calls(self) -> int:
        """Since compiled code has won."""
        return self._calls + (0 if self._entries is None else self._entries.hits)

    @property
    def seconds(self) -> float:
        """That compiled code has taken, about, and its compilation."""
        return self.rent.compiling + self.calls * self.contest.seconds

    @property
    def saved(self) -> float:
        """Seconds that compiled code has saved, about."""
        return self.calls * max(0.0, self.contest.plain_seconds - self.contest.seconds) if self.contest.is_won else 0.0

    @property
    def is_plain(self) -> bool:
        """Whether nothing else than the statements themselves runs here, or a frame of them with sections of its own."""
        known = (self._compile_first, self._try, self._run_compiled)
        return self.cell.cell_contents not in known and not self._is_entered

    def paid(self, share: float) -> bool:
        """The function around has run as it was written, for this share of its time so far; whether this is due."""
        is_due = self.rent.grow(share) and self.cell.cell_contents is not None
        if is_due:
            self._sampling.at_once()
        return is_due

    # What the frame calls.

    @passed_over
    def _run_for_rent(self, *args: Any) -> Any:
        """Plain Python, timed now and then, until the rent is due."""
        if self._sampling.passes() or is_watched():
            return None
        self.rent.comes()
        if self.rent.is_due(may_be_soon=True) or self._is_likely_long(args):
            return self._compile_first(*args)
        if self.compiled is None and self.rent.in_a_row < FEW:
            self.rent.before = sizes_of(args)
        return PlainTurn(self._pay_rent, self.rent)

    def _is_likely_long(self, args: tuple[Any, ...]) -> bool:
        """Whether it is to be compiled before it has run: in a first call what stands in no loop has no second turn."""
        if self.run.is_inside or self.rent.turns or RUNNING.level < IN_FIRST_CALL:
            return False
        return is_worth_an_early_call(self._function(self.run), args, {})

    @passed_over
    def _compile_first(self, *args: Any) -> Any:
        """The first compilation, and its answer."""
        if current_trace() is not None or runs_as_python() or is_watched():
            return None
        with self._lock:
            if self.compiled is None:
                self._hold(args)
        if self._held and (before := self.rent.before):
            self.rent.before = (None, *(x for n, x in enumerate(before) if n not in self._held))
        answer = self._compile(args)
        is_refused = self.cell.cell_contents not in (self._run_for_rent, self._compile_first)
        if self._compiled().variants and not is_refused:
            self._set_entry(self._try if CONFIG.trial else self._run_compiled)
            self._state = "on trial" if CONFIG.trial else "compiled"
            self._note_times()
        return answer

    def _note_times(self) -> None:
        """Both have computed the first answer, for it to be checked: that may be enough to know."""
        for variant in self._compiled().variants:
            if variant.times is not None and CONFIG.trial and not variant.is_made_better:
                compiled, plain = variant.times
                self.contest.both_took(compiled + _IN_PYTHON, plain)
                variant.times = None
                self._decide()

    def _hold(self, args: Sequence[Any]) -> None:
        """Containers are taken in by reference: taken apart, they would be others in each call, as they grow."""
        takes = self.run.takes
        may_be_slots = [not name.startswith(("__", ".")) for name in takes]
        self._held = tuple(n for n, x in enumerate(args) if type(x) in _HELD and may_be_slots[n])
        names = tuple(takes[n] for n in self._held)
        self._holder = type("names", (), {"__slots__": names, "__module__": "__main__"})
        self.compiled = self._make(self.run, names, self.rent)

    def _compiled(self) -> Compiled:
        assert self.compiled is not None
        return self.compiled

    def _handed_in(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as the section was compiled for them: containers are attributes of one object."""
        if not self._held:
            return args
        holder = self._holder()
        for n in self._held:
            setattr(holder, self.run.takes[n], args[n])
        return (holder, *(x for n, x in enumerate(args) if n not in self._held))

    @passed_over
    def _compile(self, args: tuple[Any, ...]) -> Any:
        """The answer of code that is made for these arguments; None if it cannot answer."""
        refusal: Untraced | JitmlError | None = None
        answer = None
        try:
            answer = self._compiled().answer(self._handed_in(args), {})
        except FailedCheck as failure:
            forget_frames(failure)
        except Unpaid as unpaid:
            forget_frames(unpaid)
            return PlainTurn(self._pay_rent, self.rent)
        except (Untraced, JitmlError) as error:
            refusal = error
        if refusal is None:
            return answer
        instead = self._refuse(refusal)  # outside of our handler: what the user's code raises has no context
        forget_frames(refusal)
        refusal = None
        return None if instead is None else instead(*args)

    @property
    def _is_entered(self) -> bool:
        """Whether its frame calls machine code."""
        return self._entries is not None and self.cell.cell_contents is self._entries.called is not None

    @property
    def _needs_entry(self) -> bool:
        """Whether compiled code has to be called without Python in between: plain Python takes little, and that may help."""
        steps = sum(len(variant.traced.host.steps) for variant in self._compiled().variants)
        return self.contest.is_short and steps * _STEP < self.contest.plain_seconds

    def _entry(self) -> Entries:
        """Machine code for the variants that there are now."""
        found = self._compiled()
        enters = [variant.enter for variant in found.variants]
        if self._entries is None or self._entered != enters:
            self._calls, self._known_hits = self.calls, 0
            self._entries, self._entered = found.entries(self._run_compiled, self.run.takes, self._held), enters
        return self._entries

    def _answer_compiled(self, is_often: bool = False) -> None:
        """Have compiled code answer, without Python in between if that matters."""
        entry: Callable[..., Any] | None = None
        if is_often or self._needs_entry:
            entries = self._entry()
            entries.answer(self._next_look - self.calls)
            entry = entries.called
        if entry is None and self.contest.is_short:
            # As long as answers are checked, say: it is seen soon what Python in between costs.
            self._next_look = min(self._next_look, self.calls + FEW)
        self._set_entry(entry or self._run_compiled)

    def _count(self) -> None:
        """Note a call that comes to Python, and what machine code has answered before."""
        self._calls += 1
        if self._entries is not None and self._known_hits != self._entries.hits:
            self._known_hits = self._entries.hits
            self._note_answer()

    def _note_answer(self) -> None:
        self._misses.in_a_row = 0
        self.contest.compiled_answered()

    def _known(self, args: tuple[Any, ...]) -> Any:
        """The answer of code that there is; None if it cannot answer."""
        try:
            return self._compiled().known_answer(self._handed_in(args))
        except FailedCheck as failure:
            forget_frames(failure)
            self.contest.compiled_failed()
            if CONFIG.trial and self.contest.is_won is False:
                self._decide()
            elif self._is_entered:
                self._set_entry(self._run_compiled)
            return None

    @passed_over
    def _try(self, *args: Any) -> Any:
        """Compiled code and plain Python by turns."""
        if is_watched():
            return None
        if self.contest.is_plains_turn:
            return PlainTurn(self._score_plain_turn)
        enter = self._entry().tried if self._needs_entry else None
        turn = TimedTurn()
        answer = MISS if enter is None else enter(*args)
        if answer is MISS:
            answer = self._known(args)
        if answer is MISS:
            return self._answer_other_kind(args)
        if answer is not None:
            self._misses.in_a_row = 0
            if turn.is_usual(seconds := turn.seconds) and not any(v.is_made_better for v in self._compiled().variants):
                self.contest.compiled_took(seconds + _AROUND)
                self._decide()
        return answer

    @passed_over
    def _run_compiled(self, *args: Any) -> Any:
        """Compiled code, which has won."""
        if is_watched():
            return None
        self._count()
        if self.calls >= self._next_look:
            return self._look(args)
        answer = self._known(args)
        if answer is MISS:
            return self._answer_other_kind(args)
        if answer is not None:
            self._note_answer()
            self._answers += 1
            if self._answers >= self._often * (1 if RUNNING.level == IN_FIRST_CALL else _LATER):
                self._answers, self._often = 0, 4 * self._often
                self._answer_compiled(is_often=True)
        return answer

    @passed_over
    def _look(self, args: Sequence[Any]) -> Any:
        """Time both again: the next call is plain Python's."""
        self._next_look *= 2
        self.contest.again()
        self._set_entry(self._try)
        return self._try(*args)

    @passed_over
    def _answer_other_kind(self, args: tuple[Any, ...]) -> Any:
        """Arguments of another kind."""
        self.rent.comes()
        is_first = len(self._compiled().variants) <= 1
        if CONFIG.trial and not self.rent.is_due(may_be_soon=is_first):
            self._sampling.at_once()
            if self._misses.are_many():
                self._set_entry(self._run_for_rent)
            return PlainTurn(self._pay_rent, self.rent)
        if current_trace() is not None or runs_as_python():
            return None
        if len(self._compiled().variants) >= MOST_VARIANTS:
            instead = self._refuse(ManyPrograms(MOST_VARIANTS, *self._compiled().why_not_known(self._handed_in(args))))
            return None if instead is None else instead(*args)
        return self._compile(args)

    # What becomes of it.

    def _set_entry(self, entry: Callable[..., Any] | None) -> None:
        """What the frame calls from now on; None: the statements."""
        self.cell.cell_contents = entry

    def _pay_rent(self, seconds: float) -> None:
        """Count what plain Python took towards the price of a compilation."""
        if self._sampling.took(seconds) and self.has_variants and self.cell.cell_contents == self._run_for_rent:
            if self.contest.is_won:
                self._answer_compiled()
            else:
                self._set_entry(self._try)
        self.contest.plain_took(seconds)
        if self.rent.is_small:
            self._turn_off(f"too small: {in_us(self.rent.spent / self.rent.turns)}")
            self._dropped(self)

    def _score_plain_turn(self, seconds: float) -> None:
        """Count what plain Python took in the contest, which may be decided by it."""
        self.contest.plain_took(seconds)
        self._decide()

    def _decide(self) -> None:
        """Do what the contest says, if it is decided."""
        if self.contest.is_won is None:
            return
        self._state = f"compiled: {self.contest}"
        if self.contest.is_won:
            if self.contest.is_in_doubt:
                self._next_look = self.calls + FEW
            self._answer_compiled()
        else:
            self._turn_off(f"not compiled: {self.contest}")
            self._dropped(self)

    def look_again(self) -> None:
        """It has been left out for a while, since plain Python was faster."""
        if self.compiled is not None and self.contest.is_won is False:
            self.contest.again()
            self._set_entry(self._try)

    def _turn_off(self, state: str) -> None:
        self._state = state
        self._set_entry(None)

    def _refuse(self, error: BaseException) -> Callable[..., Any] | None:
        """What stands in for it from now on."""
        cause = error.__cause__ if isinstance(error, Untraced) and error.__cause__ is not None else error
        if isinstance(cause, NameError):  # a loop that has not run, say: Python may have no need of the name
            self.rent.spent = 0.0
            return None
        self._turn_off(f"refused: {str(cause).partition(chr(10))[0]}")
        if isinstance(error, StarvedError):
            return None
        instead = self._refused(self, error)
        if isinstance(error, JitmlError) and error.leaves_changes:
            raise error
        self._set_entry(instead)
        return instead
