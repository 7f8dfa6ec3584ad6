"""Copy elimination: which arrays are made only to be copied into a window of another?

Their makers store in the window themselves.

What a loop keeps for its derivative is a window of a stack in each iteration. One group of nodes makes several such values, while
an update in place is a step of its own (`grouping.py`); each value would be written, read, and written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from jitml.kernels.ir import (
    Apply,
    Buffer,
    Const,
    Expr,
    Kernel,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
    While,
    affine,
    loaded_by,
    variables_of,
    walk,
    with_blocks,
)
from jitml.kernels.program import Step
from jitml.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class _CopyKernel:
    """A kernel that does no more than copy all of an array into a window of another, which has the array's axes last.

    place: where the window is, along the axes before those. numbers: what this mentions.
    """

    kernel: Kernel
    source: Buffer
    target: Buffer
    place: tuple[Expr, ...]
    numbers: tuple[Let, ...]

    @property
    def base(self) -> str:
        """What the target holds outside the window."""
        return self.kernel.updates[self.target.name]

    @property
    def loaded(self) -> frozenset[str]:
        """The buffers that the place is read from."""
        return loaded_by(*(let.value for let in self.numbers))


def deliver(steps: Sequence[Step], step: Step, uses: Mapping[str, int]) -> list[Step] | None:
    """`t = f(x)`, then `stack[k] = t`, becomes `stack[k] = f(x)`, beside `t` if others read that; a `Merge`."""
    copy = _copied(step) if isinstance(step, Kernel) else None
    at = None if copy is None else _maker(steps, copy)
    if copy is None or at is None:
        return None
    maker = steps[at]
    assert isinstance(maker, Kernel)
    return [*steps[:at], _delivering(maker, copy, beside=uses[copy.source.name] != 2), *steps[at + 1 :]]


def _copied(kernel: Kernel) -> _CopyKernel | None:
    """What a kernel copies, if that is all it does."""
    numbers = tuple(s for s in kernel.body if isinstance(s, Let))
    body: tuple[Stmt, ...] = kernel.body[len(numbers) :]
    loops: list[Loop] = []
    while len(body) == 1 and isinstance(body[0], Loop):
        loops.append(body[0])
        body = body[0].body
    match body:
        case (Store(target, at, Load(source, rest), None),) if kernel.updates.keys() == {target}:
            params = {b.name: b for b in kernel.params}
            x, y = params[source], params[target]
        case _:
            return None
    before = len(at) - len(rest)
    if before < 1 or at[before:] != rest or y.shape[before:] != x.shape or not (x.is_c_contiguous and y.is_c_contiguous):
        return None
    inside = {loop.index for loop in loops}
    if not _visits_all(rest, x.shape, loops) or any(variables_of(e) & inside for e in at[:before]):
        return None
    return _CopyKernel(kernel, x, y, at[:before], numbers)


def _visits_all(at: Sequence[Expr], shape: Sequence[int], loops: Sequence[Loop]) -> bool:
    """Whether an index takes every value of a shape."""
    limits = {loop.index: loop for loop in loops}
    names = [e.name for e in at if isinstance(e, Var)]
    return len(set(names)) == len(names) and all(
        n == 1 if e == Const(0) else isinstance(e, Var) and e.name in limits and limits_of(limits[e.name], limits) == (0, n)
        for e, n in zip(at, shape)
    )


def limits_of(loop: Loop, loops: Mapping[str, Loop]) -> tuple[int, int] | None:
    """Where a loop starts and stops, if it visits all between; or the loop of the chunks does, of which it is one."""
    if loop.step != 1:
        return None
    match loop.start, loop.stop:
        case Const(start), Const(stop):
            return int(start), int(stop)
    chunks = loops.get(loop.start.name) if isinstance(loop.start, Var) else None
    if chunks is None or not isinstance(chunks.start, Const) or not isinstance(chunks.stop, Const):
        return None
    start, stop = int(chunks.start.value), int(chunks.stop.value)
    end = loop.stop
    match end:
        case Apply("minimum", (first, Const(limit))) if limit == stop:
            end = first
        case _ if (stop - start) % chunks.step:
            return None
    return (start, stop) if affine(end) == {chunks.index: 1, "": chunks.step} else None


def _maker(steps: Sequence[Step], copy: _CopyKernel) -> int | None:
    """Where the kernel stands that makes what is copied, if it could as well store in the window, where nobody looks before."""
    for at in reversed(range(len(steps))):
        step = steps[at]
        touched = {*step.reads, *step.writes, *step.updates.values()}
        if touched & {copy.base, copy.target.name} or not copy.loaded.isdisjoint(step.writes):
            return None
        if copy.source.name in step.writes:
            return at if isinstance(step, Kernel) and _can_deliver(step, copy) else None
    return None


def _can_deliver(maker: Kernel, copy: _CopyKernel) -> bool:
    source = copy.source.name
    (seen,) = (b for b in maker.params if b.name == source)
    stores = [s for s in walk(maker.body) if isinstance(s, Store) and s.buffer == source]
    known = {s.name: s for s in walk(maker.body) if isinstance(s, Let)}
    numbers = {s.name for s in maker.body if isinstance(s, Let)}
    return (
        seen.is_c_contiguous
        and source not in maker.updates
        and all(s.combine is None for s in stores)
        and not any(isinstance(s, While) for s in walk(maker.body))
        and all(let.name not in known or (known[let.name] == let and let.name in numbers) for let in copy.numbers)
    )


def _delivering(maker: Kernel, copy: _CopyKernel, *, beside: bool) -> Kernel:
    """A kernel that stores in the window what it makes; where it made it too, if that is to be done `beside`."""
    (seen,) = (b for b in maker.params if b.name == copy.source.name)
    target = Buffer(copy.target.name, seen.dtype, (*copy.target.shape[: len(copy.place)], *seen.shape))

    numbered = count()

    def stored(body: Iterable[Stmt]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Store(name, at, value) if name == copy.source.name:
                    if beside:
                        let = Let(f"{target.name}_made{next(numbered)}", value)
                        value = Var(let.name, seen.dtype)
                        result += [let, replace(stmt, value=value)]
                    result.append(Store(target.name, (*copy.place, *at), value))
                case _:
                    result.append(with_blocks(stmt, lambda block, _: stored(block)))
        return tuple(result)

    numbers = tuple(let for let in copy.numbers if let not in maker.body)
    params = [b for b in maker.params if beside or b is not seen]
    params += [target, *(b for b in copy.kernel.params if b.name in copy.loaded - {b.name for b in params})]
    return replace(
        maker,
        params=tuple(params),
        body=(*numbers, *stored(maker.body)),
        updates={**maker.updates, target.name: copy.base},
        sources=tuple(dict.fromkeys((*maker.sources, *copy.kernel.sources))),
    )
