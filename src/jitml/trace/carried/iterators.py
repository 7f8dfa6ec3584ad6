"""Iterators in loops: which iterators may a region's body go on with?  None from outside, and none of before the body.

Going on with one happens once, while the body is traced, and not in each iteration.
"""

from __future__ import annotations

from typing import Any

from jitml.errors import Cause
from jitml.trace.record.parts import LocalPart
from jitml.trace.record.recording import current_trace, unsupported
from jitml.trace.rewrite.driver_protocol import Values
from jitml.trace.values.reachable import iterators_in


class IteratorsBefore(dict[int, object], LocalPart):
    """Iterators of before the body of a region, by id."""


def iterators_among(values: Values) -> dict[int, Any]:
    """Iterators that names, or what they hold, have: going through one in a body would move it once, while tracing."""
    return iterators_in(values.values())


def gone_through(x: Any) -> Any:
    """Something is about to be iterated over: no iterator from outside and, in a body, none of before."""
    trace = current_trace() if hasattr(type(x), "__next__") else None
    if trace is not None and id(x) in trace.outside.places:
        name = trace.host.name(trace.outside.places[id(x)])
        unsupported(
            f"{name} is an iterator from outside: it would go on only once, while the function is traced, and not at every call",
            "Pass its next item, or a list, as an argument.",
            Cause.ITERATOR,
        )
    while trace is not None and trace.is_body:
        if id(x) in trace.local[IteratorsBefore]:
            unsupported(
                "an iterator goes on under a condition, or in a loop, that only the compiled program decides",
                "Make a list of it.",
                Cause.ITERATOR,
            )
        trace = trace.parent
    return x
