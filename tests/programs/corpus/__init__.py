"""Whole programs as people write them with NumPy: what the tests run under jit and the benchmark times.

One file a program. The function that bears the file's name is the program; `make(size, rng)` gives fresh arguments, where
"small" is for tests and "large" makes NumPy work for a millisecond or more. `rng` changes their values, never their shapes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

NAMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py")))


@dataclass(frozen=True)
class Program:
    """A program of the corpus."""

    name: str
    function: Callable[..., Any]
    make: Callable[[str, np.random.Generator], tuple[Any, ...]]

    def arguments(self, size: str, seed: int) -> tuple[Any, ...]:
        """Fresh arguments; equal ones for equal seeds."""
        return self.make(size, np.random.default_rng(seed))


def load(name: str) -> Program:
    """The program in the file of that name."""
    module = importlib.import_module(f"{__name__}.{name}")
    return Program(name, getattr(module, name), module.make)
