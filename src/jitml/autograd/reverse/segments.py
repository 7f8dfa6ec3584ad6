"""Segmented checkpointing: how does a long loop get by with less memory?

As a loop over segments: only the state at the start of each is saved, and the
backward run repeats a segment forward before it goes back through it. The last segment is not repeated: it saves at once.

With segments of a good length the memory grows with the square root of the number of iterations, and the work by less than one
more forward run (Griewank 1992 has the principle). Longer ones repeat less; they are used while what they save fits a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, sqrt

from jitml.ir import ops
from jitml.ir.dims import Sym
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import Parts
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import I64, Aval

CACHE = 1 << 20  # bytes; about what a core has to itself
LONGER = 9  # times the root of the number of iterations


def segment_loops(graph: Graph) -> Graph:
    """Ask for segments of every loop that is not inside another: what `checkpoint(policy="sqrt")` means."""

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op not in (ops.loop, ops.while_):
            return None
        results: tuple[Value, ...] = node.op(*node.inputs, **{**node.params, "segments": True})
        return results

    return sweep(graph, visit)


def best_length(trips: int, state: int, saved: int) -> int:
    """The length of segments, of bytes for the state at the start of each and bytes saved for each step of the one at work.

    The one that needs the least memory, or a longer one that stays in the cache; at most half of the loop.

    >>> best_length(1_000_000, 8_000, 8_000), best_length(1_000_000, 800_000, 8_000)
    (1000, 10000)
    >>> best_length(10_000, 8, 8), best_length(100, 8, 8)
    (834, 50)
    """
    least = sqrt(trips * max(state, 1) / max(saved, 1))
    length = max(least, min(LONGER * sqrt(trips), CACHE / max(saved, 1)))
    segments = max(2, ceil(trips / max(1, length)))
    return ceil(trips / segments)


def segmented(node: Node, trips: int, length: int, *, is_open: bool = False) -> tuple[Node, Node]:
    """The loop of `trips` iterations as a loop over loops of `length`, and a loop of the last `length` or fewer.

    Neither has been recorded yet; the second carries on from the operands of the first, for which its results are to be put.

    Args:
        is_open: the loop says itself how many iterations there are, `trips` at most.
    """
    parts = Parts.of(node)
    body, n = _shifted(parts.body), len(parts.carried)
    most = ceil(trips / length) - 1
    b = GraphBuilder()
    segment = b.add_input(Aval((), I64))
    carried, captured = ([b.add_input(v.aval) for v in values] for values in (parts.carried, parts.captured))
    with recording(b):
        ops.bind(segment, sym=Sym("segment", 0, most - 1))
        _bind_sizes(parts.body, (None, *carried, *captured))
        ends = ops.loop(_number(length), *carried, *captured, ops.mul(segment, length), body=body, carried=n, repeat=True)
    first, last = ({"body": graph, "carried": n} for graph in (b.build(ends), body))
    count, rest, start = map(_number, (most, trips - most * length, most * length))
    if is_open:
        (trip,) = parts.head
        count = ops.maximum(ops.floor_divide(ops.sub(trip, 1), length), 0)
        start = ops.mul(count, length)
        rest = ops.minimum(ops.sub(trip, start), length)
    operands = node.inputs[1:]
    return replace(node, inputs=(count, *operands), params=first), replace(node, inputs=(rest, *operands, start), params=last)


def segmented_while(node: Node, length: int, most: int | None) -> Node:
    """A while as a while over whiles that stop after `length` iterations; its last result counts those of the outer one.

    Args:
        most: how many of those there can be, if that is known.
    """
    parts = Parts.of(node)
    body, test, n = parts.body, parts.bodies["test"], len(parts.carried)
    inner = {"test": _bounded(test, n, length), "body": _counting(body, n), "carried": n + 1, "repeat": True}
    b = GraphBuilder()
    carried, count, captured = _inputs(b, body, n)
    with recording(b):
        _bind_sizes(body, (*carried, *captured))
        *ends, _ = ops.while_(*carried, _number(0), *captured, **inner)
        outer = b.build([*ends, ops.add(count, 1)])
    params = {"test": _bounded(test, n, most), "body": outer, "carried": n + 1}
    return replace(node, inputs=(*parts.carried, _number(0), *parts.captured), params=params)


def _bind_sizes(body: Graph, values: Sequence[Value | None]) -> None:
    """Sizes that a body takes from what comes in are sizes around it, too."""
    known = dict(zip(body.inputs, values, strict=True))
    for sym, inner in body.binders().items():
        if (value := known.get(inner)) is not None:
            ops.bind(value, sym=sym)


def _inputs(b: GraphBuilder, graph: Graph, carried: int) -> tuple[list[Value], Value, list[Value]]:
    """Inputs like those of a while's graph, with a count behind what is carried."""
    before = [b.add_input(v.aval) for v in graph.inputs[:carried]]
    count = b.add_input(Aval((), I64))
    return before, count, [b.add_input(v.aval) for v in graph.inputs[carried:]]


def _bounded(test: Graph, carried: int, most: int | None) -> Graph:
    b = GraphBuilder()
    before, count, captured = _inputs(b, test, carried)
    with recording(b):
        (goes_on,) = b.inline(test, (*before, *captured))
        return b.build([goes_on if most is None else ops.bit_and(goes_on, ops.lt(count, most))])


def _counting(body: Graph, carried: int) -> Graph:
    b = GraphBuilder()
    before, count, captured = _inputs(b, body, carried)
    with recording(b):
        return b.build([*b.inline(body, (*before, *captured)), ops.add(count, 1)])


def _number(n: int) -> Value:
    value: Value = ops.full(value=n, shape=(), dtype=I64)
    return value


def _shifted(body: Graph) -> Graph:
    """The body with its index counted from a last captured value."""
    b = GraphBuilder()
    index, *others = (b.add_input(v.aval) for v in body.inputs)
    start = b.add_input(Aval((), I64))
    with recording(b):
        return b.build(b.inline(body, (ops.add(start, index), *others)))
