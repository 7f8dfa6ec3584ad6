"""How is a function's source changed so that tracing sees what it touches?  One pass over its syntax tree.

`expressions.py` (calls, names, attributes, subscripts) and `control.py` (`if`, `for`, ...) say what becomes of each construct.
Everything else stays as written, at its own line and column: tracebacks are those of the plain function. `__jm__` is a closure
variable, so that the user's globals stay clean; what it does stands in `accesses.py`, `calls.py`, `steering.py`.
"""

from __future__ import annotations

import ast
import pickle
from dataclasses import dataclass
from types import CodeType
from typing import Literal

from jitml.trace.control import DEEPEST, Control
from jitml.trace.drivers import HOOKS
from jitml.trace.source import Found, FunctionNode


def rewrite(found: Found, code: CodeType) -> CodeType:
    """The code object of the function with hooks; its free variables are the old ones (as far as used) and `__jm`."""
    for deepest in (DEEPEST, 0):
        module = _module(found, code, deepest)
        try:
            compiled = compile(module, code.co_filename, "exec", flags=code.co_flags & 0x1FF0000, dont_inherit=True)
            break
        except SyntaxError:  # more nested blocks than Python allows: as it is, nothing is driven
            if deepest == 0:
                raise
    name = "<lambda>" if isinstance(found.node, ast.Lambda) else "__jm_function"
    made = _dig(_dig(compiled, "__jm_factory"), name)
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _module(found: Found, code: CodeType, deepest: int) -> ast.Module:
    """A factory of the rewritten function; its parameters are the function's free variables."""
    node = pickle.loads(pickle.dumps(found.node))  # a deep copy, three times as fast as copy.deepcopy
    mangle(node, found.class_name)
    if not isinstance(node, ast.Lambda):
        local = frozenset(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]) - frozenset(code.co_cellvars)
        appends = Appends(only_named(node, local))
        node.body = [appends.visit(statement) for statement in node.body]
    writer = Control(own_names(node), deepest)
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
    return ast.fix_missing_locations(ast.Module([factory], []))


def only_named(function: ast.AST, names: frozenset[str]) -> frozenset[str]:
    """Local names of lists that nothing else can hold when a loop appends to them.

    Such a name is only ever bound to a new list, and whatever else is done with the list comes after: further down, and not in a
    loop around the append that begins without a new list.
    """
    uses: dict[str, list[_Use]] = {name: [] for name in names}
    _collect(function, (), uses)
    return frozenset(name for name, found in uses.items() if _is_only_named(found))


@dataclass(frozen=True)
class _Use:
    kind: Literal["made", "append", "other"]
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
        case ast.Name(id=name) if name in uses:
            uses[name].append(_Use("other", (node.lineno, node.col_offset), enclosing))
        case _:
            inside = (*enclosing, node) if isinstance(node, (ast.For, ast.While)) else enclosing
            for child in ast.iter_child_nodes(node):
                _collect(child, inside, uses)


def _is_only_named(uses: list[_Use]) -> bool:
    made = [use for use in uses if use.kind == "made"]
    for use in uses:
        if use.kind != "other":
            continue
        for append in (a for a in uses if a.kind == "append"):
            around = [loop for loop in use.loops if loop in append.loops]
            if use.place < append.place or any(all(loop not in m.loops for m in made) for loop in around):
                return False
    return bool(made)


class Appends(ast.NodeTransformer):
    """Writes `ys.append(y)` in a `for` as `ys = __jm.push(ys, y)`, for these names: what a captured loop appends is stacked."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.loops = 0

    def visit_For(self, node: ast.For) -> ast.AST:
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
                hook = ast.Attribute(ast.Name(HOOKS, ast.Load()), "push", ast.Load())
                call = ast.Call(hook, [ast.Name(name, ast.Load()), item], [])
                made = ast.Assign([ast.Name(name, ast.Store())], call)
                for part in (hook.value, hook, call, call.args[0], made.targets[0], made):
                    ast.copy_location(part, node.value)
                return made
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node


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


def own_names(node: FunctionNode) -> frozenset[str]:
    """Names bound by the function or by a function inside it, less those it declares global or nonlocal.

    A name that some inner function binds counts as own in all of them: a hook too few, there, only where one name means a
    global in one place and a local in another.
    """
    bound: set[str] = set()
    outer: set[str] = set()
    for child in ast.walk(node):
        match child:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) if child is not node:
                bound.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.alias(name=name, asname=alias):
                bound.add(alias or name.split(".")[0])
            case ast.Global(names=names):
                outer.update(names)
            case _:
                pass
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
            stack.extend(ast.iter_child_nodes(child))
    return found
