"""`import jitml.numpy as np`: NumPy's names, which are NumPy's own functions, types and constants.

Outside a jitted function they do what they always do. Inside one the trace finds their meaning for traced values in
`jitml.trace.values.registry.FUNCTIONS`, which the modules of this package fill when they are imported; the same happens to code
that imports plain `numpy`. A file in a room is a topic of NumPy; every function in it is a composition of `jitml.ir.ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as _numpy

from jitml.numpy import arrays, building, linear_algebra, numerics, python, reductions, selection, ufuncs

if TYPE_CHECKING:
    from numpy import *  # noqa: F403  # for editors and type checkers: the names are NumPy's

ROOMS = (ufuncs, arrays, reductions, building, selection, linear_algebra, numerics, python)
TOPICS = tuple(topic for room in ROOMS for topic in room.TOPICS)


def __getattr__(name: str) -> Any:
    return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
