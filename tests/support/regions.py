"""Regions by hand: loops and branches of the graph, written as Python functions of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.codegen.llvm.schedule import SCHEDULER
from jitml.fusion.fuse import DEFAULT
from jitml.fusion.scalar_loops import roll, with_recurrences
from jitml.fusion.schedule.primitives.statements import with_schedule
from jitml.ir import ops
from jitml.ir.dims import Sym, as_size
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.op import active_recorder, recording
from jitml.ir.printer import name_values
from jitml.ir.types import I64, Aval
from jitml.kernels.ir import Buffer, Const
from jitml.kernels.program import KernelProgram
from jitml.kernels.schedule import Schedule
from jitml.kernels.target import Target

Body = Callable[..., Any]


def graph_of(function: Body, *avals: Aval) -> Graph:
    b = GraphBuilder()
    inputs = [b.add_input(a) for a in avals]
    with recording(b):
        return b.build(_tuple(function(*inputs)))


def number(x: Any, dtype: Any = I64) -> Value:
    return x if isinstance(x, Value) else ops.full(value=x, shape=(), dtype=dtype)


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _bodies(functions: Sequence[Body], avals: Sequence[Aval]) -> tuple[list[Graph], list[Value]]:
    """Graphs with the same inputs: the avals, then all that any of them captures."""
    outer = active_recorder()
    assert isinstance(outer, GraphBuilder)
    builders, outputs = [GraphBuilder(outer) for _ in functions], []
    for b, function in zip(builders, functions):
        inputs = [b.add_input(a) for a in avals]
        with recording(b):
            outputs.append([b.capture(v) for v in _tuple(function(*inputs))])
    captured = list(dict.fromkeys(v for b in builders for v in b.captured))
    for b in builders:
        b.inputs = b.inputs[: len(avals)] + [b.capture(v) for v in captured]
    return [b.build(outs) for b, outs in zip(builders, outputs)], captured


def for_(trip: Any, carried: Sequence[Value], body: Body) -> Any:
    """`for i in range(trip): carried = body(i, *carried)`"""
    (graph,), captured = _bodies([body], [Aval((), I64), *(v.aval for v in carried)])
    return _one(ops.loop(number(trip), *carried, *captured, body=graph, carried=len(carried)))


def while_(carried: Sequence[Value], test: Body, body: Body) -> Any:
    (first, second), captured = _bodies([test, body], [v.aval for v in carried])
    return _one(ops.while_(*carried, *captured, test=first, body=second, carried=len(carried)))


def if_(which: Value, then: Body, orelse: Body) -> Any:
    (first, second), captured = _bodies([then, orelse], [])
    return _one(ops.cond(which, *captured, then=first, orelse=second))


def _one(values: Any) -> Any:
    return values[0] if len(values) == 1 else values


def get(x: Value, *at: Any) -> Value:
    """x[at], one element."""
    ones = (1,) * x.ndim
    return ops.reshape(ops.dynamic_slice(x, *map(number, at), sizes=ones, step=ones), shape=())


def put(x: Value, v: Any, *at: Any) -> Value:
    """x with x[at] = v"""
    v = number(v, x.dtype)
    ones = (1,) * x.ndim
    return ops.dynamic_update_slice(x, ops.reshape(v, shape=ones), *map(number, at), step=ones)


def size(n: Value, low: int, high: int, name: str = "n") -> Any:
    sym = Sym(name, low, high)
    ops.bind(n, sym=sym)
    return as_size(sym)


def window(x: Value, *places: tuple[Any, Any]) -> Value:
    """x[a:a+n, ...] without the axes of one element."""
    starts, sizes = zip(*places)
    part = ops.dynamic_slice(x, *map(number, starts), sizes=sizes, step=(1,) * x.ndim)
    return ops.reshape(part, shape=tuple(n for n in sizes if not (type(n) is int and n == 1)))


def put_window(x: Value, v: Value, *places: tuple[Any, Any]) -> Value:
    starts, sizes = zip(*places)
    return ops.dynamic_update_slice(x, ops.reshape(v, shape=sizes), *map(number, starts), step=(1,) * x.ndim)


def spread(v: Value, n: Any) -> Value:
    return ops.broadcast(v, shape=(n,), axes=())


def rolled_program(graph: Graph, target: Target = DEFAULT) -> KernelProgram:
    """The program of a graph whose only node, but for numbers, is a region."""
    names = name_values(graph)
    numbers = {n.output: Const(n.params["value"], n.output.dtype) for n in graph.nodes if n.op is ops.full}
    (node,) = (n for n in graph.nodes if n.op in (ops.loop, ops.while_, ops.cond))
    buffers = {v: Buffer(names[v], v.dtype, v.aval.bounds) for v in (*node.inputs, *node.outputs)}
    literals: dict[str, np.ndarray[Any, Any]] = {}

    def new_constant(value: np.ndarray[Any, Any]) -> Buffer:
        literals[f"literal{len(literals)}"] = value
        return Buffer(f"literal{len(literals) - 1}", value.dtype, value.shape)

    reads, writes = [buffers[v] for v in node.inputs], [buffers[v] for v in node.outputs]
    kernel = roll("k", node, reads, writes, numbers, new_constant, target)
    kernel = with_recurrences(with_schedule(kernel, Schedule((SCHEDULER.scalars(kernel, target),)), target, "k"))
    inputs = tuple(names[v] for v in graph.inputs)
    known = {b.name: b for v, b in buffers.items() if v not in numbers}
    known |= {names[v]: Buffer(names[v], v.dtype, v.shape) for v in graph.inputs}
    known |= {name: Buffer(name, value.dtype, value.shape) for name, value in literals.items()}
    return KernelProgram(known, inputs, tuple(names[v] for v in graph.outputs), literals, {}, (kernel,))
