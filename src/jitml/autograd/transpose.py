"""Reverse mode: a linear graph in, the graph of its transpose out.

A rule answers for one linear op: given the cotangent of its result, what is the cotangent of each operand?  The operands
it is linear in arrive as `Linear`, their aval alone; the others as values. Cotangents that are zero by structure are
`None`; those of a value with several users are added in reverse order of use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jitml.ir import ops
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import RuleTable, recording
from jitml.ir.types import Aval, DType


@dataclass(frozen=True, slots=True)
class Linear:
    """The place of an operand that a linear op is linear in: it has no value while transposing."""

    aval: Aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def dtype(self) -> DType:
        return self.aval.dtype


Operand = Value | Linear
Cotangent = Value | None
# (ct, *operands, **params) -> one cotangent per operand, None for those that are values.
TransposeRule = Callable[..., tuple[Cotangent, ...]]

transpose: RuleTable[TransposeRule] = RuleTable("transpose", "autograd/rules")


def transpose_graph(graph: Graph, constants: int) -> Graph:
    """The transpose of a graph that is linear in its inputs after the first `constants`.

    Returns:
        Inputs: the same constants, then a cotangent per output. Outputs: a cotangent per linear input.

    >>> from jitml.ir.parser import parse
    >>> print(transpose_graph(parse("graph(a: f32[4], b: f32[4]) { c: f32[4] = mul a b; return c }"), 1))
    graph(a: f32[4], b: f32[4]) {
      c: f32[4] = mul b a
      return c
    }
    """
    b = GraphBuilder()
    known = {v: b.add_input(v.aval) for v in graph.inputs[:constants]}
    linear = set(graph.inputs[constants:])
    backward: list[Node] = []
    for node in graph.nodes:
        if linear.isdisjoint(node.inputs):
            outs = b.emit(node.op, tuple(known[v] for v in node.inputs), node.params, _avals(node), node.source)
            known.update(zip(node.outputs, outs, strict=True))
        else:
            linear.update(node.outputs)
            backward.append(node)

    cotangents = Cotangents()
    with recording(b):
        for value in graph.outputs:
            cotangents.add(value, b.add_input(value.aval))
        for node in reversed(backward):
            ct = cotangents.pop(node.output)
            if ct is None:
                continue
            operands = [known[v] if v in known else Linear(v.aval) for v in node.inputs]
            with b.at(node.source):
                for v, ct_v in zip(node.inputs, transpose[node.op](ct, *operands, **node.params), strict=True):
                    if v in linear:
                        cotangents.add(v, ct_v)
        wrt = graph.inputs[constants:]
        found = [cotangents.pop(v) for v in wrt]
        dense = [ct if ct is not None else zeros(v.aval) for v, ct in zip(wrt, found)]
    return b.build(dense)


def zeros(aval: Aval) -> Value:
    return ops.full(value=0.0, shape=aval.shape, dtype=aval.dtype)


def _avals(node: Node) -> tuple[Aval, ...]:
    return tuple(v.aval for v in node.outputs)


class Cotangents:
    """What has reached each value so far."""

    def __init__(self) -> None:
        self._sums: dict[Value, Value] = {}

    def add(self, value: Value, ct: Cotangent) -> None:
        if ct is None:
            return
        assert ct.aval == value.aval, f"a cotangent {ct.aval} for a value {value.aval}"
        before = self._sums.get(value)
        self._sums[value] = ct if before is None else ops.add(before, ct)

    def pop(self, value: Value) -> Cotangent:
        return self._sums.pop(value, None)


def linear_operands(operands: Sequence[Any], ct: Cotangent) -> tuple[Cotangent, ...]:
    """The same cotangent for every linear operand."""
    return tuple(ct if isinstance(x, Linear) else None for x in operands)
