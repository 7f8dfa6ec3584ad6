"""Dependence analysis: which elements does a kernel touch, and where?

Addresses are sums over *counts*: the count of a loop is 0, 1, 2, ... whatever its start and step, so that a tile loop
and the loop over its inside have ranges that do not depend on each other. `coincidence.py` compares two of them.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from jitml.ir.types import I64
from jitml.kernels.analysis.counters import trails
from jitml.kernels.analysis.monotone import Course, courses
from jitml.kernels.ir import (
    Alloc,
    Apply,
    Buffer,
    Cell,
    Const,
    Draw,
    Expr,
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
    expressions,
    walk_expression,
)
from jitml.records import dataclass

Path: TypeAlias = tuple[int, ...]  # position in each block from the outermost to a statement's own
Form: TypeAlias = dict[Path, int]  # a sum over loop counts; () is the constant
Range: TypeAlias = tuple[int, int]

CONSTANT: Path = ()
_SYMBOL = -(1 << 32)  # names of symbols begin here; those of quotients are greater
FAR = 1 << 63  # beyond every integer of a program
_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "minimum": min,
    "maximum": max,
}


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: where it stands, in which loops, and which element it means.

    `axes` are the index of each axis, `address` the element's offset in memory; None where they are no sum over counts. `divided`
    is the address where quotients of counts are part of it.
    `behind` are the loops whose index the index of an axis, a cell, never exceeds (`counters.py`).
    """

    buffer: str
    is_store: bool
    path: Path
    loops: tuple[Path, ...]
    axes: tuple[Form | None, ...]
    address: Form | None
    behind: tuple[Path | None, ...]
    divided: Form | None = None


@dataclass(frozen=True, slots=True)
class IndexRange:
    """The values of a loop's index: a sum over counts, its own among them; where it starts; the sums that it stays below."""

    index: Form | None
    start: Form | None
    stops: tuple[Form, ...]


@dataclass(frozen=True)
class Accesses:
    """All accesses of a kernel in textual order, and the largest count of each loop (None if unknown).

    Args:
        names: paths of names inside loops that are no sums: in forms, such a path is the value itself.
        tiles: a loop over the inside of a tile -> the loop over the tiles, the width of one, and the largest index of all,
            counted from the first, which the last tile ends at.
        spans: of loops.
        limits: of symbols and names.
        products, quotients: what stands behind such a path: both factors; what is divided, and by how much.
    """

    items: tuple[Access, ...]
    last: Mapping[Path, int | None]
    loops: Mapping[Path, Loop | While]
    names: frozenset[Path]
    tiles: Mapping[Path, tuple[Path, int, int]]
    spans: Mapping[Path, IndexRange]
    limits: Mapping[Path, Range]
    products: Mapping[Path, tuple[Form, Form]]
    quotients: Mapping[Path, tuple[Form, int]]

    @cached_property
    def _by_buffer(self) -> Mapping[str, list[Access]]:
        found: defaultdict[str, list[Access]] = defaultdict(list)
        for access in self.items:
            found[access.buffer].append(access)
        return found

    def of(self, buffer: str) -> list[Access]:
        return self._by_buffer.get(buffer, [])

    def loads(self, buffer: str) -> list[Access]:
        return [a for a in self.of(buffer) if not a.is_store]

    def stores(self, buffer: str) -> list[Access]:
        return [a for a in self.of(buffer) if a.is_store]


def accesses(kernel: Kernel) -> Accesses:
    """Every load and store of the kernel, its own scratch included."""
    collector = _Collector({b.name: b for b in kernel.params}, courses(kernel.body))
    items = tuple(collector.body(kernel.body, (), ()))
    names = frozenset(p for p in collector.limits if p[0] >= 0)
    products = {name: (dict(a), dict(b)) for (a, b), name in collector.products.items()}
    return Accesses(
        items,
        collector.last,
        collector.loops,
        names,
        collector.tiles,
        collector.spans,
        collector.limits,
        products,
        collector.operands,
    )


class _Collector:
    """Walks a kernel with the forms of the names in scope."""

    def __init__(self, buffers: dict[str, Buffer], courses: Mapping[str, Course]) -> None:
        self.buffers, self.courses = buffers, courses
        self.cells: dict[str, Range] = {}  # limits of what cells hold
        self.forms: dict[str, Form | None] = {}
        self.last: dict[Path, int | None] = {}
        self.loops: dict[Path, Loop | While] = {}
        self.divided: dict[str, Form] = {}  # names that are quotients or remainders, which may cancel in an address
        self.quotients: dict[Hashable, Path] = {}
        # Of symbols: names that are no sum, such as sizes. One inside a loop is called by its own path.
        self.limits: dict[Path, Range] = {}
        self.products: dict[tuple[frozenset[tuple[Path, int]], frozenset[tuple[Path, int]]], Path] = {}
        self.operands: dict[Path, tuple[Form, int]] = {}  # of quotients
        self.spans: dict[Path, IndexRange] = {}
        self.unmoved: dict[str, Path] = {}  # cells that are 0 and have not been updated, and the block they are declared in
        self.behind: dict[str, Path] = {}
        self.tiles: dict[Path, tuple[Path, int, int]] = {}

    def body(self, statements: Sequence[Stmt], outer: Path, loops: tuple[Path, ...]) -> Iterator[Access]:
        for position, stmt in enumerate(statements):
            path = (*outer, position)
            for expr in expressions(stmt):
                yield from self.loads(expr, path, (*loops, path) if isinstance(stmt, While) else loops)
            match stmt:
                case Store(buffer, at, _, combine):
                    if combine is not None:
                        yield self.access(buffer, at, False, path, loops)
                    yield self.access(buffer, at, True, path, loops)
                case Let(name, value):
                    self.divided.pop(name, None)
                    form = self.sum(value, 1, through=True)
                    self.forms[name] = _settled(form)
                    if form is not None and self.forms[name] is None:
                        self.divided[name] = form
                    if self.forms[name] is None and value.dtype == I64:
                        symbol = path if loops else (_SYMBOL - len(self.limits),)
                        self.limits[symbol] = self.interval(value) or (-FAR, FAR)
                        self.forms[name] = {CONSTANT: 0, symbol: 1}
                case Cell(name, init):
                    self.forget(name)
                    if init == Const(0):
                        self.unmoved[name] = outer
                    course = self.courses.get(name)
                    if course is not None and (start := self.interval(init)) is not None:
                        self.cells[name] = min(start[0], course.least), max(start[1], course.most)
                case Draw(name):
                    self.forget(name)
                case Update(cell):
                    self.unmoved.pop(cell, None)
                    self.behind.pop(cell, None)
                case Loop(index, start, _, step, _, body):
                    self.enter(path, stmt)
                    whole, first = self.sum(start, 1, through=True), _settled(self.sum(start, 1))
                    self.forget(index)
                    self.forms[index] = None if first is None else first | {path: step}
                    if whole is not None and _settled(whole) is None:
                        self.divided[index] = whole | {path: step}
                    yield from self.body(body, path, (*loops, path))
                case Alloc(buffer, body):
                    self.buffers[buffer.name] = buffer
                    yield from self.body(body, path, loops)
                case While(test, _, body):
                    self.loops[path], self.last[path] = stmt, None
                    yield from self.body(test, (*path, 0), (*loops, path))
                    yield from self.body(body, (*path, 1), (*loops, path))
                case If(_, then, orelse):
                    yield from self.body(then, (*path, 0), loops)
                    yield from self.body(orelse, (*path, 1), loops)

    def forget(self, name: str) -> None:
        """A name that stood for something else in another block is no sum."""
        self.forms[name] = None
        self.divided.pop(name, None)

    def enter(self, path: Path, loop: Loop) -> None:
        self.loops[path] = loop
        start = _settled(self.sum(loop.start, 1))
        most = None if start is None else self.distance(start, loop.stop)
        self.last[path] = None if most is None else max(0, -(-most // loop.step) - 1)
        self.enter_tile(path, loop, start)
        stops = [_settled(self.sum(stop, 1)) for stop in _smallest_of(loop.stop)]
        index = None if start is None else start | {path: loop.step}
        self.spans[path] = IndexRange(index, start, tuple(stop for stop in stops if stop is not None))
        trailing = [cell for cell, block in self.unmoved.items() if block == path[:-1] and trails(loop, cell)]
        self.behind |= dict.fromkeys(trailing, path)

    def enter_tile(self, path: Path, loop: Loop, start: Form | None) -> None:
        """Note a loop that goes from where an outer one stands to where the next iteration of that begins, or to the end."""
        if start is None or len(start) != 2 or loop.step != 1 or (last := self.last[path]) is None:
            return
        outside, width = next((p, c) for p, c in start.items() if p != CONSTANT)
        total = self.distance({CONSTANT: start[CONSTANT]}, loop.stop)
        if outside in self.loops and last < width and total is not None:
            self.tiles[path] = outside, width, max(0, total - 1)

    def distance(self, start: Form, stop: Expr) -> int | None:
        """The greatest value of stop - start."""
        if isinstance(stop, Apply) and stop.fn == "minimum":
            known = [d for d in (self.distance(start, arg) for arg in stop.args) if d is not None]
            return min(known, default=None)
        end = _settled(self.sum(stop, 1))
        if end is None and (limits := self.interval(stop)) is not None:
            end = {CONSTANT: limits[1]}
        if end is None:
            return None
        total = 0
        for path, c in _combined(end, start, -1).items():
            if path in self.limits:
                total += max(c * limit for limit in self.limits[path])
                continue
            last = 0 if path == CONSTANT else self.last[path]
            if last is None:
                return None
            total += c if path == CONSTANT else max(0, c * last)
        return total

    def interval(self, expr: Expr) -> Range | None:
        """Limits of what is made of numbers and names with limits; None where there is no telling."""
        match expr:
            case Const(value):
                return int(value), int(value)
            case Var(name) if name in self.cells:
                return self.cells[name]
            case Var(name):
                form = self.forms.get(name) or {}
                symbols = [path for path in form if path != CONSTANT]
                known = form.get(CONSTANT) == 0 and len(symbols) == 1 and form[symbols[0]] == 1
                return self.limits.get(symbols[0]) if known else None
            case Apply("minimum" | "maximum" as fn, (x, Const(value))):  # a number alone limits one side
                least, greatest = self.interval(x) or (-FAR, FAR)
                pick = min if fn == "minimum" else max
                return pick(least, int(value)), pick(greatest, int(value))
            case Apply("floor_divide", (x, Const(divisor))) if divisor > 0:
                inner = self.interval(x)
                return None if inner is None else (inner[0] // int(divisor), inner[1] // int(divisor))
            case Apply("add" | "sub" | "mul" | "minimum" | "maximum" as fn, (x, y)):
                a, b = self.interval(x), self.interval(y)
                if a is None or b is None:
                    return None
                ends = [_INTEGERS[fn](p, q) for p in a for q in b]
                return min(ends), max(ends)
        return None

    def loads(self, expr: Expr, path: Path, loops: tuple[Path, ...]) -> Iterator[Access]:
        for e in walk_expression(expr):
            if isinstance(e, Load):
                yield self.access(e.buffer, e.at, False, path, loops)

    def access(self, name: str, at: Sequence[Expr], is_store: bool, path: Path, loops: tuple[Path, ...]) -> Access:
        places = [*zip(at, self.buffers[name].element_strides)]
        whole = self.total(places, through=True)
        address = _settled(whole) or _settled(self.total(places, through=False))
        divided = whole if _settled(whole) is None else None
        axes = tuple(_settled(self.sum(expr, 1)) for expr in at)
        behind = tuple(self.loop_before(expr) for expr in at)
        return Access(name, is_store, path, loops, axes, address, behind, divided)

    def total(self, places: Iterable[tuple[Expr, int]], *, through: bool) -> Form | None:
        """A sum of expressions, each with its factor."""
        total: Form | None = {CONSTANT: 0}
        for expr, scale in places:
            term = self.sum(expr, scale, through=through)
            total = None if term is None or total is None else _combined(total, term, 1)
        return total

    def loop_before(self, expr: Expr) -> Path | None:
        """The loop whose index an expression does not exceed."""
        match expr:
            case Var(name):
                return self.behind.get(name)
            case Apply("minimum", (x, _)):
                return self.loop_before(x)
        return None

    def sum(self, expr: Expr, scale: int, *, through: bool = False) -> Form | None:
        """
        Args:
            through: whether names of quotients stand for these, which may yet cancel.
        """
        if expr.dtype.kind == "f":
            return None
        match expr:
            case Const(value):
                return {CONSTANT: int(value) * scale}
            case Var(name):
                known = self.divided.get(name) if through else None
                known = self.forms.get(name) if known is None else known
                return None if known is None else {p: c * scale for p, c in known.items()}
            case Apply("add" | "sub" as fn, (x, y)):
                a, b = self.sum(x, scale, through=through), self.sum(y, scale if fn == "add" else -scale, through=through)
                return None if a is None or b is None else _combined(a, b, 1)
            case Apply("mul", (x, Const(factor))) | Apply("mul", (Const(factor), x)):
                return self.sum(x, scale * int(factor), through=through)
            case Apply("mul", (x, y)):
                product = self.product(self.sum(x, 1, through=True), self.sum(y, 1, through=True))
                return None if product is None else {CONSTANT: 0, product: scale}
            case Apply("floor_divide", (x, Const(divisor))):
                return {self.quotient(x, int(divisor)): scale}
            case Apply("remainder", (x, Const(divisor))):  # x - x // d * d, so that the pair cancels in an address
                a = self.sum(x, scale, through=through)
                return None if a is None else _combined(a, {self.quotient(x, int(divisor)): scale}, -int(divisor))
        return None  # a value

    def product(self, a: Form | None, b: Form | None) -> Path | None:
        """The name of a product, of a loop's count and a size for instance: a symbol of the innermost loop that it changes in."""
        if a is None or b is None:
            return None
        a, b = ({path: c for path, c in form.items() if c} for form in (a, b))
        key = frozenset(a.items()), frozenset(b.items())
        if key not in self.products:
            moving = self.counted({*a, *b})
            if moving is None:
                return None
            inside = [path if path in self.loops else path[:-1] for path in moving if path[0] >= 0]
            place = (_SYMBOL - len(self.limits),)
            self.products[key] = name = (*max(inside, key=len), *place) if inside else place
            self.limits[name] = (-FAR, FAR)
        return self.products[key]

    def counted(self, paths: Iterable[Path]) -> set[Path] | None:
        """What paths are made of, with what quotients are of; None if nobody knows that."""
        found: set[Path] = set()
        for path in paths:
            if path and _SYMBOL < path[0] < 0:
                inner = self.counted(self.operands[path][0]) if path in self.operands else None
                if inner is None:
                    return None
                found |= inner
            elif path:
                found.add(path)
        return found

    def quotient(self, x: Expr, divisor: int) -> Path:
        """The name of x // divisor: a path that no statement has."""
        form = self.sum(x, 1, through=True)
        key: Hashable = (x, divisor) if form is None else (frozenset(form.items()), divisor)
        path = self.quotients.setdefault(key, (-1 - len(self.quotients),))
        if form is not None and divisor > 0:
            self.operands[path] = form, divisor
        return path


def _smallest_of(stop: Expr) -> list[Expr]:
    """The expressions that a limit is the least of."""
    if isinstance(stop, Apply) and stop.fn == "minimum":
        return [part for arg in stop.args for part in _smallest_of(arg)]
    return [stop]


def _combined(a: Form, b: Form, sign: int) -> Form:
    total = dict(a)
    for path, c in b.items():
        total[path] = total.get(path, 0) + sign * c
    return total


def _settled(form: Form | None) -> Form | None:
    """The form without zeros; None if a quotient is left that did not cancel with its remainder."""
    if form is None or any(c and path and _SYMBOL < path[0] < 0 for path, c in form.items()):
        return None
    return {path: c for path, c in form.items() if c or not path}
