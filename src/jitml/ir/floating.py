"""Which floating-point errors can an op raise, and which of them does the user's code want to hear of?

Errors are bits, as in NumPy: 1 divide by zero, 2 overflow, 4 underflow, 8 invalid. What `np.errstate` says inside the function
stands in each node's `Source`; elsewhere the state at the call decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from jitml.errors import Source
from jitml.ir.graph import Graph, Node
from jitml.ir.types import is_complex, is_inexact

DIVIDE, OVERFLOW, UNDERFLOW, INVALID = 1, 2, 4, 8
CATEGORIES = {"divide": DIVIDE, "over": OVERFLOW, "under": UNDERFLOW, "invalid": INVALID}
ALL = 15

_RAISED: dict[str, int] = {
    **dict.fromkeys(("add", "sub", "mul"), OVERFLOW | UNDERFLOW | INVALID),
    **dict.fromkeys(("div", "pow"), ALL),
    **dict.fromkeys(("remainder", "fmod", "floor_divide"), DIVIDE | OVERFLOW | INVALID),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "arctanh"), DIVIDE | INVALID),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh"), OVERFLOW | UNDERFLOW),
    **dict.fromkeys(("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arccosh"), INVALID),
}
_MOVES = (
    "select", "lt", "le", "gt", "ge", "eq", "ne", "isnan", "isinf", "isfinite", "neg", "abs", "copysign", "signbit",
    "complex", "real", "imag", "conj",
)  # fmt: skip


def raised_by(node: Node) -> int:
    """The errors that a node can raise: what is not known is taken to raise all."""
    whole = any(is_complex(v.dtype) for v in node.inputs)  # several operations on the parts
    if node.op.name in _RAISED and not whole:
        return _RAISED[node.op.name]
    if node.op.family in ("index_maps", "indexed", "dynamic", "host", "random"):
        return 0
    if node.op.name in _MOVES and not (whole and node.op.name == "abs"):
        return 0
    return ALL if any(is_inexact(v.dtype) for v in (*node.inputs, *node.outputs)) else 0


def ignored_by(nodes: Iterable[Node]) -> int:
    """The errors that nobody wants to hear of, wherever in these nodes they come from."""
    ignored = ALL
    for node in nodes:
        if raised := raised_by(node):
            ignored &= (node.source.ignored if node.source else 0) | ~raised
    return ignored & ALL


def demanded_in(graph: Graph) -> int:
    """The errors that `np.errstate` inside the function does not ignore, whatever the state at the call."""
    demanded = 0
    for node in graph.nodes:
        demanded |= raised_by(node) & (node.source.demanded if node.source else 0)
        for body in node.bodies.values():
            demanded |= demanded_in(body)
    return demanded


def suspect(graph: Graph, error: int) -> Node | None:
    """The operation that raises an error most probably: the first of those that few others are like."""
    found = [node for node in graph.nodes if raised_by(node) & error and node.op.name in _RAISED]
    found.sort(key=lambda node: node.op.name in ("add", "sub", "mul"))
    inner = (suspect(body, error) for node in graph.nodes for body in node.bodies.values())
    return next(iter(found), None) or next((node for node in inner if node is not None), None)


def place_of(node: Node) -> tuple[str, int]:
    """The user's file and line."""
    source = node.source or Source("<jitml>", 1, "")
    return source.file, source.line
