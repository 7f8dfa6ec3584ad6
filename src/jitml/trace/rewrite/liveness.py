"""Liveness of names: which names does a converted construct have to carry?  What it binds and others may read.

A backward sweep over a function whose escapes are lowered, so that control only goes forward or round a loop. Each `if`,
`for` and `while` node gets an attribute `carries`, a `for` also `binds` (see `names` and `targets` in `driver_protocol.py`), a
`while` `counters`. A temporary that every iteration binds before it reads it is thus no business of the loop's. An `if` gets
`restores`: names that nobody reads after it, but that a branch may read before it binds them, so that the other branch must not
have changed them.

Always alive: what functions inside see, and everything where the function asks for `locals()`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from jitml.trace.rewrite.driver_protocol import OURS
from jitml.trace.rewrite.induction import counters
from jitml.trace.rewrite.list_ops import pushed
from jitml.trace.rewrite.syntax import SCOPES, inside, within

_SOMETHING = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr)
_NAMING = {*SCOPES, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.alias}
_LOOK_AT_FRAMES = {"locals", "vars", "eval", "exec", "dir"}


def find_carried(body: Sequence[ast.stmt], names: frozenset[str]) -> frozenset[str]:
    """Mark the constructs of one function; `names` are its locals. Those that others may read at any time come out."""
    nodes = within(body)
    escaping = set(_seen_inside(body))
    if any(isinstance(node, ast.Name) and node.id in _LOOK_AT_FRAMES for node in nodes):
        escaping |= names
    _Liveness(names, frozenset(escaping)).block(body, frozenset())
    return frozenset(escaping)


def bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Names that may be bound or unbound here, not in functions inside."""
    nodes = within(nodes)
    comprehended = {id(name) for node in nodes if type(node) is ast.comprehension for name in inside([node.target])}
    for node in nodes:
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is not ast.Load and id(node) not in comprehended:
                yield node.id
            continue
        if kind not in _NAMING:
            continue
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.alias(name=name, asname=alias):
                yield alias or name.split(".")[0]
            case _:
                pass


def optional(body: Sequence[ast.stmt], names: frozenset[str]) -> frozenset[str]:
    """Those of a function's locals that may hold None: all but those only bound to numbers, tuples and the like."""
    ways, plain = Counter(bound(body)), Counter[str]()
    for node in within(body):
        match node:
            case ast.Assign(targets, value):
                plain.update(name for target in targets for name in _never_none(target, value))
            case ast.AugAssign(target) | ast.For(target):  # what a loop binds, no branch does
                plain.update(bound([target]))
    return frozenset(name for name in names if not 0 < ways[name] <= plain[name])


def _never_none(target: ast.expr, value: ast.expr) -> Iterator[str]:
    """Names that an assignment surely binds to something else than None."""
    if isinstance(target, ast.Name) and _is_something(value):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for part, item in zip(target.elts, value.elts):
            yield from _never_none(part, item)


def _is_something(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=constant):
            return constant is not None
        case ast.IfExp(body=x, orelse=y):
            return _is_something(x) and _is_something(y)
        case ast.BoolOp(values=values):
            return all(map(_is_something, values))
        case _:
            return isinstance(value, _SOMETHING)


def _names_read(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in within(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, SCOPES) and not _is_ours(node):
            yield from names_inside(node)
        elif isinstance(node, (ast.For, ast.While)):
            yield from getattr(node, "stops", ())


def names_inside(scope: ast.AST) -> Iterator[str]:
    """Names inside that may be those of the function around: a parameter is the scope's own, but in its defaults."""
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return (node.id for node in inside([scope]) if isinstance(node, ast.Name))
    body = [scope.body] if isinstance(scope, ast.Lambda) else scope.body
    own = {node.arg for node in ast.iter_child_nodes(scope.args) if isinstance(node, ast.arg)}
    in_body = set(map(id, inside(body)))
    return (node.id for node in inside([scope]) if isinstance(node, ast.Name) and not (node.id in own and id(node) in in_body))


def _seen_inside(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in within(body):
        if isinstance(node, SCOPES) and not _is_ours(node):
            yield from names_inside(node)


def _is_ours(scope: ast.AST) -> bool:
    """Whether it stands for a comprehension, and so gets all that it sees as arguments."""
    return isinstance(scope, ast.FunctionDef) and scope.name.startswith(OURS)


class _Liveness:
    """Sets of names that may be read before they are bound."""

    def __init__(self, names: frozenset[str], escaping: frozenset[str]) -> None:
        self.names = names
        self.escaping = escaping
        self._reads: dict[ast.AST, frozenset[str]] = {}  # of what is swept again and again, inside loops
        self._heads: dict[ast.stmt, frozenset[str]] = {}
        self._bound: dict[ast.stmt, frozenset[str]] = {}

    def reads(self, node: ast.AST) -> frozenset[str]:
        if node not in self._reads:
            self._reads[node] = frozenset(_names_read([node]))
        return self._reads[node]

    def block(self, statements: Sequence[ast.stmt], live: frozenset[str]) -> frozenset[str]:
        """What is alive before the statements if `live` is after them."""
        for statement in reversed(statements):
            live = self.statement(statement, live)
        return live

    def statement(self, statement: ast.stmt, live: frozenset[str]) -> frozenset[str]:
        match statement:
            case ast.If(test, body, orelse):
                begins = self.block(body, live) | self.block(orelse, live)
                self._mark(statement, body + orelse, live)
                restored = self._bound[statement] & begins & self.names - frozenset(statement.carries)  # type: ignore[attr-defined]
                statement.restores = tuple(sorted(restored))  # type: ignore[attr-defined]
                return begins | self.reads(test)
            case ast.For(target, iterable, body):
                return self._for(statement, live) | self.reads(iterable) | self.reads(target)
            case ast.While(test, body):
                head = self._head(statement, body, live | self.reads(test) | self._stops(statement))
                self._mark(statement, [test, *body], head)
                return head
            case ast.With(items, body):  # `np.errstate`, which swallows no exception
                return self.block(body, live) | frozenset(_names_read(items))
            case _:
                if statement not in self._bound:
                    self._bound[statement] = surely_bound(statement)
                return (live - self._bound[statement]) | self.reads(statement)

    def _for(self, statement: ast.For, live: frozenset[str]) -> frozenset[str]:
        targets = frozenset(bound([statement.target]))
        head = self._head(statement, statement.body, live | self._stops(statement), targets)
        self._mark(statement, statement.body, head, targets)
        binds = targets & (live | self.escaping) & self.names
        statement.binds = tuple(sorted(binds))  # type: ignore[attr-defined]  # ours: read by `control.py`
        return head

    def _stops(self, statement: ast.For | ast.While) -> frozenset[str]:
        return frozenset(getattr(statement, "stops", ()))

    def _head(
        self, loop: ast.stmt, body: Sequence[ast.stmt], live: frozenset[str], targets: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        """What is alive where an iteration begins, and so after it: the least fixed point.

        The sweeps of a loop around this one only find more alive, so each begins with what the one before has found: otherwise
        they would double with each level of a nest.
        """
        live |= self._heads.get(loop, frozenset())
        while (more := live | (self.block(body, live) - targets)) != live:
            live = more
        self._heads[loop] = live
        return live

    def _mark(
        self, statement: ast.stmt, parts: Sequence[ast.AST], live: frozenset[str], targets: frozenset[str] = frozenset()
    ) -> None:
        if statement not in self._bound:
            self._bound[statement] = frozenset(bound(parts))
            statement.grows = pushed(parts)  # type: ignore[attr-defined]  # ours: read by `control.py`
        carried = (self._bound[statement] & (live | self.escaping) & self.names) - targets
        carries = tuple(sorted(carried))
        if carries != getattr(statement, "carries", None):
            statement.carries = carries  # type: ignore[attr-defined]  # the same
            statement.counters = counters(parts, bound(parts), carried)  # type: ignore[attr-defined]  # the same


def surely_bound(statement: ast.stmt) -> frozenset[str]:
    """Names that a simple statement binds wherever it is completed."""
    match statement:
        case ast.Assign(targets):
            return frozenset(bound(targets))
        case ast.AnnAssign(target, value=ast.expr()):
            return frozenset(bound([target]))
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return frozenset([name])
        case _:
            return frozenset()
