"""Vectorization: which loops become vectors?  The innermost ones whose iterations may run in any order and touch neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitml.kernels.analysis.dependence import Accesses, Path, accesses
from jitml.kernels.analysis.races import loop_races
from jitml.kernels.ir import (
    Alloc,
    Buffer,
    Cell,
    Draw,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    While,
    affine,
    children,
    sub,
    walk,
    walk_expression,
    walk_expressions,
)

SHORT = 8  # iterations that are not worth lanes with loops in them


def with_lanes(kernel: Kernel) -> Kernel:
    """The kernel with its independent innermost loops marked `vector`."""
    body = _LaneWriter({b.name: b for b in kernel.params}, accesses(kernel)).body(kernel.body, ())
    return replace(kernel, body=body, optimize=any(map(_is_plain, walk(body))))


def _is_plain(stmt: Stmt) -> bool:
    """Whether a loop runs element by element, with no loop inside."""
    if not isinstance(stmt, (Loop, While)) or (isinstance(stmt, Loop) and stmt.kind == "vector"):
        return False
    return not any(isinstance(inner, (Loop, While)) for inner in walk(children(stmt)))


def _may_hold_lanes(loop: Loop) -> bool:
    """Whether each lane can run the body: with loops in it only if they are no vectors and the same for all lanes.

    Sums down columns are such: lanes are the columns.
    """
    if any(isinstance(s, (While, Alloc)) or (isinstance(s, Loop) and s.kind == "vector") for s in walk(loop.body)):
        return False
    inner = [s for s in walk(loop.body) if isinstance(s, Loop)]
    own = {s.name for s in walk(loop.body) if isinstance(s, (Let, Cell, Draw))} | {loop.index}
    varies = any(
        isinstance(e, Var) and e.name in own for s in inner for limit in (s.start, s.stop) for e in walk_expression(limit)
    )
    trips = affine(sub(loop.stop, loop.start))
    is_short = trips is not None and trips.keys() == {""} and trips[""] < SHORT
    return not inner or not (varies or is_short)


class _LaneWriter:
    def __init__(self, buffers: Mapping[str, Buffer], known: Accesses) -> None:
        self.buffers, self.known = dict(buffers), known

    def body(self, statements: Sequence[Stmt], outer: Path) -> tuple[Stmt, ...]:
        return tuple(self.statement(stmt, (*outer, k)) for k, stmt in enumerate(statements))

    def statement(self, stmt: Stmt, path: Path) -> Stmt:
        match stmt:
            case Loop():
                inside = replace(stmt, body=self.body(stmt.body, path))
                if _may_hold_lanes(inside) and self.pays(stmt) and not any(loop_races(stmt, path, self.known)):
                    return replace(stmt, kind="vector")
                return inside
            case Alloc(buffer, body):
                self.buffers[buffer.name] = buffer
                return replace(stmt, body=self.body(body, path))
            case If(_, then, orelse):
                return replace(stmt, then=self.body(then, (*path, 0)), orelse=self.body(orelse, (*path, 1)))
            case While(test, _, body):
                return replace(stmt, test=self.body(test, (*path, 0)), body=self.body(body, (*path, 1)))
        return stmt

    def pays(self, loop: Loop) -> bool:
        """Whether no access of the loop jumps from lane to lane."""
        places = [(s.buffer, s.at) for s in walk(loop.body) if isinstance(s, Store)]
        places += [(e.buffer, e.at) for e in walk_expressions(loop.body) if isinstance(e, Load)]
        return all(self.step(buffer, at, loop.index) in (-1, 0, 1) for buffer, at in places)

    def step(self, buffer: str, at: Sequence[object], index: str) -> int | None:
        total = 0
        for e, stride in zip(at, self.buffers[buffer].element_strides):
            form = affine(e)  # type: ignore[arg-type]  # an Expr
            if form is None:
                return None
            total += form.get(index, 0) * stride
        return total
