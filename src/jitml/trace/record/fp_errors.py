"""Floating-point errors while tracing: what becomes of the floating-point errors of what Python computes while it traces?

The compiled program raises them.

`np.float64(1) / 0` is a number to the trace, but NumPy warns of it at every call. It does not while tracing: what it would
say goes into the graph, at that place, and the call is left to the plain function if somebody wants to hear of it.
`np.errstate` in the function itself says which of them count.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ContextDecorator
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import CATEGORIES, raising
from jitml.ir.op import active_recorder
from jitml.ir.types import BOOL
from jitml.trace.record.recording import Trace, active_trace, unsupported


def recorded_errors() -> AbstractContextManager[None]:
    """Inside the block, floating-point errors are recorded, whatever the error state around it."""
    return np.errstate(all="call", call=_record)


def _record(kind: str, errors: int) -> None:
    if active_recorder() is not None:
        raising(ops.full(value=False, shape=(), dtype=BOOL), errors)


class ErrorState(ContextDecorator):
    """`np.errstate` inside a traced function: what is recorded under it ignores or demands errors as it says."""

    def __init__(self, **kinds: Any) -> None:
        self.given = kinds
        if "call" in kinds or not {"ignore", "warn", "raise", None}.issuperset(kinds.values()):
            unsupported("np.errstate calls a function or prints, which is not supported in jitted code", "Warn or raise.")
        heard: dict[str, Any] = {name: kind if kind == "ignore" else "call" for name, kind in kinds.items() if kind is not None}
        self.numpys = np.errstate(**heard)
        self.kinds = {name: kinds.get(name, kinds.get("all")) for name in CATEGORIES}

    def _recreate_cm(self) -> ErrorState:
        return ErrorState(**self.given)  # as a decorator, of a function that may call itself

    def __enter__(self) -> None:
        self.numpys.__enter__()
        errors = active_trace().errors
        self.before = ignored, demanded = errors.state
        for name, reaction in self.kinds.items():
            if reaction is not None:
                bit = CATEGORIES[name]
                ignored, demanded = (ignored | bit, demanded & ~bit) if reaction == "ignore" else (ignored & ~bit, demanded | bit)
        errors.state = (ignored, demanded)

    def __exit__(self, *error: Any) -> None:
        self.numpys.__exit__(*error)
        errors = active_trace().errors
        errors.state = self.before


def require_left(root: Trace) -> None:
    """Refuse a function that ends inside of an `np.errstate`: the caller's error state is its own."""
    if root.errors.state != (0, 0):
        unsupported("np.errstate is entered, and not left where the function ends", "Use it in a `with` statement.")
