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

from jitml.numpy.support.arguments import arrays_of_lists
from jitml.numpy.support.memory_order import lay_out_as_numpy_does
from jitml.numpy.ufuncs import scalars as scalars  # methods of NumPy's numbers, which are no topic
from jitml.trace.host_calls.call import call_instead
from jitml.trace.regions.per_type import for_each_type
from jitml.trace.values.registry import REGISTRY

if TYPE_CHECKING:
    from numpy import *  # noqa: F403  # for editors and type checkers: the names are NumPy's

# In the order of docs/supported.md, and whether programs usually need it.
TOPICS = {
    "ufuncs.ufunc": True,
    "arrays.indexing": True,
    "arrays.flat": True,
    "arrays.iterators": True,
    "arrays.methods": True,
    "arrays.complex_parts": True,
    "arrays.reshaping": True,
    "arrays.sliding": False,
    "reductions.reductions": True,
    "reductions.statistics": True,
    "reductions.ufunc_methods": True,
    "reductions.sorting": True,
    "reductions.closeness": False,
    "building.creation": True,
    "building.ranges": True,
    "building.grids": False,
    "building.joining": True,
    "building.padding": False,
    "selection.choose": True,
    "selection.nonzero": True,
    "selection.sets": False,
    "selection.quantiles": False,
    "selection.index_tricks": False,
    "linear_algebra.products": True,
    "linear_algebra.norms": False,
    "linear_algebra.factorizations": False,
    "linear_algebra.einsum": False,
    "numerics.calculus": False,
    "numerics.polynomials": False,
    "numerics.fft": False,
    "numerics.special": True,  # waits for SciPy by itself
    "python.builtins": True,
    "python.math": True,
    "python.cmath": False,
}

for topic, is_usual in TOPICS.items():
    if is_usual:
        import_module(f"{__name__}.{topic}")
REGISTRY.wire(
    fallback=call_instead,
    for_each_type=for_each_type,
    to_arrays=arrays_of_lists,
    finish_call=lay_out_as_numpy_does,
    further=tuple(f"{__name__}.{topic}" for topic, is_usual in TOPICS.items() if not is_usual),
)


if not TYPE_CHECKING:  # who would take all names for known

    def __getattr__(name: str) -> Any:
        return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
