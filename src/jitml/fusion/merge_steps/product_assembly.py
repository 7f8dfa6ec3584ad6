"""Assembly of products: which products are made only to be parts of a larger array?  BLAS writes them where they will be.

The gradient of one matrix of three is three products side by side; made apart, each is written, read, and written again.
What kernels make for windows of arrays is the subject of `copy_elimination.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from jitml.fusion.merge_steps.copy_elimination import limits_of
from jitml.kernels.ir import Buffer, Expr, Kernel, Load, Loop, Stmt, Store, affine, walk_expressions
from jitml.kernels.program import Call, Step
from jitml.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class _CopyNest:
    """A nest that copies all of a contiguous array into another.

    strides: in elements of the target, one for each axis of the source. offset: of the source's first element there.
    """

    nest: Stmt
    source: Buffer
    target: str
    strides: tuple[int, ...]
    offset: int


def assemble(
    steps: Sequence[Step], step: Step, uses: Mapping[str, int], *, new_buffer: Callable[[str], str]
) -> list[Step] | None:
    """`z = x @ y`, then `t[:, 3:5] = z`, becomes `t[:, 3:5] = x @ y`, if nobody else wants z and t is as it was; a `Merge`.

    Args:
        new_buffer: makes one like another, and gives its name.
    """
    parts = _parts(step) if isinstance(step, Kernel) else {}
    placed: dict[int, Call] = {}  # steps -> what they are to be
    for k, maker in enumerate(steps if parts else ()):
        part = parts.get(maker.writes[0]) if isinstance(maker, Call) and maker.writes else None
        if part is None or uses[part.source.name] != 2 or not _is_untouched(steps[k:], step.updates.values()):
            continue
        assert isinstance(maker, Call)
        if (params := _placed(maker, part)) is not None:
            sources = tuple(dict.fromkeys((*maker.sources, *step.sources)))
            placed[k] = replace(maker, params=params, sources=sources)
    if not placed:
        return None
    assert isinstance(step, Kernel)
    moved = [parts[name].nest for call in placed.values() for name in call.writes]
    rest = tuple(nest for nest in _nests(step.body) if nest not in moved)
    return _written_there(steps, step, placed, rest, new_buffer)


def _is_untouched(steps: Sequence[Step], names: Collection[str]) -> bool:
    """Whether no step reads or writes one of some buffers."""
    return all({*step.reads, *step.writes, *step.updates.values()}.isdisjoint(names) for step in steps)


def _written_there(
    steps: Sequence[Step], last: Kernel, placed: Mapping[int, Call], rest: tuple[Stmt, ...], new_buffer: Callable[[str], str]
) -> list[Step]:
    """Let products write one after the other into the memory that the last step, of which a rest is left, has written."""
    found = list(steps)
    (target,) = last.writes
    base = last.updates.get(target)
    is_new = base is None
    base = base or new_buffer(target)
    for k, call in placed.items():
        whole = new_buffer(target) if rest or call is not list(placed.values())[-1] else target
        found[k] = replace(call, writes=(whole,), updates={whole: base})
        base = whole
    if rest:
        used = {e.buffer for e in walk_expressions(rest) if isinstance(e, Load)} | {target}
        params = tuple(b for b in last.params if b.name in used)
        found.append(replace(last, params=params, body=rest, updates={target: base}))
    if is_new:
        first = min(placed)
        (start,) = found[first].updates.values()
        found.insert(first, Call("empty", (), (start,), {}))
    return found


def _parts(kernel: Kernel) -> dict[str, _CopyNest]:
    """The arrays that a kernel only copies, each with its place in the one that the kernel makes."""
    nests = _nests(kernel.body)
    if len(kernel.writes) != 1 or (kernel.updates and len(nests) > 1):
        return {}
    loads = Counter(e.buffer for e in walk_expressions(kernel.body) if isinstance(e, Load))
    params = {b.name: b for b in kernel.params}
    found = (_part(nest, params) for nest in nests)
    return {part.source.name: part for part in found if part is not None and loads[part.source.name] == 1}


def _nests(body: Sequence[Stmt]) -> list[Stmt]:
    """With loops around several stores as one for each store."""
    found: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop) and all(isinstance(s, (Loop, Store)) for s in stmt.body):
            found += [replace(stmt, body=(inner,)) for inner in _nests(stmt.body)]
        else:
            found.append(stmt)
    return found


def _part(nest: Stmt, params: Mapping[str, Buffer]) -> _CopyNest | None:
    loops: dict[str, Loop] = {}
    inner = nest
    while isinstance(inner, Loop) and len(inner.body) == 1:
        loops[inner.index] = inner
        (inner,) = inner.body
    if not isinstance(inner, Store) or inner.combine is not None or not isinstance(inner.value, Load):
        return None
    source, target = params[inner.value.buffer], params[inner.buffer]
    along = [_along(e, n, loops) for e, n in zip(inner.value.at, source.shape)]
    starts = dict(filter(None, along))
    at = [affine(e) for e in inner.at]
    if None in at or None in along or len(starts) < len(along) or not source.is_c_contiguous:
        return None
    steps: Counter[str] = Counter()
    for place, stride in zip(at, target.element_strides):
        for name, times in (place or {}).items():
            steps[name] += times * stride
    if steps.keys() - {"", *starts}:
        return None  # a place that the run tells
    offset = steps[""] + sum(steps[index] * first for index, first in starts.items())
    return _CopyNest(nest, source, target.name, tuple(steps[index] for index in starts), offset)


def _along(at: Expr, n: int, loops: Mapping[str, Loop]) -> tuple[str, int] | None:
    """The loop whose index makes an index take every value from 0 to n, and where the loop starts."""
    place = affine(at)
    if place is None or len(place) != 2:
        return None
    (index,) = place.keys() - {""}
    if place[index] != 1 or index not in loops:
        return None
    limits = limits_of(loops[index], loops)
    return (index, limits[0]) if limits == (-place[""], n - place[""]) else None


def _placed(call: Call, part: _CopyNest) -> Mapping[str, Any] | None:
    """The parameters of a product whose result is a part of another array; None where it does not lie there in strides."""
    p, shape, steps = call.params, part.source.shape, part.source.element_strides
    if call.name != "gemm" or call.updates or "sized" in p or "c_start" in p or part.strides[-1] != 1:
        return None
    left = p["c_offset"]
    reached = []
    for step in steps:
        reached.append(left // step)
        left %= step
    offset = part.offset + sum(n * to for n, to in zip(reached, part.strides))
    strides = []
    for n, stride in zip((*p["batch"], p["m"], p["n"]), (*p["c_batch"], p["c_row"], p["c_col"]), strict=True):
        axis = next((k for k, step in enumerate(steps) if step <= stride and stride % step == 0), -1)
        reached[axis] += (n - 1) * (stride // steps[axis])
        strides.append(stride // steps[axis] * part.strides[axis])
    if any(last >= extent for last, extent in zip(reached, shape)):
        return None
    *batch, row, col = strides
    return {**p, "c_offset": offset, "c_batch": tuple(batch), "c_row": row, "c_col": col}
