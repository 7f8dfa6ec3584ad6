"""What should a graph's answer be?  Evaluate it node by node in NumPy: the oracle of every layer below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jitml.ir.graph import Graph, Value
from jitml.ir.types import Aval

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def interpret(graph: Graph, args: Sequence[object]) -> list[Array]:
    """The graph's outputs as NumPy arrays. Intermediate values are dropped after their last use.

    Raises:
        ValueError: an argument's shape or dtype is not what the graph's signature says.
    """
    env: dict[Value, Array] = {}
    for position, (value, arg) in enumerate(zip(graph.inputs, args, strict=True)):
        array = np.asarray(arg)
        if Aval(array.shape, array.dtype) != value.aval:
            raise ValueError(f"argument {position} is {array.dtype}{list(array.shape)}, the graph wants {value.aval}")
        env[value] = array
    last_use = {v: n for n, node in enumerate(graph.nodes) for v in node.inputs}
    keep = set(graph.outputs)
    for n, node in enumerate(graph.nodes):
        results = node.op.run(tuple(env[v] for v in node.inputs), dict(node.params))
        results = results if isinstance(results, tuple) else (results,)
        for value, result in zip(node.outputs, results, strict=True):
            env[value] = np.asarray(result, dtype=value.dtype)
        for v in set(node.inputs):
            if last_use[v] == n and v not in keep:
                del env[v]
    return [env[v] for v in graph.outputs]
