"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import raised_by
from jitml.ir.dims import Size, Sym, as_size
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.printer import show_number
from jitml.ir.rewrite import Producers, of_sizes, sweep


def _param_key(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    # 0.0 equals -0.0 and 1 equals True, but they are different numbers to a program.
    key: Hashable = (type(value), show_number(value)) if isinstance(value, (bool, int, float, complex)) else value
    return key


def params_key(params: Mapping[str, Any]) -> Hashable:
    """Equal exactly for parameters that mean the same."""
    return tuple([(name, _param_key(params[name])) for name in sorted(params)]) if params else ()


def share_common(graph: Graph) -> Graph:
    """Compute equal expressions once: same op, parameters and operands (in either order where the op commutes).

    A claim that has been checked holds where it is made again, whatever would be said of it then. Sizes that are one value
    have one name, and arrays of them one shape.
    """
    shared = _with_shared_values(graph)
    sizes = _equal_sizes(shared)
    return _with_shared_values(of_sizes(shared, sizes)) if sizes else shared


def _equal_sizes(graph: Graph) -> dict[Sym, Size]:
    """Names of sizes, each with the first name of the same value. What a body binds itself keeps its name: there it is needed."""
    own = {sym for node in graph.nodes for body in node.graphs.values() for sym in _bound_in(body)}
    first: dict[Hashable, Sym] = {}
    equal: dict[Sym, Size] = {}
    for node in graph.nodes:
        if node.op is ops.bind and (sym := node.params["sym"]) not in own:
            known = first.setdefault((node.inputs[0], sym.low, sym.high), sym)
            if known is not sym:
                equal[sym] = as_size(known)
    return equal


def _bound_in(graph: Graph) -> Iterator[Sym]:
    for node in graph.nodes:
        if node.op is ops.bind:
            yield node.params["sym"]
        for body in node.graphs.values():
            yield from _bound_in(body)


def _with_shared_values(graph: Graph) -> Graph:
    seen: dict[Hashable, tuple[Value, ...]] = {}

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | None:
        if node.op is ops.check:
            known = seen.setdefault((node.op, node.inputs[:2]), node.outputs)
            return None if known is node.outputs else known
        if node.has_effect or node.graphs or node.op is ops.empty:
            return None
        operands = tuple(sorted(node.inputs, key=id)) if node.op.is_commutative else node.inputs
        # What the user wants to hear of must not be said by what is ignored.
        errors = (node.source.ignored, node.source.demanded) if node.source and raised_by(node) else (0, 0)
        key = (node.op, params_key(node.params), operands, errors)
        known = seen.setdefault(key, node.outputs)
        return None if known is node.outputs else known

    return sweep(graph, visit)
