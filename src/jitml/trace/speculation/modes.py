"""Tracing modes: what have failed attempts at tracing a function taught?  `Decisions`: what not to capture, which branches raise.

A body is traced without knowing whether it can be a region: it may ask for the number behind a loop's index, append to a list,
or give a name another type than it had. Then nothing is undone. The decision is written down at the *site*, a place in the
program with the calls that led there, and the whole function is traced anew (`Restart`). Decisions only grow, or move inwards, so
that this ends; where it takes too long, the function is refused.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import takewhile
from types import FrameType, MappingProxyType
from typing import Any, NoReturn

from jitml.config import CONFIG
from jitml.diagnostics.code_owners import is_converted
from jitml.errors import Cause, DerivativeError, JitmlError, LoweringError, Source, TraceError, UnsupportedError
from jitml.records import dataclass
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Effort, Trace, active_trace, refuse, user_source
from jitml.trace.rewrite.driver_protocol import Restart
from jitml.trace.speculation.budget import Budget
from jitml.trace.speculation.compile_cost import ProgramSize
from jitml.trace.speculation.limits import IN_SIGHT, NO_LIMITS, TraceLimits, TraceProfile, UnrolledLoop, beyond

Site = tuple[tuple[int, int], ...]
_MOST_RESTARTS = 500
_MOST_RECORDED = 60  # operations in all attempts, for each iteration that a loop may be unrolled to
_SHARE = 1 / 5  # of the seconds to trace, after which it is asked whether a loop that is unrolled is going to end
_MOST_AGAIN = 8  # times as many operations may be recorded as there are nodes: bodies are recorded again
_ENDLESS = (
    "What is computed from Python numbers and containers alone is run while the function is traced: compute it outside and pass"
    " it, or write it with NumPy arrays, or raise the limit JITML_TRACE_SECONDS."
)


class Mode(IntEnum):
    """How a loop is traced: as one region; the first iteration apart; every iteration as plain Python runs it.

    A branch is captured (`ROLLED`), or `PLAIN`: one side is traced, the one that this call takes (`paths.py`).
    """

    ROLLED = 0
    PEELED = 1
    PLAIN = 2


class RecordedRegion:
    """Something that is being recorded, with what is true of most.

    may_append: whether it can be open where lists from outside grow, without another region around it.
    """

    site: Site
    source: Source | None
    trace: Trace  # of its body
    may_append: bool = False

    def end_recording(self) -> None:
        """Its body has ended."""
        regions = active_trace().call[OpenRegions]
        if regions[-1] is not self:
            decisions().reconsider(active_trace(), UnsupportedError("an exception leaves a captured region"))
        regions.pop()

    def take(self, what: Any) -> bool:
        """Carry, or join, something of before that is about to be changed, if that can be."""
        return False

    def append_to(self, obj: Any) -> None:
        """Its body is about to append to a list from outside."""

    def may_be_one(self, x: Any, y: Any) -> bool:
        """Whether two arrays in the body, which are two as it is recorded, may be one in some iteration."""
        return False

    def raise_here(self, raised: str) -> None:
        """A `raise` stands where it is recorded: leave that out, if a check can tell."""

    def demote(self, reason: BaseException, mode: Mode | None = None) -> None:
        """Trace it otherwise, if there is another mode: the next that is left, or the one given."""

    def amend(self, error: BaseException) -> None:
        """An exception has left its body: decide what the next attempt does, if there is anything left to try."""

    def see_unbound(self, error: NameError) -> None:
        """A name was read in its body that is not bound there: decide whether earlier iterations bind it."""

    def settle(self, error: BaseException) -> None:
        """The same where nothing else has helped: what the program decides is assumed to be as it is in this call."""


class OpenRegions(list[RecordedRegion], CallPart):
    """The regions that are being recorded, innermost last."""

    @property
    def last(self) -> RecordedRegion | None:
        return self[-1] if self else None


class Decisions(CallPart):
    """What is known at each site.

    A loop that has been found to need a first iteration of its own needs it as far `apart` as it was found: with one around it
    that is `PEELED`, perhaps in the first iteration of that one alone. Were it peeled everywhere, a nest would have twice as many
    copies of its innermost body with each level.

    Args:
        modes: of sites, from a trace of the same function.
        peeled: of the same, loops that are `PEELED` so far apart, with all that is recorded around them.
        recursive: of the same, where constructs stand, whatever the calls, that were entered too often in themselves. They are
            `PLAIN` at every depth: a recursion that divides would meet its limit again in each part, and each time takes longer.
        limits: of the program, if there are any besides those of the environment; `profile` is then where it comes from.
    """

    def __init__(
        self,
        modes: Mapping[Site, Mode] = MappingProxyType({}),
        peeled: Mapping[tuple[Site, int], frozenset[Site]] = MappingProxyType({}),
        recursive: Iterable[Site] = (),
        limits: TraceLimits = NO_LIMITS,
    ) -> None:
        self.modes = dict(modes)
        self.peeled = dict(peeled)
        self.recursive = set(recursive)
        self.limits = limits
        self.profile = TraceProfile() if limits.are_tight else None
        self._most_seconds = limits.tracing  # of all attempts; of one attempt, as far as is in sight
        self._far_sighted = 0  # that attempt
        self.reasons: dict[Site, BaseException] = {}
        self.latest: BaseException | None = None  # of the reasons
        self.recorded = 0  # operations in earlier attempts
        self.effort = Effort()  # of this one
        self.budget = Budget()  # of all
        self.answered_otherwise = False  # whether this one has met a claim that fails in this call
        self.exhausted: UnsupportedError | None = None
        self.periods: dict[Site, int] = {}  # after how many iterations names that exchange arrays have their own again
        # Branches that end with an exception, there and so far `apart`, and what it says.
        self.raising: dict[tuple[Site, int], dict[bool, str]] = {}
        self.apart = 0  # in how many loops' first iterations, which are traced by themselves, what is recorded now stands
        self.widened: set[Site] = set()  # branches after which a number has a type that only one of them gives it
        self.typed: set[Site] = set()  # after which it is decided of which type numbers are, because a region asks for it
        self.wanted: dict[Site, set[str]] = {}  # names that are read after a construct that may leave them unbound
        self.lost: dict[str, set[Site]] = {}  # names that constructs have left unbound, though they may be bound
        # As the host program names them: numbers from outside that the function replaces, and lists that it appends to; and of
        # these lists those of which more must be known.
        self.moving: set[str] = set()
        self.closed: set[str] = set()
        self.carried: dict[Site, frozenset[str]] = {}  # names that a loop has carried where it was recorded in this attempt
        self.restart: Restart | None = None
        self.base = 0  # how many of the user's functions run around the one that is traced
        self._attempts = 0

    def begin(self, effort: Effort) -> None:
        self.recorded += self.effort.recorded
        self.effort = effort
        self.restart = None
        self.lost.clear()
        self.carried.clear()
        self.answered_otherwise = False
        self.apart = 0
        self.base = sum(1 for _ in _user_frames(sys._getframe(1)))
        self._attempts += 1
        if self.profile is not None:
            self.profile.begin()
            self._most_seconds = self.limits.tracing
            effort.look = self._look
        self.require_end()

    def refused(self, error: Exception) -> None:
        self.reconsider(active_trace(), error)

    def contradicted(self) -> None:
        self.answered_otherwise = True

    @contextmanager
    def first_iteration(self) -> Iterator[None]:
        """A first iteration is traced by itself: what raises there need not raise in others."""
        self.apart += 1
        try:
            yield
        finally:
            self.apart -= 1

    def again(self) -> NoReturn:
        """Trace anew, with what has just been decided. No `except` of the user's can prevent it."""
        self.restart = Restart()
        raise self.restart

    def require_end(self) -> None:
        """Refuse the function if tracing it has taken too long already."""
        recorded = self.recorded + self.effort.recorded
        if self.exhausted is None and (recorded > _MOST_RECORDED * CONFIG.max_unroll or self._attempts > _MOST_RESTARTS):
            text = f"tracing finds no end: {recorded} operations have been recorded in {self._attempts} attempts"
            remedy = "Write it so that the loop can stay one, or its condition be known, or raise the limit JITML_MAX_UNROLL."
            self.exhausted = self._at_most(_because(text, self.latest, remedy, Cause.SLOW))
        if self.exhausted is not None:
            raise self.exhausted

    def _at_most(self, error: UnsupportedError) -> UnsupportedError:
        """A refusal of what takes too long, at what has taken longest in all attempts, if that is known."""
        stack, is_loop = self.profile.heaviest("seconds") if self.profile is not None else ((), False)
        if stack:
            error.stack, error.cause = stack, Cause.UNROLLED if is_loop else Cause.SLOW
        return error

    def _look(self) -> None:
        """Refuse what is beyond the program's own limits, at what has cost most."""
        profile, limits = self.profile, self.limits
        assert profile is not None
        profile.sample(self.effort.recorded)
        if limits.nodes is not None and self._nodes() > limits.nodes:
            text = f"more than {limits.nodes} operations have been recorded, too many for one program"
            self.exhausted = beyond(text, *profile.heaviest("recorded"))
        elif self._most_seconds is not None and (spent := profile.total_seconds) > self._most_seconds:
            if not self.end_is_in_sight():
                self.exhausted = beyond(f"it has taken {spent:.1f} s to trace, too many", *profile.heaviest("seconds"))
        if self.exhausted is not None:
            raise self.exhausted

    def _nodes(self) -> int:
        """How many operations the program has by now, at least."""
        nodes = sum(len(builder.nodes) for builder in active_trace().builder.around())
        return max(nodes, self.effort.recorded // _MOST_AGAIN)

    def end_is_in_sight(self) -> bool:
        """Whether the loops that are being unrolled are going to end within the limits, as far as can be told."""
        profile, limits = self.profile, self.limits
        left = profile.left(self.effort.recorded) if profile is not None else None
        if profile is None or left is None:
            return False
        times = 1 + left.recorded / max(1, self.effort.recorded)
        if limits.nodes is not None and self._nodes() * times > limits.nodes:
            return False
        size = ProgramSize.of(node for builder in active_trace().builder.around() for node in builder.nodes)
        if limits.seconds is not None and size.compile_seconds(times) > limits.seconds:
            return False
        if limits.tracing is not None and self._most_seconds is not None:
            end = profile.total_seconds + left.seconds
            if end > IN_SIGHT * limits.tracing or self._far_sighted not in (0, self._attempts):
                return end <= self._most_seconds
            self._far_sighted = self._attempts
            self._most_seconds = min(IN_SIGHT * limits.tracing, max(self._most_seconds, end + limits.tracing / 2))
        return True

    def is_in_vain(self, loop: UnrolledLoop) -> bool:
        """Whether a loop is unrolled that has taken its share of the time, and is not going to end within the limits."""
        most = self.limits.tracing
        return most is not None and loop.seconds >= _SHARE * most and not self.end_is_in_sight()

    def step(self) -> None:
        """An iteration that plain Python runs begins, or a call: refuse the function if such have taken too long."""
        self.require_end()
        if self.profile is not None:
            self._look()
        if spent := self.budget.step(self.recorded + self.effort.recorded):
            text = f"tracing finds no end: after {self.budget.steps} iterations and calls that Python runs it has taken {spent}"
            error = UnsupportedError(text, source=user_source(), remedy=_ENDLESS, cause=Cause.SLOW)
            self.exhausted = self._at_most(error)
            raise self.exhausted

    def is_plain(self, site: Site) -> bool:
        """Whether plain Python runs what stands at a place."""
        return site[:1] in self.recursive or self.modes.get(site) is Mode.PLAIN

    def mode(self, site: Site) -> Mode:
        """How the construct at a place is traced."""
        if self.is_plain(site):
            return Mode.PLAIN
        mode = self.modes.get(site, Mode.ROLLED)
        return Mode.PEELED if mode is Mode.ROLLED and (site, self.apart) in self.peeled else mode

    def demote(self, site: Site, mode: Mode, reason: BaseException) -> None:
        """Trace a loop in another mode, unless it is in that one already."""
        if not self.is_plain(site) and self.modes.get(site, Mode.ROLLED) < mode:
            self.modes[site] = mode
            self.reasons[site] = self.latest = reason
            self.again()

    def peel(self, site: Site, apart: int, around: Sequence[RecordedRegion], reason: BaseException) -> NoReturn:
        """Trace the first iteration of a loop, which has been rolled so far apart, by itself.

        Loops in it that need the same there are going to need it in that iteration; whether in the others, too, will show.

        Args:
            around: what is being recorded, outermost first: all around the loop, the loop, and what is in it.
        """
        self.peeled = {
            (inner, depth + (depth >= apart and site in outer)): outer for (inner, depth), outer in self.peeled.items()
        }
        self.peeled[site, apart] = frozenset(region.site for region in takewhile(lambda region: region.site != site, around))
        self.reasons[site] = self.latest = reason
        self.again()

    def reconsider(self, trace: Trace, error: BaseException) -> None:
        """An exception goes through the open regions: begin anew if one of them can be traced otherwise."""
        if self.restart is not None:  # a `finally` or an `except` on the way out has met the next exception
            raise self.restart
        if self.exhausted is not None:
            raise self.exhausted
        if isinstance(error, NameError):
            self.reconsider_names(trace, error)
        for region in reversed(trace.call[OpenRegions]):
            region.amend(error)

    def leave_out(self, place: tuple[Site, int], branch: bool, raised: str) -> NoReturn:
        """A branch ends with an exception, which its check tells from now on."""
        self.raising.setdefault(place, {})[branch] = raised
        self.again()

    def wants(self, name: str, site: Site) -> bool:
        """Whether a name is known to be read after a construct that may leave it unbound; if not, it is lost from here on."""
        if name in self.wanted.get(site, ()):
            return True
        self.lost.setdefault(name, set()).add(site)
        return False

    def reconsider_names(self, trace: Trace, error: NameError) -> None:
        """A name that is not bound was read: perhaps it is, as the compiled program runs."""
        for name, sites in self.lost.items():
            if f"'{name}'" in str(error):
                for site in sites:
                    self.wanted.setdefault(site, set()).add(name)
                self.again()
        for region in reversed(trace.call[OpenRegions]):
            region.see_unbound(error)

    def settle_open(self, trace: Trace, error: BaseException, inner: RecordedRegion | None = None) -> None:
        """The same where nothing else is left: no region stays around what cannot be traced in one.

        Args:
            inner: the region that asks for it; those around it are meant.
        """
        if isinstance(error, RecursionError):
            entered = Counter(region.site[:1] for region in trace.call[OpenRegions])
            found = {place for place, times in entered.items() if times >= entered[trace.call[OpenRegions][-1].site[:1]]}
            self.recursive |= found  # at once: each attempt goes all the way down
            if found:
                self.again()
        for region in trace.call[OpenRegions]:
            if region is inner:
                break
            region.settle(error)

    def settle_place(self, error: BaseException) -> bool:
        """Whether the number that Python needs, which is what the error says, may be assumed to be as it is in this call."""
        place: Site | None = getattr(error, "place", None)
        if place is None or self.is_plain(place):
            return False
        self.modes[place] = Mode.PLAIN
        self.latest = error
        return True

    def settle_sides(self) -> bool:
        """Whether there are branches on traced conditions that may have to do with an exception which ends the trace.

        A side that raises was left out though this call may take it, or a number has got the other side's type. They are traced
        once more as this call takes them, in which case the exception is the program's own.
        """
        found = (*(site for site, _ in self.raising), *self.widened)
        doubtful = {site for site in found if not self.is_plain(site)}
        self.modes |= dict.fromkeys(doubtful, Mode.PLAIN)
        self.raising.clear()
        self.widened.clear()
        return bool(doubtful)


def decisions() -> Decisions:
    """Those of the current attempt."""
    return active_trace().call[Decisions]


@dataclass(frozen=True, slots=True)
class Decider:
    """A construct that decides, as the compiled program runs, which of its alternatives a value is.

    mode: how it is traced to leave less of that to the program.
    """

    site: Site
    mode: Mode = Mode.PLAIN

    def refuse(self, message: str, remedy: str) -> NoReturn:
        """Somebody asks: the construct is traced in that mode or, where it is already, refused."""
        error = UnsupportedError(message, source=user_source(), remedy=remedy)
        decisions().demote(self.site, self.mode, error)
        refuse(error)


def is_ours(error: BaseException) -> bool:
    """Whether an error says what cannot be traced, and not what the program itself does wrong."""
    # Both sides of a captured branch are traced, so that a recursion which it would end has no end.
    return isinstance(error, (UnsupportedError, TraceError, LoweringError, DerivativeError, AssertionError, RecursionError))


def site() -> Site:
    """Where in the program the construct stands that is being entered, and through which calls it was reached."""
    return tuple((id(frame.f_code), frame.f_lasti) for frame in traced_frames())


def traced_frames() -> list[FrameType]:
    """Frames of the user's functions that are being traced, the innermost first."""
    frames = list(_user_frames(sys._getframe(1)))
    return frames[: len(frames) - decisions().base]


def _user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        if is_converted(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def refuse_region(what: str, site: Site, remedy: str = "", cause: Cause = Cause.CONTROL) -> NoReturn:
    """A construct can neither be captured nor run as plain Python."""
    refuse(_because(what, decisions().reasons.get(site), remedy, cause))


def _because(what: str, reason: BaseException | None, remedy: str, cause: Cause) -> UnsupportedError:
    """A refusal with the reason for which something could not be captured."""
    known = reason if isinstance(reason, JitmlError) else None
    text = f"{what}: {known.message if known is not None else reason}" if reason is not None else what
    source = known.source if known is not None else None
    told = known.remedy if known is not None else ""
    return UnsupportedError(text, source=source or user_source(), remedy=told or remedy, cause=cause)
