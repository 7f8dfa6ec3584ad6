"""Race detection: may the iterations of a parallel, vector, block or thread loop run in any order?

Yes if a cell from outside gets only combining updates and is not read otherwise, and if no element is written in one
iteration and touched in another. A store that combines touches what it combines with: neither lanes nor threads wait for others
in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitml.kernels.analysis.coincidence import coincide_only_together
from jitml.kernels.analysis.coincidence_by_sizes import coincide_by_sizes
from jitml.kernels.analysis.dependence import CONSTANT, Access, Accesses, Form, Path, accesses
from jitml.kernels.ir import (
    FREE,
    Alloc,
    Cell,
    Draw,
    Kernel,
    Let,
    Loop,
    Update,
    expressions,
    variables_of,
    walk,
)


def races(kernel: Kernel) -> Iterator[str]:
    """Every reason why a loop must not be of its kind, in words."""
    if not any(isinstance(stmt, Loop) and stmt.kind in FREE for stmt in walk(kernel.body)):
        return
    known = accesses(kernel)
    for path, loop in known.loops.items():
        if isinstance(loop, Loop) and loop.kind in FREE:
            yield from (
                f"{loop.kind} loop over {loop.index}: {reason}"
                for reason in loop_races(loop, path, known, in_lanes=loop.kind == "vector")
            )


def loop_races(loop: Loop, path: Path, known: Accesses, *, in_lanes: bool = False) -> Iterator[str]:
    """Why the iterations of one loop must run in order.

    Args:
        in_lanes: they take each statement together, some neighbours at a time, and nothing else runs in any order.
    """
    if any(isinstance(s, Draw) for s in walk(loop.body)):
        yield "random numbers are drawn in order"
    yield from _cell_races(loop)
    yield from _memory_races(loop, path, known, in_lanes)


def _cell_races(loop: Loop) -> Iterator[str]:
    own = {s.name for s in walk(loop.body) if isinstance(s, (Cell, Draw, Let))}
    own |= {s.index for s in walk(loop.body) if isinstance(s, Loop)}
    updated = {s.cell for s in walk(loop.body) if isinstance(s, Update) and s.cell not in own}
    combines: dict[str, object] = {}
    for stmt in walk(loop.body):
        if isinstance(stmt, Update) and stmt.cell in updated:
            if stmt.combine is None:
                yield f"the outer cell {stmt.cell} is set in order"
            elif combines.setdefault(stmt.cell, stmt.combine) != stmt.combine:
                yield f"the outer cell {stmt.cell} is combined in two ways"
        for name in sorted(variables_of(*expressions(stmt)) & updated):
            yield f"the outer cell {name} is read while it is combined"


def _memory_races(loop: Loop, path: Path, known: Accesses, in_lanes: bool) -> Iterator[str]:
    scratch = {s.buffer.name for s in walk(loop.body) if isinstance(s, Alloc)}
    inside = [a for a in known.items if a.path[: len(path)] == path and a.path != path and a.buffer not in scratch]
    for name in dict.fromkeys(a.buffer for a in inside if a.is_store):
        here = [a for a in inside if a.buffer == name]
        pairs = [(store, other) for store in here if store.is_store for other in here if not _apart(store, other, path, known)]
        clashes = [other for store, other in pairs if not (in_lanes and _reads_ahead(other, store, path, known))]
        if clashes:
            what = "written" if any(other.is_store for other in clashes) else "read"
            yield f"{name} is written in one iteration and {what} in another"


def _apart(store: Access, other: Access, path: Path, known: Accesses) -> bool:
    """Whether two accesses can meet only within one iteration of the loop at `path`."""
    around = (p for p in known.loops if p == path[: len(p)])
    shared = (*around, *(p for p in known.names if len(p) <= len(path) and p[:-1] == path[: len(p) - 1]))
    forms: list[tuple[Form | None, Form | None]] = [(store.address, other.address), *zip(store.axes, other.axes)]
    if store.divided is not None or other.divided is not None:
        whole = [x.address if x.divided is None else x.divided for x in (store, other)]
        if whole[0] is not None and whole[1] is not None and coincide_by_sizes(whole[0], whole[1], shared, (path,), known):
            return True
    return any(coincide_only_together(a, b, shared, (path,), known) for a, b in forms)


def _reads_ahead(load: Access, store: Access, path: Path, known: Accesses) -> bool:
    """Whether what an iteration of the loop at `path` loads is stored in no earlier one, and by no earlier statement of it.

    Then lanes have loaded it before any of them stores.
    """
    if load.is_store or load.path > store.path or {load.loops[-1], store.loops[-1]} != {path}:
        return False
    for here, there in ((load.address, store.address), *zip(load.axes, store.axes, strict=True)):
        if here is None or there is None or any(p in known.quotients or p[: len(path)] == path != p for p in {*here, *there}):
            continue
        step, gap = there.get(path, 0), {p: here.get(p, 0) - there.get(p, 0) for p in {*here, *there}}
        if step and not gap.get(path) and _never_negative({p: c if step > 0 else -c for p, c in gap.items() if c}, known):
            return True
    return False


def _never_negative(form: Form, known: Accesses) -> bool:
    """Whether a sum over counts and names that are the same for all lanes is at least 0."""
    least = form.get(CONSTANT, 0)
    for path, c in form.items():
        if path != CONSTANT:
            low, high = known.limits.get(path, (0, known.last.get(path)))
            if high is None:
                return False
            least += min(c * low, c * high)
    return least >= 0
