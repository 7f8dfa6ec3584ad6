"""Binding: which loops of a kernel that was not scheduled do blocks of threads take?

Those whose iterations do not meet, as far as that is proven. Of loops that hold nothing but each other the threads of a block
take the last one, and blocks the others; a single loop is cut into pieces for blocks. What must run in order is run by one block,
whose threads take the loops inside that need no order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from jitml.fusion.schedule.primitives.statements import loop_names
from jitml.kernels.analysis.dependence import Accesses, Path, accesses
from jitml.kernels.analysis.races import loop_races
from jitml.kernels.ir import (
    Alloc,
    Cell,
    Check,
    If,
    Kernel,
    Loop,
    Stmt,
    Update,
    While,
    is_ordered,
    walk,
)
from jitml.kernels.schedule import BindLoop, Primitive, Split
from jitml.kernels.target import Target

THREADS = 256  # of a block
TILE = 4 * THREADS  # iterations that a block takes of a loop
FEW = 32  # iterations that keep no warp busy
MANY = 8 * THREADS  # iterations that fill blocks of their own, a thread for each


def schedule_statements(kernel: Kernel, target: Target, ns: float = 0.0) -> tuple[Primitive, ...]:
    """The independent loops of a kernel bound to blocks and threads, however long they take."""
    binder = _Binder(kernel, accesses(kernel))
    return tuple(p for k, stmt in enumerate(kernel.body) for p in binder.outermost(stmt, (k,)))


class _Binder:
    def __init__(self, kernel: Kernel, known: Accesses) -> None:
        self.known, self.names = known, loop_names(known)
        self.types = {s.name: s.init.dtype for s in walk(kernel.body) if isinstance(s, Cell)}
        self.taken = {s.index for s in walk(kernel.body) if isinstance(s, Loop)}

    def outermost(self, stmt: Stmt, path: Path) -> list[Primitive]:
        """The loops of a statement of the kernel's own."""
        if not isinstance(stmt, Loop) or not self.is_free(stmt, path) or self.sums(stmt):
            return [BindLoop(self.names[p], "thread") for p in self.within(stmt, path)]
        nest = {path: stmt}
        last, at = stmt, path
        while len(last.body) == 1 and isinstance(inner := last.body[0], Loop):
            last, at = inner, (*at, 0)
            if not self.is_free(last, at) or self.sums(last):
                break
            nest[at] = last
        if len(nest) > 1 and (self.trips([*nest][-1]) >= FEW or self.trips(path) < MANY):
            return self.blocks(nest)
        if len(nest) == 1 and (threads := self.shared_inside(stmt, path)):
            return [BindLoop(self.names[p], kind) for p, kind in ((path, "block"), *((p, "thread") for p in threads))]
        return self.blocks({path: stmt})

    def blocks(self, nest: Mapping[Path, Loop]) -> list[Primitive]:
        """Loops around each other, the last for threads."""
        *outer, last = nest
        found: list[Primitive] = [BindLoop(self.names[path], "block") for path in outer]
        if self.trips(last) > TILE:
            name = self.fresh(f"{nest[last].index}b")
            found += [Split(self.names[last], TILE, name), BindLoop(name, "block")]
        return [*found, BindLoop(self.names[last], "thread")]

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "b"
        self.taken.add(name)
        return name

    def inside(self, body: Sequence[Stmt], path: Path) -> list[Path]:
        return [found for k, stmt in enumerate(body) for found in self.within(stmt, (*path, k))]

    def within(self, stmt: Stmt, path: Path) -> list[Path]:
        """Of a statement that all threads of a block run, the outermost loops in it that they can share."""
        match stmt:
            case Loop() if self.trips(path) >= FEW and self.is_free(stmt, path):
                return [path]
            case Loop() | Alloc():
                return self.inside(stmt.body, path)
            case If() if any(isinstance(s, Check) for s in walk((stmt,))):
                return []  # of several that fail, the first one in order is the one to be told of
            case If(_, first, second) | While(first, _, second):
                return [*self.inside(first, (*path, 0)), *self.inside(second, (*path, 1))]
        return []

    def shared_inside(self, loop: Loop, path: Path) -> list[Path]:
        """What the threads of a block share in one iteration, if that is more to do than if each had iterations of its own."""
        found = self.inside(loop.body, path)
        most = max(map(self.trips, found), default=0)
        return found if self.trips(path) < MANY or THREADS <= most < inf else []

    def trips(self, path: Path) -> float:
        """The most iterations there are; without an end, if that is not known."""
        last = self.known.last[path]
        return inf if last is None else last + 1

    def sums(self, loop: Loop) -> list[Update]:
        """What combines iterations in a cell from outside."""
        own = {s.name for s in walk(loop.body) if isinstance(s, Cell)}
        return [s for s in walk(loop.body) if isinstance(s, Update) and s.cell not in own]

    def is_free(self, loop: Loop, path: Path) -> bool:
        """Whether iterations may run in any order."""
        in_order = any(loop_races(loop, path, self.known))
        return not in_order and not any(is_ordered(s.combine, self.types[s.cell]) for s in self.sums(loop))
