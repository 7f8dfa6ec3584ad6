"""Driver calls: the statements around the bodies of driven loops and branches (`enter`, `step`, `load`, the ends of bodies)."""

from __future__ import annotations

import ast
from typing import Any

from jitml.trace.rewrite.driver_protocol import HOOKS, OURS
from jitml.trace.rewrite.expressions import Expressions


class Templates(Expressions):
    """Makes them; knows which names are bound where they stand."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self.depth = 0  # of nested blocks
        self.certain: frozenset[str] = frozenset()  # names that are bound here, whatever happened
        self.exposed: frozenset[str] = frozenset()  # such that functions inside or frames read: no hook sees that
        self.optional: frozenset[str] = frozenset()  # names that may hold None

    def _placed(self, node: Any, at: ast.AST) -> Any:
        # What it holds and has no place yet gets this one, in the end, by `rewrite`.
        return ast.copy_location(node, at)

    def _assign(self, name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        made: ast.stmt = self._placed(ast.Assign([ast.Name(name, ast.Store())], value), at)
        return made

    def _method(self, driver: str, method: str, at: ast.AST, *arguments: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name(driver, ast.Load()), method, ast.Load())
        made: ast.expr = self._placed(ast.Call(function, list(arguments), []), at)
        return made

    def _locals(self, at: ast.AST) -> ast.expr:
        return self._hook("locals", at)

    def _if_driven(self, statements: ast.stmt | list[ast.stmt], driver: str, at: ast.AST) -> ast.stmt:
        drives = ast.Attribute(ast.Name(driver, ast.Load()), "drives", ast.Load())
        block = statements if isinstance(statements, list) else [statements]
        made: ast.stmt = self._placed(ast.If(drives, block, []), at)
        return made

    def _enter(self, driver: str, names: tuple[str, ...], targets: tuple[str, ...], at: ast.AST) -> ast.stmt:
        more = [strings(targets)] if targets else []
        if isinstance(at, ast.For):
            more = [strings(targets), strings(()), strings(at.grows)]  # type: ignore[attr-defined]  # by `find_carried`
        return ast.copy_location(ast.Expr(self._method(driver, "enter", at, strings(names), self._locals(at), *more)), at)

    def _step(self, driver: str, at: ast.AST, *stop: ast.expr) -> ast.stmt:
        return ast.copy_location(ast.Expr(self._method(driver, "step", at, self._locals(at), *stop)), at)

    def _end(self, driver: str, names: tuple[str, ...], targets: tuple[str, ...], node: ast.For | ast.While) -> list[ast.stmt]:
        """The end of a loop's body."""
        stops = node.stops  # type: ignore[union-attr]  # by `lower_escapes`
        if not stops:
            return [self._if_driven(self._step(driver, node), driver, node)]
        stop = f"__jm_stop_{self.depth}__"
        flags = [ast.Name(flag, ast.Load()) for flag in stops]
        value = flags[0] if len(flags) == 1 else self._hook("any_of", node, *flags)
        step = self._if_driven(self._step(driver, node, ast.Name(stop, ast.Load())), driver, node)
        assert isinstance(step, ast.If)
        more = [strings(targets)] if targets else []
        ends = self._method(driver, "stops", node, ast.Name(stop, ast.Load()), strings(names), self._locals(node), *more)
        unset = ast.Compare(ast.Name(stop, ast.Load()), [ast.IsNot()], [ast.Constant(False)])
        step.orelse = [self._placed(ast.If(ast.BoolOp(ast.And(), [unset, ends]), [ast.Break()], []), node)]
        return [self._assign(stop, value, node), step]

    def _leave(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """The end of the body of a loop that is not driven, though its escapes are lowered."""
        stops = getattr(node, "stops", ())
        if not stops:
            return []
        test = self._hook("any_of", node, *[ast.Name(flag, ast.Load()) for flag in stops])
        return [self._placed(ast.If(test, [ast.Break()], []), node)]

    def _load(self, driver: str, method: str, names: tuple[str, ...], at: ast.AST) -> list[ast.stmt]:
        """`if d.drives: (*names,) = d.load()`"""
        call = self._method(driver, method, at)
        if not names:
            return [self._if_driven(ast.copy_location(ast.Expr(call), at), driver, at)]
        return [self._if_driven(self._unpack(names, call, at), driver, at)]

    def _unpack(self, names: tuple[str, ...], values: ast.expr, at: ast.AST) -> list[ast.stmt]:
        """`(*names,) = values`, and those are unbound that come out undefined."""
        targets = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        statements: list[ast.stmt] = [ast.Assign([targets], values)]
        for name in names:
            if name not in self.certain and not name.startswith(OURS):
                undefined = ast.Compare(ast.Name(name, ast.Load()), [ast.Is()], [self._undefined(at)])
                settle = [self._settle(name, at)] if name in self.exposed else []
                statements.append(ast.If(undefined, [ast.Delete([ast.Name(name, ast.Del())])], settle))
            elif name in self.exposed & self.optional:
                statements.append(self._settle(name, at))
        return statements

    def _settle(self, name: str, at: ast.AST, hook: str = "present") -> ast.stmt:
        """From here on a name is bound, or the program ends."""
        return self._assign(name, self._hook(hook, at, ast.copy_location(ast.Name(name, ast.Load()), at)), at)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self.unsure:
            hook = self.reads.get(node, "present") if node.id in self.optional else "bound"
            if hook != "bound" or node.id not in self.certain:
                return self._hook(hook, node, node)
        return super().visit_Name(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        written = super().visit_AugAssign(node)
        if not isinstance(node.target, ast.Name) or node.target.id not in self.unsure - (self.certain - self.optional):
            return written
        return [self._settle(node.target.id, node, "sure"), *(written if isinstance(written, list) else [written])]

    def visit_Delete(self, node: ast.Delete) -> Any:
        names = [t.id for t in node.targets if isinstance(t, ast.Name) and t.id in self.unsure]
        return [*(self._settle(name, node, "bound") for name in names), self.generic_visit(node)]

    def _for(self, target: ast.expr, driver: str, body: list[ast.stmt], at: ast.AST, whole: ast.AST | None = None) -> ast.stmt:
        iterable = ast.copy_location(ast.Name(driver, ast.Load()), at)
        made: ast.stmt = self._placed(ast.For(target, iterable, body, []), whole or at)
        return made

    def _undefined(self, at: ast.AST) -> ast.expr:
        return ast.Attribute(ast.Name(HOOKS, ast.Load()), "UNDEF", ast.Load())


def strings(names: tuple[str, ...]) -> ast.expr:
    return ast.Constant(names)  # type: ignore[arg-type]  # the stubs forget constant tuples
