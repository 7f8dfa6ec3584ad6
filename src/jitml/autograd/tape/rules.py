"""Local derivatives: what is the derivative of one operation on arrays of known kinds?

The operation is traced by itself, as a function of its arrays and floats, and its graph is transformed by the rules that all
derivatives have (`linearize`, `jvp_graph`). What comes of it is kept for all operations of that kind: a function of NumPy calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jitml.autograd.core.jvp import jvp_graph
from jitml.autograd.reverse.linearize import linearize
from jitml.autograd.rules.calls import expand_pulls
from jitml.errors import DerivativeError, UnsupportedError, WrongPath
from jitml.forks import lock
from jitml.interrupts import pass_on
from jitml.ir import ops
from jitml.ir.execute.to_python import Run, straight
from jitml.ir.graph import Graph, GraphBuilder, Value
from jitml.ir.passes import run_passes
from jitml.ir.passes.dce import eliminate_dead
from jitml.records import dataclass, replace
from jitml.trace.record.pytree import flatten
from jitml.trace.record.recording import current_trace
from jitml.trace.subgraph import trace_subgraph
from jitml.trace.trace import trace
from jitml.trace.values.registry import FUNCTIONS, call

_MOST = 4096
_rules: OrderedDict[Hashable, LocalRule | NoRule] = OrderedDict()
_lock = lock()


@dataclass(frozen=True)
class NoRule:
    """Why an operation has no derivative; an error where one is asked for."""

    reason: str


@dataclass(frozen=True, eq=False)
class Sweepable:
    """A graph as NumPy runs it; `reads` says which of its inputs it looks at, `raw` is what it has been made of."""

    raw: Graph

    @cached_property
    def run(self) -> Run:
        return straight(self._ready)

    @cached_property
    def reads(self) -> tuple[bool, ...]:
        used = {v for node in self._ready.nodes for v in node.inputs}.union(self._ready.outputs)
        return tuple(v in used for v in self._ready.inputs)

    @cached_property
    def _ready(self) -> Graph:
        return run_passes(self.raw)


@dataclass(eq=False)
class LocalRule:
    """The derivative of an operation.

    Args:
        graph: the operation: arrays and floats in, the floats among its results out.
        wrt: the inputs that vary.
    """

    graph: Graph
    wrt: tuple[int, ...]
    is_checked: bool = False  # whether its results have been seen to be NumPy's

    @cached_property
    def _linear(self) -> tuple[Graph, tuple[int, ...]]:
        derivative = linearize(self.graph, self.wrt)
        b = GraphBuilder()
        inputs = [b.add_input(v.aval) for v in self.graph.inputs]
        results = [b.add_input(v.aval) for v in self.graph.outputs]
        cotangents = [b.add_input(self.graph.outputs[n].aval) for n in derivative.moving]
        made = b.inline(derivative.forward, inputs)
        n = derivative.outputs
        slopes = b.inline(expand_pulls(derivative.pull), [*made[n:], *cotangents])
        known = {v: given for v, given in zip(made[:n], results) if v not in inputs}
        return eliminate_dead(_with_given(b.build(slopes), known)), derivative.moving

    def prepare(self) -> None:
        """Find the derivative now, where refusals are heard."""
        assert self._linear

    @cached_property
    def moving(self) -> tuple[int, ...]:
        """The results that depend on what varies."""
        return self._linear[1]

    @cached_property
    def pull(self) -> Sweepable:
        """(inputs, results, cotangents of those that move) -> cotangents of what varies."""
        return Sweepable(self._linear[0])

    @cached_property
    def read(self) -> tuple[int, ...]:
        """The inputs, and then the results, that the pullback looks at."""
        return tuple(n for n in range(len(self.graph.inputs) + len(self.graph.outputs)) if self.pull.reads[n])

    @cached_property
    def push(self) -> Sweepable:
        """(inputs, tangents of what varies) -> tangents of the results."""
        both = expand_pulls(jvp_graph(self.graph, self.wrt))
        return Sweepable(eliminate_dead(replace(both, outputs=both.outputs[len(self.graph.outputs) :])))


def _with_given(graph: Graph, known: Mapping[Value, Value]) -> Graph:
    """A graph that reads values from its inputs which it would compute."""

    def seen(values: Sequence[Value]) -> tuple[Value, ...]:
        return tuple(known.get(v, v) for v in values)

    return replace(
        graph, nodes=tuple(replace(node, inputs=seen(node.inputs)) for node in graph.nodes), outputs=seen(graph.outputs)
    )


def rule_for(
    key: Hashable, function: Callable[..., Any], leaves: Sequence[Any], wrt: tuple[int, ...], host_calls: bool = False
) -> LocalRule | NoRule:
    """The rule of an operation.

    Args:
        key: tells kinds of operations apart: what is done, to which kinds of arrays.
        function: does it, to as many leaves.
        host_calls: whether NumPy may compute a part of it that jitml has no own code for.
    """
    found = _rules.get(key)
    if found is not None:
        return found
    try:
        rule = LocalRule(_traced(function, leaves, host_calls), wrt)
        rule.prepare()
        made: LocalRule | NoRule = rule
    except (UnsupportedError, DerivativeError) as error:
        made = NoRule(error.message)
    except Exception as error:
        pass_on(error)
        made = NoRule(f"{type(error).__name__}: {error}")
    with _lock:
        found = _rules.setdefault(key, made)
        if len(_rules) > _MOST:
            _rules.popitem(last=False)
    return found


def rule_of(graph: Graph, wrt: tuple[int, ...]) -> LocalRule:
    """The rule of what is a graph already: the derivative of a derivative."""
    key = graph, wrt
    with _lock:
        found = _rules.get(key)
        if found is None:
            found = _rules[key] = LocalRule(graph, wrt)
            if len(_rules) > _MOST:
                _rules.popitem(last=False)
    assert isinstance(found, LocalRule)
    return found


def _traced(function: Callable[..., Any], leaves: Sequence[Any], host_calls: bool) -> Graph:
    """The graph of a function of these arrays and numbers; its outputs are those leaves of the result that are floats."""
    found: list[Graph] = []

    def inner(*tracers: Any) -> list[Any]:
        result, _ = flatten(function(*tracers))
        return [leaf for leaf in result if is_float(leaf)]

    def program(*given: Any) -> None:
        subgraph = trace_subgraph(inner, given)
        if subgraph.captured:
            raise UnsupportedError("it depends on what is traced elsewhere")
        found.append(subgraph.graph)

    # Copies: a trace is garbage that refers to itself, and would hold the user's arrays until it is collected.
    trace(program, tuple(x.copy() if isinstance(x, np.ndarray) else x for x in leaves), {}, host_calls=host_calls)
    if any(node.op is ops.check and node.params["error"] == WrongPath.__name__ for node in found[-1].walk()):
        raise UnsupportedError("which way it goes depends on the numbers")
    return found[-1]


def is_float(leaf: Any) -> bool:
    """Whether a leaf of a result may have a derivative; of an array, a NumPy scalar, a number of Python's, traced or not."""
    if isinstance(leaf, (float, complex)):
        return True
    return isinstance(leaf, (np.ndarray, np.generic)) and np.dtype(leaf.dtype).kind in "fc"


def applied(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function of NumPy's on tracers; functions that have no meaning there are called."""
    is_traced = current_trace() is not None and function in FUNCTIONS
    return call(function, *args, **kwargs) if is_traced else function(*args, **kwargs)
