"""What does the check of the first answer cost?

    python bench/verification.py [--rounds N]

First calls of fresh functions, checked and not (`verify="never"`), in turns; and a call of the plain function. The bar: a
checked first call takes no longer than an unchecked one, the plain call and the copies together, and a tenth more; a warm call,
three hundredths more at most, which is what a measurement tells. The copies: what a call changes is copied before it, so that it
can be put back, and after it, so that both answers can be compared; and back. Where there is none, the plain call alone counts.
Recorded in bench/results/verification.md and verification.json.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import jitml
from harness import duration, record, table

LIMIT = 1.10
WARM_LIMIT = 1.03
Args = tuple[Any, ...]
Array = np.ndarray[Any, Any]


class Model:
    def __init__(self) -> None:
        self.weights, self.rate, self.history = np.linspace(0.0, 1.0, 10_000), 0.1, [0.0]

    def step(self, x):
        self.weights -= self.rate * (self.weights - x)
        self.history.append(self.weights.sum())
        return self.weights.mean()


def small(x, y):
    return np.sin(x) * y + x.sum()


def chain(x, y):
    for _ in range(10):
        x = np.sqrt(x * x + 1.0) + 0.5 * y
    return x


def loop(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            total += x[i] * x[i]
    return total


def step(model, x):
    return model.step(x)


def in_place(x, y):
    x *= 0.5
    x += y


def read_only(x, y):
    return (x * y).sum(), x.max()


def many(arrays):
    return [a * 2.0 + 1.0 for a in arrays]


def nothing(*_: object) -> list[Array]:
    return []


# The function, what makes its arguments, and which arrays among them it changes.
CASES: dict[str, tuple[Callable[..., Any], Callable[[], Args], Callable[..., list[Array]]]] = {
    "three numbers": (small, lambda: (np.ones(3), np.ones(3)), nothing),
    "20 operations on 1e6 numbers": (chain, lambda: (np.linspace(0, 1, 10**6), np.ones(10**6)), nothing),
    "a loop of 20 000 steps": (loop, lambda: (np.linspace(0, 1, 20_000),), nothing),
    "an object's method": (step, lambda: (Model(), np.ones(10_000)), lambda model, x: [model.weights]),
    "16 MB changed in place": (in_place, lambda: (np.ones(2 << 20), np.ones(2 << 20)), lambda x, y: [x]),
    "40 MB read": (read_only, lambda: (np.linspace(0, 1, 2_500_000), np.ones(2_500_000)), nothing),
    "100 small arrays": (many, lambda: ([np.full(100, float(n)) for n in range(100)],), nothing),
}


def fresh(function: FunctionType) -> FunctionType:
    """The same function as another object."""
    return FunctionType(function.__code__, function.__globals__, function.__name__)


def seconds(call: Callable[..., object], args: Args) -> float:
    start = time.perf_counter()
    call(*args)
    return time.perf_counter() - start


def repeated(function: Callable[..., object], args: Args, times: int) -> None:
    for _ in range(times):
        function(*args)


def copying(arrays: list[Array]) -> None:
    """What a check cannot do without: what was there, and what the program has made of it, and back."""
    copies = [[x.copy() for x in arrays] for _ in range(2)]
    for x, before in zip(arrays, copies[0]):
        np.copyto(x, before)


def first_calls(
    function: Any, make: Callable[[], Args], changed: Callable[..., list[Array]], rounds: int
) -> tuple[dict[str, float], str]:
    """Medians of the plain call, of copies, of first calls without a check and with one; and what was checked."""
    args, said = make(), ""
    samples: dict[str, list[float]] = {"plain": [], "copies": [], "never": [], "first": []}
    for _ in range(rounds + 1):
        for column, taken in samples.items():
            gc.collect()  # or one column would pay for what another one has left
            jitml.settle()
            if column == "copies":
                taken.append(seconds(copying, (changed(*args),)))
                continue
            called = fresh(function)
            jitted = called if column == "plain" else jitml.jit(called, verify=column)
            taken.append(seconds(jitted, args))
            said = jitted.variants[0].checked if column == "first" else said
    return {column: statistics.median(taken[1:]) for column, taken in samples.items()}, said


def warm_calls(function: Any, make: Callable[[], Args], rounds: int) -> dict[str, float]:
    """Shortest times of a warm call, never checked and checked once."""
    args = make()
    columns = {column: jitml.jit(fresh(function), verify=column) for column in ("never", "first")}
    for jitted in columns.values():
        for _ in range(20):  # a variant is watched in its first calls
            jitted(*args)
    jitml.settle()
    repeats = max(1, int(2e-3 / max(seconds(columns["never"], args), 1e-7)))
    samples: dict[str, list[float]] = {column: [] for column in columns}
    for _ in range(rounds):
        for column, jitted in columns.items():
            samples[column].append(seconds(repeated, (jitted, args, repeats)) / repeats)
    return {column: min(taken) for column, taken in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    rows, results = [], {}
    for case in options.only:
        function, make, changed = CASES[case]
        first, said = first_calls(function, make, changed, options.rounds)
        warm = warm_calls(function, make, 3 * options.rounds)
        share = first["first"] / (first["plain"] + first["copies"] + first["never"])
        warm_share = warm["first"] / warm["never"]
        results[case] = {"first": first, "warm": warm, "said": said}
        is_within = share <= LIMIT and warm_share <= WARM_LIMIT
        times = [duration(first[column]) for column in ("plain", "copies", "never", "first")]
        rows.append([case, *times, f"{share:.2f}", f"{warm_share:.2f}", "yes" if is_within else "no"])
        print(rows[-1], said, file=sys.stderr, flush=True)
    heads = [
        "case",
        "plain call",
        "copies",
        "first call, unchecked",
        "checked",
        "checked / (plain + copies + unchecked)",
        "warm",
        "within 1.10 and 1.03",
    ]
    if not options.no_record:
        record("verification", "The check of first answers", table(heads, rows), results)


if __name__ == "__main__":
    main()
