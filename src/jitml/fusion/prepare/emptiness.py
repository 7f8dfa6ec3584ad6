"""Checks of empty arguments: what if an argument whose size is left open is empty, and elements of it are asked for?

The program ends before it looks.

An index that is out of bounds is clamped, for it may be used before the check that it fails; of an empty array no place is left
that could be read. Arrays of the program's own have memory of their largest shape.
"""

from __future__ import annotations

from functools import cache

from jitml.ir import ops
from jitml.ir.dims import Dim, Size, as_size, limits
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording


def behind_emptiness_checks(graph: Graph) -> Graph:
    """The same graph with a check in front of every gather from an input that may turn out to be empty."""
    makers, inputs = graph.producers(), frozenset(graph.inputs)
    doubtful = {node: axes for node in graph.nodes if (axes := _open_axes(node, inputs, makers))}
    if not doubtful:
        return graph
    b = GraphBuilder()
    env = {v: b.add_input(v.aval) for v in graph.inputs}
    binders = graph.binders()

    @cache
    def value_of(size: Dim) -> Value:
        sizes = {sym: env[binders[sym]] for sym in size.syms}
        value: Value = next((sizes[sym] for sym in size.syms if as_size(sym) == size), None) or size.evaluate(sizes)
        return value

    @cache
    def is_fine(size: Dim, wanted: tuple[Size, ...]) -> Value:
        """Whether an axis has elements, or none are wanted."""
        ok = ops.gt(value_of(size), 0)
        for n in wanted:
            ok = ops.bit_or(ok, ops.le(value_of(n), 0)) if isinstance(n, Dim) else ok
        return ok

    with recording(b):
        for node in graph.nodes:
            operands = [env[v] for v in node.inputs]
            with b.at(node.source):
                for size in doubtful.get(node, ()):
                    ok, message = is_fine(size, node.inputs[1].shape), "an element is taken of an array that has none"
                    operands[1] = ops.check(operands[1], ok, error="IndexError", message=message)
            outputs = tuple(Value(v.aval) for v in node.outputs)
            b.append(Node(node.op, tuple(operands), node.params, outputs, node.source))
            env.update(zip(node.outputs, outputs, strict=True))
    return b.build([env[v] for v in graph.outputs])


def _open_axes(node: Node, inputs: frozenset[Value], makers: dict[Value, Node]) -> tuple[Dim, ...]:
    """The sizes that may be 0 of axes which a gather indexes, if it reads an input."""
    if node.op is not ops.gather or 0 in node.inputs[1].shape or _checked(node.inputs[0], makers) not in inputs:
        return ()
    axis = node.params["axis"]
    sizes: tuple[Size, ...] = node.inputs[0].shape[axis : axis + len(node.inputs) - 1]
    return tuple(n for n in sizes if isinstance(n, Dim) and limits(n)[0] <= 0)


def _checked(value: Value, makers: dict[Value, Node]) -> Value:
    while (maker := makers.get(value)) is not None and maker.op is ops.check:
        value = maker.inputs[0]
    return value
