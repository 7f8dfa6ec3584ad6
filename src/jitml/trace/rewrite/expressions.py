"""Operator rewriting: how are calls, names, attributes and subscripts rewritten, so that the run time sees them?

f(a, *b, k=c)    __jm.conv(f)(a, *b, k=c)      calls: helpers are converted too, creation functions give tracers
    W                __jm.name(W, "W")             a name that is not the function's own: global or closure
    obj.w, obj[i]    __jm.attr(obj, "w"), __jm.item(obj, i)
    obj.w = v        __jm.setting(obj, "w").w = v  stores into what came from outside are refused
    obj.w = []       __jm.setting(obj, "w").w = __jm.only(__jm.made([]), "w")        a list that nothing else holds
    x in xs          __jm.is_in(x, xs)
    x is y           __jm.is_one(x, y)
    a, b = xs        a, b = __jm.gone_through(xs)           so are *xs, and what a comprehension iterates over
    f(**d), {**d}    __jm.conv(f)(**__jm.mapping(d)), {**__jm.mapping(d)}
    f"{x:.3f}"       __jm.text((x, "", ".3f"))             "%d" % x: __jm.percent("%d", x)
    xs += v          __jm.grow(xs); xs = __jm.in_place("add", xs, v)        a list changes, if it is one
    a + b, -a        __jm.binary("add", a, b), __jm.unary("neg", a)         special methods are converted, too
    a < b            __jm.compare("lt", a, b)
    dir()            __jm.listing(dir)()
    obj.w += v       __jm.aug_attr(obj, "w", "add")(v)     the target is loaded before v is evaluated
    from m import w  ...; w = __jm.imported(w, "w", "m", 0)       a module's name; import m: __jm.module(m, "m")

`control.py` adds `if`, `for` and their kin.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from jitml.trace.rewrite.driver_protocol import HOOKS, OURS
from jitml.trace.rewrite.syntax import Transformer, at, inside, placed

# Calls that look at their caller's frame, and must see it.
_UNTOUCHED = {"super"}
_LISTING = {"dir", "vars", "locals"}  # where they are given nothing
_BINARY: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor",
}  # fmt: skip
_UNARY: dict[type, str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_LOAD = ast.Load()
_COMPARE: dict[type, str] = {ast.Lt: "lt", ast.LtE: "le", ast.Eq: "eq", ast.NotEq: "ne", ast.Gt: "gt", ast.GtE: "ge"}


class Expressions(Transformer):
    """Rewrites what is loaded, stored and called."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.shared: frozenset[str] = frozenset()  # own names of a function around this one, which this one binds
        self.unsure: frozenset[str] = frozenset()  # names that driven constructs bind, perhaps
        self.evaluates_annotations = True  # where they stand, and not later or never
        self.reads: dict[ast.expr, str] = {}  # the hook by which a name is read there, if not by `present`

    def _read_by(self, hook: str, *nodes: ast.expr) -> None:
        self.reads |= dict.fromkeys(nodes, hook)

    def _read_as_test(self, test: ast.expr) -> None:
        """Of names whose truth alone is asked."""
        match test:
            case ast.BoolOp(values=values):
                for value in values:
                    self._read_as_test(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._read_as_test(operand)
            case ast.Name():
                self._read_by("truthful", test)

    def _hook(self, name: str, place: ast.AST, *arguments: ast.expr) -> ast.expr:
        # What it holds and has no place yet gets this one, in the end, by `rewrite`.
        return at(place, ast.Call(ast.Attribute(ast.Name(HOOKS, _LOAD), name, _LOAD), list(arguments), []))

    def _is_own(self, name: str) -> bool:
        return name in self.names or name.startswith(OURS)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _is_ours(node.func):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("push", "added"):
                node.args = [self.visit(a) for a in node.args]
            return node
        if isinstance(node.func, ast.Name) and node.func.id in _UNTOUCHED and node.func.id not in self.names:
            return node
        function = self.visit(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in _LISTING and not (node.args or node.keywords):
            node.func = self._hook("listing", node.func, function)
            return node
        node.func = self._hook("conv", node.func, function)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        return node

    def _made(self, node: Any) -> ast.AST:
        """A list, dict or set that is made here."""
        self.generic_visit(node)
        if isinstance(node, ast.Dict):
            node.values = [x if key is not None else self._hook("mapping", x, x) for key, x in zip(node.keys, node.values)]
            node.keys = [key if key is None else self._key(key) for key in node.keys]
        elif isinstance(node, ast.Set):
            node.elts = [*map(self._key, node.elts)]
        elif isinstance(node, ast.DictComp):
            node.key = self._key(node.key)
        elif isinstance(node, ast.SetComp):
            node.elt = self._key(node.elt)
        return node if isinstance(getattr(node, "ctx", None), ast.Store) else self._hook("made", node, node)

    visit_List = visit_Dict = visit_Set = visit_ListComp = visit_DictComp = visit_SetComp = _made

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        parts = [self._formatted(part) if isinstance(part, ast.FormattedValue) else part for part in node.values]
        return self._hook("text", node, *parts)

    def _formatted(self, part: ast.FormattedValue) -> ast.expr:
        conversion = ast.Constant("" if part.conversion < 0 else chr(part.conversion))
        spec = self.visit(part.format_spec) if part.format_spec is not None else ast.Constant("")
        return at(part, ast.Tuple([self.visit(part.value), conversion, spec], ast.Load()))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if not isinstance(node.op, ast.Mod):
            self._read_by("sure", node.left, node.right)
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return self._hook("percent", node, node.left, node.right)
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        return self._hook("binary", node, ast.Constant(_BINARY[type(node.op)]), node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = self._hook("true", node.operand, node.operand)
            return node
        if isinstance(node.operand, ast.Constant):
            return node
        return self._hook("unary", node, ast.Constant(_UNARY[type(node.op)]), node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 and compares_none(node.ops[0], node.left, node.comparators[0]):
            self._read_by("bound", node.left, node.comparators[0])
        self.generic_visit(node)
        if len(node.ops) > 1:
            node.left, *node.comparators = (self._hook("unheeded", x, x) for x in (node.left, *node.comparators))
            return node
        return self._compared(node.left, node.ops[0], node.comparators[0], node)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, at: ast.expr) -> ast.expr:
        """One comparison of operands that are rewritten already."""
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._hook("is_in" if isinstance(op, ast.In) else "is_not_in", at, left, right)
        if compares_truth(op, left, right):
            return self._hook("is_same" if isinstance(op, ast.Is) else "is_not_same", at, left, right)
        if compares_none(op, left, right):
            return self._hook("is_none" if isinstance(op, ast.Is) else "is_not_none", at, left, right)
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self._hook("is_one" if isinstance(op, ast.Is) else "is_not_one", at, left, right)
        return self._hook("compare", at, ast.Constant(_COMPARE[type(op)]), left, right)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self._is_own(node.id) or node.id == "__class__":
            return node
        if isinstance(node.ctx, ast.Load):
            return self._hook("name", node, node, ast.Constant(node.id))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_ours(node):
            return node
        self._read_by("sure", node.value)
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            return self._hook("attr", node, value, ast.Constant(node.attr))
        node.value = self._hook("setting", node.value, value, ast.Constant(node.attr))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self._read_by("sure", node.value)
        value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            return self._hook("item", node, value, self._index(node.slice))
        node.value = self._hook("own", node.value, value)
        index = self._index(node.slice)
        node.slice = index if isinstance(index, (ast.Constant, ast.Starred)) else self._hook("placed", index, index)
        return node

    def _key(self, key: ast.expr) -> ast.expr:
        """What may be looked up in a dict or a set."""
        return key if isinstance(key, (ast.Constant, ast.Starred)) else self._hook("hashed", key, key)

    def _index(self, index: ast.expr) -> ast.expr:
        """An index as an ordinary expression: `a:b` is `slice(a, b)`."""
        if isinstance(index, ast.Tuple):
            parts = [self._index(part) for part in index.elts]
            return at(index, ast.Tuple(parts, ast.Load()))
        if isinstance(index, ast.Slice):
            bounds = [self.visit(b) if b is not None else ast.Constant(None) for b in (index.lower, index.upper, index.step)]
            return self._hook("slice", index, *bounds)
        return self.visit(index)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        operation = ast.Constant(_BINARY[type(node.op)])
        target = node.target
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            self._read_by("sure", target.value)
        if isinstance(target, ast.Attribute):
            name = ast.Constant(target.attr)
            loaded = self._hook("aug_attr", node, self.visit(target.value), name, operation)
        elif isinstance(target, ast.Subscript):
            index = self._index(target.slice)
            loaded = self._hook("aug_item", node, self.visit(target.value), index, operation)
        else:
            before: ast.expr = at(target, ast.Name(target.id, ast.Load()))
            if not self._is_own(target.id):
                before = self._hook("name", target, before, ast.Constant(target.id))
            value = self._hook("in_place", node, operation, before, self.visit(node.value))
            statement = self._guarded([target], at(node, ast.Assign([target], value)))
            if not self._is_own(target.id) or target.id in self.shared:
                return statement
            grows = ast.Expr(self._hook("grow", node, at(target, ast.Name(target.id, ast.Load()))))
            return [at(node, grows), statement]
        call = at(node, ast.Call(loaded, [self.visit(node.value)], []))
        return at(node, ast.Expr(call))

    def visit_Assign(self, node: ast.Assign) -> Any:
        targets = list(node.targets)
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in targets):
            self._read_by("sure", node.value)
        elif all(isinstance(target, ast.Name) and target.id in self.unsure for target in targets):
            self._read_by("bound", node.value)
        alone = isinstance(node.value, ast.List) and len(targets) == 1
        statement = self.generic_visit(node)
        if alone and isinstance(target := targets[0], ast.Attribute):
            node.value = self._hook("only", node.value, node.value, ast.Constant(target.attr))
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in targets) and not isinstance(node.value, ast.Tuple):
            node.value = self._hook("gone_through", node.value, node.value)
        return self._guarded(targets, statement)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        home = (ast.Constant(node.module or ""), ast.Constant(node.level))
        return [node, *self._bound_by(node, lambda alias: ("imported", ast.Constant(alias.name), *home))]

    def visit_Import(self, node: ast.Import) -> Any:
        def found(alias: ast.alias) -> tuple[str, ast.expr]:
            return "module", ast.Constant(alias.name if alias.asname else alias.name.partition(".")[0])

        return [node, *self._bound_by(node, found)]

    def _bound_by(self, node: ast.Import | ast.ImportFrom, hook: Callable[[ast.alias], Any]) -> Iterator[Any]:
        """The names that an import has bound, bound again to what the function shall see."""
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if self._is_own(name):
                called, *arguments = hook(alias)
                value = self._hook(called, node, ast.Name(name, ast.Load()), *arguments)
                yield placed(at(node, ast.Assign([ast.Name(name, ast.Store())], value)))

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.generic_visit(node)
        if node.arg is None:
            node.value = self._hook("mapping", node.value, node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._hook("gone_through", node.value, node.value)
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        node.value = self._hook("gone_through", node.value, self.visit(node.value))
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        target = node.target
        node.annotation = at(node.annotation, ast.Constant(None))  # not evaluated for locals
        return self._guarded([target], self.generic_visit(node))

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return self.generic_visit(node) if self.evaluates_annotations else node

    def _guarded(self, targets: list[Any], statement: ast.AST) -> Any:
        """A statement that binds a name of a function around it, or from outside, is refused."""
        nodes = targets if all(type(t) is ast.Name for t in targets) else inside(targets)
        for x in nodes:
            if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store) and (x.id in self.shared or not self._is_own(x.id)):
                return [at(statement, ast.Expr(self._hook("outer", statement, ast.Constant(x.id)))), statement]
        return statement


def _is_ours(node: ast.expr) -> bool:
    """Whether this is a hook that an earlier pass has planted."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == HOOKS


def compares_truth(op: ast.cmpop, *sides: ast.expr) -> bool:
    """`x is True` and the like: of a bool that is traced, its value decides."""
    return isinstance(op, (ast.Is, ast.IsNot)) and any(isinstance(s, ast.Constant) and type(s.value) is bool for s in sides)


def compares_none(op: ast.cmpop, *sides: ast.expr) -> bool:
    """`x is None` and the like: of a number that may be none, the program decides."""
    return isinstance(op, (ast.Is, ast.IsNot)) and any(isinstance(s, ast.Constant) and s.value is None for s in sides)
