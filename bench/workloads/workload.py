"""What is a workload?  A NumPy function, its inputs at any size, and for a gradient the loss it is the gradient of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class Workload:
    """One program of the suite.

    Args:
        name: of the function.
        family: the file it stands in.
        function: plain NumPy. For a gradient, the derivative as written by hand.
        make: inputs from a size and a generator of random numbers.
        small, full: sizes for tests and for the suite.
        loss: for a gradient, the scalar function whose derivative the compilers are to find themselves ...
        argnums: ... and the arguments that it is taken for.
        mutates: positions of the arguments that the function changes.
        rtol: the relative tolerance of comparisons, for results computed in another order or another precision.
    """

    name: str
    family: str
    function: Callable[..., Any]
    make: Callable[[int, np.random.Generator], Inputs]
    small: int
    full: int
    loss: Callable[..., Any] | None = None
    argnums: tuple[int, ...] = ()
    mutates: tuple[int, ...] = ()
    rtol: float = 1e-9

    def make_inputs(self, size: int | None = None, seed: int = 0) -> Inputs:
        """The arguments at a size (default: the full one); the same for the same seed."""
        return self.make(self.full if size is None else size, np.random.default_rng(seed))


WORKLOADS: dict[str, Workload] = {}


def workload(
    make: Callable[[int, np.random.Generator], Inputs], *, small: int, full: int, **details: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function on the list."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        family = function.__module__.rpartition(".")[2]
        WORKLOADS[name] = Workload(name, family, function, make, small, full, **details)
        return function

    return register
