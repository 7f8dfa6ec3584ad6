"""How fast is jitml beside NumPy and its other compilers, on everyday programs?

    python bench/suite.py [--only NAME ...] [--rounds N] [--columns numpy,numba,jax,jitml] [--small]

Every workload runs in all columns in one process, sampled in turns; each column's results are compared with NumPy's first.
A column that cannot run a workload says why. The table and its numbers go to bench/results/suite.md and suite.json.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optree

sys.path.insert(0, str(Path(__file__).parent))
import harness
from harness import first_line, record, table, timings
from workloads import WORKLOADS, Workload

COLUMNS = ("numpy", "numba", "jax", "jitml")


@dataclass
class Row(harness.Row):
    """With the kind and the size of a workload."""

    family: str = ""
    elements: int = 0


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
    row = Row(workload.name, family=workload.family, elements=max(np.size(x) for x in args))
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
            row.failures[column] = first_line(error)
            continue
        calls[column] = partial(function, *own)
    row.seconds = timings(calls, rounds=rounds)
    return row


def report(rows: list[Row], columns: tuple[str, ...]) -> str:
    """The table, the geometric means, and the failures."""
    heading = ["workload", "elements", *harness.heading(columns)]
    text = table(heading, ([row.name, f"{row.elements:,}", *harness.times(row, columns)] for row in rows))
    text += harness.means(rows, columns, "workloads")
    slower = [row.name for row in rows if row.elements >= 10**5 and row.is_slower]
    text += f"\nSlower than NumPy at 10^5 elements or more: {', '.join(slower) or 'none'}.\n"
    return text + harness.failures(rows)


def main() -> None:
    parser = harness.command_line(__doc__, WORKLOADS, COLUMNS, rounds=7)
    parser.add_argument("--small", action="store_true", help="small inputs: checks, not times")
    options = parser.parse_args()
    columns = tuple(options.columns.split(","))
    rows = harness.measure_all(options.only, lambda name: measure(WORKLOADS[name], columns, options.rounds, options.small))
    body = report(rows, columns)
    if options.no_record:
        print(body)
    else:
        record("suite", "Everyday NumPy programs", body, [row.__dict__ for row in rows])


if __name__ == "__main__":
    main()
