"""Binding: which loops of a kernel that was not scheduled do blocks of threads take?

Those whose iterations do not meet, as far as that is proven. Of loops that hold nothing but each other the threads of a block
take the last one, and blocks the others; a single loop is cut into pieces for blocks. What must run in order is run by one block,
whose threads take the loops inside that need no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jitml.kernels.analysis.dependence import Accesses, Path, accesses
from jitml.kernels.analysis.races import loop_races
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Cell,
    Check,
    Expr,
    If,
    Kernel,
    Loop,
    Stmt,
    Update,
    Var,
    While,
    affine,
    is_ordered,
    sub,
    walk,
)

THREADS = 256  # of a block
TILE = 4 * THREADS  # iterations that a block takes of a loop
FEW = 32  # iterations that keep no warp busy
MANY = 8 * THREADS  # iterations that fill blocks of their own, a thread for each


def in_blocks(kernel: Kernel) -> Kernel:
    """The kernel with its independent loops bound to blocks and threads; no loop is `parallel` or `vector`."""
    kernel = replace(kernel, body=tuple(map(_plain, kernel.body)), optimize=False)
    binder = _Binder(kernel, accesses(kernel))
    return replace(kernel, body=tuple(binder.outermost(stmt, (k,)) for k, stmt in enumerate(kernel.body)))


def _plain(stmt: Stmt) -> Stmt:
    """A statement whose loops are all serial, or written out."""
    match stmt:
        case Loop(kind=kind, body=body):
            kept = kind if kind == "unroll" else "serial"
            return replace(stmt, kind=kept, grain=1, body=tuple(map(_plain, body)))
        case Alloc(_, body):
            return replace(stmt, body=tuple(map(_plain, body)))
        case If(_, then, orelse):
            return replace(stmt, then=tuple(map(_plain, then)), orelse=tuple(map(_plain, orelse)))
        case While(test, _, body):
            return replace(stmt, test=tuple(map(_plain, test)), body=tuple(map(_plain, body)))
    return stmt


class _Binder:
    def __init__(self, kernel: Kernel, known: Accesses) -> None:
        self.known = known
        self.types = {s.name: s.init.dtype for s in walk(kernel.body) if isinstance(s, Cell)}
        self.taken = {s.index for s in walk(kernel.body) if isinstance(s, Loop)}

    def outermost(self, stmt: Stmt, path: Path) -> Stmt:
        """A statement of the kernel's own."""
        if not isinstance(stmt, Loop) or not self.is_free(stmt, path) or self.sums(stmt):
            return self.within(stmt, path)
        nest, at = [stmt], path
        while len(nest[-1].body) == 1 and isinstance(inner := nest[-1].body[0], Loop):
            at = (*at, 0)
            if not self.is_free(inner, at) or self.sums(inner):
                break
            nest.append(inner)
        if len(nest) > 1 and (_trips(nest[-1]) >= FEW or _trips(stmt) < MANY):
            return self.blocks(nest)
        if len(nest) == 1 and self.pays_inside(stmt, path):
            return replace(stmt, kind="block", body=self.inside(stmt.body, path))
        return self.blocks([stmt])

    def blocks(self, nest: Sequence[Loop]) -> Stmt:
        """Loops around each other, the last for threads."""
        *outer, last = nest
        if _trips(last) > TILE:
            name = self.fresh(f"{last.index}b")
            stop = Apply("minimum", (Var(name) + TILE * last.step, last.stop))
            pieces = replace(last, start=Var(name), stop=stop, kind="thread")
            bound: Loop = replace(last, index=name, step=TILE * last.step, kind="block", body=(pieces,))
        else:
            bound = replace(last, kind="thread")
        for loop in reversed(outer):
            bound = replace(loop, kind="block", body=(bound,))
        return bound

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "b"
        self.taken.add(name)
        return name

    def inside(self, body: Sequence[Stmt], path: Path) -> tuple[Stmt, ...]:
        return tuple(self.within(stmt, (*path, k)) for k, stmt in enumerate(body))

    def within(self, stmt: Stmt, path: Path) -> Stmt:
        """A statement that all threads of a block run, with the outermost loops in it that they can share."""
        match stmt:
            case Loop(kind="serial"):
                if _trips(stmt) >= FEW and self.is_free(stmt, path):
                    return replace(stmt, kind="thread")
                return replace(stmt, body=self.inside(stmt.body, path))
            case Alloc(_, body):
                return replace(stmt, body=self.inside(body, path))
            case If() if any(isinstance(s, Check) for s in walk((stmt,))):
                return stmt  # of several that fail, the first one in order is the one to be told of
            case If(_, then, orelse):
                return replace(stmt, then=self.inside(then, (*path, 0)), orelse=self.inside(orelse, (*path, 1)))
            case While(test, _, body):
                return replace(stmt, test=self.inside(test, (*path, 0)), body=self.inside(body, (*path, 1)))
        return stmt

    def pays_inside(self, loop: Loop, path: Path) -> bool:
        """Whether the threads of a block find more to do in one iteration than if each had iterations of its own."""
        bound = walk(self.inside(loop.body, path))
        most = max((_trips(s) for s in bound if isinstance(s, Loop) and s.kind == "thread"), default=0.0)
        return most > 0 if _trips(loop) < MANY else THREADS <= most < float("inf")

    def sums(self, loop: Loop) -> bool:
        """Whether iterations are combined in a cell from outside."""
        own = {s.name for s in walk(loop.body) if isinstance(s, Cell)}
        return any(isinstance(s, Update) and s.cell not in own for s in walk(loop.body))

    def is_free(self, loop: Loop, path: Path) -> bool:
        """Whether iterations may run in any order."""
        if loop.kind != "serial" or any(loop_races(loop, path, self.known)):
            return False
        own = {s.name for s in walk(loop.body) if isinstance(s, Cell)}
        outer = [s for s in walk(loop.body) if isinstance(s, Update) and s.cell not in own]
        return not any(is_ordered(s.combine, self.types[s.cell]) for s in outer)


def _trips(loop: Loop) -> float:
    """The most iterations there are; without an end, if that is not known."""
    return max(0.0, -(-_length(loop.start, loop.stop) // loop.step))


def _length(start: Expr, stop: Expr) -> float:
    if isinstance(stop, Apply) and stop.fn == "minimum":
        return min(_length(start, side) for side in stop.args)
    span = affine(sub(stop, start))
    return span[""] if span is not None and span.keys() == {""} else float("inf")
