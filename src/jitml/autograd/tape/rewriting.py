"""Calls on a tape: what of a function's source must change so that its derivative is not lost?  Its calls, and nothing else.

`float(x)`, `math.sin(x)`, `np.array([x, y])` ask for bare numbers, which NumPy has no protocol for. So each call `f(...)` becomes
`__jt__(f)(...)`, where `__jt__` gives what records, or `f` itself. Where things are put into objects, that is noted; before an
array is written that a variable holds, `y = __jt__.own([y])` makes it one that may be written with what is differentiated. That
counts who holds it, so a function that does so begins with `x = __jt__.held(x)` for each parameter.
"""

from __future__ import annotations

import ast
import pickle
from types import CodeType
from typing import Any

from jitml.process import silent_syntax
from jitml.trace.rewrite.comprehensions import locals_of
from jitml.trace.rewrite.function import mangle
from jitml.trace.rewrite.source import Found

HOOK = "__jt__"
# Of which no call loses a derivative; some of them look at the frame that calls them.
_LEFT = frozenset({
    "abs", "all", "any", "bool", "callable", "delattr", "dict", "dir", "divmod", "enumerate", "eval", "exec", "filter", "format",
    "getattr", "globals", "hasattr", "id", "int", "isinstance", "issubclass", "iter", "len", "list", "locals", "max", "min",
    "next", "open", "print", "property", "range", "repr", "reversed", "round", "set", "setattr", "sorted", "str", "sum", "super",
    "tuple", "vars", "zip", "ValueError", "TypeError", "RuntimeError", "IndexError", "KeyError",
})  # fmt: skip


class _Writer(ast.NodeTransformer):
    """Args: names: the locals of the function that is written."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._counts = False  # who holds an array

    def body(self, node: Any) -> list[ast.stmt]:
        """What a function of these names does."""
        made = [part for statement in node.body for part in _listed(self.visit(statement))]
        given = node.args
        names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)] if self._counts else []
        held = [ast.Assign([ast.Name(name, ast.Store())], _of_hook("held", ast.Name(name, ast.Load()))) for name in names]
        first = int(ast.get_docstring(node, clean=False) is not None)
        return [*made[:first], *(ast.copy_location(x, node) for x in held), *made[first:]]

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        node.body = _Writer(_rebindable(node)).body(node)
        for part in (node.args, *node.decorator_list):
            self.visit(part)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return _Writer(frozenset()).generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _LEFT):
            node.func = ast.copy_location(ast.Call(ast.copy_location(_hook(), node.func), [node.func], []), node.func)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        plain = {x.id for target in node.targets for x in _parts(target) if isinstance(x, ast.Name)}  # may be unbound before
        return self._noted(node, node.targets, self._names - plain)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._noted(node, [node.target], self._names)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node  # annotations of names inside a function are never evaluated

    def _noted(self, node: ast.stmt, targets: list[ast.expr], owners: frozenset[str]) -> ast.AST | list[ast.stmt]:
        """With a note of the objects whose attributes or items are set, and arrays made ready to be written."""
        parts = [part for target in targets for part in _parts(target)]
        ready: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], _of_hook("own", ast.List([ast.Name(name, ast.Load())], ast.Load())))
            for part in parts
            if (name := _written(part, isinstance(node, ast.AugAssign))) in owners
        ]
        self._counts |= bool(ready)
        notes: list[ast.stmt] = [
            ast.Expr(_of_hook("note", ast.Name(root, ast.Load()))) for part in parts if (root := _root(part)) is not None
        ]
        ours = [*map(id, ready), *map(id, notes)]
        made: list[ast.stmt] = [*ready, node, *notes]
        return [ast.copy_location(x, node) if id(x) in ours else x for x in made]


def _of_hook(part: str, given: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_hook(), part, ast.Load()), [given], [])


def _written(target: ast.expr, is_updated: bool) -> str:
    """The variable whose array is written by an assignment; empty if none is."""
    if isinstance(target, ast.Subscript):
        target, is_updated = target.value, True
    return target.id if is_updated and isinstance(target, ast.Name) else ""


def _rebindable(node: Any) -> frozenset[str]:
    """The locals of a function."""
    return frozenset() if isinstance(node, ast.Lambda) else locals_of(node)


def _hook() -> ast.Name:
    return ast.Name(HOOK, ast.Load())


def _parts(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [part for item in target.elts for part in _parts(item)]
    return [target.value] if isinstance(target, ast.Starred) else [target]


def _root(target: ast.expr) -> str | None:
    """The variable whose object an attribute or an item belongs to."""
    if not isinstance(target, (ast.Attribute, ast.Subscript)):
        return None
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def rewrite(found: Found, code: CodeType) -> CodeType:
    """The code of a function with its calls rewritten; its free variables are the old ones, as far as used, and the hook."""
    node = pickle.loads(pickle.dumps(found.node))
    mangle(node, found.class_name)
    writer = _Writer(_rebindable(node))
    arguments = node.args
    for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if a is not None:
            a.annotation = None
    arguments.defaults = []
    arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
    name, inner = "<lambda>", node
    if isinstance(node, ast.Lambda):
        node.body = writer.visit(node.body)
        inner = ast.copy_location(ast.Expr(node), node)
    else:
        name = node.name = "__jt_function"  # the function means by its own name what it has meant
        node.decorator_list, node.returns = [], None
        node.body = writer.body(node)
    inner.lineno = code.co_firstlineno  # as `trace/rewrite/function.py` says
    parameters = ast.arguments([], [ast.arg(n) for n in (HOOK, *code.co_freevars)], None, [], [], None, [])
    factory = ast.FunctionDef("__jt_factory", parameters, [inner], [], None, None)
    factory.type_params = []  # type: ignore[attr-defined]  # a required field since 3.12
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(factory, node)], []))
    with silent_syntax():
        compiled = compile(module, found.file, "exec", flags=code.co_flags & 0x1FF0000, dont_inherit=True)
    made = _dig(_dig(compiled, "__jt_factory"), name)
    return _named(made, made.co_qualname, code.co_qualname).replace(co_name=code.co_name)


def _listed(x: Any) -> list[ast.stmt]:
    return [*x] if isinstance(x, list) else [x]


def _dig(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _named(code: CodeType, prefix: str, name: str) -> CodeType:
    """Code whose functions and classes are named as those of the plain function."""

    def renamed(constant: object) -> object:
        if isinstance(constant, CodeType):
            return _named(constant, prefix, name)
        is_ours = isinstance(constant, str) and constant.startswith(f"{prefix}.<locals>.")
        return name + constant.removeprefix(prefix) if isinstance(constant, str) and is_ours else constant

    consts = tuple(map(renamed, code.co_consts))
    return code.replace(co_consts=consts, co_qualname=name + code.co_qualname.removeprefix(prefix))
