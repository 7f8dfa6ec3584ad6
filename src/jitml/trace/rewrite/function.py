"""Function rewriting: how is a function's source changed so that tracing sees what it touches?  One pass over its syntax tree.

`expressions.py` (calls, names, attributes, subscripts) and `control_flow.py` (`if`, `for`, ...) say what becomes of each
construct. Everything else stays as written, at its own line and column: tracebacks are those of the plain function. `__jm__` is a
closure variable, so that the user's globals stay clean; what it does stands in `hooks/models`, `hooks/calls.py`,
`control_flow.py`.
"""

from __future__ import annotations
import __future__

import ast
import pickle
import sys
from types import CodeType
from typing import Any

from jitml.process import silent_syntax
from jitml.trace.rewrite.comprehensions import MADE, Comprehensions, locals_of
from jitml.trace.rewrite.control_flow import DEEPEST, Control
from jitml.trace.rewrite.driver_protocol import HOOKS
from jitml.trace.rewrite.list_ops import Appends, only_named
from jitml.trace.rewrite.liveness import bound
from jitml.trace.rewrite.source import Found, FunctionNode
from jitml.trace.rewrite.syntax import Transformer, inside, kinds_in, parts, placed, within

LEFT = (ast.ClassDef, ast.Try, ast.TryStar, ast.Match)  # what is refused where it stands


def rewrite(found: Found, code: CodeType) -> CodeType:
    """The code object of the function with hooks; its free variables are the old ones (as far as used) and `__jm`."""
    for deepest in (DEEPEST, 0):
        module = _module(found, code, deepest)
        try:
            with silent_syntax():
                compiled = compile(module, found.file, "exec", flags=code.co_flags & 0x1FF0000, dont_inherit=True)
            break
        except SyntaxError:  # more nested blocks than Python allows: as it is, nothing is driven
            if deepest == 0:
                raise
    name = "<lambda>" if isinstance(found.node, ast.Lambda) else "__jm_function"
    made = _dig(_dig(compiled, "__jm_factory"), name)
    return named(made, made.co_qualname, code.co_qualname, code.co_name)


def _module(found: Found, code: CodeType, deepest: int) -> ast.Module:
    """A factory of the rewritten function; its parameters are the function's free variables."""
    node = pickle.loads(pickle.dumps(found.node))  # a deep copy, three times as fast as copy.deepcopy
    kinds = kinds_in([node])
    if not kinds.isdisjoint(LEFT):
        node = _LeftStatements().visit(node)
    if found.class_name:
        mangle(node, found.class_name)
    if not isinstance(node, ast.Lambda):
        local = frozenset(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]) - frozenset(code.co_cellvars)
        if listed := only_named(node, local):
            node.body = Appends(listed).each(node.body)
        if not kinds.isdisjoint((ast.ListComp, ast.GeneratorExp)):
            node.body = Comprehensions(locals_of(node)).block(node.body)
    writer = Control(own_names(node), deepest)
    writer.evaluates_annotations = sys.version_info < (3, 14) and not code.co_flags & __future__.annotations.compiler_flag
    arguments = ast.arguments(
        posonlyargs=node.args.posonlyargs, args=node.args.args, vararg=node.args.vararg, kwonlyargs=node.args.kwonlyargs,
        kw_defaults=[None] * len(node.args.kwonlyargs), kwarg=node.args.kwarg, defaults=[],
    )  # fmt: skip
    for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if a is not None:
            a.annotation = None
    inner: ast.stmt
    if isinstance(node, ast.Lambda):
        inner = ast.Expr(ast.Lambda(arguments, writer.visit(node.body)))
        inner.value = ast.copy_location(inner.value, node)
    else:
        inner = _function("__jm_function", arguments, writer.function(arguments, node.body))
    ast.copy_location(inner, node)
    # A function's first line is that of its first decorator. Lines of code objects count from it, so it must be right
    # at compilation: replaced afterwards it would shift every line.
    inner.lineno = code.co_firstlineno
    parameters = ast.arguments([], [ast.arg(n) for n in (HOOKS, *code.co_freevars)], None, [], [], None, [])
    factory = _function("__jm_factory", parameters, [inner])
    ast.copy_location(factory, node)
    module: ast.Module = placed(ast.Module([factory], []))
    return module


class _LeftStatements(Transformer):
    """In the place of each that only Python runs, a call of what refuses it, and what makes its names local."""

    def visit(self, node: Any) -> Any:
        return self._left(node) if isinstance(node, LEFT) else super().visit(node)

    def _left(self, node: ast.stmt) -> ast.If:
        hook = ast.Attribute(ast.Name(HOOKS, ast.Load()), "left", ast.Load())
        nodes = within([node])
        body: list[ast.stmt] = [n for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal))]
        body += [ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in sorted({*bound([node])})]
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes):  # a generator stays one
            body.append(ast.Expr(ast.Yield()))
        test = ast.Call(hook, [ast.Constant(type(node).__name__)], [])
        test.lineno, test.col_offset = test.end_lineno, test.end_col_offset = node.lineno, node.col_offset
        made: ast.If = placed(ast.copy_location(ast.If(placed(test), [*body, ast.Pass()], []), node))
        return made


def mangle(node: ast.AST, class_name: str) -> None:
    """Write private names (`self.__x`) as the class that encloses them has Python do."""
    for child in ast.iter_child_nodes(node):
        mangle(child, child.name if isinstance(child, ast.ClassDef) else class_name)
    for part in ("id", "attr", "arg", "name"):
        name = getattr(node, part, None)
        if isinstance(name, str) and name.startswith("__") and not name.endswith("__") and class_name.strip("_"):
            setattr(node, part, f"_{class_name.lstrip('_')}{name}")


def _function(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    function = ast.FunctionDef(name, arguments, body, [], None, None)
    function.type_params = []  # type: ignore[attr-defined]  # a required field since 3.12
    return function


def _dig(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def named(code: CodeType, prefix: str, name: str, own: str) -> CodeType:
    """Code whose functions and classes are named as those of the plain function are, and not as the factory has them.

    What stands for a comprehension has the name of the function around, `own`, which tracebacks and records of logging show.
    """

    def renamed(constant: object) -> object:
        if isinstance(constant, CodeType):
            return named(constant, prefix, name, own if constant.co_name.startswith(MADE) else constant.co_name)
        is_ours = isinstance(constant, str) and constant.startswith(f"{prefix}.<locals>.")  # a class names itself
        return name + constant.removeprefix(prefix) if isinstance(constant, str) and is_ours else constant

    consts = tuple(map(renamed, code.co_consts))
    return code.replace(co_consts=consts, co_name=own, co_qualname=name + code.co_qualname.removeprefix(prefix))


_NAMING = {ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.alias, ast.Global}


def own_names(node: FunctionNode) -> frozenset[str]:
    """Names bound by the function or by a function inside it, less those it declares global or nonlocal.

    A name that some inner function binds counts as own in all of them: a hook too few, there, only where one name means a
    global in one place and a local in another.
    """
    bound: set[str] = set()
    outer: set[str] = set()
    nodes = inside([node])
    for child in nodes:
        kind = type(child)
        if kind is ast.Name and type(child.ctx) is not ast.Load:
            bound.add(child.id)
        if kind not in _NAMING:
            continue
        match child:
            case ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if child is not node:
                bound.add(name)
            case ast.alias(name=name, asname=alias):
                bound.add(alias or name.split(".")[0])
            case ast.Global(names=names):
                outer.update(names)
            case _:
                pass
    if any(type(child) is ast.Nonlocal for child in nodes):
        outer.update(_nonlocals(node))
    return frozenset(bound - outer)


def _nonlocals(node: FunctionNode) -> set[str]:
    """Names that the function itself (not one inside it) declares nonlocal."""
    found: set[str] = set()
    stack: list[ast.AST] = list(node.body) if isinstance(node.body, list) else []
    while stack:
        child = stack.pop()
        if isinstance(child, ast.Nonlocal):
            found.update(child.names)
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            stack += parts(child)
    return found
