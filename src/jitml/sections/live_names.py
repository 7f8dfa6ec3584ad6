"""Live names: which names does a run of statements take in, and which does it have to hand out?  A backward sweep.

As in `trace/rewrite/liveness.py`, but over statements as they are written, whose `break`, `continue` and `return` have not been
lowered: so it is told what is alive after the loop, and where its next iteration begins.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from jitml.records import dataclass, replace
from jitml.trace.rewrite.liveness import bound, names_inside, surely_bound
from jitml.trace.rewrite.syntax import SCOPES, inside, within

Names = frozenset[str]
NONE: Names = frozenset()
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Loop = ast.For | ast.AsyncFor | ast.While


@dataclass(frozen=True, slots=True)
class Live:
    """What is alive after a block, after a `break` in it, and at a `continue`, and, for handlers, all through it."""

    after: Names = NONE
    leave: Names = NONE
    again: Names = NONE
    caught: Names = NONE

    def then(self, after: Names) -> Live:
        return replace(self, after=after)

    def inside_loop(self, head: Names) -> Live:
        """In a loop's body; `head` is alive where an iteration begins."""
        return Live(head, self.after, head, self.caught)


def loads(nodes: Iterable[ast.AST]) -> Names:
    """Names that may be read here, by functions inside too; not those that comprehensions bind for themselves."""
    parts = within(nodes)
    own = {id(x) for node in parts if isinstance(node, _COMPREHENSIONS) for x in _own_names(node)}
    found: set[str] = set()
    for node in parts:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store) and id(node) not in own:
            found.add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, SCOPES):
            found.update(names_inside(node))
    return frozenset(found)


def _own_names(comprehension: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Iterator[ast.Name]:
    """Where a comprehension reads what it binds: everywhere but in what it goes through first."""
    targets = {x.id for part in comprehension.generators for x in inside([part.target]) if isinstance(x, ast.Name)}
    outside = {id(x) for x in inside([comprehension.generators[0].iter])}
    for x in inside([comprehension]):
        if isinstance(x, ast.Name) and x.id in targets and id(x) not in outside:
            yield x


def binds(nodes: Iterable[ast.AST]) -> Names:
    """Names that may be bound here, or, as by `except ... as e`, unbound."""
    nodes = list(nodes)
    handlers = (x.name for x in inside(nodes) if isinstance(x, ast.ExceptHandler) and x.name)
    return frozenset((*bound(nodes), *handlers))


def surely(statements: Sequence[ast.stmt]) -> Names:
    """Names that are bound wherever the end of the statements is reached."""
    found = NONE
    for statement in statements:
        match statement:
            case ast.If(body=body, orelse=orelse):
                found |= surely(body) & surely(orelse)
            case ast.AugAssign(target=ast.Name(id=name)):
                found |= {name}
            case _:
                found |= surely_bound(statement)
    return found


def before(statements: Sequence[ast.stmt], live: Live) -> Names:
    """Names that are alive before the statements."""
    after = live.after
    for statement in reversed(statements):
        after = _before(statement, live.then(after))
    return after | live.caught


def _before(statement: ast.stmt, live: Live) -> Names:
    match statement:
        case ast.Return() | ast.Raise():
            return loads([statement])
        case ast.Break():
            return live.leave
        case ast.Continue():
            return live.again
        case ast.If(test, body, orelse):
            return before(body, live) | before(orelse, live) | loads([test])
        case ast.For() | ast.AsyncFor():
            return loop_head(statement, live) | loads([statement.iter])
        case ast.While():
            return loop_head(statement, live)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            return before(body, live) | live.after | loads(items)  # its manager may swallow an exception
        case ast.Try() | ast.TryStar() | ast.Match():
            return live.after | live.leave | live.again | loads([statement])
        case _:
            return (live.after - surely_bound(statement)) | loads([statement])


def loop_head(loop: Loop, live: Live) -> Names:
    """Names that are alive where an iteration begins, and so after it: the least fixed point."""
    is_while = isinstance(loop, ast.While)
    head = before(loop.orelse, live) | loads([loop.test if isinstance(loop, ast.While) else loop.target])
    targets = NONE if is_while else binds([loop.target])  # type: ignore[union-attr]  # the others have one
    while (more := head | (before(loop.body, live.inside_loop(head)) - targets)) != head:
        head = more
    return head
