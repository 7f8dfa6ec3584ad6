"""Which elements of its parameters does a kernel touch, and how do the threads of a warp touch them side by side?

Loops are run, and nothing is computed but indices: kernels whose limits and places depend on data are none for this.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitml.ir.types import I64
from jitml.kernels.ir import Alloc, Apply, Const, Expr, Kernel, Let, Load, Loop, Stmt, Store, Var, expressions, walk_expression

_INTEGERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "minimum": min,
    "maximum": max,
}


@dataclass(frozen=True, slots=True)
class Touch:
    """An access of a parameter: which place in the kernel's text it is, in which iteration of the thread loop, and its offset."""

    site: int
    buffer: str
    thread: tuple[int, ...] | None  # the iterations of block loops, then of the thread loop
    offset: int
    lane: int | None


def touches(kernel: Kernel) -> list[Touch]:
    return list(_Runner(kernel).body(kernel.body, {}, (), None, None))


class _Runner:
    def __init__(self, kernel: Kernel) -> None:
        self.buffers = {b.name: b for b in kernel.params}
        self.sites: dict[int, int] = {}

    def body(
        self,
        body: Sequence[Stmt],
        names: dict[str, int],
        around: tuple[int, ...],
        thread: tuple[int, ...] | None,
        lane: int | None,
    ) -> Iterator[Touch]:
        for stmt in body:
            for expr in expressions(stmt):
                for e in walk_expression(expr):
                    if isinstance(e, Load) and e.buffer in self.buffers:
                        yield self.touch(e, e.buffer, e.at, names, thread, lane)
            match stmt:
                case Store(buffer, at) if buffer in self.buffers:
                    yield self.touch(stmt, buffer, at, names, thread, lane)
                case Let(name, value) if value.dtype == I64 and not any(isinstance(e, Load) for e in walk_expression(value)):
                    names[name] = self.integer(value, names)
                case Alloc(_, inner):
                    yield from self.body(inner, names, around, thread, lane)
                case Loop():
                    yield from self.loop(stmt, names, around, thread, lane)

    def loop(
        self, loop: Loop, names: dict[str, int], around: tuple[int, ...], thread: tuple[int, ...] | None, lane: int | None
    ) -> Iterator[Touch]:
        span = range(self.integer(loop.start, names), self.integer(loop.stop, names), loop.step)
        for n, value in enumerate(span):
            names[loop.index] = value
            inside = (*around, n) if loop.kind != "vector" else around
            yield from self.body(
                loop.body,
                names,
                inside,
                inside if loop.kind == "thread" else thread,
                n if loop.kind == "vector" else lane,
            )

    def touch(
        self,
        what: object,
        buffer: str,
        at: Sequence[Expr],
        names: dict[str, int],
        thread: tuple[int, ...] | None,
        lane: int | None,
    ) -> Touch:
        places = zip(at, self.buffers[buffer].element_strides, strict=True)
        offset = sum(self.integer(e, names) * step for e, step in places)
        return Touch(self.sites.setdefault(id(what), len(self.sites)), buffer, thread, offset, lane)

    def integer(self, expr: Expr, names: dict[str, int]) -> int:
        match expr:
            case Const(value):
                return int(value)
            case Var(name):
                return names[name]
            case Apply(fn, (x, y)):
                return int(_INTEGERS[fn](self.integer(x, names), self.integer(y, names)))
        raise TypeError(f"{expr} depends on data")


def steps_between_threads(kernel: Kernel, buffer: str) -> Counter[int]:
    """By how many elements neighbouring threads' accesses lie apart: those of one place in the text, each first lane."""
    found: Counter[int] = Counter()
    last: dict[int, Touch] = {}
    for t in touches(kernel):
        if t.buffer != buffer or t.thread is None or t.lane not in (None, 0):
            continue
        before = last.get(t.site)
        if before is not None and before.thread is not None and before.thread[:-1] == t.thread[:-1]:
            if t.thread[-1] == before.thread[-1] + 1:
                found[t.offset - before.offset] += 1
        if before is None or before.thread != t.thread:
            last[t.site] = t
    return found


def times_touched(kernel: Kernel, buffer: str) -> Counter[int]:
    """How often elements are touched: how many, by how often."""
    return Counter(Counter(t.offset for t in touches(kernel) if t.buffer == buffer).values())


def widest(kernel: Kernel, buffer: str) -> int:
    """Elements that a thread accesses at once, as lanes that are neighbours."""
    lanes = Counter((t.site, t.thread, t.offset - (t.lane or 0)) for t in touches(kernel) if t.buffer == buffer)
    return max(lanes.values())
