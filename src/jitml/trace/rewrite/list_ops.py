"""Local list operations: which lists does a function only append to?  Those that one name holds.

`ys.append(y)` becomes `ys = __jm.push(ys, y)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from jitml.records import dataclass
from jitml.trace.rewrite.driver_protocol import HOOKS
from jitml.trace.rewrite.syntax import Transformer, inside, parts, within


def only_named(function: ast.AST, names: frozenset[str]) -> frozenset[str]:
    """Local names of lists that nothing else can hold when a loop appends to them.

    Such a name is only ever bound to a new list, and whatever else is done with the list comes after: further down, and not in a
    loop around the append that begins without a new list. Items, and the length, may be read anywhere.
    """
    if not any(type(node) is ast.List for node in inside([function])):
        return frozenset()
    uses: dict[str, list[_Use]] = {name: [] for name in names}
    _collect(function, (), uses)
    return frozenset(name for name, found in uses.items() if _is_only_named(found))


@dataclass(frozen=True)
class _Use:
    kind: Literal["made", "append", "read", "other"]
    place: tuple[int, int]
    loops: tuple[ast.AST, ...]


def _collect(node: ast.AST, enclosing: tuple[ast.AST, ...], uses: dict[str, list[_Use]]) -> None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() as made) if name in uses:
            uses[name].append(_Use("made", (node.lineno, node.col_offset), enclosing))
            _collect(made, enclosing, uses)
        case ast.AnnAssign(target=ast.Name() as target, value=ast.List() as made):
            _collect(ast.copy_location(ast.Assign([target], made), node), enclosing, uses)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            for part, value in zip(targets, values):
                _collect(ast.copy_location(ast.Assign([part], value), node), enclosing, uses)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=args)) if name in uses:
            uses[name].append(_Use("append", (node.lineno, node.col_offset), enclosing))
            for arg in args:
                _collect(arg, enclosing, uses)
        case ast.Subscript(value=ast.Name(id=name) as held, slice=index, ctx=ast.Load()) if name in uses:
            uses[name].append(
                _Use("other" if isinstance(index, ast.Slice) else "read", (held.lineno, held.col_offset), enclosing)
            )
            _collect(index, enclosing, uses)
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name) as held]) if name in uses:
            uses[name].append(_Use("read", (held.lineno, held.col_offset), enclosing))
        case ast.Name(id=name) if name in uses:
            uses[name].append(_Use("other", (node.lineno, node.col_offset), enclosing))
        case _:
            inside = (*enclosing, node) if isinstance(node, (ast.For, ast.While)) else enclosing
            for child in parts(node):
                _collect(child, inside, uses)


def _is_only_named(uses: list[_Use]) -> bool:
    made = [use for use in uses if use.kind == "made"]
    appends = [use for use in uses if use.kind == "append" and use.loops]
    for use in uses:
        if use.kind != "other":
            continue
        for append in appends:
            around = [loop for loop in use.loops if loop in append.loops]
            if use.place < append.place or any(all(loop not in m.loops for m in made) for loop in around):
                return False
    return bool(made)


class Appends(Transformer):
    """Writes what loops do with lists as said above, for these names."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.loops = 0

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self.visit(node.iter)
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        node.test = self.visit(node.test)
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        self.loops += 1
        node.body = [self.visit(statement) for statement in node.body]
        self.loops -= 1
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item], keywords=[]) if (
                self.loops and name in self.names and not isinstance(item, ast.Starred)
            ):
                target = ast.copy_location(ast.Name(name, ast.Store()), node.value)
                value = _hook("push", [ast.Name(name, ast.Load()), self.visit(item)], node.value)
                return ast.copy_location(ast.Assign([target], value), node.value)
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node


def _hook(name: str, args: list[ast.expr], like: ast.expr) -> ast.Call:
    hooks = ast.copy_location(ast.Name(HOOKS, ast.Load()), like)
    call = ast.Call(ast.copy_location(ast.Attribute(hooks, name, ast.Load()), like), args, [])
    for part in args:
        if not hasattr(part, "lineno"):
            ast.copy_location(part, like)
    return ast.copy_location(call, like)


def pushed(parts: Iterable[ast.AST]) -> tuple[str, ...]:
    """The names of lists that statements append to, once that has been rewritten."""
    found = set()
    for node in within(parts):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="__jm__"), attr="push")),
            ):
                found.add(name)
    return tuple(sorted(found))
