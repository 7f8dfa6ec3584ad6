"""Constants: what can be known of a traced value before it is computed?"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from jitml.ir.graph import Node, Value
from jitml.ir.op import recording
from jitml.trace.record.concrete_evaluation import Concrete, TooLong, keep_known, run_whole
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace

Array = np.ndarray[Any, Any]
_MOST_WORK = 100_000  # nodes run in loops: what takes longer is as well computed by the program
_Path = list[tuple[Value, Node | None]]  # values still to be looked at, and nodes whose inputs are being looked at


class _Unknown(set[Value], CallPart):
    """Values that depend on what only the program knows."""


class _DependsOnNumbers(dict[Value, bool], CallPart):
    """Values of which it has been asked whether they do, and what these are made of."""


def constant_of(value: Value) -> Array | None:
    """The array that a value is bound to be; None if it depends on an array from outside, on a size, or on a loop.

    It may depend on constants, and on Python numbers and NumPy scalars from outside, which are then guarded by value, and on
    loops over them that are soon at their end. What it is made of is kept: programs ask for each condition.
    """
    trace = active_trace()
    root, known, unknown = trace.root, trace.call[Concrete].constants, trace.call[_Unknown]
    alias: dict[Value, Value] = {}
    path: _Path = [(value, None)]
    order: dict[Node, None] = {}
    inputs: list[Value] = []
    for v, made in _origins(path, trace, alias, unknown, known):
        if v in known:
            continue
        if made is None and v in root.inputs.scalars:
            inputs.append(v)
        elif made is None or _is_python(made) or made.syms:
            # No more is known of what is computed from it, and nobody goes there again.
            unknown.update(out for node in (made, *(n for _, n in path)) if node is not None for out in node.outputs)
            return None
        else:
            order[made] = None
    env: dict[Value, Array] = {v: np.asarray(root.inputs.scalars[v][1], v.dtype) for v in inputs}
    try:
        _compute(root, order, env, alias)
    except TooLong:
        return None
    for v in inputs:
        slot, concrete = root.inputs.scalars[v]
        if isinstance(concrete, np.ndarray):
            trace.host.require_contents(slot, concrete)
        else:
            trace.host.require(slot, concrete)
    keep_known(root, env)
    value = _follow(value, alias)
    return known[value] if value in known else env[value]


def _compute(root: Trace, nodes: dict[Node, None], env: dict[Value, Array], alias: dict[Value, Value]) -> None:
    """Run nodes on what is in `env` and what is known already.

    Raises:
        TooLong: there is a loop among them that Python would take long for.
    """
    known = root.call[Concrete].constants
    with recording(None):
        for node in nodes:
            operands = [env[v] if v in env else known[v] for v in (_follow(x, alias) for x in node.inputs)]
            try:
                env.update(zip(node.outputs, run_whole(root, node, operands, {**node.params}, _MOST_WORK)))
            except TooLong:
                root.call[_Unknown].update(node.outputs)
                raise


def unknowns_of(value: Value) -> Iterator[Value | None]:
    """What a value depends on besides constants and the caller's numbers: inputs, and None for what Python computes."""
    trace = active_trace()
    for v, made in _origins([(value, None)], trace, {}):
        if made is None and v not in trace.inputs.scalars:
            yield v
        elif made is not None and _is_python(made):
            yield None


def depends_on_numbers(value: Value) -> bool:
    """Whether a value depends on the caller's numbers. What it is made of is kept, too."""
    trace = active_trace()
    depends, numbers = trace.call[_DependsOnNumbers], trace.root.inputs.scalars
    alias: dict[Value, Value] = {}
    for v, made in _origins([(value, None)], trace, alias, known=depends):
        if v not in depends:
            inputs = made.inputs if made is not None else ()
            depends[v] = v in numbers or any(depends[_follow(x, alias)] for x in inputs)
    return depends[_follow(value, alias)]


def _is_python(node: Node) -> bool:
    """Whether Python computes it, or draws random numbers, perhaps inside of a region."""
    return node.op.family in ("host", "random") or any(
        _is_python(inner) for graph in node.graphs.values() for inner in graph.nodes
    )


def _follow(v: Value, alias: dict[Value, Value]) -> Value:
    while v in alias:
        v = alias[v]
    return v


def _origins(
    path: _Path, trace: Trace, alias: dict[Value, Value], unknown: Container[Value] = (), known: Container[Value] = ()
) -> Iterator[tuple[Value, Node | None]]:
    """What a value is made of, in order of computation: inputs (with None), or what is `unknown` or `known`, and nodes.

    What a body captures is what it is outside (`alias` says so, inside -> outside); what a loop carries is an input.

    Args:
        path: begins with the value. Of what is handed out, the nodes on it are those that are computed from that.
    """
    scopes = [trace]
    while scopes[-1].parent is not None:
        scopes.append(scopes[-1].parent)
    outside = {inside: outer for scope in scopes for outer, inside in scope.builder.captured.items()}
    seen: set[Value] = set()
    while path:
        v, ready = path.pop()
        if ready is not None:
            yield v, ready
        elif v not in seen:
            seen.add(v)
            if v in outside:
                alias[v] = outside[v]
                path.append((outside[v], None))
                continue
            node = next((made for scope in scopes if (made := scope.builder.maker(v)) is not None), None)
            if node is None or v in unknown or v in known:
                yield v, None
            else:
                path.append((v, node))
                path.extend((x, None) for x in node.inputs)
