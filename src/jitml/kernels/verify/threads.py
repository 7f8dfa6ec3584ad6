"""Block and thread loops: where may they stand, and what may they touch?  Blocks share memory alone; threads share a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitml.kernels.ir import Cell, Loop, Stmt, Update, children, is_ordered, walk


def misplaced(body: Sequence[Stmt]) -> Iterator[str]:
    """Every reason why a block or thread loop cannot run where it stands, in words."""
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.kind == "block":
            yield from _shared_cells(stmt)
            yield from misplaced(stmt.body)
        else:
            yield from _inside((stmt,), ())


def _inside(body: Sequence[Stmt], around: tuple[Loop, ...]) -> Iterator[str]:
    """What is wrong below something that is no block loop; `around` are the loops there."""
    for stmt in body:
        if isinstance(stmt, Loop):
            if stmt.kind == "block":
                yield f"the block loop over {stmt.index} stands in what is no block loop"
            elif stmt.kind == "thread":
                yield from _misplaced_threads(stmt, around)
            elif stmt.kind == "parallel" and any(loop.kind == "thread" for loop in _loops(stmt.body)):
                yield f"the parallel loop over {stmt.index} has threads of its own"
            yield from _inside(stmt.body, (*around, stmt))
        else:
            yield from _inside(children(stmt), around)


def _loops(body: Sequence[Stmt]) -> Iterator[Loop]:
    return (stmt for stmt in walk(body) if isinstance(stmt, Loop))


def _shared_cells(loop: Loop) -> Iterator[str]:
    own = {s.name for s in walk(loop.body) if isinstance(s, Cell)}
    for name in dict.fromkeys(s.cell for s in walk(loop.body) if isinstance(s, Update) and s.cell not in own):
        yield f"all blocks of the loop over {loop.index} combine into {name}, and share no cells"


def _misplaced_threads(loop: Loop, around: Sequence[Loop]) -> Iterator[str]:
    for outer in around:
        if outer.kind in ("thread", "vector"):
            yield f"the thread loop over {loop.index} stands in the {outer.kind} loop over {outer.index}"
    own = {s.name for s in walk(loop.body) if isinstance(s, Cell)}
    for stmt in walk(loop.body):
        if isinstance(stmt, Update) and stmt.cell not in own and is_ordered(stmt.combine, stmt.value.dtype):
            yield f"threads take the elements of the product {stmt.cell} in another order than the loop over {loop.index}"
