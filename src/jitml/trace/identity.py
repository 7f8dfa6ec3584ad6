"""Are two names one array, and do two arrays share memory?  As in NumPy, where the trace knows; else another mode is tried.

Inside a loop's body a name that is carried stands for an array of each iteration, and what a branch or a loop hands out may be an
array of before: whether that is another one, only the compiled program knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.errors import UnsupportedError
from jitml.trace.context import active_trace, current_trace, refuse, user_source
from jitml.trace.decisions import Mode, decisions
from jitml.trace.loops import Loop
from jitml.trace.tracers import TracedArray, lift

_REMEDY = "Compare what the arrays hold, or remember in a flag of your own which array it is."


def is_one(x: Any, y: Any) -> bool:
    """`x is y`"""
    if x is y or current_trace() is None:
        return x is y
    if TracedArray not in (type(x), type(y)):
        return False
    x, y = (lift(a) if type(a) is np.ndarray else a for a in (x, y))
    if type(x) is type(y) is TracedArray and x.dtype == y.dtype and x.ndim == y.ndim and x is not y:
        require_known(x, y)
    return x is y


def require_known(x: TracedArray, y: TracedArray) -> None:
    """Refuse, if no other mode helps, where two arrays that are two to the trace may be one in the program."""
    trace = active_trace()
    text = "whether two arrays are one, or share memory, only the compiled program decides"
    error = UnsupportedError(text, source=user_source(), remedy=_REMEDY)
    for region in reversed(trace.root.open):
        if isinstance(region, Loop) and region.may_be_one(x, y):
            region.demote(error, Mode.PLAIN)
    rival = next((rival for rival in x.storage.rivals if rival.storage() is y.storage), None)
    if rival is not None:
        decisions().demote(rival.site, rival.mode, error)
        refuse(error)


__all__ = ["is_one", "require_known"]
