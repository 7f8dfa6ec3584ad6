"""Graph interpreter: what should a graph's answer be?  Evaluate it node by node in NumPy: the oracle of every layer below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from jitml.interrupts import unset
from jitml.ir.dims import Sym, resolve
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.types import Aval
from jitml.records import dataclass

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


# Called after each node, with its operands and results.
Watch = Callable[[Node, Sequence[Array], Sequence[Array]], None]

_watch: ContextVar[Watch | None] = ContextVar("jitml_watch", default=None)


@contextmanager
def watched(watch: Watch | None) -> Iterator[None]:
    """Let `watch` see every node that is interpreted inside the block; None: nobody."""
    token = _watch.set(watch)
    try:
        yield
    finally:
        unset(_watch, token)


@dataclass
class Iteration:
    """Of a loop that is interpreted while somebody watches.

    Args:
        number: how many came before.
        index: the body's input that says so, if any.
        is_turned: the loop goes through the iterations of another backwards, and `number` is that one's.
    """

    number: int
    index: Value | None = None
    is_turned: bool = False


_iterations: ContextVar[tuple[Iteration, ...]] = ContextVar("jitml_iterations", default=())


def iterations() -> tuple[Iteration, ...]:
    """Those that are being interpreted, the outermost loop's first."""
    return _iterations.get()


def iterate(body: Graph, args: Sequence[Any], number: int, index: Value | None = None) -> list[Array]:
    """`interpret_outputs` of a loop's body."""
    if _watch.get() is None:
        return interpret_outputs(body, args)
    token = _iterations.set((*_iterations.get(), Iteration(number, index)))
    try:
        return interpret_outputs(body, args)
    finally:
        unset(_iterations, token)


def interpret(graph: Graph, args: Sequence[object]) -> list[Array]:
    """The graph's outputs as NumPy arrays.

    Raises:
        ValueError: an argument's shape or dtype is not what the graph's signature says.
    """
    arrays = [np.asarray(arg) for arg in args]
    values = _bound_inputs(graph, arrays)
    for position, (value, array) in enumerate(zip(graph.inputs, arrays, strict=True)):
        if Aval(array.shape, array.dtype) != Aval(resolve(value.shape, values), value.dtype):
            raise ValueError(f"argument {position} is {array.dtype}{list(array.shape)}, the graph wants {value.aval}")
    return interpret_outputs(graph, arrays)


def interpret_outputs(graph: Graph, args: Sequence[Any]) -> list[Array]:
    """`interpret` without its questions about the arguments. Intermediate values are dropped after their last use.

    Regions interpret their bodies with it. Sizes that are values become ints on the way: ops never see a `Dim`.
    """
    watch = _watch.get()
    env: dict[Value, Array] = {v: np.asarray(arg) for v, arg in zip(graph.inputs, args, strict=True)}
    sizes = _bound_inputs(graph, args)
    for node, read_last in zip(graph.nodes, graph.last_reads):
        if node.op.name == "bind":
            sizes[node.params["sym"]] = int(env[node.inputs[0]])
        params = {name: resolve(param, sizes) for name, param in node.params.items()} if sizes else node.params
        results = node.op.run(tuple([env[v] for v in node.inputs]), params)
        results = results if isinstance(results, tuple) else (results,)
        for value, result in zip(node.outputs, results, strict=True):
            env[value] = np.asarray(result, dtype=value.dtype)
            if sizes and env[value].shape != resolve(value.shape, sizes):
                raise ValueError(f"{node.op} made {env[value].shape}, the graph says {value.aval} with {sizes}")
        if watch is not None:
            watch(node, [env[v] for v in node.inputs], [env[v] for v in node.outputs])
        for v in read_last:
            del env[v]
    return [env[v] for v in graph.outputs]


def _bound_inputs(graph: Graph, args: Sequence[Any]) -> dict[Sym, int]:
    """Syms that are bound to inputs: their values are there before the first node."""
    if not (binders := graph.binders()):
        return {}
    known = dict(zip(graph.inputs, args))
    return {sym: int(known[v]) for sym, v in binders.items() if v in known}
