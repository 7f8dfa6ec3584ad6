"""Which elements of its parameters does a kernel touch, and how do the threads of a warp touch them side by side?

Loops are run, as Python, and nothing is computed but indices: kernels whose limits and places depend on data are none for this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jitml.ir.types import I64
from jitml.kernels.ir import Alloc, Apply, Const, Expr, Kernel, Let, Load, Loop, Stmt, Store, Var, expressions, walk_expression

_INTEGERS = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "floor_divide": "({} // {})",
    "remainder": "({} % {})",
    "minimum": "min({}, {})",
    "maximum": "max({}, {})",
}


class Touch(NamedTuple):
    """An access of a parameter: which place in the kernel's text it is, in which iteration of the thread loop, and its offset."""

    site: int
    buffer: str
    thread: tuple[int, ...] | None  # the iterations of block loops, then of the thread loop
    offset: int
    lane: int | None


def touches(kernel: Kernel) -> list[Touch]:
    writer, found = _Writer(kernel), list[Touch]()
    exec("\n".join(writer.lines), {"touch": lambda *what: found.append(Touch._make(what))})
    return found


class _Writer:
    """The kernel as Python that calls `touch` for each access."""

    def __init__(self, kernel: Kernel) -> None:
        self.buffers = {b.name: b for b in kernel.params}
        self.names: dict[str, str] = {}
        self.lines: list[str] = []
        self.sites = 0
        self.body(kernel.body, 0, (), "None", "None")

    def line(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    def name(self, name: str) -> str:
        return self.names.setdefault(name, f"v{len(self.names)}")

    def body(self, body: Sequence[Stmt], depth: int, around: tuple[str, ...], thread: str, lane: str) -> None:
        self.line(depth, "pass")
        for stmt in body:
            for expr in expressions(stmt):
                for e in walk_expression(expr):
                    if isinstance(e, Load) and e.buffer in self.buffers:
                        self.touch(e.buffer, e.at, depth, thread, lane)
            match stmt:
                case Store(buffer, at) if buffer in self.buffers:
                    self.touch(buffer, at, depth, thread, lane)
                case Let(name, value) if value.dtype == I64 and not any(isinstance(e, Load) for e in walk_expression(value)):
                    self.line(depth, f"{self.name(name)} = {self.integer(value)}")
                case Alloc(_, inner):
                    self.body(inner, depth, around, thread, lane)
                case Loop():
                    self.loop(stmt, depth, around, thread, lane)

    def loop(self, loop: Loop, depth: int, around: tuple[str, ...], thread: str, lane: str) -> None:
        span, number = f"range({self.integer(loop.start)}, {self.integer(loop.stop)}, {loop.step})", f"n{depth}"
        self.line(depth, f"for {number}, {self.name(loop.index)} in enumerate({span}):")
        if loop.kind == "vector":
            lane = number
        else:
            around = (*around, number)
        if loop.kind == "thread":
            thread = f"({', '.join(around)},)"
        self.body(loop.body, depth + 1, around, thread, lane)

    def touch(self, buffer: str, at: Sequence[Expr], depth: int, thread: str, lane: str) -> None:
        places = zip(at, self.buffers[buffer].element_strides, strict=True)
        offset = " + ".join(["0", *(f"{self.integer(e)} * {step}" for e, step in places)])
        self.line(depth, f"touch({self.sites}, {buffer!r}, {thread}, {offset}, {lane})")
        self.sites += 1

    def integer(self, expr: Expr) -> str:
        match expr:
            case Const(value):
                return f"{int(value)}"
            case Var(name):
                return self.name(name)
            case Apply(fn, (x, y)) if fn in _INTEGERS:
                return _INTEGERS[fn].format(self.integer(x), self.integer(y))
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
