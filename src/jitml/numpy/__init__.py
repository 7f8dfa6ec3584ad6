"""`import jitml.numpy as np`: NumPy's names, which are NumPy's own functions, types and constants.

Outside a jitted function they do what they always do. Inside one the trace finds their meaning for traced values in
`jitml.trace.values.registry.FUNCTIONS`, which the modules of this package fill when they are imported; the same happens to code
that imports plain `numpy`. A file in a room is a topic of NumPy; every function in it is a composition of `jitml.ir.ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as _numpy

from jitml.numpy import arrays, building, linear_algebra, numerics, python, reductions, selection, ufuncs
from jitml.numpy.support.arguments import arrays_of_lists
from jitml.numpy.support.memory_order import lay_out_as_numpy_does
from jitml.trace.host_calls.call import call_instead
from jitml.trace.regions.per_type import for_each_type
from jitml.trace.values.registry import REGISTRY

if TYPE_CHECKING:
    from numpy import *  # noqa: F403  # for editors and type checkers: the names are NumPy's

ROOMS = (ufuncs, arrays, reductions, building, selection, linear_algebra, numerics, python)
TOPICS = tuple(topic for room in ROOMS for topic in room.TOPICS)

REGISTRY.wire(
    fallback=call_instead,
    for_each_type=for_each_type,
    to_arrays=arrays_of_lists,
    finish_call=lay_out_as_numpy_does,
)


if not TYPE_CHECKING:  # who would take all names for known

    def __getattr__(name: str) -> Any:
        return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
