"""Comprehensions: list, dict and set comprehensions, generator expressions and `sum` of them, rewritten as loops.

How do `[f(v) for v in x if v > 0]`, `sum(...)`, `any(...)` and `all(...)` over generators become loops that can be captured?
Each becomes a call of a function that is defined right before its statement, with the locals that it reads as parameters:

    [e for t in xs if c]      def f(xs):                sum(e for t in xs)      def f(xs):
                                  ys = []                                           total = 0
                                  for t in xs:                                      for t in xs:
                                      if c:                                             total = total + e
                                          ys = __jm__.push(ys, e)                   return total
                                  return ys

Where Python's `sum` compensates floats (`python_sum.py`), the loop carries what rounding has lost beside the total.

Other generators stay as they are, and so do sets, dicts, and comprehensions that bind a name outside (`:=`) or see their frame.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from jitml.trace.rewrite.driver_protocol import COMPENSATES, HOOKS, OURS
from jitml.trace.rewrite.liveness import bound
from jitml.trace.rewrite.syntax import Transformer, inside, parts

MADE = OURS + "comprehension_"  # how the names of such functions begin
_FIRST, _RESULT, _LOST = ".first", ".result", ".lost"  # no name of the user's looks like this
_FRAMES = {"locals", "vars", "eval", "exec", "dir", "super", "__class__"}
_OF_A_LIST = {"list", "tuple", "sorted", "max", "min", "set"}  # do the same with a list as with a generator


class Comprehensions(Transformer):
    """Rewrites one function, and those inside it; `names` are the function's locals."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.pending: list[ast.stmt] = []
        self.made = 0

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        written: list[ast.stmt] = []
        for statement in statements:
            outside, self.pending = self.pending, []
            new = self.visit(statement)
            written += [*self.pending, new]
            self.pending = outside
        return written

    def each(self, nodes: list[Any]) -> list[Any]:
        return self.block(nodes) if nodes and isinstance(nodes[0], ast.stmt) else super().each(nodes)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not node.name.startswith(MADE):
            node.body = Comprehensions(locals_of(node)).block(node.body)
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return node

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._function("list", node, []) if _is_plain(node) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as made, *more]) if name not in self.names:
                if name in ("sum", "any", "all") and len(more) <= (name == "sum") and not node.keywords and _is_plain(made):
                    return self._function(name, made, [self.visit(x) for x in more])
                if name in _OF_A_LIST and not more and _is_plain(made):
                    node.args = [ast.copy_location(ast.ListComp(made.elt, made.generators), made)]
            case ast.Call(func=ast.Attribute(attr="fromiter"), args=[ast.GeneratorExp() as made, *more]) if _is_plain(made):
                node.args = [ast.copy_location(ast.ListComp(made.elt, made.generators), made), *more]
        return self.generic_visit(node)

    def _function(self, kind: str, node: ast.ListComp | ast.GeneratorExp, start: list[ast.expr]) -> ast.expr:
        """Define it, and call it."""
        self.made += 1
        name = f"{MADE}{self.made}__"
        first, *_ = node.generators
        iterable = self.visit(first.iter)
        first.iter = ast.Name(_FIRST, ast.Load())
        body = [_begin(kind), _loops(node.generators, _step(kind, node.elt)), _end(kind)]
        targets = frozenset(bound([g.target for g in node.generators]))
        given = sorted((_free(body) & self.names) - targets)
        parameters = [_FIRST, *given, *([_RESULT] if kind == "sum" else [])]
        inner = Comprehensions(frozenset((*given, *targets)))
        function = ast.FunctionDef(name, _parameters(parameters), inner.block(body), [], None, None)
        function.type_params = []  # type: ignore[attr-defined]  # a required field since 3.12
        for part in inside([function]):
            if "lineno" in part._attributes and not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        self.pending.append(ast.copy_location(function, node))
        arguments = [iterable, *(ast.Name(n, ast.Load()) for n in given)]
        if kind == "sum":
            arguments += start or [ast.Constant(0)]
        call = ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), node)
        for part in (call.func, *arguments):
            if not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        return call


def locals_of(node: Any) -> frozenset[str]:
    """Parameters and names that a function binds itself."""
    arguments: ast.arguments = node.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    declared = {name for n in inside([node]) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    return frozenset({*bound(node.body), *(a.arg for a in parameters if a is not None)} - declared)


def _free(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Names that are read or bound here, without those of scopes inside: a loop elsewhere may bind the same name later."""
    found: set[str] = set()
    for node in nodes:
        children = parts(node)
        match node:
            case ast.Name(id=name):
                found.add(name)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                own = frozenset(bound([generator.target for generator in node.generators]))
                found |= _free(children) - own | _free([node.generators[0].iter])
            case ast.Lambda(args=arguments, body=value):
                own = frozenset(part.arg for part in inside([arguments]) if isinstance(part, ast.arg))
                found |= _free([arguments]) | _free([value]) - own
            case _:
                found |= _free(children)
    return frozenset(found)


def _is_plain(node: ast.ListComp | ast.GeneratorExp) -> bool:
    if any(generator.is_async for generator in node.generators):
        return False
    nodes = inside([node])
    if any(isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for part in nodes):
        return False
    return not any(isinstance(part, ast.Name) and part.id in _FRAMES for part in nodes)


def _parameters(names: Iterable[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _begin(kind: str) -> ast.stmt:
    if kind == "list":
        return ast.Assign([_stored(_RESULT)], ast.List([], ast.Load()))
    return ast.Assign([_stored(_LOST)], ast.Constant(0.0)) if kind == "sum" and COMPENSATES else ast.Pass()


def _step(kind: str, element: ast.expr) -> ast.stmt:
    if kind == "list":
        return ast.Assign([_stored(_RESULT)], _hook("push", _loaded(_RESULT), element))
    if kind == "sum" and COMPENSATES:
        both = ast.Tuple([_stored(_RESULT), _stored(_LOST)], ast.Store())
        return ast.Assign([both], _hook("added", _loaded(_RESULT), _loaded(_LOST), element))
    if kind == "sum":
        return ast.Assign([_stored(_RESULT)], ast.BinOp(_loaded(_RESULT), ast.Add(), element))
    test = element if kind == "any" else ast.UnaryOp(ast.Not(), element)
    return ast.If(test, [ast.Return(ast.Constant(kind == "any"))], [])


def _end(kind: str) -> ast.stmt:
    if kind == "sum" and COMPENSATES:
        return ast.Return(_hook("summed", _loaded(_RESULT), _loaded(_LOST)))
    return ast.Return(ast.Constant(kind == "all") if kind in ("any", "all") else _loaded(_RESULT))


def _hook(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load()), [*arguments], [])


def _loops(generators: Sequence[ast.comprehension], step: ast.stmt) -> ast.stmt:
    statement = step
    for generator in reversed(generators):
        for test in reversed(generator.ifs):
            statement = ast.If(test, [statement], [])
        statement = ast.For(generator.target, generator.iter, [statement], [])
    return statement


def _loaded(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _stored(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


__all__ = ["MADE", "Comprehensions", "locals_of"]
