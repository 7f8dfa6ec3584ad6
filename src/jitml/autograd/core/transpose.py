"""Reverse mode: a linear graph in, the graph of its transpose out.

A rule answers for one linear op: given the cotangent of its result, what is the cotangent of each operand?  The operands
it is linear in arrive as `LinearPlace`, their aval alone; the others as values. Cotangents that are zero by structure are
`None`; those of a value with several users are added in reverse order of use.

The cotangent of what reads a part of an array (a slice, a gather) is a `PartialCotangent`: it is added in place to what is there
already, so that a loop over the parts costs what the parts cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.execute.debug_nans import derived
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import Op, RuleTable, active_recorder, recording
from jitml.ir.types import Aval, DType
from jitml.records import dataclass


@dataclass(frozen=True, slots=True)
class LinearPlace:
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


@dataclass(frozen=True, slots=True)
class PartialCotangent:
    """A cotangent that is zero outside a part of the array.

    into: adds it to a cotangent of the whole array. alone: the array of it and zeros.
    block: the part and where it starts, if its elements are neighbours in the array and both shapes are known.
    """

    into: Callable[[Value], Value]
    alone: Callable[[], Value]
    block: tuple[Value, tuple[int, ...]] | None = None


MOST_BLOCKS = 8  # the loops that make an array of blocks are cut as often

Operand = Value | LinearPlace
Cotangent = Value | PartialCotangent | None
# (ct, *operands, **params) -> one cotangent per operand, None for those that are values.
TransposeRule = Callable[..., tuple[Cotangent, ...]]

transpose: RuleTable[TransposeRule] = RuleTable("transpose", "autograd/rules")

# Of a node with any number of results, its inputs replaced by the operands, and the cotangents of its results -> one
# cotangent per operand. The rule takes from the last what has reached an operand so far, to go on adding there.
TransposeOfMany = Callable[[Node, Sequence[Operand], Sequence["Value | None"], "Cotangents"], Sequence[Cotangent]]

transpose_of_many: RuleTable[TransposeOfMany] = RuleTable("transpose", "autograd/rules")


def transpose_graph(graph: Graph, constants: int) -> Graph:
    """The transpose of a graph that is linear in its inputs after the first `constants`.

    Returns:
        Inputs: the same constants, then a cotangent per output. Outputs: a cotangent per linear input.

    >>> from jitml.ir.text.parser import parse
    >>> print(transpose_graph(parse("graph(a: f32[4], b: f32[4]) { c: f32[4] = mul a b; return c }"), 1))
    graph(a: f32[4], b: f32[4]) {
      c: f32[4] = mul b a
      return c
    }
    """
    b = GraphBuilder()
    known = {v: b.add_input(v.aval) for v in graph.inputs[:constants]}
    cotangents = Cotangents()
    with recording(b):
        for value in graph.outputs:
            cotangents.add(value, b.add_input(value.aval))
        found = pull_back(b, graph, known, graph.inputs[constants:], cotangents)
        dense = [ct if ct is not None else zeros(v.aval) for v, ct in zip(graph.inputs[constants:], found)]
    return b.build(dense)


def pull_back(
    b: GraphBuilder, graph: Graph, known: dict[Value, Value], wrt: Sequence[Value], cotangents: Cotangents
) -> list[Value | None]:
    """Record into `b` what takes the cotangents of a graph's outputs back to its inputs `wrt`.

    Args:
        known: the other inputs, and their values in `b`.
    """
    linear = set(wrt)
    backward: list[Node] = []
    for node in graph.nodes:
        if linear.isdisjoint(node.inputs):
            outs = b.emit(node.op, tuple(known[v] for v in node.inputs), node.params, _avals(node), node.source)
            known.update(zip(node.outputs, outs, strict=True))
        else:
            linear.update(node.outputs)
            backward.append(node)
    for node in reversed(backward):
        with b.at(derived(node, "cotangent")):
            _pull_node(node, known, linear, cotangents)
    return [cotangents.pop(v) for v in wrt]


def _pull_node(node: Node, known: dict[Value, Value], linear: set[Value], cotangents: Cotangents) -> None:
    cts = [cotangents.pop(v) for v in node.outputs]
    if all(ct is None for ct in cts):
        return
    operands = [known[v] if v in known else LinearPlace(v.aval) for v in node.inputs]
    if not is_linear(node, [isinstance(x, LinearPlace) for x in operands]):
        raise not_linear(node.op.name, node)
    if node.op in transpose_of_many:
        found = transpose_of_many[node.op](node, operands, cts, cotangents)
    else:
        found = transpose[node.op](*cts, *operands, **node.params)
    for v, ct in zip(node.inputs, found, strict=True):
        if v in linear:
            cotangents.add(v, ct)


def is_linear(node: Node, reached: Sequence[bool]) -> bool:
    """Whether a node is linear in those of its inputs that depend on a tangent."""
    if node.op in (ops.mul, ops.dot_general):
        return sum(reached) == 1
    if node.op is ops.div:
        return not reached[1]
    if node.op is ops.select:
        return not reached[0]
    return node.op in transpose or node.op in transpose_of_many


def not_linear(what: str, node: Node) -> DerivativeError:
    """Our own rules for tangents are linear: it is one of the user's."""
    return DerivativeError(
        f"{what} of a tangent is not linear: reverse mode cannot use the rule of a custom_jvp that has it",
        source=node.source,
        remedy="A rule multiplies tangents by what it computes of primals, and adds them up.",
    )


def zeros(aval: Aval) -> Value:
    return ops.full(value=0.0, shape=aval.shape, dtype=aval.dtype)


def _avals(node: Node) -> tuple[Aval, ...]:
    return tuple(v.aval for v in node.outputs)


class Cotangents:
    """What has reached each value so far: a sum, and parts that are still to be added to it."""

    def __init__(self) -> None:
        self._sums: dict[Value, Value] = {}
        self._parts: dict[Value, list[PartialCotangent]] = {}

    def add(self, value: Value, ct: Cotangent) -> None:
        if ct is None:
            return
        if isinstance(ct, PartialCotangent):
            self._parts.setdefault(value, []).append(ct)
            return
        assert ct.aval == value.aval, f"a cotangent {ct.aval} for a value {value.aval}"
        before = self._sums.get(value)
        self._sums[value] = ct if before is None else ops.add(before, ct)

    def pop(self, value: Value) -> Value | None:
        total, parts = self._sums.pop(value, None), self._parts.pop(value, [])
        if total is None and len(parts) > 1:
            total = side_by_side(parts, value.aval)
            if total is not None:
                return total
        for part in parts:
            total = part.alone() if total is None else part.into(total)
        return total


def side_by_side(parts: Sequence[PartialCotangent], aval: Aval) -> Value | None:
    """The array of blocks along one axis that have no elements in common, or all of them; None if parts are no such blocks."""
    blocks: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Value]] = {}
    for part in parts:
        if part.block is None:
            return None
        ct, start = part.block
        blocks.setdefault((start, ct.shape), []).append(ct)
    cut = {a for _, shape in blocks for a, n in enumerate(shape) if n != aval.shape[a]}
    if len(cut) != 1 or not 1 < len(blocks) <= MOST_BLOCKS:
        return None
    (axis,) = cut
    limits = [(start[axis], start[axis] + shape[axis]) for start, shape in blocks]
    order = sorted(zip(limits, blocks.values()), key=lambda block: block[0])
    if any(end > start for ((_, end), _), ((start, _), _) in pairwise(order)):
        return None
    pieces: list[Value] = []
    done = 0
    for (low, high), cts in order:
        pieces += [*_gap(aval, axis, low - done, cts[0].dtype), reduce(ops.add, cts)]
        done = high
    whole: Value = ops.concat(*pieces, *_gap(aval, axis, aval.shape[axis] - done, pieces[0].dtype), axis=axis)
    return whole


def _gap(aval: Aval, axis: int, n: int, dtype: DType) -> list[Value]:
    return [zeros(Aval((*aval.shape[:axis], n, *aval.shape[axis + 1 :]), dtype))] if n else []


def cleared(total: Value, op: Op, starts: Sequence[Value], aval: Aval, **params: Any) -> Value | None:
    """What `total` was before zeros were written to just the place where a part is to be added; else None."""
    b = active_recorder()
    assert isinstance(b, GraphBuilder)
    node = b.maker(total)
    if node is None or node.op is not op or node.inputs[2:] != tuple(starts) or dict(node.params) != params:
        return None
    zero = b.maker(node.inputs[1])
    is_zero = zero is not None and zero.op is ops.full and zero.params["value"] == 0 and node.inputs[1].aval == aval
    return node.inputs[0] if is_zero else None


def linear_operands(operands: Sequence[Any], ct: Cotangent) -> tuple[Cotangent, ...]:
    """The same cotangent for every linear operand."""
    return tuple(ct if isinstance(x, LinearPlace) else None for x in operands)
