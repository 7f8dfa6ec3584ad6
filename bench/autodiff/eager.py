"""What does a gradient without `jit` cost, of arrays so small that only the overhead counts?

Workloads at their small sizes, and a few functions of the kind that HIPS autograd is made for: microseconds for each operation
of the primal. An operation is what autograd would record: arithmetic, a function, a reduction, a product, an index, a new shape.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

import harness
import jitml
from autodiff import WORKLOADS
from autodiff.columns import ours
from harness import duration, table, timings
from jitml.ir import ops
from jitml.ir.graph import Graph, Value

LIMIT = 20e-6
# Those whose gradients are about something else than overhead: thousands of steps, derivatives of derivatives.
LEFT_OUT = ("leapfrog", "jacobi", "bundle_adjustment", "hand", "black_scholes", "logistic_hessian")
# Autograd broadcasts and fills without an operation of its own.
UNCOUNTED = (ops.full, ops.broadcast, ops.convert, ops.iota)


def chain(x):
    for _ in range(20):
        x = np.sin(x) * 0.9 + 0.1
    return x.sum()


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def regression(w, x, y):
    return np.log1p(np.exp(-y * (x @ w))).mean() + 0.01 * (w * w).sum()


def recurrence(w, h):
    for _ in range(10):
        h = np.tanh(w @ h)
    return (h * h).sum()


@dataclass
class Operations(harness.Row):
    """With the number of operations of the primal."""

    count: int = 0


def cases() -> dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, tuple[int, ...], tuple[Any, ...]]]:
    """Functions for us and for autograd (None: absent), what they are differentiated by, and arguments."""
    rng = np.random.default_rng(0)
    small = {
        chain: (rng.standard_normal(10),),
        rosenbrock: (rng.standard_normal(10),),
        regression: (rng.standard_normal(4), rng.standard_normal((8, 4)), np.sign(rng.standard_normal(8))),
        recurrence: (rng.standard_normal((4, 4)), rng.standard_normal(4)),
    }
    theirs = importlib.util.find_spec("autograd") is not None
    if theirs:
        from autodiff.columns import with_autograd
    found = {}
    for f, args in small.items():
        found[f.__name__] = (f, with_autograd.converted(f) if theirs else None, (0,), args)
    for workload in WORKLOADS.values():
        if workload.name not in LEFT_OUT:
            other = with_autograd.primal(workload) if theirs else None
            found[workload.name] = (workload.function, other, workload.task.argnums, workload.make_inputs(workload.small))
    return found


def operations_of(graph: Graph, known: Mapping[Value, int] = MappingProxyType({})) -> int:
    """How many a call executes; iterations of loops count each.

    Args:
        known: what inputs of a body are, so that lengths of inner loops are.
    """
    constants, count = dict(known), 0
    for node in graph.nodes:
        if node.op is ops.full:
            constants[node.output] = node.params["value"]
        elif node.op is ops.loop:
            body, trip, operands = node.params["body"], constants[node.inputs[0]], node.inputs[1:]
            given = {v: constants[x] for v, x in zip(body.inputs[1:], operands, strict=True) if x in constants}
            count += int(trip) * operations_of(body, given)
        else:
            count += node.op not in UNCOUNTED
    return count


def measure(rounds: int) -> list[Operations]:
    rows = []
    for name, (f, other, argnums, args) in cases().items():
        row = Operations(name, count=operations_of(jitml.jit(f).lower(*args).traced))
        calls: dict[str, Callable[[], object]] = {"jitml": partial(ours.Transforms().grad(f, argnums), *args)}
        if other is not None:
            calls["autograd"] = partial(with_autograd_gradient(other, argnums), *args)
        else:
            row.failures["autograd"] = "absent"
        row.seconds = timings(calls, rounds=rounds, at_least=5e-3)
        rows.append(row)
    return rows


def with_autograd_gradient(f: Callable[..., Any], argnums: tuple[int, ...]) -> Callable[..., Any]:
    from autodiff.columns import with_autograd

    return with_autograd.Transforms().grad(f, argnums)


def report(rows: list[Operations]) -> str:
    heading = ["gradient", "operations", "autograd", "jitml", "autograd / jitml", "jitml, for an operation", "within 20 us"]

    def cells(row: Operations) -> list[str]:
        ours, theirs = row.seconds["jitml"], row.seconds.get("autograd")
        each = ours / row.count
        compared = [duration(theirs) if theirs else "-", duration(ours), f"{theirs / ours:.2f}" if theirs else "-"]
        return [row.name, str(row.count), *compared, duration(each), "yes" if each <= LIMIT else "no"]

    text = "\n## Without jit\n\n" + table(heading, map(cells, rows))
    left = f"\nLeft out, for overhead is not what they are about: {', '.join(LEFT_OUT)}.\n"
    return text + harness.means(rows, ("autograd", "jitml"), "gradients") + left
