"""What is a workload?  A NumPy function, its inputs at any size, which derivative is wanted, and that one written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autodiff.tasks import Task

Inputs = tuple[Any, ...]
Maker = Callable[[int, np.random.Generator], Inputs]
Function = Callable[..., Any]


@dataclass(frozen=True)
class Workload:
    """One program of the suite.

    Args:
        name: of the function.
        family: the file it stands in.
        function: plain NumPy; a derivative finds what it needs in here.
        task: the derivative.
        by_hand: the derivative as written by hand, with NumPy.
        make: inputs from a size and a generator of random numbers.
        small, full: sizes for tests and for the suite.
        bounded: whether it is a gradient, of work that is pointwise or in contractions: held to three times its primal.
    """

    name: str
    family: str
    function: Function
    task: Task
    by_hand: Function
    make: Maker
    small: int
    full: int
    bounded: bool = True

    def make_inputs(self, size: int | None = None, seed: int = 0) -> Inputs:
        """The arguments at a size (default: the full one); the same for the same seed."""
        return self.make(self.full if size is None else size, np.random.default_rng(seed))


WORKLOADS: dict[str, Workload] = {}


def differentiated(
    task: Task,
    by_hand: Function,
    make: Maker,
    *,
    small: int,
    full: int,
    bounded: bool = True,
) -> Callable[[Function], Function]:
    """Put a function on the list."""

    def register(function: Function) -> Function:
        name, family = function.__name__, function.__module__.rpartition(".")[2]
        WORKLOADS[name] = Workload(name, family, function, task, by_hand, make, small, full, bounded)
        return function

    return register
