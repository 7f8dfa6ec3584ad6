"""`import jitml.numpy as np`: NumPy's names, which are NumPy's own functions, types and constants.

Outside a jitted function they do what they always do. Inside one the trace finds their meaning for traced values in
`jitml.trace.registry.FUNCTIONS`, which the modules of this package fill when they are imported; the same happens to code
that imports plain `numpy`. A file here is a topic of NumPy; every function in it is a composition of `jitml.ir.ops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as _numpy

from jitml.numpy import (
    arrays,
    calculus,
    complex_mathematics,
    complexes,
    creation,
    einstein,
    factorizations,
    finding,
    flat,
    fourier,
    grids,
    index_tricks,
    indexing,
    iterators,
    joining,
    mathematics,
    matrices,
    padding,
    polynomials,
    products,
    python,
    quantiles,
    ranges,
    reductions,
    reshaping,
    rounding,
    scalar_math,  # noqa: F401  # operators, which are no topic
    selection,
    sets,
    sliding,
    sorting,
    special,
    statistics,
    ufunc_methods,
    ufuncs,
)

if TYPE_CHECKING:
    from numpy import *  # noqa: F403  # for editors and type checkers: the names are NumPy's

TOPICS = (
    ufuncs, ufunc_methods, complexes, reductions, statistics, quantiles, products, matrices, factorizations, einstein,
    creation, ranges, grids, index_tricks, indexing, flat, iterators, arrays, selection, finding, sets, reshaping, sliding,
    joining, padding, sorting, rounding, calculus, polynomials, fourier, special, python, mathematics,
    complex_mathematics,
)  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(_numpy, name)


def __dir__() -> list[str]:
    return dir(_numpy)
