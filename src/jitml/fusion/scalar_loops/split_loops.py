"""Loop distribution: what of a loop can threads share, where the rest of each iteration needs what the one before has left?

    for i in 0:n { let v = f(i); best = maximum(best, v) }
        ->  for i in 0:n { m[i] = f(i) }   for i in 0:n { best = maximum(best, m[i]) }

What takes the time is often in the part that knows nothing of other iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jitml.ir.types import DType
from jitml.kernels.ir import (
    Alloc,
    Buffer,
    Cell,
    Check,
    Draw,
    Expr,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
    While,
    loaded_by,
    stored_by,
    sub,
    touched_by,
    variables_of,
    walk,
    walk_expressions,
)
from jitml.kernels.metrics import known_trips
from jitml.records import dataclass, replace

MOST = 1 << 16  # iterations, of each of which some numbers are kept


@dataclass(frozen=True, slots=True)
class SplitLoop:
    """A kernel as two: iterations that may run in any order and what they leave, and those that take it up in order."""

    free: Kernel
    in_order: Kernel
    kept: tuple[Buffer, ...]


def in_two_parts(kernel: Kernel, new_buffer: Callable[[DType, tuple[int, ...]], Buffer]) -> SplitLoop | None:
    """None where nothing is worth it: no loop inside, no number handed on, or both parts touch the same."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if len(loops) != 1 or not isinstance(loop := loops[0], Loop) or loop.step != 1:
        return None
    place, trips = kernel.body.index(loop), known_trips(loop)
    before, after = kernel.body[:place], kernel.body[place + 1 :]
    if trips is None or not 1 < trips <= MOST or not all(isinstance(s, (Cell, Let)) for s in before):
        return None
    free, in_order = _parts(loop.body, {s.name for s in before if isinstance(s, Cell)})
    if not all(isinstance(s, (Let, Store)) for s in after) or not _may_part(free, in_order, stored_by(kernel.body)):
        return None
    wanted = _names(in_order)
    kept, taken = list[Stmt](), list[Stmt]()
    buffers: list[Buffer] = []
    for stmt in free:
        if (
            isinstance(stmt, Let)
            and stmt.name in wanted
            and variables_of(stmt.value) <= {loop.index}
            and not loaded_by(stmt.value)
        ):
            taken.append(stmt)
        elif isinstance(stmt, (Cell, Let)) and stmt.name in wanted:
            dtype = stmt.init.dtype if isinstance(stmt, Cell) else stmt.value.dtype
            buffers.append(new_buffer(dtype, (trips,)))
            at: tuple[Expr, ...] = (sub(Var(loop.index), loop.start),)
            kept.append(Store(buffers[-1].name, at, Var(stmt.name, dtype)))
            taken.append(Let(stmt.name, Load(buffers[-1].name, at, dtype)))
    shared = (*_without_cells(before), replace(loop, body=(*free, *kept)))
    rest = (*before, replace(loop, body=(*taken, *in_order)), *after)
    return SplitLoop(
        _touching(replace(kernel, name=f"{kernel.name}_shared", updates={}, body=shared), buffers),
        _touching(replace(kernel, body=rest), buffers),
        tuple(buffers),
    )


def _parts(body: Sequence[Stmt], outer: set[str]) -> tuple[list[Stmt], list[Stmt]]:
    """The statements of an iteration that know nothing of cells from outside, and the others."""
    free, in_order, held = list[Stmt](), list[Stmt](), set(outer)
    for stmt in body:
        if _names((stmt,)) & held or isinstance(stmt, Store):
            in_order.append(stmt)
            held |= {s.name for s in walk((stmt,)) if isinstance(s, (Cell, Draw, Let))}
        else:
            free.append(stmt)
    return free, in_order


def _may_part(free: Sequence[Stmt], in_order: Sequence[Stmt], stored: set[str]) -> bool:
    """Whether one part may run before the other, and takes longer."""
    is_worth_it = any(isinstance(s, (Loop, While)) for s in free) and bool(in_order)
    has_loops = any(isinstance(s, (Alloc, Check, Draw, Loop, While)) for s in walk(in_order))
    touches = any(isinstance(s, (Alloc, Draw, Store)) for s in walk(free)) or touched_by(free) & stored
    updated = {s.cell for s in walk(in_order) if isinstance(s, Update)} & {s.name for s in walk(free) if isinstance(s, Cell)}
    # Which of several checks fails first is not known.
    errors = {(s.error, s.message, s.values) for s in walk(free) if isinstance(s, Check)}
    is_told = len(errors) > 1 or any(values for _, _, values in errors)
    return is_worth_it and not (has_loops or touches or updated or is_told)


def _without_cells(before: Sequence[Stmt]) -> Iterator[Stmt]:
    """Numbers that are the same whatever cells hold."""
    cells = {s.name for s in before if isinstance(s, Cell)}
    for stmt in before:
        if isinstance(stmt, Let):
            if variables_of(stmt.value) & cells:
                cells.add(stmt.name)
            else:
                yield stmt


def _touching(kernel: Kernel, more: Sequence[Buffer]) -> Kernel:
    """The kernel with the parameters that its body touches."""
    used = touched_by(kernel.body)
    return replace(kernel, params=tuple(b for b in (*kernel.params, *more) if b.name in used))


def _names(body: Sequence[Stmt]) -> set[str]:
    """The names that statements mention."""
    return {e.name for e in walk_expressions(body) if isinstance(e, Var)} | {s.cell for s in walk(body) if isinstance(s, Update)}
