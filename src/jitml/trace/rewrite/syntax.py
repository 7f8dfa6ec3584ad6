"""Syntax walks: which nodes are there in a piece of source?

A function is walked some twenty times before it is traced, mostly in vain. So walks give lists, in no certain order, and only
look where nodes may be: a third of the time of `ast.walk`, which also gives operators and contexts.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_NO_NODES = frozenset((
    "ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "conversion", "simple", "is_async", "module", "level",
    "asname", "kwd_attrs", "rest", "str",
))  # fmt: skip


class _NodeFields(dict[type, tuple[str, ...]]):
    """Fields of a kind of nodes that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        names = kind._fields if kind not in (ast.Constant, ast.Global, ast.Nonlocal, ast.alias, ast.MatchSingleton) else ()
        named = kind.__name__ == "TypeAlias"  # its name is a node
        self[kind] = tuple(name for name in names if name not in _NO_NODES and (name != "name" or named))
        return self[kind]


_node_fields = _NodeFields()


def parts(node: ast.AST) -> list[Any]:
    """The nodes right below one, but operators."""
    found: list[Any] = []
    for name in _node_fields[type(node)]:
        part = getattr(node, name, None)
        if type(part) is list:
            found += filter(None, part)
        elif part is not None:
            found.append(part)
    return found


def inside(nodes: Iterable[ast.AST]) -> list[Any]:
    """All nodes, but operators; those of functions and classes inside, too."""
    found: list[Any] = [*nodes]
    for node in found:
        for name in _node_fields[type(node)]:
            part = getattr(node, name, None)
            if type(part) is list:
                found += filter(None, part)  # a key of `{**x}` is None
            elif part is not None:
                found.append(part)
    return found


def within(nodes: Iterable[ast.AST]) -> list[Any]:
    """All nodes of the same function, but operators; of functions and classes inside it only their defaults and decorators."""
    found: list[Any] = [*nodes]
    for node in found:
        kind = type(node)
        if kind in SCOPES:
            found += getattr(node, "decorator_list", ())
            if kind is not ast.ClassDef:
                found += filter(None, (*node.args.defaults, *node.args.kw_defaults))
            continue
        for name in _node_fields[kind]:
            part = getattr(node, name, None)
            if type(part) is list:
                found += filter(None, part)
            elif part is not None:
                found.append(part)
    return found


def kinds_in(nodes: Iterable[ast.AST]) -> frozenset[type]:
    """The kinds of all nodes inside."""
    return frozenset(map(type, inside(nodes)))


class Transformer:
    """`ast.NodeTransformer`, but that no operators are visited."""

    _visits: dict[type, Callable[[Any, Any], Any]]

    def __init_subclass__(cls) -> None:
        cls._visits = {}

    def visit(self, node: Any) -> Any:
        kind = type(node)
        visit = self._visits.get(kind)
        if visit is None:
            own = type(self)
            visit = self._visits[kind] = getattr(own, f"visit_{kind.__name__}", own.generic_visit)
        return visit(self, node)

    def generic_visit(self, node: Any) -> Any:
        for name in _node_fields[type(node)]:
            part = getattr(node, name, None)
            if type(part) is list:
                part[:] = self.each(part)
            elif part is not None:
                new = self.visit(part)
                if new is None:
                    delattr(node, name)
                elif new is not part:
                    setattr(node, name, new)
        return node

    def each(self, nodes: list[Any]) -> list[Any]:
        """What becomes of a list of nodes: one may become none, or several."""
        made: list[Any] = []
        for node in nodes:
            new = self.visit(node) if node is not None else node
            if type(new) is list:
                made += new
            elif new is not None or node is None:
                made.append(new)
        return made


def placed(tree: Any) -> Any:
    """`ast.fix_missing_locations`: nodes without a place get that of the node around."""
    left = [(tree, 1, 0, 1, 0)]
    for node, line, column, end_line, end_column in left:
        own = node.__dict__
        if node._attributes:
            line, column = own.setdefault("lineno", line), own.setdefault("col_offset", column)
            if own.get("end_lineno") is None:
                own["end_lineno"] = end_line
            if own.get("end_col_offset") is None:
                own["end_col_offset"] = end_column
            end_line, end_column = own["end_lineno"], own["end_col_offset"]
        left += [(part, line, column, end_line, end_column) for part in parts(node)]
    return tree


__all__ = ["SCOPES", "Transformer", "inside", "kinds_in", "parts", "placed", "within"]
