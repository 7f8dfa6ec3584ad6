"""Local list operations: which lists and deques does a function only append to, or take an item from either end of?

Those that one name holds.

`ys.append(y)` becomes `ys = __jm.push(ys, y)`, `y = ys.pop()` becomes `ys, y = __jm.popped(ys, False)`, `ys.pop(0)` and
`ys.popleft()` the same with True, and `while ys` asks `__jm.filled(ys)`. What `deque()` makes is
`__jm.made_by(deque(), deque)`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable
from typing import Literal

from jitml.records import dataclass
from jitml.trace.rewrite.driver_protocol import HOOKS, OURS
from jitml.trace.rewrite.syntax import Transformer, inside, parts, within


def only_named(function: ast.AST, names: frozenset[str]) -> frozenset[str]:
    """Local names of lists that nothing else can hold when a loop appends to them, or takes items from their ends.

    Such a name is only ever bound to a new list, and whatever else is done with the list comes after: further down, and not in a
    loop around the append that begins without a new list. Items, and the length, may be read anywhere.
    """
    kinds = (ast.List, ast.Name, ast.Attribute)
    if not any(kind is ast.List or _is_called_deque(node) for node in inside([function]) if (kind := type(node)) in kinds):
        return frozenset()
    uses: dict[str, list[_Use]] = {name: [] for name in names}
    _collect(function, (), uses)
    return frozenset(name for name, found in uses.items() if _is_only_named(found))


@dataclass(frozen=True)
class _Use:
    kind: Literal["made", "made deque", "append", "pop", "read", "other"]
    place: tuple[int, int]
    loops: tuple[ast.AST, ...]


def _collect(node: ast.AST, enclosing: tuple[ast.AST, ...], uses: dict[str, list[_Use]]) -> None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() as made) if name in uses:
            uses[name].append(_Use("made", (node.lineno, node.col_offset), enclosing))
            _collect(made, enclosing, uses)
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=maker, args=[] | [ast.List()] as args, keywords=[]),
        ) if name in uses and _is_called_deque(maker):
            uses[name].append(_Use("made deque", (node.lineno, node.col_offset), enclosing))
            for arg in args:
                _collect(arg, enclosing, uses)
        case ast.AnnAssign(target=ast.Name() as target, value=ast.List() as made):
            _collect(ast.copy_location(ast.Assign([target], made), node), enclosing, uses)
        case ast.Expr(value=popped) | ast.Assign(value=popped) if (name := _popped(node)[0]) in uses:
            uses[name].append(_Use("pop" if enclosing else "other", (popped.lineno, popped.col_offset), enclosing))
            for bound in node.targets if isinstance(node, ast.Assign) else ():
                _collect(bound, enclosing, uses)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            inside = (*enclosing, node) if isinstance(node, ast.While) else enclosing
            _collect_test(test, inside, uses)
            for child in parts(node):
                if child is not test:
                    _collect(child, inside, uses)
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
            inside = (*enclosing, node) if isinstance(node, ast.For) else enclosing
            for child in parts(node):
                _collect(child, inside, uses)


def _is_called_deque(function: ast.expr) -> bool:
    """Whether a function is `deque`, or that of a module; whether it is the one that Python has, the run tells."""
    match function:
        case ast.Name(id="deque") | ast.Attribute(value=ast.Name(), attr="deque"):
            return True
    return False


def _popped(node: ast.AST) -> tuple[str, bool]:
    """Of which name's list a statement takes an item, alone or to bind it to something else, and whether the first; else "" ."""
    match node:
        case ast.Expr(value=call) | ast.Assign(targets=[_], value=call):
            match call:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="pop" | "popleft" as attr),
                    args=[] | [ast.Constant(value=0)] as args,
                    keywords=[],
                ) if not (args and attr == "popleft"):
                    targets = node.targets if isinstance(node, ast.Assign) else ()
                    if not any(isinstance(n, ast.Name) and n.id == name for t in targets for n in inside([t])):
                        return name, attr == "popleft" or bool(args)
    return "", False


def _collect_test(test: ast.expr, enclosing: tuple[ast.AST, ...], uses: dict[str, list[_Use]]) -> None:
    """Of a condition, which may ask whether anything is in a list."""
    match test:
        case ast.Name(id=name) if name in uses:
            uses[name].append(_Use("read", (test.lineno, test.col_offset), enclosing))
        case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
            for part in parts(test):
                if isinstance(part, ast.expr):
                    _collect_test(part, enclosing, uses)
        case _:
            _collect(test, enclosing, uses)


def _is_only_named(uses: list[_Use]) -> bool:
    made = [use for use in uses if use.kind in ("made", "made deque")]
    if {"made deque", "other"} <= {use.kind for use in uses}:  # after a loop it would be a list
        return False
    appends = [use for use in uses if use.kind in ("append", "pop") and use.loops]
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

    def visit_If(self, node: ast.If | ast.IfExp) -> ast.AST:
        node.test = self._test(node.test)
        self.generic_visit(node)
        return node

    visit_IfExp = visit_If

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self.visit(node.iter)
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        node.test = self.visit(self._test(node.test))
        return self._loop(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        self.loops += 1
        node.body = [self.visit(statement) for statement in node.body]
        self.loops -= 1
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def _test(self, test: ast.expr) -> ast.expr:
        match test:
            case ast.Name(id=name) if name in self.names:
                return _hook("filled", [test], test)
            case ast.UnaryOp(op=ast.Not()):
                test.operand = self._test(test.operand)
            case ast.BoolOp():
                test.values = [self._test(part) for part in test.values]
        return test

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item], keywords=[]) if (
                self.loops and name in self.names and not isinstance(item, ast.Starred)
            ):
                target = ast.copy_location(ast.Name(name, ast.Store()), node.value)
                return self._bind(target, _hook("push", [ast.Name(name, ast.Load()), self.visit(item)], node.value), node.value)
        if self.loops and _popped(node)[0] in self.names:
            return self._pop(*_popped(node), ast.Name(f"{OURS}dropped", ast.Store()), node.value)
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if self.loops and _popped(node)[0] in self.names:
            return self._pop(*_popped(node), node.targets[0], node.value)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return _hook("made_by", [node, copy.deepcopy(node.func)], node) if self.names and _is_called_deque(node.func) else node

    def _pop(self, name: str, is_first: bool, target: ast.expr, like: ast.expr) -> ast.Assign:
        target = ast.copy_location(self.visit(target), like)
        both = ast.Tuple([ast.copy_location(ast.Name(name, ast.Store()), like), target], ast.Store())
        return self._bind(
            ast.copy_location(both, like), _hook("popped", [ast.Name(name, ast.Load()), ast.Constant(is_first)], like), like
        )

    @staticmethod
    def _bind(target: ast.expr, value: ast.expr, like: ast.expr) -> ast.Assign:
        return ast.copy_location(ast.Assign([target], value), like)

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
    """The names of lists that statements append to, or take items from, once that has been rewritten."""
    found = set()
    for node in within(parts):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), _])],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="__jm__"), attr="push" | "popped")),
            ):
                found.add(name)
    return tuple(sorted(found))
