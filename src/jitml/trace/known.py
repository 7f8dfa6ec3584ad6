"""What can be known of a traced value before it is computed?"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir.graph import Graph, Node, Value
from jitml.ir.interpret import interpret
from jitml.ir.op import recording
from jitml.trace.context import Trace, active_trace


def constant_of(value: Value) -> np.ndarray[Any, Any] | None:
    """The array that a value is bound to be; None if it depends on an array from outside.

    It may depend on constants, and on Python numbers and NumPy scalars from outside, which are then guarded by value.
    """
    trace = active_trace()
    makers: dict[Value, Node] = {}
    scope: Trace | None = trace
    while scope is not None:
        makers |= {out: node for node in scope.builder.nodes for out in node.outputs}
        scope = scope.parent
    inputs: dict[Value, Any] = {}
    needed: set[Node] = set()
    stack = [value]
    while stack:
        v = stack.pop()
        node = makers.get(v)
        if node is not None and node not in needed:
            needed.add(node)
            stack.extend(node.inputs)
        elif node is None:
            if v not in trace.root.scalars:
                return None
            inputs[v] = trace.root.scalars[v]
    for slot, concrete in inputs.values():
        trace.host.require(slot, concrete)
    order = tuple(node for node in dict.fromkeys(makers.values()) if node in needed)
    arguments = [np.asarray(concrete, v.dtype) for v, (_, concrete) in inputs.items()]
    with recording(None):
        return np.asarray(interpret(Graph(tuple(inputs), order, (value,)), arguments)[0])
