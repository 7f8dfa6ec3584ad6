"""`import jitml.numpy as np`: NumPy's names, which are NumPy's own functions, types and constants.

Outside a jitted function they do what they always do. Inside one the trace finds their meaning for traced values in
`jitml.trace.values.registry.FUNCTIONS`, which the modules of this package fill when they are imported; the same happens to code
that imports plain `numpy`. A file in a room is a topic of NumPy; every function in it is a composition of `jitml.ir.ops`. Topics
that few programs need are imported when a function of NumPy's is met that the others do not know.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as _numpy

from jitml.imports.late import late
from jitml.numpy.support.arguments import arrays_of_lists
from jitml.numpy.support.memory_order import lay_out_as_numpy_does
from jitml.numpy.ufuncs import scalars as scalars  # methods of NumPy's numbers, which are no topic
from jitml.trace.values.registry import REGISTRY

if TYPE_CHECKING:
    from jitml.trace.host_calls import call as host_call
    from jitml.trace.regions import type_specialization
else:
    host_call, type_specialization = late("jitml.trace.host_calls.call"), late("jitml.trace.regions.type_specialization")

if TYPE_CHECKING:
    from numpy import *  # noqa: F403  # for editors and type checkers: the names are NumPy's

# In the order of docs/supported.md. None is named where programs usually need the topic; else it comes with the first function of
# such a module that is not known yet, or with a method of a ufunc.
TOPICS: dict[str, tuple[str, ...]] = {
    "ufuncs.ufunc": (),
    "arrays.indexing": (),
    "arrays.flat": (),
    "arrays.iterators": (),
    "arrays.methods": (),
    "arrays.complex_parts": (),
    "arrays.reshaping": (),
    "arrays.sliding": ("numpy",),
    "reductions.reductions": (),
    "reductions.statistics": (),
    "reductions.ufunc_methods": ("numpy.ufunc",),
    "reductions.sorting": (),
    "reductions.closeness": ("numpy",),
    "building.creation": (),
    "building.ranges": (),
    "building.grids": ("numpy",),
    "building.joining": (),
    "building.padding": ("numpy",),
    "selection.choose": (),
    "selection.nonzero": (),
    "selection.sets": ("numpy",),
    "selection.quantiles": ("numpy",),
    "selection.index_tricks": ("numpy",),
    "linear_algebra.products": (),
    "linear_algebra.norms": ("numpy.linalg",),
    "linear_algebra.factorizations": ("numpy.linalg",),
    "linear_algebra.einsum": ("numpy",),
    "numerics.calculus": ("numpy",),
    "numerics.polynomials": ("numpy",),
    "numerics.fft": ("numpy.fft",),
    "numerics.special": (),  # waits for SciPy by itself
    "python.builtins": (),
    "python.math": ("math", "builtins.round"),
    "python.cmath": ("cmath",),
}

for topic, homes in TOPICS.items():
    if not homes:
        import_module(f"{__name__}.{topic}")
REGISTRY.wire(
    fallback=lambda *call: host_call.call_instead(*call),  # noqa: PLW0108  # late
    for_each_type=lambda *call: type_specialization.for_each_type(*call),  # noqa: PLW0108  # late
    to_arrays=arrays_of_lists,
    finish_call=lay_out_as_numpy_does,
    further={f"{__name__}.{topic}": homes for topic, homes in TOPICS.items() if homes},
)


if not TYPE_CHECKING:  # who would take all names for known

    def __getattr__(name: str) -> Any:
        return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
