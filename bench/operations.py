"""Is any single NumPy operation slower when compiled?  One operation a row, beside NumPy, on one core.

    PYTHONPATH=src python bench/operations.py [--sizes 10000 1000000] [--only argmax sort] [--record]

Numbers are NumPy's time over jitml's: above 1 jitml is faster. Times are CPU time of the thread, the columns in turns, and
the least of the rounds counts: other work on the machine takes time away, and never gives any. Both return new arrays.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when the library is loaded

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import jitml
from harness import duration, geometric_mean, record, table

SIZES = (10_000, 1_000_000, 16_000_000)
BUDGET = 0.25  # seconds of samples per column
# Calls before, at the most: small functions are compiled, and found by machine code, when they have been called often.
WARM_SECONDS, WARM_CALLS = 0.3, 5000


@dataclass(frozen=True)
class Operation:
    """make: the arguments, from about how many elements and a generator of random numbers."""

    name: str
    function: Callable[..., Any]
    make: Callable[[int, np.random.Generator], tuple[Any, ...]]


def vector(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.normal(size=n),)


def single(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.uniform(0.1, 10.0, size=n).astype(np.float32),)


def vectors(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.normal(size=n), rng.normal(size=n)


def integers(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.integers(-(10**6), 10**6, n), rng.integers(1, 1000, n)


def square(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    side = int(n**0.5)
    return (rng.normal(size=(side, side)),)


def by_columns(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    (x,) = square(n, rng)
    return (np.asfortranarray(x),)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def matrix_and_vector(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    side = int(n**0.5)
    return rng.normal(size=(side, side)), rng.normal(size=side)


def shaped(*shape: int, dtype: str = "f8") -> Callable[[int, np.random.Generator], tuple[Any, ...]]:
    """Arrays of n elements with one extent, given as -1, chosen to make it so."""
    known = -int(np.prod(shape))

    def make(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
        return (rng.uniform(1.0, 200.0, size=[n // known if s < 0 else s for s in shape]).astype(dtype),)

    return make


def rows_and_indices(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.normal(size=(n // 16, 16)), rng.integers(0, n // 16, n // 16)


def elements_and_indices(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.normal(size=n), rng.integers(0, n, n)


def bins(n: int, rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.integers(0, 1000, n), rng.normal(size=n)


def count_into_bins(index: Any, weight: Any) -> Any:
    total = np.zeros(1000)
    np.add.at(total, index, weight)
    return total


OPERATIONS = [
    Operation("x + y", lambda x, y: x + y, vectors),
    Operation("where(x > 0, x, 0.0)", lambda x: np.where(x > 0, x, 0.0), vector),
    Operation("where(x > 0, 1, 2)", lambda x: np.where(x > 0, 1, 2), vector),
    Operation("x > 0", lambda x: x > 0, vector),
    Operation("astype(float32)", lambda x: x.astype(np.float32), vector),
    Operation("astype(int64)", lambda x: x.astype(np.int64), vector),
    Operation("clip", lambda x: np.clip(x, -1.0, 1.0), vector),
    Operation("i // j", lambda i, j: i // j, integers),
    Operation("i % j", lambda i, j: i % j, integers),
    Operation("i // 7", lambda i, j: i // 7, integers),
    Operation("i % 7", lambda i, j: i % 7, integers),
    Operation("i // scalar", lambda i, j: i // j[0], integers),
    Operation("i * j", lambda i, j: i * j, integers),
    Operation("x ** 2", lambda x: x**2, vector),
    Operation("x ** 3", lambda x: x**3, vector),
    Operation("x ** 0.5", lambda x: np.abs(x) ** 0.5, vector),
    Operation("x ** 2.2, float32", lambda x: x ** np.float32(2.2), single),
    Operation("cbrt", np.cbrt, vector),
    Operation("cbrt, float32", np.cbrt, single),
    Operation("tan, float32", np.tan, single),
    Operation("exp", np.exp, vector),
    Operation("sum", np.sum, vector),
    Operation("sum, float32", np.sum, single),
    Operation("mean, float32", np.mean, single),
    Operation("var, float32", np.var, single),
    Operation("std", np.std, vector),
    Operation("max", np.max, vector),
    Operation("any(x > 9)", lambda x: (x > 9).any(), vector),
    Operation("count_nonzero(x > 0)", lambda x: np.count_nonzero(x > 0), vector),
    Operation("argmax", np.argmax, vector),
    Operation("argmin, float32", np.argmin, single),
    Operation("argmax, int64", lambda i, j: np.argmax(i), integers),
    Operation("argmax(axis=1) of squares", lambda x: x.argmax(axis=1), square),
    Operation("argmax(axis=0) of squares", lambda x: x.argmax(axis=0), square),
    Operation("argmax(axis=1) of (n, 10)", lambda x: x.argmax(axis=1), shaped(-1, 10)),
    Operation("sum of squares by columns", np.sum, by_columns),
    Operation("sum(axis=0) of squares", lambda x: x.sum(axis=0), square),
    Operation("sum(axis=1) of squares", lambda x: x.sum(axis=1), square),
    Operation("sum(axis=0) of (n, 3)", lambda x: x.sum(axis=0), shaped(-1, 3)),
    Operation("sum(axis=1) of (n, 3)", lambda x: x.sum(axis=1), shaped(-1, 3)),
    Operation("mean(axis=0) of (n, 10)", lambda x: x.mean(axis=0), shaped(-1, 10)),
    Operation("max(axis=0) of (n, 3)", lambda x: x.max(axis=0), shaped(-1, 3)),
    Operation("x - mean of (n, 3)", lambda x: x - x.mean(axis=0), shaped(-1, 3)),
    Operation("softmax of (n, 3)", softmax, shaped(-1, 3)),
    Operation("unit vectors of (n, 3)", lambda x: x / np.sqrt((x * x).sum(axis=1, keepdims=True)), shaped(-1, 3)),
    Operation("argmax(axis=1) of (n, 4)", lambda x: x.argmax(axis=1), shaped(-1, 4)),
    Operation("median", np.median, vector),
    Operation("bincount", lambda i, w: np.bincount(i), bins),
    Operation("cumsum", np.cumsum, vector),
    Operation("cumsum(axis=1)", lambda x: np.cumsum(x, axis=1), square),
    Operation("cumsum(axis=0)", lambda x: np.cumsum(x, axis=0), square),
    Operation("diff", np.diff, vector),
    Operation("concatenate", lambda x, y: np.concatenate([x, y]), vectors),
    Operation("concatenate(axis=1)", lambda x: np.concatenate([x, x], axis=1), square),
    Operation("stack(axis=-1)", lambda x, y: np.stack([x, y], axis=-1), vectors),
    Operation("copy", lambda x: x.copy(), vector),
    Operation("x[::-1] copied", lambda x: x[::-1].copy(), vector),
    Operation("x[::2] copied", lambda x: x[::2].copy(), vector),
    Operation("transpose copied", lambda x: x.T.copy(), square),
    Operation("transpose copied, uint8", lambda x: x.T.copy(), shaped(1000, -1, dtype="u1")),
    Operation("x + x.T", lambda x: x + x.T, square),
    Operation("roll", lambda x: np.roll(x, 3), vector),
    Operation("repeat(3)", lambda x: np.repeat(x, 3), vector),
    Operation("tile(3)", lambda x: np.tile(x, 3), vector),
    Operation("downsample", lambda x: x[::2, ::2] + 1.0, square),
    Operation("channel of a picture", lambda x: x[..., 1].copy(), shaped(100, -1, 3)),
    Operation(
        "gray picture, float32", lambda x: 0.3 * x[..., 0] + 0.6 * x[..., 1] + 0.1 * x[..., 2], shaped(100, -1, 3, dtype="f4")
    ),
    Operation("channel of a picture, uint8", lambda x: x[..., 1].copy(), shaped(100, -1, 3, dtype="u1")),
    Operation("take elements", lambda x, i: x[i], elements_and_indices),
    Operation("take rows", lambda x, i: x[i], rows_and_indices),
    Operation("add.at", count_into_bins, bins),
    Operation("A @ v", lambda a, v: a @ v, matrix_and_vector),
    Operation("v @ A", lambda a, v: v @ a, matrix_and_vector),
    Operation("dot", np.dot, vectors),
    Operation("x.T @ x of (n, 10)", lambda x: x.T @ x, shaped(-1, 10)),
    Operation("x @ w of (n, 10)", lambda x: x @ np.ones((10, 10)), shaped(-1, 10)),
    Operation("cov of (10, n)", np.cov, shaped(10, -1)),
    Operation("outer", lambda a, v: np.outer(v, v), matrix_and_vector),
]


def ratio(operation: Operation, n: int) -> tuple[float, float]:
    """Seconds of NumPy and of jitml."""
    args = operation.make(n, np.random.default_rng(0))
    compiled = jitml.jit(operation.function, threads=1)
    np.testing.assert_allclose(compiled(*args), operation.function(*args), rtol=1e-3, atol=1e-6)
    columns = (operation.function, compiled)
    began = time.thread_time()
    for _ in range(WARM_CALLS):
        compiled(*args)
        if time.thread_time() - began > WARM_SECONDS:
            break
    best, spent = [np.inf, np.inf], 0.0
    repeats = max(1, 100_000 // n)
    rounds = 0
    while rounds < 3 or (spent < 2 * BUDGET and rounds < 60):
        for k, call in enumerate(columns):
            start = time.thread_time()
            for _ in range(repeats):
                call(*args)
            taken = time.thread_time() - start
            best[k], spent = min(best[k], taken / repeats), spent + taken
        rounds += 1
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--only", nargs="*", default=[""], help="operations whose names hold one of these words")
    parser.add_argument("--record", action="store_true", help="write bench/results/operations.md")
    options = parser.parse_args()
    rows, results = [], []
    for operation in OPERATIONS:
        if not any(word in operation.name for word in options.only):
            continue
        cells = []
        for n in options.sizes:
            numpy_seconds, jitml_seconds = ratio(operation, n)
            quotient = numpy_seconds / jitml_seconds
            cells.append(f"{quotient:.2f} ({duration(jitml_seconds)})")
            results.append({"operation": operation.name, "n": n, "numpy": numpy_seconds, "jitml": jitml_seconds})
        rows.append([f"`{operation.name}`", *cells])
        print(" | ".join(rows[-1]), flush=True)
    if options.record:
        mean = geometric_mean(r["numpy"] / r["jitml"] for r in results)  # type: ignore[operator]
        note = "NumPy's CPU time over jitml's on one core, new results included; in brackets jitml's time.\n\n"
        lines = table(["operation", *(f"{n:,}" for n in options.sizes)], rows)
        record("operations", "Single operations", f"{note}{lines}\nGeometric mean: {mean:.2f}.\n", results)


if __name__ == "__main__":
    main()
