"""Monotone cells: which cells only rise, or only fall?

Then they stay bounded by what they started from, however often a loop runs. So do those that are set to what has limits itself.

What changes by a lot, or by nobody knows how much, may wrap around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jitml.ir.types import I64, is_integer
from jitml.kernels.analysis.affine_sums import GREATEST, LEAST, Sum, constant, times
from jitml.kernels.analysis.ranges import Ranges
from jitml.kernels.ir import Alloc, Cell, Expr, If, Let, Loop, Stmt, Update, Var, While, sub, walk
from jitml.records import dataclass

_SMALL, _FAR = 1 << 24, 1 << 61  # in steps of the one, no program gets to the end of the other


@dataclass(frozen=True, slots=True)
class Course:
    """Whether every update of a cell adds a small number; one that is never negative; never positive.

    least, most: limits of what it is set to, whatever it was. Those of i64 say nothing.
    """

    is_slow: bool = True
    rises: bool = True
    falls: bool = True
    least: int = GREATEST
    most: int = LEAST


class Cells:
    """What is known of the integer cells of a kernel, whenever they may have changed."""

    def __init__(self, body: Sequence[Stmt], ranges: Ranges) -> None:
        self._courses, self._ranges = courses(body), ranges
        self._starts: dict[str, Sum] = {}

    def begin(self, cell: Cell) -> None:
        if is_integer(cell.init.dtype):
            self._starts[cell.name] = self._ranges.exact(cell.init)
        self.forget(cell.name)

    def forget(self, name: str) -> None:
        """One that only rises, or only falls, is still bounded by what it started from; a slow one does not get far."""
        start, course = self._starts.get(name), self._courses.get(name)
        if start is None or course is None:
            self._ranges.forget(name)
            return
        if not course.is_slow:
            negated, most = (self._ranges.most(side) for side in (times(start, -1), start))
            least = None if negated is None or course.least == LEAST else constant(min(-negated, course.least))
            self._ranges.forget(
                name, least, None if most is None or course.most == GREATEST else constant(max(most, course.most))
            )
            return
        negated, most = (self._ranges.most(side, of_words=True) for side in (times(start, -1), start))
        word = (
            LEAST if negated is None else max(LEAST, -negated - _FAR),
            GREATEST if most is None else min(GREATEST, most + _FAR),
        )
        self._ranges.forget(name, start if course.rises else None, start if course.falls else None, word)


def courses(body: Sequence[Stmt]) -> dict[str, Course]:
    """Of all integer cells of a kernel. What surrounds an update is not looked at."""
    found = {s.name: Course() for s in walk(body) if isinstance(s, Cell) and s.init.dtype == I64}
    if not found:
        return found
    lets = [s for s in walk(body) if isinstance(s, Let) and s.value.dtype == I64]
    count = Counter(s.name for s in lets)
    ranges = Ranges({})
    for let in lets:
        if count[let.name] == 1:
            ranges.define_now(let.name, let.value)
    chosen = _choices(body)
    for stmt in walk(body):
        if isinstance(stmt, Update) and stmt.cell in found:
            before, is_sum = found[stmt.cell], stmt.combine in ("add", None)
            is_slow = rises = falls = is_sum
            low, high = before.least, before.most
            for value in _alternatives(stmt.value, chosen):
                ends = ranges.bounds(value) if stmt.combine is None else (None, None)
                low = min(low, LEAST if ends[0] is None else ends[0])
                high = max(high, GREATEST if ends[1] is None else ends[1])
                least, most = ranges.bounds(value if stmt.combine == "add" else sub(value, Var(stmt.cell)))
                if least is None or most is None or max(-least, most) > _SMALL:
                    is_slow = rises = falls = False
                else:
                    rises, falls = rises and least >= 0, falls and most <= 0
            found[stmt.cell] = Course(before.is_slow and is_slow, before.rises and rises, before.falls and falls, low, high)
    return found


def _alternatives(value: Expr, chosen: Mapping[str, list[Expr]]) -> Iterator[Expr]:
    """The values that a branch may have chosen."""
    if isinstance(value, Var) and value.name in chosen:
        for choice in chosen[value.name]:
            yield from _alternatives(choice, chosen)
    else:
        yield value


def _choices(body: Sequence[Stmt]) -> dict[str, list[Expr]]:
    """Cells that are declared right before a branch and set once in each of its arms, and to what."""
    updates = Counter(s.cell for s in walk(body) if isinstance(s, Update))
    chosen: dict[str, list[Expr]] = {}
    for block in _blocks(body):
        fresh: set[str] = set()
        for stmt in block:
            if isinstance(stmt, Cell):
                fresh.add(stmt.name)
                continue
            if isinstance(stmt, If):
                arms = [{s.cell: s.value for s in arm if isinstance(s, Update)} for arm in (stmt.then, stmt.orelse)]
                both = [c for c in arms[0] if c in arms[1] and c in fresh and updates[c] == 2]
                chosen |= {cell: [arm[cell] for arm in arms] for cell in both}
            fresh = set()
    return chosen


def _blocks(body: Sequence[Stmt]) -> Iterator[Sequence[Stmt]]:
    yield body
    for stmt in body:
        match stmt:
            case Loop() | Alloc():
                yield from _blocks(stmt.body)
            case If(_, then, orelse):
                yield from _blocks(then)
                yield from _blocks(orelse)
            case While(test, _, inner):
                yield from _blocks(test)
                yield from _blocks(inner)
