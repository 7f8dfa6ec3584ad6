"""What is an integer in the call that is being traced?  A hint, never a truth: it bounds what nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.interpret import interpret_outputs
from jitml.ir.op import recording
from jitml.trace.context import Trace, active_trace

_LONGEST = 1000  # nodes to evaluate


def sample_of(value: Value) -> int | None:
    """The value for the arguments of this call; None if it depends on more than those, or takes long to find."""
    root = active_trace().root
    given = _arguments(root)
    order: list[Node] = []
    if not _collect(value, given, order, set()):
        return None
    needed = tuple(dict.fromkeys(v for node in order for v in node.inputs if v in given)) if order else (value,)
    try:
        with recording(None), np.errstate(all="ignore"):
            (found,) = interpret_outputs(Graph(needed, tuple(order), (value,)), [given[v] for v in needed])
    except Exception:  # an index out of range, say: then this call will not get so far either
        return None
    return int(found)


def _arguments(root: Trace) -> dict[Value, Any]:
    arrays = {tracer.storage.entry: array for array, tracer in root.arrays.values()}
    given: dict[Value, Any] = {}
    for value, slot in zip(root.builder.inputs, root.origins):
        if slot in arrays:
            given[value] = np.asarray(arrays[slot], value.dtype)
        elif value in root.scalars:
            given[value] = np.asarray(root.scalars[value][1], value.dtype)
    return given


def _collect(value: Value, given: dict[Value, Any], order: list[Node], seen: set[Node]) -> bool:
    """The nodes that make a value, operands first; False if one cannot be evaluated here."""
    if value in given:
        return True
    builder = active_trace().builder
    node = builder.producer(value)
    if node is None or node.bodies or (node.has_effect and node.op is not ops.check) or len(seen) > _LONGEST:
        return False
    if node in seen:
        return True
    seen.add(node)
    sizes = (active_trace().root.sizes[sym] for sym in node.syms)
    if not all(_collect(v, given, order, seen) for v in (*node.inputs, *sizes)):
        return False
    binders = active_trace().root.size_names
    order.append(node)
    order.extend(
        Node(ops.bind, (v,), {"sym": dim.terms[0][0][0]}, ()) for v in node.outputs if (dim := binders.get(v)) is not None
    )
    return True
