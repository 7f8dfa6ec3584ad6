"""Which cells only rise, or only fall?  Then they stay bounded by what they started from, however often a loop runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jitml.fusion.loops import Cell, Let, Stmt, Update, Var, sub, walk
from jitml.fusion.ranges import Ranges
from jitml.ir.types import I64


@dataclass(frozen=True, slots=True)
class Course:
    """Whether every update of a cell adds something that is never negative; never positive."""

    rises: bool = True
    falls: bool = True


def courses(body: Sequence[Stmt]) -> dict[str, Course]:
    """Of all integer cells of a kernel. What surrounds an update is not looked at."""
    lets = [s for s in walk(body) if isinstance(s, Let) and s.value.dtype == I64]
    count = Counter(s.name for s in lets)
    ranges = Ranges({})
    for let in lets:
        if count[let.name] == 1:
            ranges.define_now(let.name, let.value)
    found = {s.name: Course() for s in walk(body) if isinstance(s, Cell) and s.init.dtype == I64}
    for stmt in walk(body):
        if isinstance(stmt, Update) and stmt.cell in found:
            before = found[stmt.cell]
            least, most = ranges.bounds(stmt.value if stmt.combine == "add" else sub(stmt.value, Var(stmt.cell)))
            is_sum = stmt.combine in ("add", None)
            rises, falls = least is not None and least >= 0, most is not None and most <= 0
            found[stmt.cell] = Course(before.rises and is_sum and rises, before.falls and is_sum and falls)
    return found
