"""How does a transform run?  Inside a trace it records; outside any it runs itself in one that NumPy interprets.

Eager and jitted results have one source so: `jit(grad(f))` compiles what `grad(f)` interprets, and `grad(grad(f))` nests it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitml.autograd.linearize import Linearized, linearize
from jitml.autograd.point import Form, Place, Point
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Graph, Value
from jitml.ir.types import Aval
from jitml.trace.context import active_trace, current_trace, user_source
from jitml.trace.entry import evaluate
from jitml.trace.tracers import read
from jitml.trace.tree import flatten

Function = Callable[..., Any]


def in_a_trace(program: Function, *args: Any, **kwargs: Any) -> Any:
    """Run what needs a trace: in the current one, or in one of its own."""
    return evaluate(program, args, kwargs) if current_trace() is None else program(*args, **kwargs)


def inline(graph: Graph, args: Sequence[Value]) -> Sequence[Value]:
    """Record a graph's nodes into the current trace; returns its outputs there."""
    return active_trace().builder.inline(graph, args)


def forward(point: Point) -> tuple[Linearized, Sequence[Value]]:
    """Linearize at a point and record the forward part into the current trace."""
    derivative = linearize(point.graph, point.wrt, len(point.results))
    return derivative, inline(derivative.forward, [*point.inputs, *point.captured])


def positions(what: str, argnums: int | Sequence[int], given: int) -> list[Place]:
    """The positions of arguments, counted from the front.

    Raises:
        DerivativeError: one is outside, or named twice.
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -given <= n < given:
            raise DerivativeError(
                f"{what}: argnums names argument {n}, but the function is called with {given} positional arguments",
                source=user_source(),
                remedy="Arguments to differentiate by are passed by position, or named in argnames.",
            )
    found = [n % given for n in numbers]
    if len(set(found)) < len(found):
        raise DerivativeError(f"{what}: argnums {numbers} names an argument twice", source=user_source())
    return [*found]


def named(what: str, names: Sequence[str], f: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Place]:
    """Where the arguments of these names have been passed: positions, or names of keyword arguments.

    Raises:
        DerivativeError: one has not been passed.
    """
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        order: list[str] = []
    else:
        order = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    places: list[Place] = []
    for name in names:
        if name in kwargs:
            places.append(name)
        elif name in order[: len(args)]:
            places.append(order.index(name))
        else:
            raise DerivativeError(
                f"{what}: argnames names {name!r}, but the function is called without it",
                source=user_source(),
                remedy="Arguments to differentiate by have to be passed: a default value is no variable.",
            )
    return places


def leaves_like(what: str, tree: Any, form: Form, avals: Sequence[Aval]) -> list[Value]:
    """The leaves of a tree that has to look like another: same structure and shapes, dtypes as if assigned."""
    leaves, found = flatten(tree)
    if found != form.spec:
        raise DerivativeError(f"{what} has the structure {found}, where {form.spec} is wanted", source=user_source())
    values = [read(leaf) for leaf in leaves]
    for value, aval in zip(values, avals):
        if value.shape != aval.shape:
            raise DerivativeError(f"{what} is {value.aval} where {aval} is wanted", source=user_source())
    return [v if v.dtype == aval.dtype else ops.convert(v, dtype=aval.dtype) for v, aval in zip(values, avals)]
