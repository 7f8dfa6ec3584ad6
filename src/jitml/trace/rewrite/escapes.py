"""Escape lowering: how do `break`, `continue` and early `return` disappear?  Into flags, and `if`s around what follows them.

    for x in xs:                           returned = False
        if bad(x): return x                for x in xs:                                  (stops at `returned`)
        use(x)                                 if bad(x): __jm_value = x; returned = True
    return None                                else: use(x)
                                           if __jm__.none_of(returned): value = None
                                           return value

A body then always runs to its end, so that a driver (`driver_protocol.py`) can stand around it; `with` is right because control
falls through it. Where one branch of an `if` always escapes, what follows moves into the other one: no flag is
needed. A flag that nobody reads is never set. `for` and `while` nodes get an attribute `stops`: the flags that end the loop.

Left as they are: functions whose escapes only stand in straight-line code, and generators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jitml.records import dataclass, field
from jitml.trace.rewrite.driver_protocol import HOOKS, OURS
from jitml.trace.rewrite.syntax import SCOPES, within

RETURN, VALUE = "__jm_return__", "__jm_value__"
# What follows an escape is nested at most so deep (then each statement is guarded for itself): Python allows twenty blocks.
_DEEPEST = 5

_BLOCKS = ("body", "orelse")
_SUSPENDING = {ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith}
Loop = ast.For | ast.While


def lower_escapes(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function with control flow, without escapes; they are changed in place, too."""
    lowering = _Lowering(returns=_has_nested_return(body))
    block = lowering.block(body, None, 0)
    written = block.statements
    if lowering.returns:
        if not block.ends:
            written += lowering.guarded({RETURN} & block.flags, [_assign(VALUE, ast.Constant(None), body[-1])], body[-1])
        written.append(ast.copy_location(ast.Return(_load(VALUE, body[-1])), body[-1]))
        undefined = ast.Attribute(ast.Name(HOOKS, ast.Load()), "UNDEF", ast.Load())
        written = [_assign(RETURN, ast.Constant(False), body[0]), _assign(VALUE, undefined, body[0]), *written]
    return _without_unread(written)


def can_lower(nodes: Sequence[ast.AST]) -> bool:
    """Whether the constructs of a function of these nodes can be driven: it is no generator."""
    return _SUSPENDING.isdisjoint(map(type, nodes))


def _escapes_from(block: list[ast.stmt]) -> bool:
    """Whether control can leave the block by `return`, or by a `break` or `continue` of a loop around it."""
    for statement in block:
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
            return True
        if isinstance(statement, (ast.For, ast.While)):
            inner = any(isinstance(node, ast.Return) for node in within(statement.body))
            if inner or _escapes_from(statement.orelse):
                return True
        elif any(_escapes_from(part) for part in _blocks(statement)):
            return True
    return False


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a statement, other than a definition."""
    if isinstance(statement, SCOPES):
        return
    for part in _BLOCKS:
        if block := getattr(statement, part, []):
            yield block


def _has_nested_return(body: list[ast.stmt]) -> bool:
    constructs = [node for node in within(body) if isinstance(node, (ast.If, ast.For, ast.While))]
    return any(isinstance(node, ast.Return) for construct in constructs for node in within([construct]))


@dataclass
class _LoweredBlock:
    """Lowered statements; the flags that they may have set at their end; whether control never falls off it."""

    statements: list[ast.stmt] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    ends: bool = False


class _Lowering:
    def __init__(self, returns: bool) -> None:
        self.returns = returns
        self.loops = 0

    def block(self, statements: Sequence[ast.stmt], loop: int | None, depth: int) -> _LoweredBlock:
        """Lower statements; `depth` counts the blocks that lowering itself has put around them."""
        made = _LoweredBlock()
        for position, statement in enumerate(statements):
            if made.flags and depth < _DEEPEST:
                after = self.block(statements[position:], loop, depth + 1)
                made.statements += self.guarded(made.flags, after.statements, statement)
                return _LoweredBlock(made.statements, made.flags | after.flags, after.ends)
            rest = statements[position + 1 :]
            moved = bool(rest) and isinstance(statement, ast.If) and depth < _DEEPEST and self._move(statement, rest, loop)
            lowered = self.statement(statement, loop, depth + moved)
            made.statements += self.guarded(made.flags, lowered.statements, statement)
            made.flags |= lowered.flags
            if lowered.ends or moved:
                made.ends = lowered.ends
                made.statements += [] if moved else _never(rest, statement)
                break
        return made

    def _move(self, statement: ast.If, rest: Sequence[ast.stmt], loop: int | None) -> bool:
        """Move what follows an `if` into the branch that goes on, if the other one always escapes; whether it was."""
        then, orelse = _always_escapes(statement.body), _always_escapes(statement.orelse)
        if then == orelse or (loop is None and not self.returns):
            return False
        if then:
            statement.orelse = [*statement.orelse, *rest]
        else:
            statement.body = [*statement.body, *rest]
        return True

    def guarded(self, flags: set[str], statements: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
        """The statements, if no flag is set."""
        if not flags or not statements:
            return statements
        hook = ast.Attribute(ast.Name(HOOKS, ast.Load()), "none_of", ast.Load())
        test = ast.Call(hook, [_load(flag, at) for flag in sorted(flags)], [])
        return [ast.copy_location(ast.If(test, statements, []), at)]

    def statement(self, statement: ast.stmt, loop: int | None, depth: int) -> _LoweredBlock:
        match statement:
            case ast.Return() if self.returns:
                value = statement.value if statement.value is not None else ast.copy_location(ast.Constant(None), statement)
                made = _set(RETURN, statement)
                return _LoweredBlock([_assign(VALUE, value, statement), *made.statements], made.flags, ends=True)
            case ast.Break() if loop is not None:
                return _set(f"__jm_break_{loop}__", statement)
            case ast.Continue() if loop is not None:
                return _set(f"__jm_continue_{loop}__", statement)
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return _LoweredBlock([statement], ends=True)
            case ast.If():
                return self._if(statement, loop, depth)
            case ast.For() | ast.While():
                return self._loop(statement, loop, depth)
            case ast.With():
                inner = self.block(statement.body, loop, depth)
                statement.body = inner.statements
                return _LoweredBlock([statement], inner.flags, inner.ends)
            case _:
                return _LoweredBlock([statement])

    def _if(self, statement: ast.If, loop: int | None, depth: int) -> _LoweredBlock:
        then = self.block(statement.body, loop, depth)
        orelse = self.block(statement.orelse, loop, depth)
        statement.body, statement.orelse = then.statements, orelse.statements
        return _LoweredBlock([statement], then.flags | orelse.flags, then.ends and orelse.ends)

    def _loop(self, statement: Loop, outer: int | None, depth: int) -> _LoweredBlock:
        self.loops += 1
        _test_inside(statement)
        stopped, skipped = f"__jm_break_{self.loops}__", f"__jm_continue_{self.loops}__"
        inner = self.block(statement.body, self.loops, 0)
        written: list[ast.stmt] = []
        if stopped in inner.flags:
            written.append(_assign(stopped, ast.Constant(False), statement))
        if skipped in inner.flags:
            inner.statements.insert(0, _assign(skipped, ast.Constant(False), statement.body[0]))
        orelse, statement.body, statement.orelse = statement.orelse, inner.statements, []
        stops = inner.flags - {skipped}
        forever = _is_endless(statement) and stopped not in stops
        statement.stops = sorted(stops)  # type: ignore[union-attr]  # ours: read by `control.py`
        written.append(statement)
        flags = stops - {stopped}
        if forever:
            return _LoweredBlock([*written, *_never(orelse, statement)], flags, ends=True)
        if not orelse:
            return _LoweredBlock(written, flags)
        after = self.block(orelse, outer, depth)
        written += self.guarded(stops, after.statements, orelse[0])
        return _LoweredBlock(written, flags | after.flags, after.ends and not stops)


def _is_endless(statement: Loop) -> bool:
    """Whether only an escape ends the loop."""
    return isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and bool(statement.test.value)


def _test_inside(statement: Loop) -> None:
    """A `while` whose test binds a name becomes `while True`: evaluated again, the test would bind it twice."""
    if not isinstance(statement, ast.While) or not any(isinstance(node, ast.NamedExpr) for node in within([statement.test])):
        return
    if _escapes_from(statement.orelse):
        return
    test = statement.test
    end: list[ast.stmt] = [*statement.orelse, ast.Break()]
    leave = ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), test), end, []), test)
    statement.test = ast.copy_location(ast.Constant(True), test)
    statement.body, statement.orelse = [leave, *statement.body], []


def _set(flag: str, at: ast.AST) -> _LoweredBlock:
    return _LoweredBlock([_assign(flag, ast.Constant(True), at)], {flag}, ends=True)


def _always_escapes(block: Sequence[ast.stmt]) -> bool:
    """Whether no path leads through the block, and some path escapes (and does not only raise)."""
    return _ends(block) and _escapes_from(list(block))


def _ends(block: Sequence[ast.stmt]) -> bool:
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, (ast.Return, ast.Break, ast.Continue, ast.Raise))


def _never(rest: Sequence[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """Statements that are not reached still make their names local."""
    names = sorted({n.id for n in within(rest) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
    if not names:
        return []
    bind: list[ast.stmt] = [_assign(name, ast.Constant(None), at) for name in names]
    return [ast.copy_location(ast.If(ast.copy_location(ast.Constant(False), at), bind, []), at)]


def _without_unread(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Drop what is assigned to flags that nobody reads."""
    read = {stop for node in within(statements) for stop in getattr(node, "stops", ())}
    read |= {node.id for node in within(statements) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return _EscapeSweep(read).block(statements)


class _EscapeSweep:
    def __init__(self, read: set[str]) -> None:
        self.read = read

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith(OURS) and name not in self.read:
                    continue
                case _:
                    self._parts(statement)
            kept.append(statement)
        return kept

    def _parts(self, statement: ast.stmt) -> None:
        if isinstance(statement, SCOPES):
            return
        for part in _BLOCKS:
            if block := getattr(statement, part, []):
                kept = self.block(block)
                setattr(statement, part, kept or ([] if part != "body" else [ast.copy_location(ast.Pass(), block[0])]))


def _load(name: str, at: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def _assign(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    return ast.copy_location(ast.Assign([target], value), at)
