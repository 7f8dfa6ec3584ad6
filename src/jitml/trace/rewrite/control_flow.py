"""Control-flow rewriting: how are `if`, `while`, `for`, `and`, `or`, `not`, `assert`, `raise` rewritten?

Into what `driver_protocol.py` says, in place.

Added to the rewriting of expressions (`expressions.py`), after escapes have been lowered (`escapes.py`) and names to be carried
have been found (`liveness.py`). New nodes stand at the place of what they were made from, so tracebacks do not change.

Plain Python stays, and so refuses traced conditions: what `comprehensions.py` leaves, generators, operands that bind a name
(`:=`), constructs nested too deep for Python's limit of twenty blocks.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from jitml.trace.rewrite.driver_calls import Templates, strings
from jitml.trace.rewrite.escapes import can_lower, lower_escapes
from jitml.trace.rewrite.expressions import compares_none, compares_truth
from jitml.trace.rewrite.liveness import bound, find_carried, optional
from jitml.trace.rewrite.syntax import within

# Python's compiler refuses more than twenty nested loops, tries and withs; a driven construct is a loop.
DEEPEST = 16
_DRIVEN = (ast.If, ast.For, ast.While)


class Control(Templates):
    """Rewrites one function, and those inside it."""

    def __init__(self, names: frozenset[str], deepest: int = DEEPEST) -> None:
        super().__init__(names)
        self.deepest = deepest
        self.driven = True  # not in generators
        self.walrus = True  # whether a temporary may be bound in an expression
        self.temporaries = 0  # one for each expression: a generator expression may run while another is evaluated
        self.inside = False  # in a driven construct
        self.outside: list[bool] = []  # the same, of the constructs around it
        self.deleted: frozenset[str] = frozenset()  # names that the function unbinds somewhere
        self.asked: frozenset[str] = frozenset()  # names of which it is asked whether they are bound

    def function(self, arguments: ast.arguments, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a function."""
        outside = self.driven, self.depth, self.inside, self.certain, self.walrus, self.deleted, self.shared
        names = self.unsure, self.exposed, self.optional, self.asked
        nodes = within(body)
        self.driven, self.depth, self.inside, self.walrus = can_lower(nodes), 0, False, True
        parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        self.deleted = frozenset(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del))
        self.certain = frozenset(a.arg for a in parameters if a is not None) - self.deleted
        self.shared = frozenset(name for n in nodes if isinstance(n, ast.Nonlocal) for name in n.names) & self.names
        self.unsure = self.exposed = self.optional = self.asked = frozenset()
        if self.driven and any(isinstance(n, _DRIVEN) for n in nodes):
            body = lower_escapes(body)
            declared = {name for n in within(body) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
            own = frozenset(set(bound(body)) | self.certain) - declared
            escaping = find_carried(body, own)
            driven = own.intersection(bound(n for n in within(body) if isinstance(n, _DRIVEN)))
            self.unsure, self.exposed, self.asked = driven - escaping, driven & escaping, driven | escaping
            self.optional = optional(body, own) | self.certain
        body = self.block(body)
        self.driven, self.depth, self.inside, self.certain, self.walrus, self.deleted, self.shared = outside
        self.unsure, self.exposed, self.optional, self.asked = names
        return body

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Statements rewritten; what each surely binds is known to those after it."""
        written: list[ast.stmt] = []
        for statement in statements:
            is_asked = bool(self.asked) and isinstance(statement, (ast.Assign, ast.FunctionDef))
            binds = self.asked.intersection(bound([statement])) - self.deleted if is_asked else ()
            new = self.visit(statement)
            written.extend(new if isinstance(new, list) else [new])
            if binds:
                self.certain |= binds
        return written

    def _nested(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """A block that may not run."""
        certain = self.certain
        written = self.block(statements)
        self.certain = certain
        return written

    # Functions and classes inside

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._definition(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        node.body = self.function(node.args, node.body)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args = self.visit(node.args)
        walrus, self.walrus = self.walrus, True
        node.body = self.visit(node.body)
        self.walrus = walrus
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.target = self.visit(node.target)
        walrus, self.walrus = self.walrus, False  # no `:=` may stand in what a comprehension iterates over
        node.iter = self._hook("gone_through", node.iter, self.visit(node.iter))
        self.walrus = walrus
        node.ifs = [self._hook("true", test, self.visit(test)) for test in node.ifs]
        return node

    # Statements

    def visit_If(self, node: ast.If) -> Any:
        decided = _is_decided(node.test)
        self._read_as_test(node.test)
        test = self.visit(node.test)
        if decided or not self._can_drive():
            node.test = test if decided else self._hook("true", test, test)
            node.body, node.orelse = self._nested(node.body), self._nested(node.orelse)
            return node
        names, restored = node.carries, node.restores  # type: ignore[attr-defined]  # by `find_carried`
        driver, before = self._open(), self.certain
        saved = f"__jm_saved_{self.depth}__"
        begin = [self._enter(driver, names, (), node)]
        load = self._load(driver, "load", names, node)
        if restored:
            values = self._hook("values_of", node, strings(restored), self._locals(node))
            begin.append(self._assign(saved, values, node))
            load.append(self._if_driven(self._unpack(restored, ast.Name(saved, ast.Load()), node), driver, node))
        node.body = self.block(node.body)
        after_then, self.certain = self.certain, before
        node.orelse = self.block(node.orelse)
        after_else, self.certain = self.certain, before
        self._close()
        node.test = ast.copy_location(ast.Name("__jm_branch__", ast.Load()), test)
        body = [*load, node, self._if_driven(self._step(driver, node), driver, node)]
        self.certain |= after_then & after_else
        return [
            self._assign(driver, self._hook("if_", test, test), test),
            self._if_driven(begin, driver, node),
            self._for(ast.Name("__jm_branch__", ast.Store()), driver, body, node.test),
            *self._load(driver, "result", names, node),
        ]

    def visit_For(self, node: ast.For) -> Any:
        iterable = self.visit(node.iter)
        if not self._can_drive():
            node.iter, node.target = self._hook("gone_through", node.iter, iterable), self.visit(node.target)
            node.body, node.orelse = self._nested(node.body) + self._leave(node), self._nested(node.orelse)
            return node
        names, targets = node.carries, node.binds  # type: ignore[attr-defined]  # by `find_carried`
        driver, before = self._open(), self.certain
        target = self.visit(node.target)
        load = self._load(driver, "load", names, node)
        self.certain |= frozenset(bound([target]))
        body = [*load, *self.block(node.body), *self._end(driver, names, targets, node)]
        self._close()
        self.certain = before - frozenset(targets)  # if no iteration runs, what they held before is not always known any more
        return [
            self._assign(driver, self._hook("for_", node.iter, iterable), node.iter),
            self._if_driven(self._enter(driver, names, targets, node), driver, node),
            self._for(target, driver, body, node.iter, node),
            *self._load(driver, "result", (*names, *targets), node),
        ]

    def visit_While(self, node: ast.While) -> Any:
        self._read_as_test(node.test)
        if not self._can_drive():
            node.test = self._hook("true", node.test, self.visit(node.test))
            node.body, node.orelse = self._nested(node.body) + self._leave(node), self._nested(node.orelse)
            return node
        names = node.carries  # type: ignore[attr-defined]  # by `find_carried`
        driver, before = self._open(), self.certain
        load = self._load(driver, "load", names, node)
        test = self._hook("true", node.test, self.visit(node.test))
        body = [*self.block(node.body), *self._end(driver, names, (), node)]
        self._close()
        self.certain = before
        goes_on = ast.copy_location(ast.If(self._method(driver, "test", test, test), body, []), node)
        ends = self._method(driver, "ends", node, strings(names), self._locals(node))
        goes_on.orelse = [ast.copy_location(ast.If(ends, [ast.copy_location(ast.Break(), node)], []), node)]
        counters = ast.Constant(node.counters)  # type: ignore[attr-defined]  # by `find_carried`
        grows = strings(node.grows)  # type: ignore[attr-defined]  # the same
        start = self._hook("while_", test, strings(names), self._locals(node), counters, grows)
        return [
            self._assign(driver, start, node),
            self._for(ast.Name("__jm_pass__", ast.Store()), driver, [*load, goes_on], test),
            *self._load(driver, "result", names, node),
        ]

    def visit_With(self, node: ast.With) -> ast.AST:
        self.depth += 1
        for item in node.items:
            item.context_expr = self._hook("manager", item.context_expr, self.visit(item.context_expr))
            item.optional_vars = self.visit(item.optional_vars) if item.optional_vars else None
        node.body = self.block(node.body)
        self.depth -= 1
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        place = _last_comparison(node.test) or node.test
        self._read_as_test(node.test)
        test = self.visit(node.test)
        if self.driven:
            # Python 3.11 raises from the place of the last comparison.
            holds = ast.Compare(self._hook("assert_", place, test), [ast.Is()], [ast.Constant(True)])
            test = self._placed(holds, place) if isinstance(place, ast.Compare) else holds.left
        node.test = test
        node.msg = self.visit(node.msg) if node.msg else None
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        node.exc = self.visit(node.exc) if node.exc else None
        node.cause = self.visit(node.cause) if node.cause else None
        if not self.inside or node.exc is None:
            return node
        dead = ast.copy_location(ast.UnaryOp(ast.Not(), self._hook("dead_end", node)), node)
        return ast.copy_location(ast.If(dead, [node], []), node)

    # Expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if not self._may_bind(node.values[1:]):
            self.generic_visit(node)
            node.values[:-1] = [self._hook("unheeded", value, value) for value in node.values[:-1]]
            return node
        hook = "and_" if isinstance(node.op, ast.And) else "or_"
        return self._operands(hook, node.values, node)

    def _operands(self, hook: str, values: Sequence[ast.expr], at: ast.expr) -> ast.expr:
        if len(values) == 1:
            visited: ast.expr = self.visit(values[0])
            return visited
        left = self.visit(values[0])
        driver = self._temporary()
        right = self._operands(hook, values[1:], at)
        return self._short(hook, driver, left, right, at)

    def _short(self, hook: str, driver: str, left: ast.expr, right: ast.expr, at: ast.expr) -> ast.expr:
        """`d.end(right) if (d := __jm.and_(left)).right else d.left`"""
        opened = ast.NamedExpr(ast.Name(driver, ast.Store()), self._hook(hook, left, left))
        return self._placed(
            ast.IfExp(
                ast.Attribute(opened, "right", ast.Load()),
                self._method(driver, "end", right, right),
                ast.Attribute(ast.Name(driver, ast.Load()), "left", ast.Load()),
            ),
            at,
        )

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1 or not self._may_bind(node.comparators):
            return super().visit_Compare(node)
        return self._chain(self.visit(node.left), node.ops, node.comparators, node)

    def _chain(self, left: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr], at: ast.expr) -> ast.expr:
        """`a < b < c` is `a < (m := b) and m < c`."""
        other = self.visit(others[0])
        if len(ops) == 1:
            return self._placed(self._compared(left, ops[0], other, at), at)
        middle, driver = self._temporary(), self._temporary()
        keep = ast.copy_location(ast.NamedExpr(ast.Name(middle, ast.Store()), other), other)
        first = self._placed(self._compared(left, ops[0], keep, at), at)
        rest = self._chain(ast.copy_location(ast.Name(middle, ast.Load()), other), ops[1:], others[1:], at)
        return self._short("and_", driver, first, rest, at)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self._read_as_test(node.test)
        if _is_decided(node.test):
            return self.generic_visit(node)
        if not self._may_bind([node.body, node.orelse]):
            self.generic_visit(node)
            node.test = self._hook("true", node.test, node.test)
            return node
        test = self.visit(node.test)
        driver = self._temporary()
        opened = ast.NamedExpr(ast.Name(driver, ast.Store()), self._hook("choice", test, test))
        arms: list[ast.expr] = []
        for method, arm in (("then", node.body), ("orelse", node.orelse)):
            arms.append(ast.IfExp(self._method(driver, method, test), self.visit(arm), ast.Constant(None)))
        return self._placed(ast.Call(ast.Attribute(opened, "end", ast.Load()), arms, []), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self._read_as_test(node)
        if isinstance(node.op, ast.Not) and self.driven:
            return self._hook("not_", node, self.visit(node.operand))
        return super().visit_UnaryOp(node)

    def _can_drive(self) -> bool:
        return self.driven and self.depth < self.deepest

    def _may_bind(self, operands: Sequence[ast.expr]) -> bool:
        """Whether operands can be driven: a temporary may be bound here, and they bind nothing themselves."""
        return self.driven and self.walrus and not any(isinstance(node, ast.NamedExpr) for node in within(operands))

    def _open(self) -> str:
        self.depth += 1
        self.outside.append(self.inside)
        self.inside = True
        return f"__jm_driver_{self.depth}__"

    def _close(self) -> None:
        self.depth -= 1
        self.inside = self.outside.pop()

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"__jm_value_{self.temporaries}__"


def _is_decided(test: ast.expr) -> bool:
    """Whether a test never is traced: `x is y`, a constant."""
    match test:
        case ast.Constant():
            return True
        case ast.Compare(left, [ast.Is() | ast.IsNot() as op], [right]):
            return not (compares_truth(op, left, right) or compares_none(op, left, right))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_decided(operand)
        case _:
            return False


def _last_comparison(test: ast.expr) -> ast.expr | None:
    match test:
        case ast.Compare():
            return test
        case ast.BoolOp(values=values):
            return next((found for value in reversed(values) if (found := _last_comparison(value))), None)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _last_comparison(operand)
        case _:
            return None
