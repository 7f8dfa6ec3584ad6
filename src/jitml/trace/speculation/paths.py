"""Path specialization: what if a branch can neither be merged nor left out?

Then a variant is compiled for the way that this call takes: a `Path`.

`decide` takes a condition, or a number that Python must know, for what it is in the call that is traced, and lets the program
claim so. The claim is a check that fails before anything has been changed, with `WrongPath`; the dispatcher then tries the
variants of other paths, and has one traced for the fact that the failed check has told (`Path.turned`). What is assumed may thus
be a mere guess: a wrong one costs a compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jitml.config import CONFIG
from jitml.errors import (
    BeyondLimit,
    Cause,
    DerivativeError,
    OtherResult,
    OtherSizes,
    RaisingBranch,
    Source,
    UnknownNumberError,
    UnsupportedError,
    UserFrame,
    WrongPath,
)
from jitml.ir import ops
from jitml.ir.dims import Size, stretched
from jitml.ir.graph import Node, Value
from jitml.ir.types import BOOL, F64, I64
from jitml.records import dataclass, field, replace
from jitml.trace.record.concrete_evaluation import example_of_size, guess, remember
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace, refuse, user_source
from jitml.trace.record.user_code import asking, user_stack
from jitml.trace.speculation.modes import Decisions, Mode, OpenRegions, Site, decisions, site

if TYPE_CHECKING:
    from jitml.trace.speculation.host_results import Returned


_REMEDY = (
    "Compute both cases with np.where, or give both branches arrays of one shape and dtype, so that one program serves all calls."
)


_LIMIT = "JITML_MAX_PATHS is the limit."
_WHICH = ("neither", "the first", "the second")
_NAN = int(np.float64(np.nan).view(I64))

AssumptionKind = Literal["truth", "number", "float", "limit", "sizes", "result"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """A condition (then `outcome` is 0 or 1), an integer, or a float (its bits), that a program takes for known; what a size is
    at most; which of two sizes is stretched to the other; or what a host call returns.

    Args:
        occurrence: how often the site had been passed before.
        asked_by: the function that has to know it, where that is not the user's own code.
    """

    site: Site
    occurrence: int
    outcome: Any
    kind: AssumptionKind
    source: Source | None
    asked_by: str = field(default="", compare=False)
    stack: tuple[UserFrame, ...] = field(default_factory=user_stack, compare=False)

    def __str__(self) -> str:
        told = {
            "truth": f"is {bool(self.outcome)}".lower(),
            "number": f"is {self.outcome}",
            "float": f"is {_float(self.outcome) if self.kind == 'float' else None}",
            "limit": f"is a size of at most {self.outcome}",
            "sizes": f"stretches {_WHICH[self.outcome] if self.kind == 'sizes' else None} of two sizes",
            "result": f"has the result {self.outcome} of a host call",
        }[self.kind]
        text = f" `{self.source.text}`" if self.source is not None and self.source.text else ""
        again = f", time {self.occurrence + 1}" if self.occurrence else ""
        return f"{self.source}{text} {told}{again}"


@dataclass(frozen=True, slots=True)
class Path:
    """All that a program assumes, in the order of the trace, and which places are decided so.

    recursive: of these, those that are at every depth of a recursion.
    reason: why it is compiled, if other programs did not fit the call.
    """

    assumptions: tuple[Assumption, ...] = ()
    modes: Mapping[Site, Mode] = field(default_factory=dict)
    peeled: Mapping[tuple[Site, int], frozenset[Site]] = field(default_factory=dict)
    recursive: frozenset[Site] = frozenset()
    reason: str = ""

    def turned(self, failure: WrongPath) -> Path:
        """The path of the call that made this one fail, as far as it is known: up to the claim that failed."""
        number, outcome = failure.fact
        if isinstance(failure, OtherSizes):
            outcome = stretched(*outcome)
        *before, wrong = self.assumptions[: number + 1]
        if wrong.kind == "limit":
            outcome = 1 << (4 * outcome).bit_length()  # a few steps reach any size
        turned = replace(wrong, outcome=outcome)
        return replace(self, assumptions=(*before, turned), reason=f"another path: {turned}")


_NOTHING_KNOWN = Path()


class Decided(CallPart):
    """What one attempt at tracing has assumed so far.

    Args:
        path: what is known of this call from programs that did not fit it.
    """

    def __init__(self, path: Path = _NOTHING_KNOWN) -> None:
        self.foreseen = {(a.site, a.occurrence): a.outcome for a in path.assumptions}
        self.assumptions: list[Assumption] = []
        self.outcomes: dict[Value, int] = {}
        self.taken: set[Value] = set()  # floats that stand, as constants, where nothing of them is traced
        self.fits: dict[tuple[Size, Size], Fit] = {}
        self._passed: dict[Site, int] = {}

    def cut(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.op is ops.check:
                self.outcomes.pop(node.inputs[0], None)  # who asks has it claimed again

    def foresee(self, place: Site) -> tuple[int, Any]:
        """How often a place has been passed before, and what a call has told of it; None if nothing."""
        occurrence = self._passed.get(place, 0)
        self._passed[place] = occurrence + 1
        return occurrence, self.foreseen.get((place, occurrence))

    def add(self, place: Site, occurrence: int, outcome: Any, kind: AssumptionKind, asked_by: str = "") -> tuple[int, Assumption]:
        """Number and content of a new assumption."""
        self.assumptions.append(Assumption(place, occurrence, outcome, kind, user_source(), asked_by))
        return len(self.assumptions) - 1, self.assumptions[-1]


def decide(value: Value, place: Site) -> int:
    """The outcome of a condition, an integer, or a float's bits, which the program is going to assume, as is decided of `place`.

    Raises:
        UnsupportedError: the program would assume too much.
    """
    trace, known = active_trace(), decisions()
    if trace.call[OpenRegions]:
        reason = known.reasons.get(place) or UnsupportedError("a condition inside a captured region cannot be decided")
        known.reconsider(trace, reason)
        known.settle_open(trace, reason)
        raise reason
    decided = trace.call[Decided]
    if value in decided.outcomes:
        return decided.outcomes[value]
    occurrence, outcome = decided.foresee(place)
    if outcome is None:
        outcome = guess(value)
    kind: AssumptionKind = "truth" if value.dtype == BOOL else "float" if value.dtype == F64 else "number"
    number, assumption = decided.add(place, occurrence, outcome, kind, asking())
    if number >= CONFIG.max_unroll:
        text = f"{number} conditions would have to be decided before the function can be compiled"
        raise UnsupportedError(text, source=user_source(), remedy=_REMEDY)
    if kind == "truth":
        text = f"assumption {number} is {1 - outcome} at {_escaped(assumption.source)}"
        ops.check(value, value if outcome else ops.bit_not(value), error=WrongPath.__name__, message=text)
    else:
        text = f"assumption {number} is {{}} at {_escaped(assumption.source)}"
        shown = _bits(value) if value.dtype == F64 else value if value.dtype == I64 else ops.convert(value, dtype=I64)
        ops.check(shown, ops.eq(shown, outcome), shown, error=WrongPath.__name__, message=text)
    decided.outcomes[value] = outcome
    remember([value], [np.asarray(_as_python(value, outcome), value.dtype)])  # what is guessed from here on fits
    return outcome


@dataclass(frozen=True, slots=True)
class Limit:
    """What a size is taken not to exceed; a call in which it does is answered by a program compiled for more."""

    number: int
    assumption: Assumption

    @property
    def most(self) -> int:
        return self.assumption.outcome

    def check(self, value: Value) -> Value:
        """A size of which the program claims so; ints below 0 pass."""
        shown = value if value.dtype == I64 else ops.convert(value, dtype=I64)
        text = f"assumption {self.number} is {{}} at {_escaped(self.assumption.source)}: a size"
        checked: Value = ops.check(value, ops.le(shown, self.most), shown, error=BeyondLimit.__name__, message=text)
        return checked


def limit(place: Site, most: int | None) -> Limit | None:
    """A limit, `most` or what calls have shown to be needed; None if there is neither."""
    decided = active_trace().call[Decided]
    occurrence, outcome = decided.foresee(place)
    most = most if outcome is None else max(most or 0, outcome)
    return None if most is None else Limit(*decided.add(place, occurrence, most, "limit"))


@dataclass(frozen=True, slots=True)
class Fit:
    """How two sizes of which the limits do not tell are taken to fit together: one of them is 1 and stretched, or they are equal.

    Whatever relies on it is behind a check of `sizes` with what `claim` says; a call for which it fails is answered by a program
    that takes them to fit as they do there.
    """

    number: int
    assumption: Assumption
    sizes: tuple[Size, Size]

    def stretches(self, size: Size) -> bool:
        which = self.assumption.outcome
        return which > 0 and self.sizes[which - 1] == size

    @property
    def claim(self) -> dict[str, str]:
        text = f"assumption {self.number} is {{}} and {{}} at {_escaped(self.assumption.source)}: sizes differ"
        return {"error": OtherSizes.__name__, "message": text}


def fit(x: Size, y: Size, value_of: Callable[[Size], Value]) -> Fit | None:
    """How two sizes fit together in this call, or in all that another one has shown; None where programs assume nothing."""
    decided = active_trace().call[Decided]
    known = decided.fits.get((x, y)) or decided.fits.get((y, x))
    if known is None and len(decided.assumptions) < CONFIG.max_unroll:
        mine, other = example_of_size(value_of(x)), example_of_size(value_of(y))
        guessed = 0 if mine is None or other is None else stretched(mine, other)
        occurrence, outcome = decided.foresee(place := site())
        known = Fit(*decided.add(place, occurrence, guessed if outcome is None else outcome, "sizes"), (x, y))
        decided.fits[x, y] = known
    return known


def result(seen: Returned) -> tuple[int | None, Returned]:
    """What a host call is taken to return, as far as calls have shown, and the number of that assumption, if there is one."""
    decided, place = active_trace().call[Decided], site()
    occurrence, outcome = decided.foresee(place)
    outcome = seen if outcome is None else outcome
    return decided.add(place, occurrence, outcome, "result")[0], outcome


def _escaped(told: Any) -> str:
    return str(told).replace("{", "{{").replace("}", "}}")


def is_decided(place: Site) -> bool:
    """Whether the outcome at a place is assumed, and not computed."""
    return decisions().is_plain(place)


def number(value: Value, message: str, remedy: str, *, is_taken: bool = False) -> Any:
    """A truth, an integer or a float, as a double, that Python must know, of shape ().

    Args:
        is_taken: whether code that is not traced computes with it, and does not merely go one way or another by it.

    Raises:
        UnknownNumberError: for the first time. Only if nothing else is to be done, the next attempt assumes the number.
    """
    root = active_trace().root
    if value.dtype.kind == "f" and value.dtype != F64:
        value = ops.convert(value, dtype=F64)
    outcomes = root.call[Decided].outcomes
    if value in outcomes:
        return _handed_out(value, outcomes[value], is_taken)
    place = site()
    if is_decided(place):
        return _handed_out(value, decide(value, place), is_taken)
    error = UnknownNumberError(message, remedy=remedy)
    error.place = place if value.dtype.kind in "biu" or value.dtype == F64 else None
    refuse(error)


def _handed_out(value: Value, outcome: int, is_taken: bool) -> Any:
    """What is assumed, as a number of Python's; the graph says where it is taken, which a derivative must not meet."""
    decided = active_trace().call[Decided]
    if is_taken and value.dtype.kind == "f" and value not in decided.taken:
        decided.taken.add(value)
        holds = ops.full(value=True, shape=(), dtype=BOOL)
        ops.check(value, holds, error=DerivativeError.__name__, message=_escaped(asking()))
    return _as_python(value, outcome)


def _as_python(value: Value, outcome: int) -> Any:
    return bool(outcome) if value.dtype == BOOL else _float(outcome) if value.dtype == F64 else outcome


def _bits(value: Value) -> Value:
    """Of a double; Python cannot tell one nan from another."""
    nan = ops.full(value=_NAN, shape=(), dtype=I64)
    bits: Value = ops.select(ops.isnan(value), nan, ops.bits(value))
    return bits


def _float(bits: int) -> float:
    return float(np.int64(bits).view(F64))


def path_of(recording: Trace) -> Path:
    """What the program of a finished recording assumes."""
    decided, known = recording.call[Decided], recording.call[Decisions]
    modes = {place: mode for place, mode in known.modes.items() if mode is not Mode.ROLLED}
    recursive = frozenset(known.recursive)
    return Path(tuple(decided.assumptions), modes, known.peeled, recursive)


def require_not(test: Value, raised: str, place: Site, source: Source | None) -> None:
    """A branch that is taken where `test` holds raises, and is left out: where a call takes it, Python says what happens."""
    message = f"a branch at {source} was taken that, traced, ends with {raised}"
    ops.check(test, ops.bit_not(test), error=RaisingBranch.__name__, message=_escaped(message))


def other_path(failed: list[tuple[Path, WrongPath]]) -> Path:
    """What is known of a call which none of these programs could answer.

    Raises:
        UnsupportedError: there are too many of them, or they contradict each other.
        OtherResult, OtherSizes: the same, but all that is wrong is the result of a host call, or sizes, which plain Python can do
            with.
    """
    path, failure = max(failed, key=lambda pair: pair[1].fact[0])
    found = path.turned(failure)
    if len(failed) < CONFIG.max_paths and not any(_begins_with(other, found) for other, _ in failed):
        return found
    if isinstance(failure, (OtherResult, OtherSizes)):
        raise failure
    last = path.assumptions[failure.fact[0]]
    if last.kind in ("float", "number"):
        what = "asks for a number that only the compiled program knows, and which changes from call to call"
        remedy = "Functions that are supported (docs/supported.md) ask for none, and compute the same in one program."
        raise _too_many(failed, last, f"{last.asked_by or 'Python'} {what}", remedy, Cause.NUMBER)
    what = "which branches are taken changes from call to call, and they differ in more than the numbers they compute"
    raise _too_many(failed, last, what, _REMEDY, Cause.CONTROL)


def _too_many(
    failed: Sequence[tuple[Path, WrongPath]], last: Assumption, what: str, remedy: str, cause: Cause
) -> UnsupportedError:
    """The refusal to compile one more program for another path, at what would be assumed."""
    text = f"the function would be compiled for a path no. {len(failed) + 1}: {what}"
    error = UnsupportedError(text, source=last.source, remedy=f"{remedy} {_LIMIT}", cause=cause)
    error.stack = last.stack
    return error


def _begins_with(path: Path, beginning: Path) -> bool:
    return path.assumptions[: len(beginning.assumptions)] == beginning.assumptions
