"""The user's derivative rules as graphs: `custom.py` asks for them where a derivative may be taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from jitml.autograd.api.calls import Called, Container
from jitml.autograd.api.linearity import require_no_offset
from jitml.autograd.api.transform_driver import fitting, leaves_like
from jitml.autograd.arguments.point import told
from jitml.autograd.core.differentiation_orders import at_level
from jitml.autograd.core.transpose import zeros
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.types import Aval
from jitml.trace.record.pytree import NAMESPACE, flatten, structure_of, unflatten
from jitml.trace.record.recording import user_source
from jitml.trace.subgraph import Subgraph, trace_subgraph
from jitml.trace.values.boxing import fresh, read, scalar
from jitml.trace.values.kinds import rebuilt


def varies(value: Value) -> bool:
    """Whether a value has tangents."""
    return value.dtype.kind in "fc"


def trace_jvp_rule(name: str, rule: Callable[..., Any], arguments: Container, call: Called, level: int) -> Subgraph:
    """Inputs: the arguments' values, then a tangent for each that varies. Outputs: results, then their tangents.

    Args:
        rule: takes primals and tangents.
    """
    varying = [n for n, v in enumerate(arguments.values()) if varies(v)]
    count = len(arguments.positions)

    def program(*tracers: Any) -> list[Any]:
        tangents = arguments.alone(dict(zip(varying, tracers[count:])))
        with at_level(level):
            found = rule(arguments.filled(tracers[:count]), tangents)
        y, dy = _pair(f"the jvp rule of {name}", "(result, tangent)", found)
        results = leaves_like(f"{name}: what its jvp rule returns", y, call.result, call.graph.out_avals)
        return [*map(fresh, results), *map(fresh, _of_floats(f"{name}: the tangent that its jvp rule returns", dy, call))]

    traced = trace_subgraph(program, [*arguments.tracers, *(arguments.tracers[n] for n in varying)])
    leaves = count + len(varying)
    require_no_offset(name, traced.graph, leaves, range(count, leaves), sum(map(varies, call.graph.outputs)))
    return traced


def trace_forward_rule(
    name: str, rule: Callable[..., Any], arguments: Container, call: Called, level: int
) -> tuple[Subgraph, Container]:
    """Inputs: the arguments' values. Outputs: results, then the residuals' values; and the residuals' container."""
    found: list[Container] = []

    def program(*tracers: Any) -> list[Any]:
        with at_level(level):
            pair = rule(*arguments.filled(tracers))
        y, residuals = _pair(f"the forward rule of {name}", "(result, residuals)", pair)
        results = leaves_like(f"{name}: what its forward rule returns", y, call.result, call.graph.out_avals)
        found.append(Container.of(residuals))
        return [*map(fresh, results), *found[-1].tracers]

    subgraph = trace_subgraph(program, arguments.tracers)
    return subgraph, found[-1]


def trace_backward_rule(
    name: str,
    rule: Callable[..., Any],
    arguments: Container,
    call: Called,
    residuals: tuple[Container, Sequence[Value]],
    level: int,
) -> Subgraph:
    """Inputs: the residuals' values, then a cotangent for each result that varies. Outputs: one for each such argument.

    Args:
        rule: takes residuals and cotangents.
        residuals: their container, and their values in the forward rule's graph.
    """
    container, kept = residuals
    results = [n for n, v in enumerate(call.graph.outputs) if varies(v)]
    stand_ins = [_stand_in(v.aval, isinstance(tracer, np.ndarray)) for v, tracer in zip(kept, container.tracers, strict=True)]
    stand_ins += [_stand_in(call.graph.outputs[n].aval, call.result.arrays[n]) for n in results]

    values = arguments.values()  # outside: what is read inside, as part of a variable, would be captured

    def program(*tracers: Any) -> list[Any]:
        cts: list[Any] = [None] * len(call.graph.outputs)
        for n, tracer in zip(results, tracers[len(kept) :]):
            cts[n] = tracer
        with at_level(level):
            found = rule(container.filled(tracers[: len(kept)]), rebuilt(call.result.spec, cts))
        return [*map(fresh, _cotangents(name, found, arguments, values))]

    return trace_subgraph(program, stand_ins)


def _stand_in(aval: Aval, array: bool) -> Any:
    """A tracer that a rule is traced with: nothing of it but its kind matters."""
    value = ops.full(value=0, shape=aval.shape, dtype=aval.dtype)
    return fresh(value) if array else scalar(value)


def _pair(what: str, wanted: str, found: Any) -> tuple[Any, Any]:
    if not (isinstance(found, tuple) and len(found) == 2):
        raise DerivativeError(f"{what} returns {told(found)}, not a pair {wanted}", source=user_source())
    return found


def _of_floats(what: str, tree: Any, call: Called) -> list[Value]:
    """The leaves for results that are floats; what stands for others, or None, is ignored."""
    outputs = call.graph.outputs
    leaves, spec = flatten(tree)
    sparse = flatten(unflatten(call.result.spec, [0 if varies(v) else None for v in outputs]))[1]
    if spec == call.result.spec:
        leaves = [leaf for leaf, v in zip(leaves, outputs) if varies(v)]
    elif spec != sparse:
        wanted = structure_of(call.result.spec)
        raise DerivativeError(f"{what} has the structure {structure_of(spec)}, where {wanted} is wanted", source=user_source())
    return [fitting(what, read(leaf), v.aval) for leaf, v in zip(leaves, filter(varies, outputs), strict=True)]


def _cotangents(name: str, found: Any, arguments: Container, values: Sequence[Value]) -> list[Value]:
    """A cotangent for each argument that varies, from a tuple with one for each argument, None for zero."""
    what = f"{name}: the cotangent that its backward rule returns"
    args = unflatten(arguments.spec, list(arguments.leaves))
    if not isinstance(found, tuple) or len(found) != len(args):
        what = f"a tuple of {len(found)}" if isinstance(found, tuple) else told(found)
        raise DerivativeError(
            f"the backward rule of {name} returns {what}, not a tuple of {len(args)}, one for each argument",
            source=user_source(),
            remedy="None stands for a cotangent of zero.",
        )
    leaves: list[Any] = []
    for ct, arg in zip(found, args):
        own, spec = flatten(arg)
        given, structure = flatten(ct)
        if structure != spec:  # None stands for zeros, of a leaf or of all
            given = [None] * len(own) if ct is None else optree.tree_leaves(ct, none_is_leaf=True, namespace=NAMESPACE)
        if len(given) != len(own):
            wanted, got = structure_of(spec), structure_of(structure)
            raise DerivativeError(f"{what} has the structure {got}, where {wanted} is wanted", source=user_source())
        leaves += given
    chosen = [(leaves[position], v.aval) for position, v in zip(arguments.positions, values) if varies(v)]
    return [zeros(aval) if leaf is None else fitting(what, read(leaf), aval) for leaf, aval in chosen]
