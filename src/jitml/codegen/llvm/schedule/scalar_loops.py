"""Schedules of loops over single elements: which of them run as vectors, and which are shared among threads?

Vectors: the innermost loops whose iterations may run in any order and touch neighbours. Threads: outermost loops whose
iterations do not meet, and whose work is worth waking a thread for.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from jitml.fusion.scalar_loops.forward_stores import with_recurrences
from jitml.fusion.schedule.primitives.statements import loop_names, with_schedule
from jitml.kernels.analysis.dependence import Accesses, Path, accesses
from jitml.kernels.analysis.races import loop_races
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Buffer,
    Cell,
    Draw,
    Expr,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    While,
    affine,
    children,
    expressions,
    variables_of,
    walk,
    walk_expression,
    walk_expressions,
)
from jitml.kernels.metrics import USUAL_TRIPS, known_trips, most_trips
from jitml.kernels.schedule import Parallel, Primitive, Schedule, Vector
from jitml.kernels.target import WORK, Target

SHORT = 8  # iterations that are not worth lanes with loops in them
ELEMENT_NS = 0.5  # one operation on one element, in order
VECTOR_NS = 0.1


def schedule_scalars(kernel: Kernel, target: Target) -> tuple[Primitive, ...]:
    known = accesses(kernel)
    names = loop_names(known)
    lanes = [names[path] for path in _lanes(kernel, known)]
    shared = _shared(kernel, known, lanes, target)
    return (*map(Vector, lanes), *(Parallel(names[path], grain) for path, grain in shared.items()))


# ---------------------------------------------------------------------------------------------------------- vectors


def _lanes(kernel: Kernel, known: Accesses) -> list[Path]:
    buffers = {b.name: b for b in kernel.params} | {s.buffer.name: s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)}
    chosen: list[Path] = []
    for path, loop in reversed([*known.loops.items()]):
        if not isinstance(loop, Loop) or any(inner[: len(path)] == path for inner in chosen):
            continue
        may = _may_hold_lanes(loop) and _pays(loop, buffers)
        if loop.kind == "vector" or (may and not any(loop_races(loop, path, known, in_lanes=True))):
            chosen.append(path)
    return [path for path in chosen[::-1] if _is_serial(known.loops[path])]


def _is_serial(loop: Loop | While) -> bool:
    return isinstance(loop, Loop) and loop.kind == "serial"


def _may_hold_lanes(loop: Loop) -> bool:
    """Whether each lane can run the body: with loops in it only if they are the same for all lanes, and none is a vector.

    Sums down columns are such: lanes are the columns.
    """
    if any(isinstance(s, (While, Alloc)) for s in walk(loop.body)):
        return False
    inner = [s for s in walk(loop.body) if isinstance(s, Loop)]
    own = {s.name for s in walk(loop.body) if isinstance(s, (Let, Cell, Draw))} | {loop.index}
    varies = any(variables_of(s.start, s.stop) & own for s in inner)
    return not inner or not (varies or _trips(loop) < SHORT)


def _pays(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    """Whether no access of the loop jumps from lane to lane."""
    places = [(s.buffer, s.at) for s in walk(loop.body) if isinstance(s, Store)]
    places += [(e.buffer, e.at) for e in walk_expressions(loop.body) if isinstance(e, Load)]
    return all(_step(buffers[buffer], at, loop.index) in (-1, 0, 1) for buffer, at in places)


def _step(buffer: Buffer, at: Sequence[Expr], index: str) -> int | None:
    total = 0
    for e, stride in zip(at, buffer.element_strides):
        form = affine(e)
        if form is None:
            return None
        total += form.get(index, 0) * stride
    return total


# ---------------------------------------------------------------------------------------------------------- threads


def _shared(kernel: Kernel, known: Accesses, lanes: Sequence[str], target: Target) -> dict[Path, int]:
    """Loops of the kernel that threads share, and the iterations that one takes at once.

    Args:
        lanes: the indices of loops that are vectors; here each loop has an index of its own.
    """
    outermost: list[Path] = []
    for path in known.loops:
        if not outermost or path[: len(outermost[-1])] != outermost[-1]:
            outermost.append(path)
    there = {
        p: loop for p in outermost if isinstance(loop := known.loops[p], Loop) and _is_serial(loop) and loop.index not in lanes
    }
    worth = [p for p, loop in there.items() if _pays_threads(loop, _body_ns(loop, lanes), target)]
    free = [p for p in worth if not any(loop_races(there[p], p, known))]
    if not free:
        return {}
    in_order = with_recurrences(with_schedule(kernel, Schedule((tuple(map(Vector, lanes)),)), target, kernel.name))
    loops = {s.index: s for s in walk(in_order.body) if isinstance(s, Loop)}
    times = {p: _body_ns(loops[there[p].index], lanes) for p in free}
    return {p: max(1, round(target.cost.grain_ns / ns)) for p, ns in times.items() if _pays_threads(there[p], ns, target)}


def _pays_threads(loop: Loop, ns: float, target: Target) -> bool:
    """Whether a loop is worth waking a thread for, if an iteration takes so long."""
    return ns * _trips(loop) >= 2 * target.cost.parallel_ns


def _trips(loop: Loop) -> int:
    """Iterations, or a guess at them."""
    return USUAL_TRIPS if (known := known_trips(loop)) is None else known


def _body_ns(loop: Loop, lanes: Container[str]) -> float:
    """A guess at the time of one iteration."""
    return sum(_ns(stmt, VECTOR_NS if loop.kind == "vector" or loop.index in lanes else ELEMENT_NS, lanes) for stmt in loop.body)


def _ns(stmt: Stmt, unit: float, lanes: Container[str]) -> float:
    own = isinstance(stmt, Store) + sum(
        isinstance(e, Load) or (isinstance(e, Apply) and WORK.get(e.fn, 1.0))
        for expr in expressions(stmt)
        for e in walk_expression(expr)
    )
    match stmt:
        case Loop():
            return unit + (most_trips(stmt) or USUAL_TRIPS) * _body_ns(stmt, lanes)
        case While():
            return USUAL_TRIPS * (unit * own + sum(_ns(inner, unit, lanes) for inner in children(stmt)))
    return unit * own + sum(_ns(inner, unit, lanes) for inner in children(stmt))
