"""Does NumPy itself give another answer where it rounds otherwise?  Then how far a compiled program is from it says nothing.

`tanh(x) + tanh(-x)` is nothing but rounding, and so is the sine of a power of 1e25. Results of functions that may be a unit in
the last place apart (elementary functions, and sums, whose order is free) are moved by one, wherever they are not exact.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

_ROUNDING = {
    "sin", "cos", "tanh", "exp", "log1p", "arctan", "arctan2", "cbrt", "power", "hypot", "sum", "mean", "prod", "median", "std",
    "var", "reduce", "accumulate", "cumsum", "cumprod", "dot", "vdot", "matmul", "einsum", "outer",
}  # fmt: skip
_OPERATORS = {ast.Pow: "pow", ast.MatMult: "matmul"}


class _Nudges(ast.NodeTransformer):
    """Has what may be rounded otherwise computed by `_nudge`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ROUNDING:
            return ast.Call(ast.Name("_nudge", ast.Load()), [node.func, *node.args], node.keywords)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if (name := _OPERATORS.get(type(node.op))) is not None:
            function = ast.Attribute(ast.Name("_operator", ast.Load()), name, ast.Load())
            return ast.Call(ast.Name("_nudge", ast.Load()), [function, node.left, node.right], [])
        return node


def nudged(text: str) -> str:
    """The text of a program that calls `_nudge(function, *args)` of what may be rounded otherwise, and `_operator.pow`."""
    return ast.unparse(ast.fix_missing_locations(_Nudges().visit(ast.parse(text))))


def nudging(seed: int) -> Callable[..., Any]:
    """A `_nudge` that moves numbers up and down by chance."""
    rng = np.random.default_rng(seed)

    def nudge(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        is_fresh = isinstance(result, (float, np.floating)) or (isinstance(result, np.ndarray) and result.base is None)
        if not is_fresh or "out" in kwargs or np.asarray(result).dtype.kind != "f":
            return result
        away = rng.choice([-np.inf, np.inf], np.shape(result)).astype(np.asarray(result).dtype)
        with np.errstate(all="ignore"):
            moved = np.where(_is_exact(result, function, args, kwargs), result, np.nextafter(result, away))
        return moved if isinstance(result, np.ndarray) else type(result)(moved[()])

    return nudge


def _is_exact(result: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Where a result is what numbers of more digits give."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ndarray):
        function, args = getattr(np.ndarray, function.__name__), (owner, *args)
    try:
        return np.equal(function(*map(_long, args), **{name: x for name, x in kwargs.items() if name != "dtype"}), result)
    except (TypeError, ValueError):
        return False


def _long(x: Any) -> Any:
    is_array = isinstance(x, (np.ndarray, np.floating, float)) and np.asarray(x).dtype.kind in "fiub"
    return np.asarray(x).astype(np.longdouble) if is_array else x
