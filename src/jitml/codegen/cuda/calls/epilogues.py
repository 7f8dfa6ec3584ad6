"""Epilogues of cuBLASLt: is what is made of a product one of them?

A bias is added to the sums as they are: with f32 that is NumPy's own rounding. The library does not say what its relu makes of
nan, nor how near its gelu is. So these are for those who allow as much: `nnan`, and for gelu `afn` as well. Of halves the sums
are rounded once and not twice (`contract`). With f64 it is not known to have any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitml.codegen.cuda.libraries.cublaslt import LibraryProduct
from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.interpret import interpret_outputs
from jitml.ir.op import recording
from jitml.ir.types import F16, F64, Aval
from jitml.kernels.ir import Buffer
from jitml.records import dataclass

BIAS, RELU, GELU = 4, 2, 32  # CUBLASLT_EPILOGUE_...: of a bias and what follows, the sum of both
DEFAULT = 1
# Of functions made of these alone, a few values tell which they are.
_SMOOTH = (ops.mul, ops.add, ops.sub, ops.neg, ops.div, ops.tanh, ops.exp, ops.logistic, ops.pow)


@dataclass(frozen=True, slots=True)
class LibraryEpilogue:
    """
    Args:
        bias: a number for each column.
        activation: RELU, GELU, or 0.
    """

    bias: Value | None
    activation: int

    @property
    def code(self) -> int:
        return (BIAS if self.bias is not None else 0) + self.activation or DEFAULT

    def applied_to(self, product: LibraryProduct, buffers: Mapping[Value, Buffer]) -> LibraryProduct:
        return product.with_epilogue(self.code, None if self.bias is None else buffers[self.bias].name)


def library_epilogue(graph: Graph, sums: Value, fastmath: frozenset[str]) -> LibraryEpilogue | None:
    """What makes the graph's result of a product's; None if the library has nothing like it, or is not allowed to do it."""
    makers, users = graph.producers(), graph.users()
    (out,) = graph.outputs
    value, bias = sums, None
    if len(users[value]) == 1 and (found := _bias(users[value][0], value, makers, graph)) is not None:
        value, bias = users[value][0].output, found
    activation = 0
    if value is not out:
        activation = _activation(graph, value, out, fastmath)
        if not activation:
            return None
    if (bias is not None or activation) and (sums.dtype == F64 or (sums.dtype == F16 and "contract" not in fastmath)):
        return None
    return LibraryEpilogue(bias, activation)


def _bias(node: Node, value: Value, makers: Mapping[Value, Node], graph: Graph) -> Value | None:
    """The vector that a node adds to each row of a value."""
    if node.op is not ops.add:
        return None
    x, y = node.inputs
    spread = makers.get(y if x is value else x)
    if x is y or spread is None or spread.op is not ops.broadcast or spread.params["axes"] != (value.ndim - 1,):
        return None
    (vector,) = spread.inputs
    return vector if vector in graph.inputs and vector.shape == value.shape[-1:] else None


def _activation(graph: Graph, value: Value, out: Value, fastmath: frozenset[str]) -> int:
    makers = graph.producers()
    if "nnan" not in fastmath:
        return 0
    if _is_relu(makers[out], value, makers):
        return RELU
    return GELU if "afn" in fastmath and _is_gelu(graph, value, out) else 0


def _is_relu(node: Node, value: Value, makers: Mapping[Value, Node]) -> bool:
    if node.op is not ops.maximum or value not in node.inputs:
        return False
    others = [makers.get(v) for v in node.inputs if v is not value]
    return len(others) == 1 and others[0] is not None and others[0].op is ops.full and others[0].params["value"] == 0


def _is_gelu(graph: Graph, value: Value, out: Value) -> bool:
    """Whether a smooth function of one value is the gelu with tanh, however it is written."""
    x = np.linspace(-12, 12, 2401)
    found = _at_points(graph, value, out, x)
    if found is None:
        return False
    wanted = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return bool(np.all(abs(found - wanted) <= 1e-5))


def _at_points(graph: Graph, value: Value, out: Value, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The function that makes one value of another, in f64; None if it is not smooth, or one of other values too."""
    b = GraphBuilder()
    known = {value: b.add_input(Aval(x.shape, F64))}
    with recording(b):
        for node in graph.nodes:
            if node.op is ops.full:
                known[node.output] = ops.full(value=float(node.params["value"]), shape=x.shape, dtype=F64)
            elif node.op in _SMOOTH and all(v in known for v in node.inputs):
                known[node.output] = node.op(*(known[v] for v in node.inputs), **node.params)
            elif node.op is ops.broadcast and node.inputs[0] in known:
                known[node.output] = known[node.inputs[0]]
    if out not in known:
        return None
    (found,) = interpret_outputs(b.build([known[out]]), [x])
    return found
