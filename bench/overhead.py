"""What does a warm call cost when there is next to nothing to compute?

    python bench/overhead.py [--rounds N]

Functions of arrays of 3 elements, in NumPy, Numba, JAX and jitml; and jitml's executable alone, without guards. Recorded in
bench/results/overhead.md and overhead.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import jitml
from harness import duration, record, table, timings

LIMIT = 5e-6


def add(x, y):
    return x + y


def mix(x, y, z, t):
    return t * x + (1 - t) * y - z


def update(x, y):
    x += 0.5 * y


X, Y, Z = (np.linspace(k, k + 1.0, 3) for k in range(3))
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "two arrays, one operation": (add, (X, Y)),
    "three arrays and a number": (mix, (X, Y, Z, 0.25)),
    "an array changed in place": (update, (X.copy(), Y)),
}


def columns_for(function: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Callable[[], object]]:
    fast = jitml.jit(function)
    columns: dict[str, Callable[[], object]] = {"numpy": partial(function, *args)}
    if importlib.util.find_spec("numba") is not None:
        import numba

        columns["numba"] = partial(numba.njit(function), *args)
    if importlib.util.find_spec("jax") is not None and function is not update:
        import jax

        jax.config.update("jax_enable_x64", True)
        columns["jax"] = partial(jax.jit(function), *map(jax.numpy.asarray, args))
    columns["jitml"] = partial(fast, *args)
    executable = fast.lower(*args).compile()
    if len(executable.program.kernels.inputs) == len(args):  # or some arguments are read before
        columns["executable"] = partial(executable, *args)
    return columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    names = ["numpy", "numba", "jax", "jitml", "executable"]
    results, rows = {}, []
    for case, (function, args) in CASES.items():
        seconds = results[case] = timings(columns_for(function, args), rounds=rounds, at_least=2e-3)
        within = "yes" if seconds["jitml"] <= LIMIT else "no"
        rows.append([case, *(duration(seconds[c]) if c in seconds else "-" for c in names), within])
    record("overhead", "Calls on three elements", table(["case", *names, "within 5 us"], rows), results)


if __name__ == "__main__":
    main()
