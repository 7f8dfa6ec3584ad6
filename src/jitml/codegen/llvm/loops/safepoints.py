"""Safepoints: where does a long program look whether it is to end?  At the places that loops come by, and between pieces.

A thread of the runtime's sets a word of each running program some times a second (`codegen/llvm/runtime/safepoints.py`). A loop
that may take long reads it, and calls `i64 @jitml_look(ptr error)` where it is set: Python runs what has come up meanwhile,
signals' handlers for one. Should that raise, the result is not 0, and the program ends there. Short programs never look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TypeAlias

from jitml.codegen.llvm.ir.conventions import DUE, LOOK, PARALLEL_FOR, PARALLEL_FOR_WATCHED, STOPPED
from jitml.codegen.llvm.ir.declarations import Declarations
from jitml.kernels.ir import Apply, Const, Expr, Kernel, Let, Loop, Stmt, While, affine, children, walk_expressions
from jitml.kernels.metrics import has_open_end, matrix_flops, times_run
from jitml.kernels.program import KernelProgram, Region
from jitml.kernels.target import work_of

READ_WORD = "load atomic i64, ptr %due monotonic, align 8"  # of what `find_word` has found

# Programs of fewer operations are over before anybody would wait: some milliseconds.
_SHORT, _SHORT_MATRIX = 1 << 22, 1 << 27
# Operations: a loop of fewer is passed, each iteration of more is worth a look in a `while`, and blocks of others have so many.
_SHORT_LOOP, LONG_ITERATION, BLOCK = 1 << 23, 48, 1 << 16
_UNKNOWN_TRIPS = 1e9
# Iterations between two looks, of which each has a `while`: that looks itself if it is long.
SELF_LOOKING = 16
# Of an index, the least and the greatest value that it may have; of another name, what it stands for.
Range: TypeAlias = tuple[float, float]
Known: TypeAlias = Mapping[str, Range | Expr]
NOTHING: Known = {}
_ANYWHERE = (-inf, inf)
_MOST_DEEP = 16  # names in names
# A while of short iterations that cannot have more of them than that does not look.
SHORT_TRIPS = 1 << 20
# In another loop, which looks, one of unknown length takes as long as an array has elements, and may be short: it looks seldom.
_LONG_INSIDE = 1024


def is_long(program: KernelProgram) -> bool:
    """Whether a program may take so long that it has to look."""
    return has_open_end(program) or _work_of(program) > _SHORT or matrix_flops(program) > _SHORT_MATRIX


def _work_of(program: KernelProgram) -> float:
    own = sum(work(step.body) for step in program.steps if isinstance(step, Kernel))
    regions = [step for step in program.steps if isinstance(step, Region)]
    return own + sum(times_run(region) * sum(map(_work_of, region.bodies)) for region in regions)


def find_word() -> list[str]:
    """`%due`, the place of the word, given `%error`."""
    return [f"  %due.at = getelementptr i64, ptr %error, i64 {DUE}", "  %due = load ptr, ptr %due.at"]


def parallel_for(declarations: Declarations, arguments: str, *, watched: bool) -> str:
    """The line that hands a loop to the pool, where `%error` is known; a watched one may end early, with the record stopped."""
    name, kinds = (PARALLEL_FOR_WATCHED, ", ptr") if watched else (PARALLEL_FOR, "")
    declarations.declare(f"void @{name}(ptr, ptr, i64, i64, i64{kinds})")
    return f"call void @{name}({arguments}{', ptr %error' if watched else ''})"


def leave_if_stopped(code: str) -> list[str]:
    """Blocks that end a function, with this result, if the program is to end; what comes behind stands in `on`."""
    return [
        f"  %stopped.at = getelementptr i64, ptr %error, i64 {STOPPED}",
        "  %stopped = load i64, ptr %stopped.at",
        "  %is.stopped = icmp ne i64 %stopped, 0",
        "  br i1 %is.stopped, label %stop, label %on",
        "stop:",
        f"  ret i64 {code}",
        "on:",
    ]


def looking(symbol: str, length: int) -> str:
    """The blocks of a function that has iterations `begin:end` done by another one, and looks before so many of them."""
    return _LOOKING.format(find_word="\n".join(find_word()), READ_WORD=READ_WORD, LOOK=LOOK, symbol=symbol, length=length)


_LOOKING = """entry:
  %place = getelementptr i64, ptr %ctx, i64 1
  %error = load ptr, ptr %place
{find_word}
  br label %some
some:
  %from = phi i64 [ %begin, %entry ], [ %to, %work ]
  %word = {READ_WORD}
  %is.due = icmp ne i64 %word, 0
  br i1 %is.due, label %look, label %work
look:
  %told = call i64 @{LOOK}(ptr %error)
  %over = icmp ne i64 %told, 0
  br i1 %over, label %done, label %work
work:
  %far = add i64 %from, {length}
  %is.last = icmp sge i64 %far, %end
  %to = select i1 %is.last, i64 %end, i64 %far
  call void @{symbol}(ptr %ctx, i64 %from, i64 %to)
  br i1 %is.last, label %done, label %some
done:
  ret void"""


def work(body: Sequence[Stmt], known: Known = NOTHING) -> float:
    """Operations of some statements at most, roughly; loops of unknown length count as long ones."""
    total, known = 0.0, {**known}
    for stmt in body:
        if isinstance(stmt, While):
            return inf
        if isinstance(stmt, Loop):
            total += _times(most_trips(stmt, known), work(stmt.body, within(stmt, known)))
            continue
        if isinstance(stmt, Let):
            known[stmt.name] = stmt.value
        inner = children(stmt)
        total += work(inner, known) if inner else 1 + sum(map(_work_of_part, walk_expressions((stmt,))))
    return total


def _times(trips: float, own: float) -> float:
    """No iteration takes no time, even one that would not end."""
    return trips * own if trips else 0.0


def _work_of_part(expr: Expr) -> float:
    return work_of(expr.fn) if isinstance(expr, Apply) else 0.0


def within(loop: Loop, known: Known) -> dict[str, Range | Expr]:
    """What is known in a loop."""
    (low, _), (_, high) = (bounds(x, known) for x in ((loop.start, loop.stop) if loop.step > 0 else (loop.stop, loop.start)))
    return {**known, loop.index: (low, high - 1) if loop.step > 0 else (low + 1, high)}


def most_trips(loop: Loop, known: Known = NOTHING) -> float:
    """Iterations of a loop at most."""
    low, high = (loop.start, loop.stop) if loop.step > 0 else (loop.stop, loop.start)
    stops = high.args if isinstance(high, Apply) and high.fn == "minimum" else (high,)
    distance = min(bounds(stop - low, known)[1] for stop in stops)
    return _UNKNOWN_TRIPS if distance == inf else max(0.0, -(-distance // abs(loop.step)))


def bounds(x: Expr, known: Known, depth: int = 0) -> Range:
    """The least and the greatest value of an integer."""
    if isinstance(x, Const):
        return float(x.value), float(x.value)
    if depth > _MOST_DEEP:
        return _ANYWHERE
    terms = affine(x)
    if terms is not None:
        return _of_sum(_written_out(terms, known), known, depth)
    if not isinstance(x, Apply):
        return _ANYWHERE
    parts = [bounds(part, known, depth + 1) for part in x.args]
    match x.fn, parts:
        case "minimum" | "maximum" as fn, [a, b]:
            choose = min if fn == "minimum" else max
            return choose(a[0], b[0]), choose(a[1], b[1])
        case "select", [_, a, b]:
            return min(a[0], b[0]), max(a[1], b[1])
        case "add", [a, b]:
            return a[0] + b[0], a[1] + b[1]
        case "sub", [a, b]:
            return a[0] - b[1], a[1] - b[0]
        case "floor_divide", [a, (c, d)] if c == d > 0:
            return a[0] // c, a[1] // c
    return _ANYWHERE


def _of_sum(terms: dict[str, int], known: Known, depth: int) -> Range:
    low = high = float(terms.pop("", 0))
    for name, c in terms.items():
        what = known.get(name, _ANYWHERE)
        least, greatest = what if isinstance(what, tuple) else bounds(what, known, depth + 1)
        low, high = low + min(c * least, c * greatest), high + max(c * least, c * greatest)
    return low, high


def _written_out(terms: dict[str, int], known: Known) -> dict[str, int]:
    """The same sum without names of sums."""
    for _ in range(_MOST_DEEP):
        total: dict[str, int] = {}
        for name, c in terms.items():
            what = known.get(name, _ANYWHERE)
            inner = None if isinstance(what, tuple) else affine(what)
            for part, k in ({name: 1} if inner is None else inner).items():
                total[part] = total.get(part, 0) + c * k
        total = {name: c for name, c in total.items() if c}
        if total == terms:
            break
        terms = total
    return terms


def look_every(loop: Loop, known: Known, *, is_inside: bool) -> int:
    """How many iterations of a loop are worth one look; 0 if it needs none, as it is short, or as those around it look."""
    own, trips = work(loop.body, within(loop, known)), most_trips(loop, known)
    if _times(trips, own) <= _SHORT_LOOP:
        return 0
    if is_inside and trips == _UNKNOWN_TRIPS:
        return int(own >= _LONG_INSIDE)
    return max(1, int(BLOCK // own)) if loop.step > 0 else int(own >= LONG_ITERATION)
