"""Subgraphs: what does a function compute that is called inside a trace, by itself?  `trace_subgraph`, for transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.errors import UnsupportedError
from jitml.ir.graph import Graph, Value
from jitml.ir.types import BOOL, C128, F64, I64
from jitml.records import dataclass
from jitml.trace.hooks.convert import convert
from jitml.trace.record.checkpoints import Checkpoints, outlined
from jitml.trace.record.concrete_evaluation import EnteredValues
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import Trace, activate, active_trace, user_source
from jitml.trace.result_trees import settled
from jitml.trace.storage.storage import EnteredStorages
from jitml.trace.storage.strides import kept_strides
from jitml.trace.values.boxing import TracedArray, TracedScalar, fresh, fresh_like, layout_of, read, scalar
from jitml.trace.values.kinds import rebuilt
from jitml.trace.values.numbers import TracedNumber


@dataclass(frozen=True)
class Subgraph:
    """A function traced inside a trace.

    graph: its inputs are the given leaves first, then one for each value of `captured`, in order.
    captured: values of the enclosing trace that the function uses.
    rebuild: makes the function's result from the values of the graph's outputs (in the enclosing trace), and writes what the
        function has written outside itself.
    """

    graph: Graph
    captured: tuple[Value, ...]
    rebuild: Callable[[Sequence[Value]], Any]


def trace_subgraph(function: Callable[..., Any], leaves: Sequence[Any], *, writes: bool = False, rows: bool = False) -> Subgraph:
    """Trace `function(*leaves)` in an inner trace of the current one; every leaf becomes an input of the graph.

    Transforms use it so: flatten the arguments, pass the leaves to be differentiated here with a `function` that puts
    the argument structure together again, transform `graph`, and inline the outcome into the enclosing trace with
    `GraphBuilder.inline(transformed, [*map(read, leaves), *captured])`; `rebuild(values)` gives what the function
    returned, with those values in place of the graph's outputs. All of it happens inside a trace; called outside one,
    a transform runs itself through `eager.run`.

    Args:
        leaves: tracers, arrays, NumPy scalars or Python numbers. Inside, each is a new tracer of the same kind (an array
            is a storage of its own, laid out as a copy is, a number is weak and lives in the graph); writing into one is refused.
        writes: whether the function may write other arrays from outside, and draw from generators.
        rows: whether the leaves stand for many at once.

    Raises:
        UnsupportedError: the function writes what it may not.
    """
    inner = Trace(active_trace())
    storages = inner.local[EnteredStorages]
    storages.hands_on = writes
    inner.is_of_rows = inner.is_of_rows or rows
    values = [(leaf, read(leaf)) for leaf in leaves]
    try:
        with activate(inner):
            tracers = [_enter(inner, *pair) for pair in values]
            result = convert(function)(*tracers)
            _require_unwritten(tracers)
            out_leaves, spec = flatten(settled(inner, result))
            kinds = [_wrapper(leaf) for leaf in out_leaves]
            outputs = [read(leaf) for leaf, kind in zip(out_leaves, kinds) if kind is not None]
            outputs += [storage.value for storage in storages.written]
            inner.bind_outer()
            graph = outlined(inner.builder.build(outputs), inner.local[Checkpoints])
    finally:
        # Outside, nothing has happened yet.
        for storage, (outside, _) in storages.known.items():
            storage.value = outside
    captured = tuple(inner.builder.captured)

    def rebuild(results: Sequence[Value]) -> Any:
        remaining = iter(results)
        leaves = [leaf if kind is None else kind(next(remaining)) for leaf, kind in zip(out_leaves, kinds)]
        for storage, value in zip(inner.local[EnteredStorages].written, remaining, strict=True):
            storage.store(value)
        return rebuilt(spec, leaves)

    return Subgraph(graph, captured, rebuild)


def _enter(inner: Trace, leaf: Any, outside: Value) -> Any:
    """The tracer of a leaf, as an input of the inner trace."""
    value = inner.builder.add_input(outside.aval)
    inner.local[EnteredValues][value] = outside
    if type(leaf) in (bool, int, float, complex, TracedNumber):
        return TracedNumber.of_value(inner, value)
    return scalar(value) if outside.shape == () and not isinstance(leaf, np.ndarray) else fresh_like(value, leaf)


def _require_unwritten(tracers: Sequence[Any]) -> None:
    for tracer in tracers:
        if type(tracer) is TracedArray and tracer.storage.mutated:
            raise UnsupportedError(
                f"a function that is transformed writes into its argument {tracer.aval}",
                source=user_source(),
                remedy="Copy it first: x = x.copy().",
            )


def _wrapper(leaf: Any) -> Callable[[Value], Any] | None:
    """How a value is shown as the kind of tracer that `leaf` is; None for what is not a value."""
    kind = type(leaf)
    if kind is TracedArray or isinstance(leaf, np.ndarray):
        layout = layout_of(leaf)
        return lambda value: fresh(value, kept_strides([layout], value.shape))
    if kind is TracedScalar or isinstance(leaf, np.generic):
        return scalar
    if kind in (TracedNumber, float, int, bool, complex):
        known = (BOOL, I64, F64, C128)
        return lambda value: TracedNumber.of_value(active_trace(), value) if value.dtype in known else scalar(value)
    return None
