"""Local algebra that changes no bit of any result."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import Op
from jitml.ir.passes.observable_errors import let_go
from jitml.ir.passes.windows import is_start
from jitml.ir.rewrite import Producers, Rule, sweep
from jitml.ir.types import BOOL, is_complex, is_inexact


def _counted_bits(width: int) -> Rule:
    """Set bits, as programs count them that have no function for it: neighbours are added up (Warren, Hacker's Delight, 5-1)."""
    every = (1 << width) - 1
    masks = [every // 3, every // 5, every // 17]  # 0x55.., 0x33.., 0x0f..
    pairs = f"sub(x, bit_and(shift_right(x, 1), {masks[0]}))"
    fours = f"add(bit_and({pairs}, {masks[1]}), bit_and(shift_right({pairs}, 2), {masks[1]}))"
    eights = f"bit_and(add({fours}, shift_right({fours}, 4)), {masks[2]})"
    whole = eights if width == 8 else f"shift_right(mul({eights}, {every // 255}), {width - 8})"
    return Rule(f"count {width} bits", whole, "count_bits(x)", kinds="u", itemsize=width // 8)


RULES = (
    Rule("negate twice", "neg(neg(x))", "x"),
    Rule("multiply by one", "mul(x, 1)", "x", kinds="fiu"),
    Rule("multiply by minus one", "mul(x, -1)", "neg(x)", kinds="fi"),
    Rule("divide by one", "div(x, 1)", "x"),
    Rule("subtract zero", "sub(x, 0)", "x", kinds="iu"),
    Rule("add zero to an integer", "add(x, 0)", "x", kinds="iu"),
    Rule("add a negation", "add(x, neg(y))", "sub(x, y)"),
    Rule("subtract a negation", "sub(x, neg(y))", "add(x, y)"),
    Rule("multiply negations", "mul(neg(x), neg(y))", "mul(x, y)"),
    Rule("divide negations", "div(neg(x), neg(y))", "div(x, y)"),
    Rule("invert twice", "bit_not(bit_not(x))", "x"),
    Rule("select by a negation", "select(bit_not(c), x, y)", "select(c, y, x)"),
    Rule("add booleans", "add(x, y)", "bit_or(x, y)", kinds="b"),
    Rule("multiply booleans", "mul(x, y)", "bit_and(x, y)", kinds="b"),
    Rule("maximum of one value", "maximum(x, x)", "x"),
    Rule("minimum of one value", "minimum(x, x)", "x"),
    Rule("and of one value", "bit_and(x, x)", "x"),
    Rule("or of one value", "bit_or(x, x)", "x"),
    Rule("magnitude of a negation", "abs(neg(x))", "abs(x)", kinds="f"),
    Rule("magnitude twice", "abs(abs(x))", "abs(x)", kinds="f"),
    *map(_counted_bits, (8, 16, 32, 64)),
    Rule("no derivative is asked any more", "stop_gradient(x)", "x"),
    # select(c, x, x) -> x is below: of what it drops, errors may be awaited.
    # Absent on purpose: x + 0.0 -> x and x - 0.0 -> x for floats: the first loses the sign of -0.0, the second is safe
    # only for +0.0 and numbers compare equal here; x * 0 -> 0 is wrong for nan and inf; x - x -> 0 as well;
    # exp(log x) -> x changes bits; (a + b) + c is never reassociated.
)

Shortcut = Callable[[Node, Producers], "Value | None"]
_SHORTCUTS: dict[Op, list[Shortcut]] = {}


def _shortcut(*on: Op) -> Callable[[Shortcut], Shortcut]:
    def register(function: Shortcut) -> Shortcut:
        for op in on:
            _SHORTCUTS.setdefault(op, []).append(function)
        return function

    return register


def simplify(graph: Graph) -> Graph:
    """Apply the rules above, and the shortcuts below for ops with parameters, once to each node in order.

    Operands are simplified before their users, so chains collapse in one sweep; a replacement is tried again until
    nothing fires, which ends since every rule makes the expression smaller or cheaper.
    """
    by_op: dict[Op, list[Rule]] = {}
    for rule in RULES:
        by_op.setdefault(rule.terms[0].op, []).append(rule)

    unread: set[Value] = set()
    if ops.update_slice in graph.ops:
        uses = Counter(v for node in graph.nodes for v in node.inputs) + Counter(graph.outputs)
        unread = {node.output for node in graph.nodes if node.op is ops.update_slice and uses[node.inputs[0]] == 1}

    def visit(node: Node, producers: Producers) -> Value | None:
        found = by_op.get(node.op, ())
        made_by = {maker.op for v in node.inputs if (maker := producers.get(v)) is not None} if found else ()
        for rule in found:
            if rule.inner and rule.inner.isdisjoint(made_by):
                continue
            result = rule.apply(node, producers)
            if result is not None:
                return result
        if node.op is ops.update_slice and node.output in unread and (result := _hidden_write(node, producers)) is not None:
            return result
        for shortcut in _SHORTCUTS.get(node.op, ()):
            result = shortcut(node, producers)
            if result is not None:
                return result
        return None

    return sweep(graph, visit)


@_shortcut(ops.eq)
def _is_itself(node: Node, producers: Producers) -> Value | None:
    """An integer equals itself. (nan does not.)"""
    x, y = node.inputs
    if x is not y or x.dtype.kind not in "iub":
        return None
    let_go(x, producers)
    return _made(ops.full(value=True, shape=x.shape, dtype=BOOL))


@_shortcut(ops.select)
def _is_either_way(node: Node, producers: Producers) -> Value | None:
    """A choice between a value and itself."""
    test, x, y = node.inputs
    if x is not y:
        return None
    let_go(test, producers)
    return x


@_shortcut(ops.check)
def _certain(node: Node, producers: Producers) -> Value | None:
    """A claim that is known to hold."""
    ok = producers.get(node.inputs[1])
    return node.inputs[0] if ok is not None and ok.op is ops.full and bool(ok.params["value"]) else None


@_shortcut(ops.broadcast, ops.transpose, ops.reshape, ops.slice, ops.convert, ops.pad, ops.resize)
def _nothing_moves(node: Node, producers: Producers) -> Value | None:
    """An index map or conversion onto the same aval that keeps every element where it is."""
    (x, *_) = node.inputs
    if x.aval != node.output.aval:
        return None
    if node.op is ops.transpose and node.params["perm"] != tuple(range(x.ndim)):
        return None
    if node.op is ops.pad:
        let_go(node.inputs[1], producers)
    return x


@_shortcut(ops.reduce_sum, ops.reduce_prod, ops.reduce_max, ops.reduce_min, ops.reduce_all, ops.reduce_any)
def _reduce_nothing(node: Node, producers: Producers) -> Value | None:
    """Reducing axes of length one is a reshape, but a sum begins with 0.0, and 1 * x makes nan of a complex infinity."""
    (x,) = node.inputs
    if node.op is ops.reduce_prod and is_complex(x.dtype):
        return None
    if any(x.shape[a] != 1 for a in node.params["axes"]):
        return None
    kept = _made(ops.reshape(x, shape=node.output.shape))
    return _summed(kept) if node.op is ops.reduce_sum else kept


def _summed(x: Value) -> Value:
    """What a sum that comes to x is: it begins with 0.0, so that it is not -0.0."""
    return _made(ops.add(x, 0.0)) if x.dtype.kind in "fc" else x


@_shortcut(ops.flip)
def _flip(node: Node, producers: Producers) -> Value | None:
    """A flip of nothing, or of axes of length one, or twice."""
    (x,) = node.inputs
    axes = [a for a in node.params["axes"] if x.shape[a] != 1]
    maker = producers.get(x)
    if maker is not None and maker.op is ops.flip:
        axes = sorted(set(axes) ^ set(maker.params["axes"]))
        x = maker.inputs[0]
    elif len(axes) == len(node.params["axes"]):
        return None
    return _made(ops.flip(x, axes=tuple(axes))) if axes else x


@_shortcut(ops.transpose)
def _transpose_twice(node: Node, producers: Producers) -> Value | None:
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.transpose:
        return None
    inner = maker.params["perm"]
    perm = tuple(inner[p] for p in node.params["perm"])
    x = maker.inputs[0]
    return x if perm == tuple(range(len(perm))) else _made(ops.transpose(x, perm=perm))


@_shortcut(ops.reshape)
def _reshape_twice(node: Node, producers: Producers) -> Value | None:
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.reshape:
        return None
    x = maker.inputs[0]
    return x if x.aval == node.output.aval else _made(ops.reshape(x, shape=node.output.shape))


@_shortcut(ops.broadcast)
def _broadcast_twice(node: Node, producers: Producers) -> Value | None:
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.broadcast:
        return None
    axes = tuple(node.params["axes"][a] for a in maker.params["axes"])
    return _made(ops.broadcast(maker.inputs[0], shape=node.output.shape, axes=axes))


@_shortcut(ops.broadcast)
def _broadcast_of_nothing_more(node: Node, producers: Producers) -> Value | None:
    """Where only axes of length one are put in, one form says so, for what is equal to be seen to be."""
    (x,), shape, axes = node.inputs, node.output.shape, node.params["axes"]
    if tuple(shape[a] for a in axes) != x.shape or any(n != 1 for a, n in enumerate(shape) if a not in axes):
        return None
    return _made(ops.reshape(x, shape=shape))


@_shortcut(ops.broadcast)
def _broadcast_of_kept_axes(node: Node, producers: Producers) -> Value | None:
    """Axes of length one that a reshape put in (`keepdims=True`) and the broadcast stretches need never have been there."""
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.reshape:
        return None
    (x,), shape = maker.inputs, maker.output.shape
    if x.shape != tuple(n for n in shape if n != 1):
        return None
    axes = tuple(a for a, n in zip(node.params["axes"], shape) if n != 1)
    return _made(ops.broadcast(x, shape=node.output.shape, axes=axes))


@_shortcut(ops.slice)
def _slice_twice(node: Node, producers: Producers) -> Value | None:
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.slice or node.syms or maker.syms:
        return None
    (x,), inner, outer = maker.inputs, maker.params, node.params
    start = tuple(a + b * s for a, s, b in zip(inner["start"], inner["step"], outer["start"]))
    step = tuple(s * t for s, t in zip(inner["step"], outer["step"]))
    stop = tuple(min(n, a + max(0, m - 1) * s + 1) if m else a for n, a, s, m in zip(x.shape, start, step, node.output.shape))
    if any(not 0 <= a <= n for a, n in zip(start, x.shape)):
        return None  # an empty slice past the end
    return _made(ops.slice(x, start=start, stop=stop, step=step))


@_shortcut(ops.slice)
def _slice_of_update(node: Node, producers: Producers) -> Value | None:
    """Reading back exactly the part that was just written."""
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.update_slice:
        return None
    same = maker.params["start"] == node.params["start"] and maker.params["step"] == node.params["step"]
    return maker.inputs[1] if same and maker.inputs[1].aval == node.output.aval else None


@_shortcut(ops.update_slice)
def _update_everything(node: Node, producers: Producers) -> Value | None:
    """A write that covers the whole array."""
    x, v = node.inputs
    return v if v.aval == x.aval else None


@_shortcut(ops.dynamic_slice, ops.dynamic_update_slice)
def _place_is_known(node: Node, producers: Producers) -> Value | None:
    """A window that begins at numbers, and lies inside."""
    x, step = node.inputs[0], node.params["step"]
    operands, shape = ((x,), node.output.shape) if node.op is ops.dynamic_slice else (node.inputs[:2], node.inputs[1].shape)
    makers = [producers.get(v) for v in node.inputs[len(operands) :]]
    start = tuple(int(m.params["value"]) for m in makers if m is not None and m.op is ops.full)
    if len(start) < len(makers) or not all(isinstance(n, int) and n for n in (*x.shape, *shape)):
        return None
    stop = tuple(a + (n - 1) * s + 1 for a, n, s in zip(start, shape, step))
    if any(a < 0 or b > n for a, b, n in zip(start, stop, x.shape)):
        return None  # a check fails before
    if node.op is ops.dynamic_slice:
        return _made(ops.slice(x, start=start, stop=stop, step=step))
    return _made(ops.update_slice(*operands, start=start, step=step))


@_shortcut(ops.dynamic_update_slice)
def _start_of_nothing(node: Node, producers: Producers) -> Value | None:
    """The start of an array, written where memory with any contents starts: the array does."""
    memory, part = (producers.get(v) for v in node.inputs[:2])
    if memory is None or memory.op is not ops.empty or part is None or part.op is not ops.dynamic_slice:
        return None
    same = part.inputs[0].aval == node.output.aval and is_start(part, producers) and is_start(node, producers)
    return part.inputs[0] if same else None


def _hidden_write(node: Node, producers: Producers) -> Value | None:
    """A write over an equal one that nobody has read: the earlier need not have been.

    If somebody has, both must happen, and the second goes on from the memory of the first.
    """
    x, v = node.inputs
    maker = producers.get(x)
    if maker is None or maker.op is not ops.update_slice or maker.params != node.params or maker.inputs[1].aval != v.aval:
        return None
    return _made(ops.update_slice(maker.inputs[0], v, **node.params))


@_shortcut(ops.convert)
def _convert_twice(node: Node, producers: Producers) -> Value | None:
    """A conversion whose first step loses nothing."""
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.convert:
        return None
    (x,), middle = maker.inputs, maker.output.dtype
    first, last = x.dtype, node.output.dtype
    exact = (first.kind == middle.kind or first.kind == "b") and first.itemsize <= middle.itemsize
    # What of a wide float fits no integer is another number than what of a narrow one does not.
    if not exact or (is_inexact(first) and not is_inexact(last)) or (first.kind == "b" and middle.kind == last.kind == "f"):
        return None
    return x if first == last else _made(ops.convert(x, dtype=last))


@_shortcut(ops.div)
def _divide_by_power_of_two(node: Node, producers: Producers) -> Value | None:
    """x / 4 -> x * 0.25, exact for powers of two whose inverse is a normal number."""
    x, y = node.inputs
    maker = producers.get(y)
    if maker is None or maker.op is not ops.full or node.output.dtype.itemsize < 4 or node.output.dtype.kind != "f":
        return None
    mantissa, exponent = math.frexp(float(maker.params["value"]))
    if abs(mantissa) != 0.5 or not -100 < exponent < 100:
        return None
    return _made(ops.mul(x, 1.0 / maker.params["value"]))


@_shortcut(ops.reduce_sum)
def _sum_of_repeats(node: Node, producers: Producers) -> Value | None:
    """A sum over axes that a broadcast made is a multiplication, and more accurate than the sum."""
    maker = producers.get(node.inputs[0])
    if maker is None or maker.op is not ops.broadcast:
        return None
    (x,), placed, axes = maker.inputs, maker.params["axes"], node.params["axes"]
    sizes = dict(zip(placed, x.shape))
    if any(sizes.get(a, 1) != 1 for a in axes):
        return None
    times = math.prod(node.inputs[0].shape[a] for a in axes)
    if x.dtype.kind in "bc" or type(times) is not int or not times or np.asarray(times).astype(x.dtype) != times:
        return None
    kept = [a for a in range(node.inputs[0].ndim) if a not in axes]
    shape = tuple(n for a, n in zip(placed, x.shape) if a not in axes)
    if shape != x.shape:
        x = _made(ops.reshape(x, shape=shape))
    if shape != node.output.shape:
        x = _made(ops.broadcast(x, shape=node.output.shape, axes=tuple(kept.index(a) for a in placed if a not in axes)))
    return _summed(_made(ops.mul(x, times)))


def _made(value: Any) -> Value:
    assert isinstance(value, Value)
    return value
