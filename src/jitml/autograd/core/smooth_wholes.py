"""Smooth functions of parts that are not smooth: the slope of the whole is finite where that of a part is not, or says nothing.

`norm(x)**2` has a second derivative at the origin, where the norm has not even a first one; `sqrt(sum(d * d))` is a length, whose
slope is 0 where all of d is 0, as `np.linalg.norm` has it; `log1p(exp(x))` keeps its digits where its slope rounds to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from jitml.ir import ops
from jitml.ir.execute.debug_nans import derived
from jitml.ir.graph import Graph, GraphBuilder, Node, Value
from jitml.ir.op import recording
from jitml.ir.passes.bodies import everywhere
from jitml.ir.rewrite import Producers, sweep

_MAPS = (ops.reshape, ops.broadcast, ops.transpose)
# (operands, their tangents, the value) -> its tangent.
_Slope = Callable[[Sequence[Value], Sequence[Value], Value], Value]
_Whole = tuple[tuple[Value, ...], _Slope]


def with_wholes(graph: Graph) -> Graph:
    """Each such function as one, with a rule of its own: powers of lengths before lengths."""

    def rewrite(body: Graph) -> Graph:
        found = {node.op for node in body.nodes}
        if not found.isdisjoint((ops.sqrt, ops.log1p, ops.exp, ops.abs, ops.hypot)):
            body = sweep(body, partial(_make_smooth, _smooth))
        return sweep(body, partial(_make_smooth, _euclidean_length)) if ops.sqrt in found else body

    return everywhere(rewrite)(graph)


def _make_smooth(whole: Callable[[Node, Producers], _Whole | None], node: Node, producers: Producers) -> Value | None:
    if len(node.outputs) != 1 or node.output.dtype.kind != "f" or not node.output.aval.is_static:
        return None
    found = whole(node, producers)
    if found is None:
        return None
    inputs, slope = found
    call = Graph(inputs, _between(node, inputs, producers), node.outputs)
    varying = tuple(range(len(inputs)))
    (result,) = ops.custom_jvp(*inputs, call=call, rule=_rule(call, slope), varying=varying, name="smooth")
    return result


def _smooth(node: Node, producers: Producers) -> _Whole | None:
    if node.op is ops.log1p:
        return _softplus(node, producers)
    if node.op is ops.div:
        return _sigmoid(node, producers)
    root, power = _power(node, producers)
    return None if root is None else _power_of_root(root, power, producers)


def _softplus(node: Node, producers: Producers) -> _Whole | None:
    exp = producers.get(node.inputs[0])
    if exp is None or exp.op is not ops.exp:
        return None

    def slope(operands: Sequence[Value], tangents: Sequence[Value], y: Value) -> Value:
        e = _finite_exp(operands[0])
        moved: Value = tangents[0] * (e / (e + 1.0))
        return moved

    return exp.inputs, slope


def _sigmoid(node: Node, producers: Producers) -> _Whole | None:
    """`e / (e + 1)` of an exponential, which moves by itself over `e + 1`: 1 less itself has no digits where it is nearly 1."""
    add, x = producers.get(node.inputs[1]), _exponent(node.inputs[0], producers)
    if x is None or add is None or add.op is not ops.add:
        return None
    for e, one in (add.inputs, add.inputs[::-1]):
        if _exponent(e, producers) is x and _number(one, producers) == 1.0:
            return (x,), lambda operands, tangents, y: tangents[0] * (y / (_finite_exp(operands[0]) + 1.0))
    return None


def _exponent(v: Value, producers: Producers) -> Value | None:
    """Of what a value is the exponential, one of `_finite_exp` too."""
    node = producers.get(v)
    if node is not None and node.op is ops.select and _number(node.inputs[1], producers) == _most(v):
        node = producers.get(node.inputs[2])
    return node.inputs[0] if node is not None and node.op is ops.exp else None


def _finite_exp(x: Value) -> Value:
    """An exponential that may be divided by itself plus 1."""
    e = ops.exp(x)
    most = ops.full(value=_most(x), shape=x.shape, dtype=x.dtype)
    finite: Value = ops.select(ops.gt(e, most), most, e)
    return finite


def _most(x: Value) -> float:
    return float(np.finfo(np.dtype(x.dtype.name)).max) / 4


def _euclidean_length(node: Node, producers: Producers) -> _Whole | None:
    if node.op is not ops.sqrt or not _is_sum_of_squares(node.inputs[0], producers):
        return None

    def slope(operands: Sequence[Value], tangents: Sequence[Value], y: Value) -> Value:
        endless = ops.full(value=float("inf"), shape=y.shape, dtype=y.dtype)
        moved: Value = tangents[0] * (0.5 / ops.select(ops.eq(y, 0.0), endless, y))
        return moved

    return node.inputs, slope


def _is_sum_of_squares(v: Value, producers: Producers) -> bool:
    node = producers.get(v)
    if node is None:
        return False
    if node.op in (ops.reduce_sum, *_MAPS):
        return _is_sum_of_squares(node.inputs[0], producers)
    if node.op is ops.add:
        return all(_is_sum_of_squares(x, producers) for x in node.inputs)
    return _power(node, producers)[1] == 2


def _power(node: Node, producers: Producers) -> tuple[Value | None, float]:
    """What a node takes a power of, and which."""
    if node.op is ops.mul and node.inputs[0] is node.inputs[1]:
        return node.inputs[0], 2.0
    if node.op is ops.pow and (power := _number(node.inputs[1], producers)) in (2.0, 4.0):
        return node.inputs[0], power
    return None, 0.0


def _number(v: Value, producers: Producers) -> float | None:
    node = producers.get(v)
    return node.params["value"] if node is not None and node.op is ops.full else None


def _power_of_root(root: Value, power: float, producers: Producers) -> _Whole | None:
    maps: list[Node] = []
    while (node := producers.get(root)) is not None and node.op in _MAPS:
        maps.append(node)
        root = node.inputs[0]
    if node is None:
        return None
    found = _squared(node, producers)
    if found is None:
        return None
    inputs, square = found

    def slope(operands: Sequence[Value], tangents: Sequence[Value], y: Value) -> Value:
        value, moved = square(operands, tangents)
        if power == 4.0:
            moved = moved * value * 2.0
        for step in reversed(maps):
            moved = step.op(moved, **step.params)
        return moved

    return inputs, slope


_Square = Callable[[Sequence[Value], Sequence[Value]], tuple[Value, Value]]


def _squared(node: Node, producers: Producers) -> tuple[tuple[Value, ...], _Square] | None:
    """Of what a root is one, and how its square moves."""
    if node.op is ops.hypot:
        return node.inputs, lambda xs, dxs: (xs[0] * xs[0] + xs[1] * xs[1], (xs[0] * dxs[0] + xs[1] * dxs[1]) * 2.0)
    if node.op is ops.abs and node.inputs[0].dtype.kind == "c":
        return node.inputs, lambda xs, dxs: (ops.real(xs[0] * ops.conj(xs[0])), ops.real(dxs[0] * ops.conj(xs[0])) * 2.0)
    of = node.inputs[0] if node.op is ops.sqrt else _guarded(node, producers)
    return None if of is None else ((of,), lambda xs, dxs: (xs[0], dxs[0]))


def _guarded(node: Node, producers: Producers) -> Value | None:
    """Of what a root is taken that has no slope at 0: `select(eq(v, 0), v, sqrt(select(eq(v, 0), 1, v)))`."""
    if node.op is not ops.select:
        return None
    _, of, root = node.inputs
    made = producers.get(root)
    inside = producers.get(made.inputs[0]) if made is not None and made.op is ops.sqrt else None
    is_guard = inside is not None and inside.op is ops.select and inside.inputs[0] is node.inputs[0] and inside.inputs[2] is of
    test = producers.get(node.inputs[0])
    is_zero = test is not None and test.op is ops.eq and test.inputs[0] is of and _number(test.inputs[1], producers) == 0.0
    return of if is_guard and is_zero else None


def _between(last: Node, inputs: Sequence[Value], producers: Producers) -> tuple[Node, ...]:
    """The nodes that lead from some values to the last one, in order."""
    order: dict[Node, None] = {}
    path = [(last, False)]
    while path:
        node, is_ready = path.pop()
        if is_ready:
            order[node] = None
        elif node not in order:
            path.append((node, True))
            path += [(producers[v], False) for v in node.inputs if v not in inputs]
    return tuple(order)


def _rule(call: Graph, slope: _Slope) -> Graph:
    b = GraphBuilder()
    given = [b.add_input(v.aval) for v in call.inputs]
    tangents = [b.add_input(v.aval) for v in call.inputs]
    (y,) = b.inline(call, given)
    with recording(b), b.at(derived(call.nodes[-1], "slope")):
        return b.build([y, slope(given, tangents, y)])
