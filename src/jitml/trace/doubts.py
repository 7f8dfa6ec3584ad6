"""Of which type is a number that is an int in one case and a float in the other?  Both compute alike, until somebody can tell.

A branch, or `max(x, 0.0)`, that may leave an int or a float, or a number of Python's or of NumPy's, gives one that stands for
both. Where its type is seen (it is returned, or decides a dtype) the construct is traced for the way that this call takes; unless
it is only returned, and Python's and NumPy's number of one dtype: then the program says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jitml.errors import UnsupportedError
from jitml.ir.graph import Value
from jitml.trace.context import active_trace, current_trace, refuse, user_source
from jitml.trace.decisions import Mode, Site, decisions
from jitml.trace.tracers import TracedNumber, TracedScalar

_REMEDY = "Give it one type in both cases: 0.0 instead of 0, or float(x)."


@dataclass(frozen=True, slots=True)
class Doubt:
    """What else a number may be, as a part in promotion, and the construct that has left it open.

    test: whether it is that, if the program knows where the number is.
    """

    other: Any
    site: Site
    test: Value | None = None


def doubt(value: Value, other: Any, place: Site, test: Value | None = None) -> None:
    """Note that a number stands for one of another type, too."""
    trace = active_trace()
    trace.root.doubts[value] = Doubt(other, place, test if trace is trace.root else None)


def doubt_of(x: Any) -> Doubt | None:
    """What is open about the type of a number or scalar."""
    trace = current_trace()
    if trace is None or not trace.root.doubts or type(x) not in (TracedNumber, TracedScalar):
        return None
    found: Doubt | None = trace.root.doubts.get(x.value)
    return found


def require_type(x: Any) -> None:
    """Somebody sees the type of a number."""
    found = doubt_of(x)
    if found is not None:
        message = "which type a number has depends on a condition that only the compiled program decides"
        error = UnsupportedError(message, source=user_source(), remedy=_REMEDY)
        decisions().demote(found.site, Mode.PLAIN, error)
        refuse(error)


def settled(xs: Sequence[Any], kinds: Sequence[Any], resolve: Callable[[Sequence[Any]], Any]) -> Any:
    """What promotion makes of the kinds of some operands, which must be the same whatever those in doubt are."""
    result = resolve(kinds)
    if any(found := [doubt_of(x) for x in xs]):
        others = [kind if d is None else d.other for kind, d in zip(kinds, found)] + list(kinds[len(found) :])
        if resolve(others) != result:
            for x in xs:
                require_type(x)
    return result
