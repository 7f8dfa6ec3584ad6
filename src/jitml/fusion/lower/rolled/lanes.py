"""Which innermost loops become vectors?  Those whose iterations may run in any order and mostly touch neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jitml.fusion.dependence import Accesses, Path, accesses
from jitml.fusion.loops import Alloc, Buffer, If, Kernel, Load, Loop, Stmt, Store, While, affine, children, walk, walk_expressions
from jitml.fusion.races import loop_races


def with_lanes(kernel: Kernel) -> Kernel:
    """The kernel with its independent innermost loops marked `vector`."""
    body = _Lanes({b.name: b for b in kernel.params}, accesses(kernel)).body(kernel.body, ())
    return replace(kernel, body=body, optimize=any(map(_is_plain, walk(body))))


def _is_plain(stmt: Stmt) -> bool:
    """Whether a loop runs element by element, with no loop inside."""
    if not isinstance(stmt, (Loop, While)) or (isinstance(stmt, Loop) and stmt.kind == "vector"):
        return False
    return not any(isinstance(inner, (Loop, While)) for inner in walk(children(stmt)))


class _Lanes:
    def __init__(self, buffers: Mapping[str, Buffer], known: Accesses) -> None:
        self.buffers, self.known = dict(buffers), known

    def body(self, statements: Sequence[Stmt], outer: Path) -> tuple[Stmt, ...]:
        return tuple(self.statement(stmt, (*outer, k)) for k, stmt in enumerate(statements))

    def statement(self, stmt: Stmt, path: Path) -> Stmt:
        match stmt:
            case Loop():
                if any(isinstance(s, (Loop, While, Alloc)) for s in walk(stmt.body)):
                    return replace(stmt, body=self.body(stmt.body, path))
                return replace(stmt, kind="vector") if self.pays(stmt) and not any(loop_races(stmt, path, self.known)) else stmt
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
