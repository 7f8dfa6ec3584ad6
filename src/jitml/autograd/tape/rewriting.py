"""Calls on a tape: what of a function's source must change so that its derivative is not lost?  Its calls, and nothing else.

`float(x)`, `math.sin(x)`, `np.array([x, y])` ask for bare numbers, which NumPy has no protocol for. So each call `f(...)` becomes
`__jt__(f)(...)`, where `__jt__` gives what records, or `f` itself. Where things are put into objects, that is noted.
"""

from __future__ import annotations

import ast
import pickle
from types import CodeType

from jitml.process import silent_syntax
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
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in _LEFT):
            node.func = ast.copy_location(ast.Call(ast.copy_location(_hook(), node.func), [node.func], []), node.func)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._noted(node, node.targets)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._noted(node, [node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node  # annotations of names inside a function are never evaluated

    def _noted(self, node: ast.stmt, targets: list[ast.expr]) -> ast.AST | list[ast.stmt]:
        """With a note of the objects whose attributes or items are set."""
        names = [name for target in targets for part in _parts(target) if (name := _root(part)) is not None]
        notes = [
            ast.Expr(ast.Call(ast.Attribute(_hook(), "note", ast.Load()), [ast.Name(name, ast.Load())], [])) for name in names
        ]
        return [node, *(ast.copy_location(note, node) for note in notes)] if notes else node


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
    writer = _Writer()
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
        node.body = [part for statement in node.body for part in _listed(writer.visit(statement))]
    inner.lineno = code.co_firstlineno  # as `trace/rewrite/function.py` says
    parameters = ast.arguments([], [ast.arg(n) for n in (HOOK, *code.co_freevars)], None, [], [], None, [])
    factory = ast.FunctionDef("__jt_factory", parameters, [inner], [], None, None)
    factory.type_params = []  # type: ignore[attr-defined]  # a required field since 3.12
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(factory, node)], []))
    with silent_syntax():
        compiled = compile(module, found.file, "exec", flags=code.co_flags & 0x1FF0000, dont_inherit=True)
    made = _dig(_dig(compiled, "__jt_factory"), name)
    return _named(made, made.co_qualname, code.co_qualname).replace(co_name=code.co_name)


def _listed(x: ast.AST | list[ast.stmt]) -> list[ast.AST]:
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
