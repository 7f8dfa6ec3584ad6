"""Time tiling: which loops over whole arrays run tile by tile, all iterations of one tile after the other?

    for t in 0:50 { for i in 0:n { x[i] = f(x[i], a[i]) } }
        ->  for c in 0:n:256 { for t in 0:50 { for i in c:c + 256 { x[i] = f(x[i], a[i]) } } }

A tile stays in the first cache, and threads wait for each other once. Where a mask says which elements change, a tile is left
alone as soon as an iteration has changed none of it: no later one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from jitml.ir.types import BOOL, I64
from jitml.kernels.analysis.dependence import Accesses, accesses
from jitml.kernels.analysis.races import loop_races
from jitml.kernels.analysis.substitution import new_names, with_expressions, with_loads
from jitml.kernels.ir import (
    Apply,
    Buffer,
    Cell,
    Const,
    Expr,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Observe,
    Stmt,
    Store,
    Update,
    Var,
    While,
    loaded_by,
    stored_by,
    touched_by,
    walk,
    walk_expressions,
    with_blocks,
)
from jitml.kernels.metrics import known_trips
from jitml.kernels.program import Region
from jitml.records import replace

TILE_BYTES = 1 << 14  # of all that an iteration touches: half of a first cache
MASKED_TILE = 64  # elements: the fewer there are, the sooner none of them changes any more


def as_loop(region: Region) -> Kernel | None:
    """A loop whose body is one kernel, as one kernel; None where arrays change places, or the body has memory of its own."""
    if region.kind != "loop" or region.results[0] != region.carried:
        return None
    (program,) = region.bodies
    if len(program.steps) != 1 or program.sizes or not isinstance(kernel := program.steps[0], Kernel):
        return None
    names = dict(zip((*program.inputs, *program.outputs), (*region.arguments[0], *region.results[0])))
    params: dict[str, Buffer] = {}
    for b in kernel.params:
        seen = replace(b, name=names.get(b.name, ""))
        if params.setdefault(seen.name, seen) != seen:
            return None
    if "" in params:
        return None
    params.pop(region.index or "", None)
    time, count = (next(new_names(kernel.body, prefix)) for prefix in ("time", "trips"))

    def known(load: Load) -> Expr:
        name = names.get(load.buffer, load.buffer)
        return Var(time) if name == region.index else replace(load, buffer=name)

    def stored(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        renamed = (replace(s, buffer=names.get(s.buffer, s.buffer)) if isinstance(s, Store) else s for s in body)
        return tuple(with_blocks(s, lambda block, _: stored(block)) for s in renamed)

    body = with_expressions(stored(kernel.body), lambda e: with_loads(e, known))
    if stored_by(body) != {*region.carried}:
        return None
    numbers: tuple[Stmt, ...] = ()
    if isinstance(region.control, str):
        params[region.control] = Buffer(region.control, I64, ())
        numbers = (Let(count, Load(region.control, (), I64)),)
    trips = Const(region.control) if isinstance(region.control, int) else Var(count)
    return replace(
        kernel,
        name=region.name,
        params=tuple(params.values()),
        body=(*numbers, Loop(time, Const(0), trips, 1, "serial", body)),
        updates=region.updates,
        sources=tuple(dict.fromkeys((*region.sources, *kernel.sources))),
    )


def in_tiles(kernel: Kernel) -> tuple[Kernel] | None:
    """A kernel that is a loop around one over elements or rows, with the loop inside; None where one depends on others."""
    match kernel.body:
        case (*fixed, Loop(body=(*numbers, Loop() as loop)) as time):
            pass
        case _:
            return None
    if loop.step > 1:  # pieces of a loop
        match loop.body:
            case (*more, Loop(_, start, stop, 1) as inner) if (start, stop) == _piece(loop.index, loop.step, loop.stop):
                numbers, loop = [*numbers, *more], replace(inner, start=loop.start, stop=loop.stop)
            case _:
                return None
    stored = stored_by(kernel.body)
    for number in (*fixed, *numbers):
        if not isinstance(number, Let) or loaded_by(number.value) & stored:
            return None
    tiles = _over_tiles(kernel, loop)
    if tiles is None:
        return None
    counts = any(e == Var(time.index) for e in walk_expressions(time.body))
    changing = None if counts else _changing(tiles.body)
    body, before = (tiles.body, ()) if changing is None else _while_it_changes(tiles.body, changing)
    whole = replace(time, body=(*numbers, *body))
    made = replace(kernel, body=(*fixed, replace(tiles, body=(*before, whole))))
    return (made,) if _is_apart(accesses(made), stored, time.index) else None


def _over_tiles(kernel: Kernel, loop: Loop) -> Loop | None:
    """The loop over tiles, in order: pieces of a kernel's elements, or its rows. None if there is but one."""
    if loop.step != 1:
        return None
    if any(isinstance(s, Loop) for s in walk(loop.body)):
        return replace(loop, kind="serial", grain=1)
    touched = touched_by(loop.body)
    nbytes = sum(b.dtype.itemsize for b in kernel.params if b.name in touched)
    width = MASKED_TILE if _changing((loop,)) is not None else max(256, 1 << (TILE_BYTES // nbytes).bit_length() - 1)
    trips = known_trips(loop)
    if trips is not None and trips <= width:
        return None
    tile = next(new_names(kernel.body, "tile"))
    start, stop = _piece(tile, width, loop.stop)
    return Loop(tile, loop.start, loop.stop, width, "serial", (replace(loop, start=start, stop=stop),))


def _piece(index: str, width: int, stop: Expr) -> tuple[Expr, Expr]:
    """Where the loop over a piece starts and stops."""
    return Var(index), Apply("minimum", (Var(index) + width, stop))


def _is_apart(known: Accesses, stored: Iterable[str], time: str) -> bool:
    """Whether an iteration of a kernel's loops loads of what they store only what it then stores itself, whatever the time is.

    Args:
        time: the index of the loop whose iterations follow each other in all of them.
    """
    for name in stored:
        stores, loads = known.stores(name), known.loads(name)
        if len(stores) != 1 or any(load.loops != stores[0].loops or load.path > stores[0].path for load in loads):
            return False
        if any(load.axes != stores[0].axes or None in load.axes for load in loads):
            return False
    loops = [(path, loop) for path, loop in known.loops.items() if not (isinstance(loop, Loop) and loop.index == time)]
    return not any(isinstance(loop, While) or any(loop_races(loop, path, known)) for path, loop in loops)


# ------------------------------------------------------------------------------------------------------- early exits


def _changing(body: Sequence[Stmt]) -> Expr | None:
    """Where elements change in a loop over a tile, by its masks; None if that may be everywhere."""
    match body:
        case (Loop() as loop,) if all(isinstance(s, (Let, Observe, Store)) for s in loop.body):
            pass
        case _:
            return None
    lets = {s.name: s.value for s in loop.body if isinstance(s, Let)}
    found: dict[Expr, None] = {}
    for stmt in loop.body:
        if isinstance(stmt, Store):
            masks = _masks(stmt.value, Load(stmt.buffer, stmt.at, stmt.value.dtype), lets)
            if masks is None:
                return None
            found |= dict.fromkeys(masks)
    return reduce(lambda a, b: Apply("bit_or", (a, b), BOOL), found) if found else None


def _masks(value: Expr, old: Load, lets: Mapping[str, Expr]) -> list[Expr] | None:
    """Masks of which one is true where a value is not what was there; None if it may be another one without."""
    while isinstance(value, Var) and value.name in lets:
        value = lets[value.name]
    if value == old:
        return []
    match value:
        case Apply("select", (mask, x, y)) if not loaded_by(mask):
            kept, other = _masks(y, old, lets), _masks(x, old, lets)
            if kept is not None:
                return [*kept, mask] if other is None else [*kept, *other]
            return None if other is None else [*other, Apply("bit_not", (mask,), BOOL)]
    return None


def _while_it_changes(body: tuple[Stmt, ...], changing: Expr) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """What an iteration does, unless the last one has changed nothing, and what stands before all of them."""
    (loop,) = body
    assert isinstance(loop, Loop)
    goes_on, changes = (next(new_names(body, prefix)) for prefix in ("goes_on", "changes"))
    looking = replace(loop, body=(*loop.body, Update(changes, changing, "or")))
    step = (Cell(changes, Const(False, BOOL)), looking, Update(goes_on, Var(changes, BOOL)))
    return (If(Var(goes_on, BOOL), step),), (Cell(goes_on, Const(True, BOOL)),)
