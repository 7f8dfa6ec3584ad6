"""Dependence analysis: can two accesses of a kernel touch the same element in different iterations?

Addresses are sums over *counts*: the count of a loop is 0, 1, 2, ... whatever its start and step, so that a tile loop
and the loop over its inside have ranges that do not depend on each other. Two addresses are compared by their
difference, digit by digit: if every larger step exceeds all that the smaller ones can add up to, a difference of zero
means that each digit is zero. Whatever does not fit this pattern counts as "may touch".
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TypeAlias

from jitml.ir.types import I64
from jitml.kernels.analysis.counters import trails
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

Path: TypeAlias = tuple[int, ...]  # position in each block from the outermost to a statement's own
Form: TypeAlias = dict[Path, int]  # a sum over loop counts; () is the constant
Range: TypeAlias = tuple[int, int]
Digit: TypeAlias = tuple[int, int, int, bool]  # its step, its least and greatest value, whether it must be zero

_CONSTANT: Path = ()
_SYMBOL = -(1 << 32)  # names of symbols begin here; those of quotients are greater
_FAR = 1 << 63  # beyond every integer of a program
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

    `axes` are the index of each axis, `address` the element's offset in memory; None where they are no sum over counts.
    `behind` are the loops whose index the index of an axis, a cell, never exceeds (`counters.py`).
    """

    buffer: str
    is_store: bool
    path: Path
    loops: tuple[Path, ...]
    axes: tuple[Form | None, ...]
    address: Form | None
    behind: tuple[Path | None, ...]


@dataclass(frozen=True)
class Accesses:
    """All accesses of a kernel in textual order, and the largest count of each loop (None if unknown).

    Args:
        names: paths of names inside loops that are no sums: in forms, such a path is the value itself.
        tiles: a loop over the inside of a tile -> the loop over the tiles, the width of one, and the largest index of all,
            counted from the first, which the last tile ends at.
    """

    items: tuple[Access, ...]
    last: Mapping[Path, int | None]
    loops: Mapping[Path, Loop | While]
    names: frozenset[Path]
    tiles: Mapping[Path, tuple[Path, int, int]]

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
    collector = _Collector({b.name: b for b in kernel.params})
    items = tuple(collector.body(kernel.body, (), ()))
    names = frozenset(p for p in collector.limits if p[0] >= 0)
    return Accesses(items, collector.last, collector.loops, names, collector.tiles)


def coincide_only_together(
    a: Form | None, b: Form | None, shared: Sequence[Path], wanted: Sequence[Path], known: Accesses
) -> bool:
    """Whether a == b implies that both stand in the same iteration of each loop in `wanted`.

    `shared` are the loops (outside the wanted ones, or among them) in which both stand, and the names outside the wanted
    ones that are the same for both; each access has counts of its own in every loop that is wanted or not shared.
    """
    if a is None or b is None:
        return False
    low = high = a.get(_CONSTANT, 0) - b.get(_CONSTANT, 0)
    digits: list[Digit] = []
    whole: dict[Path, Digit] = {}  # those of loops with the same step in both
    last = known.last
    may_meet_apart = any(p not in a and last.get(p) != 0 for p in wanted)
    for path in {*a, *b} - {_CONSTANT}:
        ca, cb, n = a.get(path, 0), b.get(path, 0), last.get(path)
        if n == 0:
            continue
        if path[0] < 0:  # a size: the same number wherever it stands
            if ca != cb:
                return False
            continue
        if path in shared and path not in wanted:
            if ca != cb:
                return False
            continue
        if n is None:
            return False
        if ca == cb:
            whole[path] = abs(ca), -n, n, path in wanted
        else:
            may_meet_apart = may_meet_apart or path in wanted
            digits += [(abs(c), min(0, n if c > 0 else -n), max(0, n if c > 0 else -n), False) for c in (ca, -cb) if c]
    digits += _tiled(whole, known.tiles)
    if may_meet_apart:
        return not _may_vanish([(step, least, most, False) for step, least, most, _ in digits], low, high)
    return _digits_vanish(_merged(digits), low, high)


def stays_behind(load: Access, store: Access, last: Mapping[Path, int | None]) -> bool:
    """Whether no iteration stores an element of those that later ones load, as a loop that packs what a mask keeps.

    Both stand in the same loops, each of which moves the load along one axis. The store follows it along all axes, or stays
    behind it: then an element that it stores was loaded before, or in the same iteration.
    """
    if load.loops != store.loops or len(load.axes) != len(store.axes):
        return False
    loops = set()
    for here, there, behind in zip(load.axes, store.axes, store.behind, strict=True):
        moving = [path for path in here or {} if path != _CONSTANT and last.get(path) != 0]
        if here is None or len(moving) > 1 or (moving and moving[0] not in load.loops):
            return False
        if here != there and not (moving and behind == moving[0] and here == {_CONSTANT: 0, behind: 1}):
            return False
        loops |= {*moving}
    return loops >= {path for path in load.loops if last.get(path) != 0}


def _tiled(digits: Mapping[Path, Digit], tiles: Mapping[Path, tuple[Path, int, int]]) -> list[Digit]:
    """The digits, those of a tile loop and of the loop inside as one: the last tile may be narrower than the others."""
    whole = dict(digits)
    for inside, (outside, width, last) in tiles.items():
        if inside in whole and outside in whole and whole[outside][0] == width * whole[inside][0]:
            step, *_, fixed = whole.pop(inside)
            whole[outside] = step, -last, last, fixed or whole[outside][3]
    return list(whole.values())


def _may_vanish(digits: list[Digit], low: int, high: int) -> bool:
    """Whether constant + sum of step * digit == 0 has a solution, as far as ranges and common divisors tell."""
    digits = _merged(digits)
    steps = [d[0] for d in digits]
    return _holds_multiple(low, high, gcd(*steps)) and _holds_multiple(*_reach(low, high, digits), 0)


def _merged(digits: list[Digit]) -> list[Digit]:
    """Digits in ascending order, free ones of one step as a single digit with the sum of their ranges."""
    free: dict[int, Range] = {}
    for step, low, high, fixed in digits:
        if not fixed:
            before = free.get(step, (0, 0))
            free[step] = (before[0] + low, before[1] + high)
    merged = [d for d in digits if d[3]] + [(step, low, high, False) for step, (low, high) in free.items()]
    return sorted(d for d in merged if d[1] or d[2])


def _digits_vanish(digits: list[Digit], low: int, high: int) -> bool:
    """Whether constant + sum of step * digit == 0 makes all digits from the first fixed one on zero, or cannot be."""
    reached = False
    for n, (step, least, greatest, fixed) in enumerate(digits):
        if not _holds_multiple(low, high, gcd(*(d[0] for d in digits[n:]))):
            return True
        reached = reached or fixed
        if reached and step <= max(-low, high, 0):
            return not _holds_multiple(*_reach(low, high, digits[n:]), 0)
        low, high = low + step * least, high + step * greatest
    return True


def _reach(low: int, high: int, digits: list[Digit]) -> Range:
    """The range of a sum that lies in low..high before the digits are added."""
    return low + sum(step * least for step, least, *_ in digits), high + sum(step * most for step, _, most, _ in digits)


def _holds_multiple(low: int, high: int, step: int) -> bool:
    """Whether low..high holds a multiple of `step`; of 0, only 0 is."""
    return high // step * step >= low if step else low <= 0 <= high


class _Collector:
    """Walks a kernel with the forms of the names in scope."""

    def __init__(self, buffers: dict[str, Buffer]) -> None:
        self.buffers = buffers
        self.forms: dict[str, Form | None] = {}
        self.last: dict[Path, int | None] = {}
        self.loops: dict[Path, Loop | While] = {}
        self.divided: dict[str, Form] = {}  # names that are quotients or remainders, which may cancel in an address
        self.quotients: dict[tuple[Expr, int], int] = {}
        # Of symbols: names that are no sum, such as sizes. One inside a loop is called by its own path.
        self.limits: dict[Path, Range] = {}
        self.products: dict[tuple[frozenset[tuple[Path, int]], ...], Path] = {}
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
                        self.limits[symbol] = self.interval(value) or (-_FAR, _FAR)
                        self.forms[name] = {_CONSTANT: 0, symbol: 1}
                case Cell(name, init):
                    self.forget(name)
                    if init == Const(0):
                        self.unmoved[name] = outer
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
        trailing = [cell for cell, block in self.unmoved.items() if block == path[:-1] and trails(loop, cell)]
        self.behind |= dict.fromkeys(trailing, path)

    def enter_tile(self, path: Path, loop: Loop, start: Form | None) -> None:
        """Note a loop that goes from where an outer one stands to where the next iteration of that begins, or to the end."""
        if start is None or len(start) != 2 or loop.step != 1 or (last := self.last[path]) is None:
            return
        outside, width = next((p, c) for p, c in start.items() if p != _CONSTANT)
        total = self.distance({_CONSTANT: start[_CONSTANT]}, loop.stop)
        if outside in self.loops and last < width and total is not None:
            self.tiles[path] = outside, width, max(0, total - 1)

    def distance(self, start: Form, stop: Expr) -> int | None:
        """The greatest value of stop - start."""
        if isinstance(stop, Apply) and stop.fn == "minimum":
            known = [d for d in (self.distance(start, arg) for arg in stop.args) if d is not None]
            return min(known, default=None)
        end = _settled(self.sum(stop, 1))
        if end is None and (limits := self.interval(stop)) is not None:
            end = {_CONSTANT: limits[1]}
        if end is None:
            return None
        total = 0
        for path, c in _combined(end, start, -1).items():
            if path in self.limits:
                total += max(c * limit for limit in self.limits[path])
                continue
            last = 0 if path == _CONSTANT else self.last[path]
            if last is None:
                return None
            total += c if path == _CONSTANT else max(0, c * last)
        return total

    def interval(self, expr: Expr) -> Range | None:
        """Limits of what is made of numbers and names with limits; None where there is no telling."""
        match expr:
            case Const(value):
                return int(value), int(value)
            case Var(name):
                form = self.forms.get(name) or {}
                symbols = [path for path in form if path != _CONSTANT]
                known = form.get(_CONSTANT) == 0 and len(symbols) == 1 and form[symbols[0]] == 1
                return self.limits.get(symbols[0]) if known else None
            case Apply("minimum" | "maximum" as fn, (x, Const(value))):  # a number alone limits one side
                least, greatest = self.interval(x) or (-_FAR, _FAR)
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
        address = _settled(self.total(places, through=True)) or _settled(self.total(places, through=False))
        axes = tuple(_settled(self.sum(expr, 1)) for expr in at)
        behind = tuple(self.loop_before(expr) for expr in at)
        return Access(name, is_store, path, loops, axes, address, behind)

    def total(self, places: Iterable[tuple[Expr, int]], *, through: bool) -> Form | None:
        """A sum of expressions, each with its factor."""
        total: Form | None = {_CONSTANT: 0}
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
                return {_CONSTANT: int(value) * scale}
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
                product = self.product(_settled(self.sum(x, 1)), _settled(self.sum(y, 1)))
                return None if product is None else {_CONSTANT: 0, product: scale}
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
        key = frozenset(a.items()), frozenset(b.items())
        if key not in self.products:
            inside = [path if path in self.loops else path[:-1] for path in {*a, *b} - {_CONSTANT} if path[0] >= 0]
            place = (_SYMBOL - len(self.limits),)
            self.products[key] = name = (*max(inside, key=len), *place) if inside else place
            self.limits[name] = (-_FAR, _FAR)
        return self.products[key]

    def quotient(self, x: Expr, divisor: int) -> Path:
        """The name of x // divisor: a path that no statement has."""
        return (-1 - self.quotients.setdefault((x, divisor), len(self.quotients)),)


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
