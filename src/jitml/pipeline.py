"""The way down from a graph to something that can be called; here by the graph's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret


def compile_graph(
    graph: Graph,
    *,
    aliases: Mapping[int, int] | None = None,
    strides: Mapping[int, tuple[int, ...]] | None = None,
    threads: int | None = None,
    fastmath: frozenset[str] = frozenset(),
) -> Callable[..., list[np.ndarray[Any, Any]]]:
    """A callable of the graph's inputs; outputs in `aliases` are written into the input given for them."""

    def execute(*inputs: Any) -> list[np.ndarray[Any, Any]]:
        outputs = interpret(graph, [np.asarray(x, v.dtype) for x, v in zip(inputs, graph.inputs)])
        finished = {output: np.array(outputs[output]) for output in aliases or {}}
        for output, entry in (aliases or {}).items():
            np.copyto(inputs[entry], finished[output])
            outputs[output] = inputs[entry]
        return outputs

    return execute


def lower(
    graph: Graph, *, aliases: Mapping[int, int] | None = None, strides: Mapping[int, tuple[int, ...]] | None = None
) -> Graph:
    """The stages of a program; here the graph itself."""
    return graph
