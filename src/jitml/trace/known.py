"""What can be known of a traced value before it is computed?"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from jitml.ir.graph import Graph, Node, Value
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.trace.context import Trace, active_trace

_Path = list[tuple[Value, Node | None]]  # values still to be looked at, and nodes whose inputs are being looked at


def constant_of(value: Value) -> np.ndarray[Any, Any] | None:
    """The array that a value is bound to be; None if it depends on an array from outside, on a size, or on a loop.

    It may depend on constants, and on Python numbers and NumPy scalars from outside, which are then guarded by value.
    """
    trace = active_trace()
    inputs: dict[Value, Any] = {}
    order: dict[Node, None] = {}
    alias: dict[Value, Value] = {}
    path: _Path = [(value, None)]
    for v, made in _origins(path, trace, alias, trace.root.unknown):
        if made is None and v in trace.root.scalars:
            inputs[v] = trace.root.scalars[v]
        elif made is None or _is_python(made) or made.syms:
            # No more is known of what is computed from it, and nobody goes there again: programs ask for each condition.
            trace.root.unknown.update(out for node in (made, *(n for _, n in path)) if node is not None for out in node.outputs)
            return None
        else:
            order[made] = None
    for slot, concrete in inputs.values():
        trace.host.require(slot, concrete)
    nodes = [_renamed(node, alias) for node in order]
    arguments = [np.asarray(concrete, v.dtype) for v, (_, concrete) in inputs.items()]
    with recording(None):
        return np.asarray(interpret(Graph(tuple(inputs), tuple(nodes), (_follow(value, alias),)), arguments)[0])


def unknowns_of(value: Value) -> Iterator[Value | None]:
    """What a value depends on besides constants and the caller's numbers: inputs, and None for what Python computes."""
    trace = active_trace()
    for v, made in _origins([(value, None)], trace, {}):
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


def _origins(
    path: _Path, trace: Trace, alias: dict[Value, Value], unknown: Container[Value] = ()
) -> Iterator[tuple[Value, Node | None]]:
    """What a value is made of, in order of computation: inputs (with None), or what is `unknown`, and nodes.

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
            if node is None or v in unknown:
                yield v, None
            else:
                path.append((v, node))
                path.extend((x, None) for x in node.inputs)
