"""Batching of calls: of every graph that they hold, so that the user's rules survive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitml.autograd.vmap import Batch, Batched, Operand, refuse, spread, vmap
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


def _batched(batch: Batch, graph: Graph, flags: Flags, wanted: Flags | None = None, *, sums: bool = False) -> tuple[Graph, Flags]:
    """A graph for all rows, and which of its outputs differ from row to row.

    Args:
        wanted: the outputs that shall; default: those that do.
        sums: of what shall not differ and does, the sum over the rows.
    """
    size = batch.size
    if not isinstance(size, int):
        refuse("a function with a rule of its own needs to know how many rows there are", "Call it outside of jit(dynamic=True).")
    b = GraphBuilder()
    args: list[Operand] = [
        Batched(b.add_input(v.aval.with_shape((size, *v.shape))), 0) if flag else b.add_input(v.aval)
        for v, flag in zip(graph.inputs, flags, strict=True)
    ]
    every = Batch(size)
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
def custom_jvp_rows(batch: Batch, *operands: Operand, call: Graph, rule: Graph, varying: Ints) -> tuple[Operand, ...]:
    flags = _flags(operands)
    of_rule = flags + tuple(flags[n] for n in varying)
    (_, results), (_, ruled) = _batched(batch, call, flags), _batched(batch, rule, of_rule)
    count = len(call.outputs)
    results = _any(results, ruled[:count])
    # A tangent has the rows of its result.
    places = [n for n, v in enumerate(call.outputs) if v.dtype.kind in "fc"]
    for n, moved in zip(places, ruled[count:]):
        results = (*results[:n], results[n] or moved, *results[n + 1 :])
    whole = (*results, *(results[n] for n in places))
    graphs = {"call": _batched(batch, call, flags, results)[0], "rule": _batched(batch, rule, of_rule, whole)[0]}
    return _results(ops.custom_jvp(*_given(batch, operands), varying=varying, **graphs), results)


@vmap.rule(ops.custom_vjp)
def custom_vjp_rows(
    batch: Batch, *operands: Operand, call: Graph, forward: Graph, backward: Graph, varying: Ints, name: str
) -> tuple[Operand, ...]:
    flags, count = _flags(operands), len(call.outputs)
    (_, results), (_, found) = _batched(batch, call, flags), _batched(batch, forward, flags)
    results = _any(results, found[:count])
    residuals = found[count:]
    cotangents = tuple(flag for flag, v in zip(results, call.outputs) if v.dtype.kind in "fc")
    graphs = {
        "call": _batched(batch, call, flags, results)[0],
        "forward": _batched(batch, forward, flags, results + residuals)[0],
        "backward": _batched(batch, backward, residuals + cotangents, tuple(flags[n] for n in varying), sums=True)[0],
    }
    return _results(ops.custom_vjp(*_given(batch, operands), varying=varying, name=name, **graphs), results)


@vmap.rule(ops.pull_back)
def pull_back_rows(batch: Batch, *operands: Operand, backward: Graph, residuals: int, name: str) -> tuple[Operand, ...]:
    flags = _flags(operands)
    results = (True,) * (len(backward.inputs) - residuals)
    graph, _ = _batched(batch, backward, flags[:residuals] + results, flags[residuals:], sums=True)
    return _results(ops.pull_back(*_given(batch, operands), backward=graph, residuals=residuals, name=name), results)


@vmap.rule(ops.checkpoint)
def checkpoint_rows(batch: Batch, *operands: Operand, call: Graph, policy: Any) -> tuple[Operand, ...]:
    graph, results = _batched(batch, call, _flags(operands))
    return _results(ops.checkpoint(*_given(batch, operands), call=graph, policy=policy), results)


@vmap.rule(ops.again)
def again_rows(batch: Batch, *operands: Operand, linear: Graph, known: int) -> tuple[Operand, ...]:
    graph, results = _batched(batch, linear, _flags(operands))
    return _results(ops.again(*_given(batch, operands), linear=graph, known=known), results)


@vmap.rule(ops.keep)
def keep_rows(batch: Batch, x: Batched, *, name: str) -> Operand:
    return Batched(ops.keep(x.value, name=name), x.axis)


@vmap.rule(ops.barrier)
def barrier_rows(batch: Batch, x: Batched) -> Operand:
    return Batched(ops.barrier(x.value), x.axis)
