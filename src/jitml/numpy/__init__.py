"""NumPy's functions for traced values: importing this package fills `jitml.trace.registry.FUNCTIONS`."""

from __future__ import annotations

from jitml.numpy import creation, indexing, joining, linalg, reductions, shape, ufuncs

__all__ = ["creation", "indexing", "joining", "linalg", "reductions", "shape", "ufuncs"]
