"""How fast is jitml beside NumPy and its other compilers, on everyday programs?

    python bench/suite.py [--only NAME ...] [--rounds N] [--columns numpy,numba,jax,jitml] [--small]

Every workload runs in all columns in one process, sampled in turns; each column's results are compared with NumPy's first.
A column that cannot run a workload says why. The table and its numbers go to bench/results/suite.md and suite.json.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optree

sys.path.insert(0, str(Path(__file__).parent))
from harness import duration, geometric_mean, record, table, timings
from workloads import WORKLOADS, Workload

COLUMNS = ("numpy", "numba", "jax", "jitml")


@dataclass
class Row:
    """One workload's outcome: seconds by column, first calls, and why a column has none."""

    name: str
    family: str
    elements: int
    seconds: dict[str, float] = field(default_factory=dict)
    first_call: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def prepare(workload: Workload, column: str) -> tuple[Callable[..., Any], Callable[[tuple[Any, ...]], tuple[Any, ...]]]:
    """A column's function, and what its arguments have to go through first (untimed)."""
    if column == "numpy":
        return workload.function, copy.deepcopy
    if column == "numba":
        from peers import numba_peer

        return numba_peer.compiled(workload), copy.deepcopy
    if column == "jax":
        from peers import jax_peer

        return jax_peer.compiled(workload), jax_peer.to_device
    import jitml

    if workload.loss is not None:
        return jitml.jit(jitml.grad(workload.loss, argnums=workload.argnums)), copy.deepcopy
    return jitml.jit(workload.function), copy.deepcopy


def agree(
    workload: Workload, column: str, result: Any, args: tuple[Any, ...], expected: Any, expected_args: tuple[Any, ...]
) -> None:
    """AssertionError unless a column's results, and the arguments it changed, are NumPy's."""
    if workload.mutates:
        # JAX returns what the others write into their arguments.
        result = result if column == "jax" else tuple(args[i] for i in workload.mutates)
        expected = tuple(expected_args[i] for i in workload.mutates)
    got, wanted = optree.tree_leaves(optree.tree_map(np.asarray, result)), optree.tree_leaves(expected)
    assert len(got) == len(wanted), f"{len(got)} results, not {len(wanted)}"
    for a, b in zip(got, wanted):
        scale = float(np.max(np.abs(b))) if np.size(b) else 0.0
        slack = 1 if np.asarray(b).dtype.kind in "iu" else workload.rtol * scale
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=workload.rtol, atol=slack)


def measure(workload: Workload, columns: tuple[str, ...], rounds: int, small: bool) -> Row:
    """Check and time one workload in all columns."""
    args = workload.make_inputs(workload.small if small else None)
    row = Row(workload.name, workload.family, max(np.size(x) for x in args))
    expected_args = copy.deepcopy(args)
    expected = workload.function(*expected_args)
    calls: dict[str, Callable[[], object]] = {}
    for column in columns:
        if column in ("numba", "jax") and importlib.util.find_spec(column) is None:
            row.failures[column] = "absent"
            continue
        try:
            function, adapt = prepare(workload, column)
            own = adapt(args)
            start = time.perf_counter()
            result = function(*own)
            row.first_call[column] = time.perf_counter() - start
            agree(workload, column, result, own, expected, expected_args)
        except Exception as error:  # a column that fails is a result, to be shown
            row.failures[column] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
            continue
        calls[column] = partial(function, *own)
    row.seconds = timings(calls, rounds=rounds)
    return row


def report(rows: list[Row], columns: tuple[str, ...]) -> str:
    """The table, the geometric means, and the failures."""
    peers = [column for column in columns if column != "jitml"]

    def cells(row: Row) -> list[str]:
        ours = row.seconds.get("jitml")
        times = [duration(row.seconds[c]) if c in row.seconds else "-" for c in columns]
        ratios = [f"{row.seconds[c] / ours:.2f}" if ours and c in row.seconds else "-" for c in peers]
        return [row.name, f"{row.elements:,}", *times, *ratios]

    text = table(["workload", "elements", *columns, *[f"{c} / jitml" for c in peers]], map(cells, rows))
    text += "\nGeometric means over the workloads that both columns run:\n\n"
    for column in peers:
        ratios = [row.seconds[column] / row.seconds["jitml"] for row in rows if {column, "jitml"} <= row.seconds.keys()]
        text += f"* jitml is {geometric_mean(ratios):.2f} times as fast as {column} ({len(ratios)} of {len(rows)} workloads)\n"
    slower = [
        r.name for r in rows if r.elements >= 10**5 and "jitml" in r.seconds and r.seconds["jitml"] > r.seconds.get("numpy", 1e9)
    ]
    text += f"\nSlower than NumPy at 10^5 elements or more: {', '.join(slower) or 'none'}.\n"
    failures = [f"* {row.name}, {column}: {why}\n" for row in rows for column, why in row.failures.items()]
    return text + ("\nNot run:\n\n" + "".join(failures) if failures else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(WORKLOADS), help="names of workloads")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--columns", default=",".join(COLUMNS))
    parser.add_argument("--small", action="store_true", help="small inputs: checks, not times")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    columns = tuple(options.columns.split(","))
    warnings.filterwarnings("ignore")
    rows = []
    for name in options.only:
        rows.append(measure(WORKLOADS[name], columns, options.rounds, options.small))
        print(
            f"{name:24s}",
            *(f"{c} {duration(s)}" for c, s in rows[-1].seconds.items()),
            *rows[-1].failures.items(),
            file=sys.stderr,
        )
    body = report(rows, columns)
    if options.no_record:
        print(body)
    else:
        record("suite", "Everyday NumPy programs", body, [row.__dict__ for row in rows])


if __name__ == "__main__":
    main()
