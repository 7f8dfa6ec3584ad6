"""Floating-point errors of ops.

Which floating-point errors can an op raise, and which of them does the user's code want to hear of?  Errors are bits, as in
NumPy: 1 divide by zero, 2 overflow, 4 underflow, 8 invalid. What `np.errstate` says inside the function stands in each node's
`Source`; elsewhere the state at the call decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from jitml.errors import Source
from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import UserFunction
from jitml.ir.types import BOOL, DType, is_inexact, part_dtype

DIVIDE, OVERFLOW, UNDERFLOW, INVALID = 1, 2, 4, 8
CATEGORIES = {"divide": DIVIDE, "over": OVERFLOW, "under": UNDERFLOW, "invalid": INVALID}
ALL = 15
RAISING = {DIVIDE: ops.raise_divide, OVERFLOW: ops.raise_overflow, UNDERFLOW: ops.raise_underflow, INVALID: ops.raise_invalid}

_ADDS, _SCALES = OVERFLOW | INVALID, OVERFLOW | UNDERFLOW | INVALID
_RAISED: dict[str, int] = {
    **dict.fromkeys(("add", "sub", "mul"), _SCALES),
    **dict.fromkeys(("div", "pow", "floor_divide"), ALL),
    **dict.fromkeys(("remainder", "fmod"), DIVIDE | OVERFLOW | INVALID),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "arctanh"), DIVIDE | INVALID),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh"), OVERFLOW | UNDERFLOW),
    **dict.fromkeys(("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arccosh"), INVALID),
    **dict.fromkeys(("tanh", "arctan", "arctan2", "arcsinh", "cbrt", "erf", "logistic"), UNDERFLOW),
    "hypot": OVERFLOW | UNDERFLOW,
    **dict.fromkeys(("reduce_sum", "cumsum"), _ADDS),
    **dict.fromkeys(("reduce_prod", "cumprod", "dot_general"), _SCALES),
    **{op.name: error for error, op in RAISING.items()},
}
_OF_INTEGERS = frozenset(("remainder", "fmod", "floor_divide", *(op.name for op in RAISING.values())))
_DIVISIONS = (ops.floor_divide, ops.remainder, ops.fmod)
_MOVES = frozenset((
    *("select", "lt", "le", "gt", "ge", "eq", "ne", "isnan", "isinf", "isfinite", "neg", "abs", "copysign", "signbit", "sign"),
    *("maximum", "minimum", "fmax", "fmin", "floor", "ceil", "trunc", "rint", "stop_gradient", "check", "observe", "barrier"),
    *("reduce_max", "reduce_min", "reduce_any", "reduce_all", "argmax", "argmin", "cummax", "cummin", "sort", "argsort"),
    *("complex", "real", "imag", "conj", "bits", "from_bits"),
))  # fmt: skip

# What NumPy calls otherwise in its warnings, and what its scalars compute by themselves.
_NAMES = {
    **{"sub": "subtract", "mul": "multiply", "div": "divide", "pow": "power", "convert": "cast", "dot_general": "matmul"},
    **dict.fromkeys(("reduce_sum", "reduce_prod"), "reduce"),
    **dict.fromkeys(("cumsum", "cumprod"), "accumulate"),
    **{"neg": "negative", "abs": "absolute"},
}
# What overflows, or meets an infinity, only of numbers that are large already, and of larger ones still.
_TAKES_MUCH = {
    **dict.fromkeys(("mul", "convert", "dot_general", "reduce_prod", "cumprod"), 1),
    **dict.fromkeys(("add", "sub", "reduce_sum", "cumsum"), 2),
}
_OF_SCALARS = frozenset(("add", "subtract", "multiply", "divide", "power", "remainder", "floor_divide", "negative", "absolute"))


def raising(value: Value, errors: int) -> Value:
    """A value, and errors wherever it is computed."""
    always = ops.full(value=True, shape=value.shape, dtype=BOOL)
    for error, op in RAISING.items():
        if errors & error:
            value = op(value, always)
    return value


def raised_by(node: Node) -> int:
    """The errors that a node can raise: what is not known is taken to raise all."""
    if node.op.family in ("index_maps", "indexed", "dynamic", "host", "random", "fft", "linalg"):
        return 0
    if isinstance(node.op, UserFunction):  # Python's functions do not warn
        return 0
    kinds = {v.aval.dtype.kind for v in node.inputs}
    if "c" in kinds:  # several operations on the parts
        return 0 if node.op.name in _MOVES and node.op.name not in ("abs", "sign") else ALL
    if node.op.name in _OF_INTEGERS:
        return _RAISED[node.op.name] & (
            ALL if node.op in RAISING.values() or is_inexact(node.output.dtype) else DIVIDE | OVERFLOW
        )
    if node.op.name in _MOVES or not ("f" in kinds or any(is_inexact(v.dtype) for v in node.outputs)):
        return 0
    return _by_conversion(node) if node.op.name == "convert" else _RAISED.get(node.op.name, ALL)


def _by_conversion(node: Node) -> int:
    source, target = node.inputs[0].dtype, node.output.dtype
    if not is_inexact(target):
        return INVALID if source.kind == "f" and target.kind != "b" else 0
    if source.kind == "f":
        return _SCALES if part_dtype(target).itemsize < source.itemsize else 0
    return OVERFLOW if target.itemsize == 2 else 0


def heard_of(node: Node) -> int:
    """The errors of a node that NumPy's users hear of unless they say otherwise: not underflow, nor what is ignored here."""
    raised, source = raised_by(node), node.source
    if source is None:
        return raised & ~UNDERFLOW
    return raised & ~source.ignored & (~UNDERFLOW | source.demanded)


def is_heard(node: Node) -> bool:
    """Whether somebody may hear of errors of a node, or of those in its bodies; a bad index is one."""
    if not node.bodies:
        return node.op.name in ("gather", "scatter") or bool(heard_of(node))
    return any(is_heard(n) for body in node.bodies.values() for n in body.nodes)


def is_harmless(node: Node, producers: Mapping[Value, Node]) -> bool:
    """Whether a float result can only underflow, since one operand is a number of moderate size; or a division of integers."""
    if node.op in _DIVISIONS and node.output.dtype.kind in "iu":
        divisor = _number(node.inputs[1], producers)
        return divisor is not None and divisor not in (0, -1)
    numbers = [_number(v, producers) for v in node.inputs]
    y = numbers[-1] if numbers else None
    match node.op:
        case ops.add:
            return any(n is not None and _is_lost_in_most(n, node.output.dtype) for n in numbers)
        case ops.sub:
            return y is not None and _is_lost_in_most(y, node.output.dtype)
        case ops.mul:
            return any(n is not None and abs(n) <= 1 and n != 0 for n in numbers)
        case ops.div:
            return y is not None and 1 <= abs(y) < math.inf
    return False


def _is_lost_in_most(n: float, dtype: DType) -> bool:
    """Whether the greatest number of a dtype stays what it is if that is added: of float16 it does not for 16."""
    info: Any = np.finfo(dtype)
    return abs(n) < float(info.max) * float(info.eps) / 4


def _number(value: Value, producers: Mapping[Value, Node]) -> float | None:
    """The number that is all of a float or integer value, if it is known."""
    maker = producers.get(value)
    while maker is not None and maker.op is ops.broadcast:
        maker = producers.get(maker.inputs[0])
    return float(maker.params["value"]) if maker is not None and maker.op is ops.full and value.dtype.kind in "fiu" else None


def ignored_by(nodes: Iterable[Node]) -> int:
    """The errors that nobody wants to hear of, wherever in these nodes they come from."""
    ignored = ALL
    for node in nodes:
        if raised := raised_by(node):
            ignored &= (node.source.ignored if node.source else 0) | ~raised
    return ignored & ALL


def possible_in(graph: Graph) -> int:
    """The errors that a graph's nodes can raise, those in bodies included."""
    return reduce(or_, (raised_by(node) for node in graph.walk() if not node.bodies), 0)


def demanded_in(graph: Graph) -> int:
    """The errors that `np.errstate` inside the function does not ignore, whatever the state at the call."""
    return reduce(or_, (raised_by(node) & (node.source.demanded if node.source else 0) for node in graph.walk()), 0)


def suspects(graph: Graph) -> dict[int, Node]:
    """Of each error, the operation that raises it most probably: the first of those that it takes least for."""
    makers, found = graph.producers(), dict[int, Node]()
    raising = [(node, raised) for node in graph.nodes if not node.bodies and (raised := raised_by(node))]
    raising.sort(key=lambda pair: _TAKES_MUCH.get(pair[0].op.name, 0))
    inner = [suspects(body) for node in graph.nodes for body in node.bodies.values()]
    for error in CATEGORIES.values():
        own = (node for node, raised in raising if raised & error and (error == UNDERFLOW or not is_harmless(node, makers)))
        node = next((_raiser(node, makers) for node in own), None) or next((x[error] for x in inner if error in x), None)
        if node is not None:
            found[error] = node
    return found


def _raiser(node: Node, makers: Mapping[Value, Node]) -> Node:
    """What an error is raised for, where a node says nothing but that it is."""
    while node.op in RAISING.values() and node.inputs[0] in makers:
        node = makers[node.inputs[0]]
    return node


def name_of(node: Node) -> str:
    """What NumPy calls a node's operation when it warns; outside of ufuncs, one of single numbers is probably of scalars."""
    name = _NAMES.get(node.op.name, node.op.name)
    if node.source is not None and node.source.operation and name != "cast":
        return node.source.operation
    return f"scalar {name}" if name in _OF_SCALARS and node.output.ndim == 0 else name


def place_of(node: Node) -> tuple[str, int]:
    """The user's file and line."""
    source = node.source or Source("<jitml>", 1, "")
    return source.file, source.line
