"""How does a long loop get by with less memory?  As a loop over segments: only the state at the start of each is saved, and the
backward run repeats a segment forward before it goes back through it.

With segments of a good length the memory grows with the square root of the number of iterations, and the work by one more
forward run (Griewank 1992 has the principle).
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, sqrt

from jitml.ir import ops
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import Parts
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import I64, Aval

_NEARBY = 1.25  # a length that divides the number of iterations is worth so much more memory


def segment_loops(graph: Graph) -> Graph:
    """Ask for segments of every loop that is not inside another: what `checkpoint(policy="sqrt")` means."""

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op is not ops.loop:
            return None
        results: tuple[Value, ...] = ops.loop(*node.inputs, **{**node.params, "segments": True})
        return results

    return sweep(graph, visit)


def best_length(trips: int, state: int, saved: int) -> int:
    """The length of segments that needs the least memory: a state for each segment, what is saved for each step of one.

    >>> best_length(10_000, 8, 8), best_length(10_000, 800, 8), best_length(7, 8, 8)
    (100, 1000, 3)
    """
    best = min(trips, max(1, round(sqrt(trips * max(state, 1) / max(saved, 1)))))
    divisors = [n for n in range(ceil(best / _NEARBY), int(best * _NEARBY) + 1) if trips % n == 0]
    return min(divisors, key=lambda n: abs(n - best), default=best)


def segmented(node: Node, trips: int, length: int) -> Node:
    """The loop of `trips` iterations as a loop over loops of `length`; a node that has not been recorded yet."""
    parts = Parts.of(node)
    segments = ceil(trips / length)
    b = GraphBuilder()
    segment = b.add_input(Aval((), I64))
    carried, captured = ([b.add_input(v.aval) for v in values] for values in (parts.carried, parts.captured))
    with recording(b):
        ops.bind(segment, sym=Sym("segment", 0, segments - 1))
        start = ops.mul(segment, length)
        steps = ops.full(value=length, shape=(), dtype=I64)
        if trips % length:
            steps = ops.minimum(steps, ops.sub(ops.full(value=trips, shape=(), dtype=I64), start))
        inner = _shifted(parts.body)
        ends = ops.loop(steps, *carried, *captured, start, body=inner, carried=len(carried), repeat=True)
    params = {"body": b.build(ends), "carried": len(carried)}
    count: Value = ops.full(value=segments, shape=(), dtype=I64)
    return replace(node, inputs=(count, *node.inputs[1:]), params=params)


def _shifted(body: Graph) -> Graph:
    """The body with its index counted from a last captured value."""
    b = GraphBuilder()
    index, *others = (b.add_input(v.aval) for v in body.inputs)
    start = b.add_input(Aval((), I64))
    with recording(b):
        return b.build(b.inline(body, (ops.add(start, index), *others)))
