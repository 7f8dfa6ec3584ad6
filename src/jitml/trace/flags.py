"""What becomes of the floating-point errors of what Python computes while it traces?  The compiled program raises them.

`np.float64(1) / 0` is a number to the trace, but NumPy warns of it at every call. It does not while tracing: what it would
say goes into the graph, at that place, and the call is left to the plain function if somebody wants to hear of it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from jitml.ir import ops
from jitml.ir.floating import raising
from jitml.ir.op import active_recorder
from jitml.ir.types import BOOL


def recorded_errors() -> AbstractContextManager[None]:
    """Inside the block, floating-point errors are recorded, whatever the error state around it."""
    return np.errstate(all="call", call=_record)


def _record(kind: str, errors: int) -> None:
    if active_recorder() is not None:
        raising(ops.full(value=False, shape=(), dtype=BOOL), errors)
