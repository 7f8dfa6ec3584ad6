"""Syntax walks: which nodes are there in a piece of source?

A function is walked some twenty times before it is traced, mostly in vain. So walks give lists, in no certain order, and only
look where nodes may be: a third of the time of `ast.walk`, which also gives operators and contexts.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

N = TypeVar("N", bound=ast.AST)
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
_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def parts(node: ast.AST) -> list[Any]:
    """The nodes right below one, but operators."""
    found: list[Any] = []
    own = node.__dict__
    for name in _node_fields[type(node)]:
        part = own.get(name)
        if type(part) is list:
            found += filter(None, part)
        elif part is not None:
            found.append(part)
    return found


def inside(nodes: Iterable[ast.AST]) -> list[Any]:
    """All nodes, but operators; those of functions and classes inside, too."""
    found: list[Any] = [*nodes]
    for node in found:
        own = node.__dict__
        for name in _node_fields[type(node)]:
            part = own.get(name)
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
        own = node.__dict__
        for name in _node_fields[kind]:
            part = own.get(name)
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
        own = node.__dict__
        for name in _node_fields[type(node)]:
            part = own.get(name)
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


def at(place: ast.AST, node: N) -> N:
    """`ast.copy_location`, at a tenth of its price: the node stands where another one does."""
    own, other = node.__dict__, place.__dict__
    for name in _PLACE:
        if name in other:
            own[name] = other[name]
    return node


def placed(tree: Any) -> Any:
    """`ast.fix_missing_locations`: nodes without a place get that of the node around."""
    left: list[tuple[Any, dict[str, Any]]] = [(tree, {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0})]
    while left:
        node, place = left.pop()
        own = node.__dict__
        if node._attributes:
            if "lineno" not in own or own.get("end_col_offset") is None:
                for name in _PLACE:
                    if own.get(name) is None:
                        own[name] = place[name]
            place = own
        for name in _node_fields[type(node)]:
            part = own.get(name)
            if type(part) is list:
                left += [(p, place) for p in part if p is not None]
            elif part is not None:
                left.append((part, place))
    return tree


__all__ = ["SCOPES", "Transformer", "at", "inside", "kinds_in", "parts", "placed", "within"]
