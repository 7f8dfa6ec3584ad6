"""What does a derivative cost, beside its function, and beside other libraries?

    python bench/derivatives.py [--only NAME ...] [--rounds N] [--columns numpy,jax,autograd,torch,jitml] [--small] [--no-record]

Every workload of `autodiff`: seconds of a derivative in each column, sampled in turns; what it costs in terms of its own
function, compiled alike and sampled in turns with it alone; from function to machine code, beside JAX; and bytes at the
peak. Derivatives are compared with the one written by hand, and with finite differences, before anything is timed. Then the
same transforms without `jit`, beside HIPS autograd (`autodiff/eager.py`). The tables go to bench/results/autodiff.md and
autodiff.json.
"""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optree

sys.path.insert(0, str(Path(__file__).parent))
import harness
from autodiff import WORKLOADS, Workload, eager
from harness import duration, first_line, geometric_mean, record, table, timings

COLUMNS = ("numpy", "jax", "autograd", "torch", "jitml")
OPTIONAL = ("jax", "autograd", "torch")  # columns of libraries that may be absent
COMPILERS = ("jax", "jitml")
PATIENCE = 2.0  # seconds: what takes longer is run once
BOUND = 3.0  # a gradient's cost in terms of its primal, where that is bounded
REPEATS = 3  # measurements of that cost


@dataclass
class Row(harness.Row):
    """With what surrounds a derivative."""

    primal: dict[str, float] = field(default_factory=dict)
    costs: dict[str, list[float]] = field(default_factory=dict)  # of the derivative, sampled in turns with its primal alone
    compiling: dict[str, float] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)
    once: dict[str, float] = field(default_factory=dict)
    error: float = 0.0
    bounded: bool = True

    @property
    def cost(self) -> float:
        """Of our derivative, in terms of our primal: the median of what was measured."""
        return statistics.median(self.costs.get("jitml", [math.nan]))

    def ahead_of(self, column: str, what: str = "seconds") -> float | None:
        numbers = getattr(self, what)
        return numbers[column] / numbers["jitml"] if {column, "jitml"} <= numbers.keys() else None


@dataclass
class Column:
    """A workload in one library."""

    primal: Callable[..., Any]
    derivative: Callable[..., Any]
    args: tuple[Any, ...]
    # From function to machine code once more, if there is any: returns the peak of bytes.
    compile: Callable[[], int] | None = None


def prepare(workload: Workload, column: str) -> Column:
    """A column's functions, with arguments as it likes them best."""
    args = workload.make_inputs()
    if column == "numpy":
        return Column(workload.function, workload.by_hand, args)
    if column == "autograd":
        from autodiff.columns import with_autograd

        f = with_autograd.primal(workload)
        return Column(f, workload.task.of(with_autograd.Transforms(), f), args)
    if column == "torch":
        from autodiff.columns import with_torch

        return Column(*with_torch.functions(workload), with_torch.to_tensors(args))
    if column == "jax":
        from autodiff.columns import with_jax

        primal, derivative = with_jax.jitted(workload)
        args = with_jax.to_device(args)
        return Column(*map(with_jax.finished, (primal, derivative)), args, partial(with_jax.compiled_again, workload, args))
    from autodiff.columns import ours

    primal, derivative = ours.jitted(workload)
    return Column(primal, derivative, args, partial(ours.compiled_again, workload, args))


def distance(result: Any, expected: Any) -> float:
    """The largest difference in any part, relative to the part."""
    got, wanted = optree.tree_leaves(optree.tree_map(np.asarray, result)), optree.tree_leaves(expected)
    assert len(got) == len(wanted), f"{len(got)} results, not {len(wanted)}"
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(got, wanted))


def measure(workload: Workload, columns: Sequence[str], rounds: int) -> Row:
    """Check and time one workload in all columns."""
    from autodiff.columns import ours

    row = Row(workload.name, bounded=workload.bounded)
    args = workload.make_inputs()
    expected = workload.by_hand(*args)
    # At a small size: among many elements some are next to a kink, where differences say nothing.
    few = workload.make_inputs(workload.small)
    row.error = workload.task.error(ours.Transforms(), workload.function, few, workload.by_hand(*few))
    derivatives: dict[str, Callable[[], object]] = {}
    primals: dict[str, Callable[[], object]] = {}
    found: dict[str, Column] = {}
    for column in columns:
        if column in OPTIONAL and importlib.util.find_spec(column) is None:
            row.failures[column] = "absent"
            continue
        try:
            found[column] = prepare(workload, column)
        except Exception as error:  # a column that fails is a result, to be shown
            row.failures[column] = first_line(error)
    compiling(row, {column: one.compile for column, one in found.items() if one.compile is not None})
    for column, prepared in found.items():
        if column in row.failures:
            continue
        try:
            start = time.perf_counter()
            apart = distance(prepared.derivative(*prepared.args), expected)
            once = time.perf_counter() - start
            assert apart < 1e-8, f"apart from the derivative by hand by {apart:.1e}"
            if prepared.compile is None and once > PATIENCE:
                row.once[column] = once
                continue
            if prepared.compile is None and column != "torch":
                row.peak[column] = traced_peak(partial(prepared.derivative, *prepared.args))
        except Exception as error:
            row.failures[column] = first_line(error)
            continue
        derivatives[column] = partial(prepared.derivative, *prepared.args)
        primals[column] = partial(prepared.primal, *prepared.args)
    row.seconds = row.once | timings(derivatives, rounds=rounds)
    for column in [column for column in primals if column in COMPILERS]:
        both = {"primal": primals[column], "derivative": derivatives[column]}
        pairs = [timings(both, rounds=rounds, at_least=30e-3) for _ in range(REPEATS)]
        row.primal[column] = statistics.median(pair["primal"] for pair in pairs)
        row.costs[column] = sorted(pair["derivative"] / pair["primal"] for pair in pairs)
    return row


def compiling(row: Row, again: dict[str, Callable[[], int]], rounds: int = 3) -> None:
    """Median seconds of each compiler, in turns, before what the columns run has woken any threads; and peaks of bytes."""
    samples: dict[str, list[float]] = {column: [] for column in again}
    for _ in range(rounds):
        for column, compile_again in again.items():
            if column in row.failures:
                continue
            start = time.perf_counter()
            try:
                row.peak[column] = compile_again()
            except Exception as error:
                row.failures[column] = first_line(error)
            samples[column].append(time.perf_counter() - start)
    row.compiling = {column: statistics.median(taken) for column, taken in samples.items() if column not in row.failures}


def traced_peak(call: Callable[[], object]) -> int:
    """Bytes of Python's and NumPy's memory that a call takes at its peak."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def report(rows: list[Row], columns: Sequence[str]) -> str:
    """The tables, and what falls short of the aims."""
    text = "## Derivatives\n\n"
    text += table(["workload", *harness.heading(columns)], ([row.name, *harness.times(row, columns)] for row in rows))
    text += harness.means(rows, columns, "workloads")
    heading = ["workload", "primal", "derivative / primal", "JAX's", "compile", "JAX's", "JAX / jitml"]
    heading += [*(f"peak, {c}" for c in columns), "from differences"]
    text += "\n## Beside their primals\n\n" + table(heading, (surroundings(row, columns) for row in rows))
    return text + shortcomings(rows) + harness.failures(rows)


def surroundings(row: Row, columns: Sequence[str]) -> list[str]:
    def seconds(numbers: dict[str, float], column: str) -> str:
        return duration(numbers[column]) if column in numbers else "-"

    def cost(column: str) -> str:
        found = row.costs.get(column)
        return f"{statistics.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})" if found else "-"

    compiling = row.ahead_of("jax", "compiling")
    return [
        row.name,
        seconds(row.primal, "jitml"),
        cost("jitml"),
        cost("jax"),
        seconds(row.compiling, "jitml"),
        seconds(row.compiling, "jax"),
        "-" if compiling is None else f"{compiling:.2f}",
        *(f"{row.peak[c] / 2**20:.2f} MiB" if c in row.peak else "-" for c in columns),
        f"{row.error:.0e}",
    ]


def shortcomings(rows: list[Row]) -> str:
    both = {row.name: ratio for row in rows if (ratio := row.ahead_of("jax")) is not None}
    compiling = {row.name: ratio for row in rows if (ratio := row.ahead_of("jax", "compiling")) is not None}
    costly = [row.name for row in rows if row.bounded and row.cost > BOUND]
    text = f"\nSlower than JAX: {', '.join(name for name, ratio in both.items() if ratio < 1) or 'none'}.\n"
    text += f"Compiled in more than half of JAX's time: {', '.join(n for n, ratio in compiling.items() if ratio < 2) or 'none'}"
    text += f" (geometric mean: {geometric_mean(compiling.values()):.2f} times as fast).\n"
    text += f"Gradients of more than {BOUND:g} times their primal, where work is pointwise or in contractions: "
    text += f"{', '.join(costly) or 'none'}.\n"
    close = [row.name for row in rows if row.bounded and row.costs and row.cost <= BOUND < row.costs["jitml"][-1]]
    return text + (f"In some measurements: {', '.join(close)}.\n" if close else "")


NOTES = """
Seconds are of NumPy's derivative by hand, of `jax.jit` and `jitml.jit` of a derivative, and of HIPS autograd and PyTorch, both
eager (which are run once where that takes more than two seconds). PyTorch has 64-bit floats and as many threads as there are
cores, its own layers where it has them, and is measured where it is installed (`pip install '.[bench-torch]'`): its package
brings gigabytes of CUDA. `torch.compile` is left out: it needs a C++ compiler, and minutes for such derivatives. "Compile" is
from function to machine code, tracing included. Peaks are, for NumPy and autograd, what Python's allocators saw (PyTorch's are
not seen); for the compilers, what their plans say of intermediate values and results (of a `while`, what it may come to: memory
is reserved, and touched as it is used). Each derivative was compared with the one by hand (1e-8), and that one, at a small
size, with finite differences (last column). What a derivative costs beside its primal was measured three times: the median, and
the least and the most. JAX has no reverse mode through a `while`: its Jacobi solver scans over the most steps that it allows,
which are 1000, of which this system needs about a quarter.
"""


def main() -> None:
    parser = harness.command_line(__doc__, WORKLOADS, COLUMNS, rounds=5)
    options = parser.parse_args()
    columns = tuple(options.columns.split(","))
    rows = harness.measure_all(options.only, lambda name: measure(WORKLOADS[name], columns, options.rounds))
    operations = eager.measure(options.rounds)
    body = report(rows, columns) + NOTES + eager.report(operations)
    if options.no_record:
        print(body)
    else:
        data = {"derivatives": [row.__dict__ for row in rows], "eager": [row.__dict__ for row in operations]}
        record("autodiff", "Derivatives", body, data)


if __name__ == "__main__":
    main()
