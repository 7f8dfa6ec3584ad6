"""Other expressions in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jitml.kernels.ir import Apply, Expr, Load, Var, add, mul, sub

_FOLDED = {"add": add, "sub": sub, "mul": mul}


def substituted(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with other expressions for its variables."""
    match expr:
        case Var(name):
            return values.get(name, expr)
        case Apply(fn, args):
            parts = tuple(substituted(a, values) for a in args)
            if fn in _FOLDED and expr.dtype == parts[0].dtype and expr.dtype.kind == "i" and expr.dtype.itemsize == 8:
                return _FOLDED[fn](*parts)
            return replace(expr, args=parts)
        case Load():
            return replace(expr, at=tuple(substituted(e, values) for e in expr.at))
    return expr
