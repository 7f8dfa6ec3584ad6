"""Store-to-load forwarding: which elements does an iteration load that the one before has just stored?

They are handed on in registers.

`x[i] = f(x[i - 1])`: through memory, each iteration would wait for the store of the one before, longer than a few operations
take. LLVM does the same, but not in loops with operations that may raise floating-point errors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from jitml.ir.types import I64
from jitml.kernels.analysis.dependence import Access, Form, Path, accesses
from jitml.kernels.analysis.substitution import new_names, substituted
from jitml.kernels.ir import (
    Cell,
    Check,
    Const,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    While,
    affine,
    children,
    less,
    sub,
    walk,
    with_blocks,
)

MOST = 64  # accesses of one buffer in a loop: among more, there are no registers to hand on


def with_recurrences(kernel: Kernel) -> Kernel:
    """The kernel with cells for what iterations of its innermost loops store for the next one; it is stored as before.

    What else can be gained of its loops LLVM's optimiser gains, where they run element by element.
    """
    is_plain = any(map(_is_plain, walk(kernel.body)))
    return replace(kernel, body=_Recurrences(kernel).body(kernel.body, ()), optimize=is_plain)


def _is_plain(stmt: Stmt) -> bool:
    """Whether a loop runs element by element, with no loop inside."""
    if not isinstance(stmt, (Loop, While)) or (isinstance(stmt, Loop) and stmt.kind == "vector"):
        return False
    return not any(isinstance(inner, (Loop, While)) for inner in walk(children(stmt)))


class _Recurrences:
    def __init__(self, kernel: Kernel) -> None:
        self.known = accesses(kernel).items
        self.paths = [a.path for a in self.known]  # in order
        self.names = new_names(kernel.body, "r")

    def body(self, statements: Sequence[Stmt], outer: Path) -> tuple[Stmt, ...]:
        return tuple(new for k, stmt in enumerate(statements) for new in self.statement(stmt, (*outer, k)))

    def statement(self, stmt: Stmt, path: Path) -> tuple[Stmt, ...]:
        match stmt:
            case Loop(kind="serial", body=body) if not any(isinstance(s, (Loop, While)) for s in walk(body)):
                return self.handing_on(stmt, path)
            case Loop(kind="vector"):
                return (stmt,)
        return (with_blocks(stmt, lambda block, place: self.body(block, (*path, *place))),)

    def handing_on(self, loop: Loop, path: Path) -> tuple[Stmt, ...]:
        """An innermost loop, and before it what its first iteration loads."""
        first, last = (bisect_left(self.paths, end) for end in ((*path, 0), (*path, len(loop.body))))
        touching: dict[str, list[Access]] = {}
        for a in self.known[first:last]:
            touching.setdefault(a.buffer, []).append(a)
        check = next((k for k, stmt in enumerate(loop.body) if any(isinstance(s, Check) for s in walk((stmt,)))), len(loop.body))
        before, after = list[Stmt](), list[Stmt]()
        changed: dict[int, tuple[Stmt, ...]] = {}
        for position, stmt in enumerate(loop.body):
            if not isinstance(stmt, Store) or stmt.combine is not None:
                continue
            here = touching[stmt.buffer]
            loads = _loads_next(loop, here, (*path, position)) if len(here) <= MOST else []
            if not loads or loads[0] > check:
                continue
            cell, value = (Var(next(self.names), stmt.value.dtype) for _ in range(2))
            before += _first(loop, loads[0], cell)
            for k in loads:
                let = loop.body[k]
                assert isinstance(let, Let)
                changed[k] = (Let(let.name, cell),)
            changed[position] = (Let(value.name, stmt.value), replace(stmt, value=value))
            after.append(Update(cell.name, value))
        body = [new for k, stmt in enumerate(loop.body) for new in changed.get(k, (stmt,))]
        return (*before, replace(loop, body=(*body, *after)))


def _loads_next(loop: Loop, touching: Sequence[Access], place: Path) -> list[int]:
    """Where the body loads what its store at `place` has stored in the iteration before, if nothing has changed it since.

    Args:
        touching: what accesses the same buffer in the loop.
    """
    path = place[:-1]
    (store,) = (a for a in touching if a.is_store and a.path == place)
    if not all(axis is not None and _is_even(axis, path) for axis in store.axes):
        return []
    first: dict[Path, Access] = {}  # of a statement that loads, this is its load
    for a in touching:
        first.setdefault(a.path, a)
    alone = [a for a in first.values() if len(a.path) == len(place) and _is_let(loop.body[a.path[-1]], a.buffer)]
    found = [a.path[-1] for a in alone if _is_next(a, store, path)]
    if all(path not in (axis or {}) for axis in store.axes):  # one element: a later load is of what this iteration has stored
        found = [k for k in found if k < place[-1]]
    for other in (a for a in touching if a.is_store and a is not store):
        if found and other.path > place and _may_meet(other, store, path, 0):
            return []
        if found and other.path < (*path, found[-1]) and _may_meet(other, store, path, 1):
            return []
    return found


def _is_let(stmt: Stmt, buffer: str) -> bool:
    return isinstance(stmt, Let) and isinstance(stmt.value, Load) and stmt.value.buffer == buffer


def _is_next(load: Access, store: Access, path: Path) -> bool:
    """Whether an iteration of the loop at `path` loads the element that the one before it stores."""
    return all(
        here is not None and there is not None and _after(here, path, 1) == _after(there, path, 0)
        for here, there in zip(load.axes, store.axes, strict=True)
    )


def _may_meet(other: Access, store: Access, path: Path, later: int) -> bool:
    """Whether `other`, some iterations later, may touch the element that `store` does."""
    for here, there in zip(other.axes, store.axes, strict=True):
        if here is None or there is None:
            continue
        (a, first), (b, second) = _after(here, path, later), _after(there, path, 0)
        if a == b and first != second:
            return False
    return True


def _is_even(form: Form, path: Path) -> bool:
    """Whether an index moves evenly with a loop, or not at all: names and loops inside may be anything."""
    return not any(len(p) > len(path) and p[: len(path)] == path for p in form)


def _after(form: Form, path: Path, iterations: int) -> tuple[Form, int]:
    """An index some iterations later, as its terms and its constant."""
    return {p: c for p, c in form.items() if p}, form.get((), 0) + iterations * form.get(path, 0)


def _first(loop: Loop, position: int, cell: Var) -> tuple[Stmt, ...]:
    """The cell, with what a load of the body finds in the first iteration; if there is none, that may be anywhere."""
    let = loop.body[position]
    assert isinstance(let, Let) and isinstance(let.value, Load)
    at = let.value.at
    for stmt in reversed(loop.body[:position]):
        if isinstance(stmt, Let) and stmt.value.dtype == I64:
            at = tuple(substituted(e, {stmt.name: stmt.value}) for e in at)
    element = replace(let.value, at=tuple(substituted(e, {loop.index: loop.start}) for e in at))
    span = affine(sub(loop.stop, loop.start))
    if span is not None and span.keys() == {""} and span[""] > 0:
        return (Cell(cell.name, element),)
    nothing = Const(cell.dtype.type(0).item(), cell.dtype)
    return Cell(cell.name, nothing), If(less(loop.start, loop.stop), (Update(cell.name, element),))
