"""Everyday NumPy programs: the benchmark suite's subjects, and a corpus of correctness tests.

Each is a plain function that knows nothing of any compiler, with a maker of its inputs. The suite in `bench/suite.py` times
them under NumPy and its compilers; `tests/test_workloads.py` runs each through jitml and compares with NumPy.
"""

from __future__ import annotations

from workloads import (
    elementwise,
    finance,
    images,
    indexing,
    integers,
    learning,
    loops,
    newcomers,
    physics,
    products,
    scalars,
    statistics,
    stencils,
)
from workloads.workload import WORKLOADS, Workload

__all__ = [
    "WORKLOADS",
    "Workload",
    "elementwise",
    "finance",
    "images",
    "indexing",
    "integers",
    "learning",
    "loops",
    "newcomers",
    "physics",
    "products",
    "scalars",
    "statistics",
    "stencils",
]
