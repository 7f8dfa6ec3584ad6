"""Call sites: the calls of plain statements that are looked at, since what they call may be compiled for itself.

`model.step(x)` becomes `(.c0(model.step) if .c0 is not None else model.step)(x)`. Once it is known that nothing else is called
there, `.c0` is None, and the call costs what it costs in Python (`callees.CallSite`).
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable
from typing import NamedTuple

from jitml.sections.live_names import NONE, Names
from jitml.trace.rewrite.syntax import Transformer, inside

GROWING = {"append", "add", "extend", "insert", "update", "setdefault", "appendleft"}
# Methods of Python's own containers and texts: no function of the user's is behind most of them.
_PYTHONS = GROWING | {
    *("pop", "popleft", "get", "keys", "values", "items", "format", "join", "split", "strip", "copy", "write", "sort"),
}


class Site(NamedTuple):
    """Whether a call may say that nothing is to be asked any more, and whether it is in a loop."""

    may_end: bool
    is_inside: bool


class CalleeCalls(Transformer):
    """Has call sites asked what to call.

    Args:
        asks: whether something else may be called in place of what is named.
        sites: gets the names of sites.
        others: names of what is no function of the user's.
        is_inside: whether they are in a loop.
    """

    def __init__(
        self, asks: Callable[[ast.expr], bool], sites: dict[str, Site], others: Names = NONE, *, is_inside: bool
    ) -> None:
        self._asks, self._sites, self._others, self._is_inside = asks, sites, others, is_inside

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not may_be_users(function) or getattr(function, "id", "") in self._others or not self._asks(function):
            return node
        name = f".c{len(self._sites)}"
        # What has calls in itself is not written twice: chains of them would double at each.
        may_end = not any(isinstance(x, (ast.Call, ast.NamedExpr)) for x in inside([function]))
        self._sites[name] = Site(may_end, self._is_inside)
        asked: ast.expr = ast.Call(_name(name), [function], [])
        if may_end:
            is_on = ast.Compare(_name(name), [ast.IsNot()], [ast.Constant(None)])
            asked = ast.IfExp(is_on, asked, copy.deepcopy(function))
        node.func = _at(asked, function)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node


def may_be_users(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(attr=attr):
            return attr not in _PYTHONS
        case ast.Name(id=name):
            return not hasattr(builtins, name)
    return False


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _at(made: ast.expr, where: ast.expr) -> ast.expr:
    """Places for what has none."""
    for part in inside([made]):
        if isinstance(part, ast.expr) and not hasattr(part, "lineno"):
            ast.copy_location(part, where)
    return made


__all__ = ["GROWING", "CalleeCalls", "Site", "may_be_users"]
