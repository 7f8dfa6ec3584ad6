"""What can be known of a traced value before it is computed?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from jitml.ir.graph import Graph, Node, Value
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.trace.context import Trace, active_trace


def constant_of(value: Value) -> np.ndarray[Any, Any] | None:
    """The array that a value is bound to be; None if it depends on an array from outside, on a size, or on a loop.

    It may depend on constants, and on Python numbers and NumPy scalars from outside, which are then guarded by value.
    """
    trace = active_trace()
    inputs: dict[Value, Any] = {}
    order: dict[Node, None] = {}
    alias: dict[Value, Value] = {}
    for v, made in _origins(value, trace, alias):
        if made is not None and (_is_python(made) or made.syms):
            return None
        if made is not None:
            order[made] = None
        elif v in trace.root.scalars:
            inputs[v] = trace.root.scalars[v]
        else:
            return None
    for slot, concrete in inputs.values():
        trace.host.require(slot, concrete)
    nodes = [_renamed(node, alias) for node in order]
    arguments = [np.asarray(concrete, v.dtype) for v, (_, concrete) in inputs.items()]
    with recording(None):
        return np.asarray(interpret(Graph(tuple(inputs), tuple(nodes), (_follow(value, alias),)), arguments)[0])


def unknowns_of(value: Value) -> Iterator[Value | None]:
    """What a value depends on besides constants and the caller's numbers: inputs, and None for what Python computes."""
    trace = active_trace()
    for v, made in _origins(value, trace, {}):
        if made is None and v not in trace.root.scalars:
            yield v
        elif made is not None and _is_python(made):
            yield None


def _is_python(node: Node) -> bool:
    """Whether Python computes it, or draws random numbers, perhaps inside of a region."""
    return node.op.family in ("host", "random") or any(
        _is_python(inner) for graph in node.graphs.values() for inner in graph.nodes
    )


def _renamed(node: Node, alias: dict[Value, Value]) -> Node:
    if alias.keys().isdisjoint(node.inputs):
        return node
    return Node(node.op, tuple(_follow(v, alias) for v in node.inputs), node.params, node.outputs, node.source)


def _follow(v: Value, alias: dict[Value, Value]) -> Value:
    while v in alias:
        v = alias[v]
    return v


def _origins(value: Value, trace: Trace, alias: dict[Value, Value]) -> Iterator[tuple[Value, Node | None]]:
    """What a value is made of, in order of computation: inputs (with None) and nodes.

    What a body captures is what it is outside (`alias` says so, inside -> outside); what a loop carries is an input.
    """
    scopes = [trace]
    while scopes[-1].parent is not None:
        scopes.append(scopes[-1].parent)
    outside = {inside: outer for scope in scopes for outer, inside in scope.builder.captured.items()}
    seen: set[Value] = set()
    stack: list[tuple[Value, Node | None]] = [(value, None)]
    while stack:
        v, ready = stack.pop()
        if ready is not None:
            yield v, ready
        elif v not in seen:
            seen.add(v)
            if v in outside:
                alias[v] = outside[v]
                stack.append((outside[v], None))
                continue
            node = next((made for scope in scopes if (made := scope.builder.maker(v)) is not None), None)
            if node is None:
                yield v, None
            else:
                stack.append((v, node))
                stack.extend((x, None) for x in node.inputs)
