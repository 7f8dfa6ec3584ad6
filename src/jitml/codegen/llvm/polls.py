"""Safepoints: where does a long program look whether it is to end?  At the places that loops come by, and between pieces.

A thread of the runtime's sets a word of each running program some times a second (`runtime/safepoints.py`). A loop that may take
long reads it, and calls `i64 @jitml_look(ptr error)` where it is set: Python runs what has come up meanwhile, signals' handlers
for one. Should that raise, the result is not 0, and the program ends there. Short programs never look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from jitml.codegen.llvm.declarations import Declarations
from jitml.fusion.cost import has_open_end, matrix_flops, times_run
from jitml.fusion.loops import Apply, Kernel, Loop, Stmt, Var, While, affine, children, walk_expressions
from jitml.fusion.program import KernelProgram, Region

# The record that functions of a program are handed as `error`, in words of 64 bits: four values of a failed check, then these.
DUE = 4  # where the word lies that is not 0 when it is time to look
STOPPED = 5  # whether the program is to end
OWNER = 6  # the thread that called it, which is the one to look
ERROR_WORDS = 7

LOOK = "jitml_look"
READ_WORD = "load atomic i64, ptr %due monotonic, align 8"  # of what `find_word` has found
PARALLEL_FOR, PARALLEL_FOR_WATCHED = "jitml_parallel_for", "jitml_parallel_for_watched"

# Programs of fewer operations are over before anybody would wait: some milliseconds.
_SHORT, _SHORT_MATRIX = 1 << 22, 1 << 27
# A loop of less work than that is passed, an iteration of more is worth a look, and cheaper ones are made blocks of: operations.
_SHORT_LOOP, LONG_ITERATION, BLOCK = 1e6, 48, 1 << 16
_UNKNOWN_TRIPS = 1e9
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


def work(body: Sequence[Stmt]) -> float:
    """Operations of some statements, roughly; loops of unknown length count as long ones."""
    total = 0.0
    for stmt in body:
        if isinstance(stmt, While):
            return inf
        if isinstance(stmt, Loop):
            total += known_trips(stmt) * work(stmt.body)
        else:
            inner = children(stmt)
            total += work(inner) if inner else 1 + sum(isinstance(e, Apply) for e in walk_expressions((stmt,)))
    return total


def known_trips(loop: Loop) -> float:
    """Iterations of a loop; of one that is cut at the end of something, those of a whole block."""
    stop = loop.stop.args[0] if isinstance(loop.stop, Apply) and loop.stop.fn == "minimum" else loop.stop
    span = affine(stop - loop.start)
    return _UNKNOWN_TRIPS if span is None or len(span) > 1 else max(0.0, -(-float(span[""]) // loop.step))


def looks_each_time(loop: Loop, *, is_inside: bool) -> bool:
    """Whether iterations are long enough for a look at each, and together too long for none."""
    own, trips = work(loop.body), known_trips(loop)
    least = _LONG_INSIDE if is_inside and trips == _UNKNOWN_TRIPS else LONG_ITERATION
    return own >= least and trips * own > _SHORT_LOOP


def in_blocks(loop: Loop, *, is_inside: bool) -> Loop | None:
    """The same iterations in blocks, of which there may be a look at each; None for one that is short, or of long iterations."""
    own, trips = work(loop.body), known_trips(loop)
    if own >= LONG_ITERATION or trips * own <= _SHORT_LOOP or loop.step < 1 or (is_inside and trips == _UNKNOWN_TRIPS):
        return None
    name = f"{loop.index}.block"
    length = loop.step * max(1, int(BLOCK // max(1.0, own)))
    start = Var(name)
    inner = replace(loop, start=start, stop=Apply("minimum", (start + length, loop.stop)))
    return replace(loop, index=name, step=length, kind="serial", body=(inner,))
