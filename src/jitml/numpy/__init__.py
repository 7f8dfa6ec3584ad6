"""`import jitml.numpy as np`: NumPy's names, which are NumPy's own functions, types and constants.

Outside a jitted function they do what they always do. Inside one the trace finds their meaning for traced values in
`jitml.trace.values.registry.FUNCTIONS`, which the modules of this package fill when they are imported; the same happens to code
that imports plain `numpy`. A file in a room is a topic of NumPy; every function in it is a composition of `jitml.ir.ops`. Most
topics are imported when one of their functions is met (`topics.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as _numpy

from jitml.imports.late import late
from jitml.numpy.support.arguments import arrays_of_lists
from jitml.numpy.support.memory_order import lay_out_as_numpy_does
from jitml.numpy.topics import TOPICS, names_of
from jitml.numpy.ufuncs import scalars as scalars  # methods of NumPy's numbers, which are no topic
from jitml.trace.values.registry import REGISTRY

if TYPE_CHECKING:
    from jitml.trace.host_calls import call as host_call
    from jitml.trace.regions import type_specialization
else:
    host_call, type_specialization = late("jitml.trace.host_calls.call"), late("jitml.trace.regions.type_specialization")

if TYPE_CHECKING:
    from numpy import *  # noqa: F403  # for editors and type checkers: the names are NumPy's

for topic, homes in TOPICS.items():
    if not homes:
        import_module(f"{__name__}.{topic}")
REGISTRY.wire(
    fallback=lambda *call: host_call.call_instead(*call),  # noqa: PLW0108  # late
    for_each_type=lambda *call: type_specialization.for_each_type(*call),  # noqa: PLW0108  # late
    to_arrays=arrays_of_lists,
    finish_call=lay_out_as_numpy_does,
    further={f"{__name__}.{topic}": tuple(names_of(topic)) for topic, homes in TOPICS.items() if homes},
)


if not TYPE_CHECKING:  # who would take all names for known

    def __getattr__(name: str) -> Any:
        return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
