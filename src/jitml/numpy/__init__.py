"""NumPy's functions for traced values: importing this package fills `jitml.trace.registry.FUNCTIONS`."""

from __future__ import annotations

from jitml.numpy import (
    calculus,
    creation,
    einsum,
    indexing,
    joining,
    linalg,
    padding,
    reductions,
    rounding,
    selection,
    shape,
    sorting,
    statistics,
    ufunc_methods,
    ufuncs,
)

__all__ = [
    "calculus",
    "creation",
    "einsum",
    "indexing",
    "joining",
    "linalg",
    "padding",
    "reductions",
    "rounding",
    "selection",
    "shape",
    "sorting",
    "statistics",
    "ufunc_methods",
    "ufuncs",
]
