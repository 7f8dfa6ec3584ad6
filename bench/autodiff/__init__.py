"""Derivatives that people ask for: the subjects of `bench/derivatives.py`, and of `tests/autograd/test_workloads.py`.

Each is plain NumPy that knows of no library, with its derivative written by hand and a maker of its inputs.
"""

from __future__ import annotations

from autodiff import dynamics, geometry, mixture, networks, options, regression
from autodiff.workload import WORKLOADS, Workload

__all__ = ["WORKLOADS", "Workload", "dynamics", "geometry", "mixture", "networks", "options", "regression"]
