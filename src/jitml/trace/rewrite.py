"""How is a function's source changed so that tracing sees what it touches?  One pass over its syntax tree.

    f(a, *b, k=c)    __jm.conv(f)(a, *b, k=c)      calls: helpers are converted too, creation functions give tracers
    W                __jm.name(W, "W")             a name that is not the function's own: global or closure
    obj.w, obj[i]    __jm.attr(obj, "w"), __jm.item(obj, i)
    obj.w = v        __jm.own(obj).w = v           stores into what came from outside are refused
    obj.w += v       __jm.aug_attr(obj, "w", "iadd", v)

Everything else stays as written, at its own line and column: tracebacks are those of the plain function. `__jm` is a
closure variable, so that the user's globals stay clean; what it does stands in `accesses.py`, `calls.py`, `steering.py`.
"""

from __future__ import annotations

import ast
import pickle
from types import CodeType
from typing import Any

from jitml.trace.source import Found, FunctionNode

HOOKS = "__jm"
# Calls that look at their caller's frame, and must see it.
_UNTOUCHED = {"super", "locals"}
_AUGMENTED: dict[type, str] = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv", ast.Mod: "imod",
    ast.Pow: "ipow", ast.MatMult: "imatmul", ast.LShift: "ilshift", ast.RShift: "irshift", ast.BitAnd: "iand",
    ast.BitOr: "ior", ast.BitXor: "ixor",
}  # fmt: skip


def rewrite(found: Found, code: CodeType) -> CodeType:
    """The code object of the function with hooks; its free variables are the old ones (as far as used) and `__jm`."""
    node = pickle.loads(pickle.dumps(found.node))  # a deep copy, three times as fast as copy.deepcopy
    names = own_names(node)
    writer = _Rewriter(names, found.class_name)
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
        body = writer.block(node.body)
        inner = _function("__jm_function", arguments, body)
    ast.copy_location(inner, node)
    # A function's first line is that of its first decorator. Lines of code objects count from it, so it must be right
    # at compilation: replaced afterwards it would shift every line.
    inner.lineno = code.co_firstlineno
    parameters = ast.arguments([], [ast.arg(n) for n in (HOOKS, *code.co_freevars)], None, [], [], None, [])
    factory = _function("__jm_factory", parameters, [inner])
    ast.copy_location(factory, node)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    flags = code.co_flags & 0x1FF0000
    compiled = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    made = _dig(_dig(compiled, "__jm_factory"), "<lambda>" if isinstance(node, ast.Lambda) else "__jm_function")
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname)


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


class _Rewriter(ast.NodeTransformer):
    def __init__(self, names: frozenset[str], class_name: str) -> None:
        self.names = names
        self.class_name = class_name.lstrip("_")

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements rewritten; one may become two."""
        written: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            written.extend(new if isinstance(new, list) else [new])
        return written

    def _hook(self, name: str, at: ast.AST, *arguments: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load())
        call = ast.Call(function, list(arguments), [])
        for made in (function.value, function, call):
            ast.copy_location(made, at)
        return call

    def _mangle(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and self.class_name
        return f"_{self.class_name}{name}" if private else name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in _UNTOUCHED and node.func.id not in self.names:
            return node
        function = self.visit(node.func)
        node.func = self._hook("conv", node.func, function)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangle(node.id)
        if node.id in self.names or node.id == "__class__":
            return node
        if isinstance(node.ctx, ast.Load):
            return self._hook("name", node, node, ast.Constant(node.id))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._mangle(node.attr)
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            return self._hook("attr", node, value, ast.Constant(node.attr))
        node.value = self._hook("own", node.value, value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            return self._hook("item", node, value, self._index(node.slice))
        node.value = self._hook("own", node.value, value)
        node.slice = self.visit(node.slice)
        return node

    def _index(self, index: ast.expr) -> ast.expr:
        """An index as an ordinary expression: `a:b` is `slice(a, b)`."""
        if isinstance(index, ast.Tuple):
            parts = [self._index(part) for part in index.elts]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), index)
        if isinstance(index, ast.Slice):
            bounds = [self.visit(b) if b is not None else ast.Constant(None) for b in (index.lower, index.upper, index.step)]
            return self._hook("slice", index, *bounds)
        return self.visit(index)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        operation = ast.Constant(_AUGMENTED[type(node.op)])
        target = node.target
        if isinstance(target, ast.Attribute):
            name = ast.Constant(self._mangle(target.attr))
            call = self._hook("aug_attr", node, self.visit(target.value), name, operation, self.visit(node.value))
        elif isinstance(target, ast.Subscript):
            index = self._index(target.slice)
            call = self._hook("aug_item", node, self.visit(target.value), index, operation, self.visit(node.value))
        else:
            return self._guarded([target], self.generic_visit(node))
        return ast.copy_location(ast.Expr(call), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        targets = list(node.targets)
        return self._guarded(targets, self.generic_visit(node))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.annotation = ast.copy_location(ast.Constant(None), node.annotation)  # not evaluated for locals
        target = node.target
        return self._guarded([target], self.generic_visit(node))

    def _guarded(self, targets: list[Any], statement: ast.AST) -> Any:
        """A statement that binds a global or nonlocal name is refused when it is reached."""
        for target in targets:
            for child in ast.walk(target):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store) and child.id not in self.names:
                    refusal = ast.Expr(self._hook("outer_write", statement, ast.Constant(child.id)))
                    return [ast.copy_location(refusal, statement), statement]
        return statement

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        # A pattern is not an expression: `case Color.RED` must stay an attribute.
        node.guard = self.visit(node.guard) if node.guard else None
        node.body = self.block(node.body)
        return node
