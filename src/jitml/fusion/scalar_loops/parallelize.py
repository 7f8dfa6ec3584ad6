"""Parallelization: which outermost loops may threads share?

Those whose iterations do not meet, and whose work is worth waking a thread for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitml.kernels.analysis.dependence import Accesses, Path, accesses
from jitml.kernels.analysis.races import loop_races
from jitml.kernels.ir import (
    Alloc,
    Apply,
    If,
    Kernel,
    Load,
    Loop,
    Stmt,
    Store,
    While,
    affine,
    children,
    expressions,
    sub,
    walk_expression,
)
from jitml.kernels.metrics import USUAL_TRIPS
from jitml.kernels.target import WORK, Target

ELEMENT_NS = 0.5  # one operation on one element, in order
VECTOR_NS = 0.1


def with_threads(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with its independent outermost loops marked `parallel` where that pays."""
    return replace(kernel, body=_shared(kernel.body, (), accesses(kernel), target))


def _shared(body: Sequence[Stmt], outer: Path, known: Accesses, target: Target) -> tuple[Stmt, ...]:
    return tuple(_statement(stmt, (*outer, k), known, target) for k, stmt in enumerate(body))


def _statement(stmt: Stmt, path: Path, known: Accesses, target: Target) -> Stmt:
    match stmt:
        case Loop(kind="serial"):
            time = body_ns(stmt)
            if time * trips(stmt) < 2 * target.cost.parallel_ns or any(loop_races(stmt, path, known)):
                return stmt
            return replace(stmt, kind="parallel", grain=max(1, round(target.cost.grain_ns / time)))
        case If(_, then, orelse):
            arms = [_shared(arm, (*path, k), known, target) for k, arm in enumerate((then, orelse))]
            return replace(stmt, then=arms[0], orelse=arms[1])
        case Alloc(_, body):
            return replace(stmt, body=_shared(body, path, known, target))
    return stmt


def trips(loop: Loop) -> float:
    """Iterations, or a guess at them."""
    span = affine(sub(loop.stop, loop.start))
    return max(0, span[""]) if span is not None and span.keys() == {""} else USUAL_TRIPS


def body_ns(loop: Loop) -> float:
    """A guess at the time of one iteration."""
    return sum(_ns(stmt, VECTOR_NS if loop.kind == "vector" else ELEMENT_NS) for stmt in loop.body)


def _ns(stmt: Stmt, unit: float) -> float:
    own = isinstance(stmt, Store) + sum(
        isinstance(e, Load) or (isinstance(e, Apply) and WORK.get(e.fn, 1.0))
        for expr in expressions(stmt)
        for e in walk_expression(expr)
    )
    match stmt:
        case Loop():
            return unit + trips(stmt) * body_ns(stmt)
        case While():
            return USUAL_TRIPS * (unit * own + sum(_ns(inner, unit) for inner in children(stmt)))
    return unit * own + sum(_ns(inner, unit) for inner in children(stmt))
