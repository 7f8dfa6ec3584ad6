"""Softmax recognition: which quotients are a softmax?  `e / e.sum(...)` of `e = exp(x)`, whose slope takes nothing but its value.

By the slopes of its parts the exponentials would be kept beside the quotients, and the cotangents divided: twice the memory of
what is N² numbers in attention.
"""

from __future__ import annotations

from jitml.ir import ops
from jitml.ir.execute.debug_nans import derived
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import everywhere
from jitml.ir.rewrite import Producers, sweep


def with_softmaxes(graph: Graph) -> Graph:
    """Each softmax as one function with a rule of its own."""

    def visit(node: Node, producers: Producers) -> Value | None:
        function = _softmax(node, producers)
        if function is None:
            return None
        (result,) = ops.custom_jvp(*function.inputs, call=function, rule=_rule(function), varying=(0,), name="softmax")
        return result

    def rewrite(body: Graph) -> Graph:
        return sweep(body, visit) if any(node.op is ops.exp for node in body.nodes) else body

    return everywhere(rewrite)(graph)


def _softmax(node: Node, producers: Producers) -> Graph | None:
    """The function that ends in a quotient, if that is a softmax."""
    if node.op is not ops.div or node.output.dtype.kind != "f" or not node.output.aval.is_static:
        return None
    e, divisor = node.inputs
    exp, spread = producers.get(e), producers.get(divisor)
    if exp is None or exp.op is not ops.exp or spread is None or spread.op is not ops.broadcast:
        return None
    added, at = producers.get(spread.inputs[0]), spread.params["axes"]
    between: tuple[Node, ...] = ()
    if added is not None and added.op is ops.reshape:  # sums that have kept their axes, or lost those of length 1
        shape, between = added.output.shape, (added,)
        at = tuple(axis for axis, n in zip(at, shape) if n != 1)
        added = producers.get(added.inputs[0])
        if added is None or _long(shape) != _long(added.output.shape):
            return None
    if added is None or added.op is not ops.reduce_sum or added.inputs[0] is not e:
        return None
    kept = [axis for axis in range(e.ndim) if axis not in added.params["axes"]]
    if [axis for axis in at if e.shape[axis] != 1] != [axis for axis in kept if e.shape[axis] != 1]:
        return None  # each sum stands beside other numbers than those that it is of
    return Graph(exp.inputs, (exp, added, *between, spread, node), (node.output,))


def _long(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def _rule(softmax: Graph) -> Graph:
    """With y the value: y * dx - y * sum(y * dx)."""
    _, added, *_, node = softmax.nodes
    kept = tuple(axis for axis in range(node.output.ndim) if axis not in added.params["axes"])
    b = GraphBuilder()
    x, dx = (b.add_input(v.aval) for v in softmax.inputs * 2)
    (y,) = b.inline(softmax, [x])
    with recording(b), b.at(derived(node, "slope")):
        moved = y * dx
        total = ops.broadcast(ops.reduce_sum(moved, axes=added.params["axes"]), shape=y.shape, axes=kept)
        return b.build([y, moved - y * total])
