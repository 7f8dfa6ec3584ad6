"""Constant folding: nodes of constants are computed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.analysis.fp_errors import RAISING, raising
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import Aval

# A folded literal travels in the program; above this many elements computing it again is better than keeping it.
MAX_ELEMENTS = 1024
_REARRANGING = {ops.broadcast, ops.transpose, ops.reshape, ops.slice, ops.flip}


def fold_constants(graph: Graph) -> Graph:
    """Evaluate nodes whose operands are known, and those without elements.

    Of `full` operands, pointwise ops fold to one `full` and rearrangements keep the number at any size; small literal
    arrays fold by evaluation.
    """

    def visit(node: Node, producers: Producers) -> Value | tuple[Value, ...] | None:
        if node.op is ops.observe and _is_given(producers.get(node.inputs[0])):
            return ()
        if node.graphs or node.has_effect or not node.op.is_total or len(node.outputs) != 1:
            return None
        makers = [producers.get(v) for v in node.inputs]
        if makers and node.output.size == 0 and node.op.family != "indexed":
            # Indices are checked even where nothing is read.
            return _nothing(node.output.aval)
        if node.op is ops.dynamic_slice and makers[0] is not None and makers[0].op is ops.full and node.output.aval.is_static:
            return ops.full(value=makers[0].params["value"], shape=node.output.shape, dtype=node.output.dtype)
        if not makers or any(m is None or m.op not in (ops.full, ops.array) for m in makers):
            return None
        known = [m for m in makers if m is not None]
        aval = node.output.aval
        if all(m.op is ops.full for m in known):
            if node.op.is_pointwise:
                return _folded(node, known)
            if node.op in _REARRANGING:
                return ops.full(value=known[0].params["value"], shape=aval.shape, dtype=aval.dtype)
        if node.syms or aval.size > MAX_ELEMENTS or any(v.size > MAX_ELEMENTS for v in node.inputs):
            return None
        arrays = tuple(m.op.run((), dict(m.params)) for m in known)
        if node.op in RAISING.values() and np.any(arrays[1]):
            return None
        try:
            value, errors = _evaluated(node, arrays)
        except (IndexError, ValueError):  # the program's to raise, when it gets there
            return None
        result = np.asarray(value, aval.dtype)
        if result.size == 0:
            return _nothing(aval)
        made: Value = ops.array(value=result, shape=aval.shape, dtype=aval.dtype)
        return raising(made, errors)

    return sweep(graph, visit)


def _is_given(maker: Node | None) -> bool:
    """Whether a value is an input or a constant: there is nothing to observe."""
    return maker is None or maker.op in (ops.full, ops.array)


def _folded(node: Node, operands: Sequence[Node]) -> Value | None:
    """A pointwise node's result as one number; what raises floating-point errors is known, but they come up each time."""
    aval = node.output.aval
    scalars = tuple(np.asarray(m.params["value"]).astype(m.params["dtype"]) for m in operands)
    if node.op in RAISING.values():
        return None if scalars[1] else node.inputs[0]
    result, errors = _evaluated(node, scalars)
    number = np.asarray(result, aval.dtype).item()
    if not errors:
        return _full(number, aval)
    value = raising(_full(number, aval.with_shape(())), errors)
    return ops.broadcast(value, shape=aval.shape, axes=()) if aval.shape else value


def _full(number: bool | int | float | complex, aval: Aval) -> Value:
    made: Value = ops.full(value=number, shape=aval.shape, dtype=aval.dtype)
    return made


def _evaluated(node: Node, operands: tuple[Any, ...]) -> tuple[Any, int]:
    """The result, and the floating-point errors that come up on the way."""
    errors: list[int] = []
    with np.errstate(all="call", call=lambda kind, flags: errors.append(flags)):
        result = node.op.evaluate(*operands, **node.params)
    return result, reduce(or_, errors, 0)


def _nothing(aval: Aval) -> Value:
    """An array without elements."""
    return _full({"f": 0.0, "b": False, "c": 0j}.get(aval.dtype.kind, 0), aval)
