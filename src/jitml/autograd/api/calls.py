"""A function that is traced into a graph of its own, to stand in the enclosing one as a call (`ir/ops/calls.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optree

from jitml.autograd.arguments.point import ResultForm, copied, form_of, is_number, told
from jitml.autograd.core.differentiation_orders import at_level
from jitml.errors import DerivativeError
from jitml.ir.graph import Graph, Value
from jitml.ir.types import is_supported
from jitml.records import dataclass
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.record.recording import active_trace, current_trace, unsupported, user_source
from jitml.trace.result_trees import settled
from jitml.trace.subgraph import trace_subgraph
from jitml.trace.values.boxing import TracedArray, TracedNumber, is_traced, read
from jitml.trace.values.kinds import rebuilt

Function = Callable[..., Any]


def of_its_own(tree: Any) -> Any:
    """The same containers and values, with memory of its own for each array: in a trace and outside of any."""
    leaves, spec = flatten(tree)
    return rebuilt(spec, [_of_its_own(leaf) for leaf in leaves])


def _of_its_own(leaf: Any) -> Any:
    if type(leaf) is TracedArray or (current_trace() is not None and type(leaf) is np.ndarray and is_supported(leaf.dtype)):
        return copied(leaf)
    return leaf.copy(order="K") if isinstance(leaf, np.ndarray) and current_trace() is None else leaf


def is_value(leaf: Any) -> bool:
    """Whether a leaf is one of the graph's. Numbers that Python knows, and sizes, stay what they are: they may be shapes."""
    if type(leaf) is TracedNumber:
        return leaf.slot is None and leaf.size is None
    return isinstance(leaf, np.ndarray) or is_traced(leaf)


@dataclass(frozen=True)
class Container:
    """A container of which some leaves are values of the graph; the rest is as Python knows it.

    Args:
        positions: which leaves are values.
    """

    leaves: tuple[Any, ...]
    spec: optree.PyTreeSpec
    positions: tuple[int, ...]

    @classmethod
    def of(cls, tree: Any) -> Container:
        leaves, spec = flatten(tree)
        return cls(tuple(leaves), spec, tuple(n for n, leaf in enumerate(leaves) if is_value(leaf)))

    @property
    def tracers(self) -> list[Any]:
        return [self.leaves[n] for n in self.positions]

    def values(self) -> list[Value]:
        return [read(leaf) for leaf in self.tracers]

    def filled(self, tracers: Sequence[Any]) -> Any:
        """The same with other tracers for the values; arrays have storages of their own."""
        leaves = list(self.leaves)
        for n, tracer in zip(self.positions, tracers, strict=True):
            leaves[n] = copied(tracer) if type(tracer) is TracedArray else tracer
        return unflatten(self.spec, leaves)

    def alone(self, tracers: Mapping[int, Any]) -> Any:
        """The same structure with these tracers, by number of the value; zero for other floats, None for everything else."""
        leaves: list[Any] = [0.0 if isinstance(leaf, float) else None for leaf in self.leaves]
        for n, tracer in tracers.items():
            leaves[self.positions[n]] = tracer
        return rebuilt(self.spec, leaves)


@dataclass(frozen=True)
class Called:
    """A function's graph: its inputs are the values among the arguments, then what it captures."""

    graph: Graph
    captured: tuple[Value, ...]
    result: ResultForm


def trace_call(name: str, function: Function, arguments: Container, level: int) -> Called:
    """Trace `function(*arguments)`, to be differentiated at most `level` times.

    Raises:
        DerivativeError: it returns something else than numbers, or an array whose size only it knows.
    """
    forms: list[ResultForm] = []

    def refuse_write() -> None:
        unsupported(f"{name} has a derivative of its own, and writes into its argument", "Copy it first: x = x.copy().")

    def program(*tracers: Any) -> list[Any]:
        given = arguments.filled(tracers)
        before, spec = flatten(given)
        for leaf in before:
            if type(leaf) is TracedArray:
                leaf.storage.rewritten = refuse_write
        with at_level(level):
            result = settled(active_trace(), function(*given))
        after, changed = flatten(given)
        if changed != spec or any(a is not b for a, b in zip(after, before)):
            unsupported(
                f"{name} has a derivative of its own, and changes a container among its arguments",
                "Return the new one.",
            )
        leaves, _ = flatten(result)
        for leaf in leaves:
            if not is_number(leaf):
                raise DerivativeError(f"{name} returns {told(leaf)}, not numbers", source=user_source())
        forms.append(form_of(result))
        return leaves

    subgraph = trace_subgraph(program, arguments.tracers)
    trace = active_trace()
    if not all(trace.sees(trace.sizes.values[sym]) for aval in subgraph.graph.out_avals for sym in aval.syms):
        raise DerivativeError(
            f"{name} returns an array whose size it finds in data, and is differentiated as a call of its own",
            source=user_source(),
            remedy="Pick the elements outside of it, or return a mask in their place.",
        )
    return Called(subgraph.graph, subgraph.captured, forms[-1])


def with_captured(graph: Graph, first: int, captured: Sequence[Value], everything: Sequence[Value], last: int = 0) -> Graph:
    """A graph with an input for all that it and others capture, in one order.

    Args:
        first: how many of its inputs come before those that are captured, and
        last: how many that follow shall come after them.
        captured: what its other inputs are, outside.
    """
    inside = dict(zip(captured, graph.inputs[first + last :], strict=True))
    inputs = (*graph.inputs[:first], *(inside.get(v) or Value(v.aval) for v in everything), *graph.inputs[first : first + last])
    return Graph(inputs, graph.nodes, graph.outputs)
