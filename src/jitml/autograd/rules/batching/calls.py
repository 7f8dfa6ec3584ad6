"""Batching of calls: of every graph that they hold, so that the user's rules survive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jitml.autograd.batching.vmap import batched_inputs, spread
from jitml.autograd.core.batch import Batch, Batched, Operand, vmap
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.op import recording

Flags = tuple[bool, ...]
Ints = tuple[int, ...]


def _flags(operands: Sequence[Operand]) -> Flags:
    return tuple(isinstance(x, Batched) for x in operands)


def _given(batch: Batch, operands: Sequence[Operand]) -> list[Value]:
    """Operands with the rows in front. Rows that do not count get the operands of one that does: graphs know of no others."""
    values = [batch.front(x) if isinstance(x, Batched) else x for x in operands]
    if batch.active is None:
        return values
    one = ops.argmax(batch.active, axis=0)
    given: list[Value] = []
    for x, value in zip(operands, values):
        if isinstance(x, Batched):
            valid = ops.gather(value, one, axis=0)
            value = batch.choose(batch.active, Batched(value, 0), valid).value
        given.append(value)
    return given


def _batched(
    batch: Batch, graph: Graph, flags: Flags, wanted: Flags | None = None, *, last: int = 0, sums: bool = False
) -> tuple[Graph, Flags]:
    """A graph for all rows, and which of its outputs differ from row to row. It gets the counts of the batch as inputs.

    Args:
        wanted: the outputs that shall; default: those that do.
        last: how many of its inputs come after those.
        sums: of what shall not differ and does, the sum over the rows.
    """
    b = GraphBuilder()
    first, n = graph.in_avals, len(flags) - last
    args = batched_inputs(b, batch, first[:n], flags[:n])
    every = batch.inside(b)
    args += batched_inputs(b, batch, first[n:], flags[n:])
    with recording(b):
        results = spread(every, graph, args)
        found = _flags(results) if wanted is None else wanted
        outputs = [_shaped(every, x, flag, sums) for x, flag in zip(results, found, strict=True)]
    return b.build(outputs), found


def _shaped(batch: Batch, x: Operand, flag: bool, sums: bool) -> Value:
    if flag:
        return batch.front(x)
    if not isinstance(x, Batched):
        return x
    assert sums, "a result that differs from row to row shall not"
    total: Value = ops.reduce_sum(x.value, axes=(x.axis,))
    return total


def _results(values: Sequence[Value], flags: Flags) -> tuple[Operand, ...]:
    return tuple(Batched(v, 0) if flag else v for v, flag in zip(values, flags, strict=True))


def _any(*flags: Flags) -> Flags:
    return tuple(any(pair) for pair in zip(*flags, strict=True))


@vmap.rule(ops.custom_jvp)
def custom_jvp_rows(batch: Batch, *operands: Operand, call: Graph, rule: Graph, varying: Ints, name: str) -> tuple[Operand, ...]:
    flags = _flags(operands)
    of_rule = flags + tuple(flags[n] for n in varying)
    (_, results), (_, ruled) = _batched(batch, call, flags), _batched(batch, rule, of_rule, last=len(varying))
    count = len(call.outputs)
    results = _any(results, ruled[:count])
    # A tangent has the rows of its result.
    places = [n for n, v in enumerate(call.outputs) if v.dtype.kind in "fc"]
    for n, moved in zip(places, ruled[count:]):
        results = (*results[:n], results[n] or moved, *results[n + 1 :])
    whole = (*results, *(results[n] for n in places))
    ruled_graph, _ = _batched(batch, rule, of_rule, whole, last=len(varying))
    graphs = {"call": _batched(batch, call, flags, results)[0], "rule": ruled_graph}
    return _results(ops.custom_jvp(*_given(batch, operands), *batch.counts, varying=varying, name=name, **graphs), results)


@vmap.rule(ops.custom_vjp)
def custom_vjp_rows(
    batch: Batch, *operands: Operand, call: Graph, forward: Graph, backward: Graph, varying: Ints, name: str
) -> tuple[Operand, ...]:
    flags, count = _flags(operands), len(call.outputs)
    (_, results), (_, found) = _batched(batch, call, flags), _batched(batch, forward, flags)
    results = _any(results, found[:count])
    residuals = found[count:]
    cotangents = tuple(flag for flag, v in zip(results, call.outputs) if v.dtype.kind in "fc")
    first, _ = _batched(batch, forward, flags, results + residuals)
    back = (residuals + cotangents, tuple(flags[n] for n in varying))
    graphs = {
        "call": _batched(batch, call, flags, results)[0],
        # The counts are residuals too.
        "forward": replace(first, outputs=(*first.outputs, *first.inputs[len(flags) :])),
        "backward": _batched(batch, backward, *back, last=len(cotangents), sums=True)[0],
    }
    return _results(ops.custom_vjp(*_given(batch, operands), *batch.counts, varying=varying, name=name, **graphs), results)


@vmap.rule(ops.pull_back)
def pull_back_rows(batch: Batch, *operands: Operand, backward: Graph, residuals: int, name: str) -> tuple[Operand, ...]:
    flags = _flags(operands)
    results = (True,) * (len(backward.inputs) - residuals)
    graph, _ = _batched(batch, backward, flags[:residuals] + results, flags[residuals:], last=len(results), sums=True)
    given, count = _given(batch, operands), residuals + len(batch.counts)
    operands_here = (*given[:residuals], *batch.counts, *given[residuals:])
    return _results(ops.pull_back(*operands_here, backward=graph, residuals=count, name=name), results)


@vmap.rule(ops.checkpoint)
def checkpoint_rows(batch: Batch, *operands: Operand, call: Graph, policy: Any) -> tuple[Operand, ...]:
    graph, results = _batched(batch, call, _flags(operands))
    return _results(ops.checkpoint(*_given(batch, operands), *batch.counts, call=graph, policy=policy), results)


@vmap.rule(ops.again)
def again_rows(batch: Batch, *operands: Operand, linear: Graph, known: int) -> tuple[Operand, ...]:
    graph, results = _batched(batch, linear, _flags(operands), last=len(operands) - known)
    given = _given(batch, operands)
    operands_here = (*given[:known], *batch.counts, *given[known:])
    return _results(ops.again(*operands_here, linear=graph, known=known + len(batch.counts)), results)


@vmap.rule(ops.keep)
def keep_rows(batch: Batch, x: Batched, *, name: str) -> Operand:
    return Batched(ops.keep(x.value, name=name), x.axis)


@vmap.rule(ops.barrier)
def barrier_rows(batch: Batch, x: Batched) -> Operand:
    return Batched(ops.barrier(x.value), x.axis)
