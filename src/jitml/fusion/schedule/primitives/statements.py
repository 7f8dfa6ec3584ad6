"""Primitives on statements: how do loops run that are no group's? An op's own (a sort, a scan), or those over single elements.

They have no tree, and nothing is moved in them. So there are fewer primitives for them: pieces, and kinds.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import count

from jitml.errors import ScheduleError
from jitml.fusion.schedule.primitives.kinds import MARKS, marked, require_kind
from jitml.fusion.schedule.tree import Misfit
from jitml.kernels.analysis.dependence import Accesses, Path
from jitml.kernels.analysis.races import races
from jitml.kernels.ir import Apply, Cell, Draw, Kernel, Let, Loop, Stmt, Var, walk, with_blocks
from jitml.kernels.schedule import Primitive, Schedule, Split, introduced, show_primitive
from jitml.kernels.target import Target
from jitml.kernels.text.printer import show


def loop_names(known: Accesses) -> dict[Path, str]:
    """What primitives call the loops of a kernel: `i0`, or `i0.1` if it is the second of several over that index."""
    found = {path: loop.index for path, loop in known.loops.items() if isinstance(loop, Loop)}
    several, seen = Counter(found.values()), Counter[str]()
    for path, index in found.items():
        seen[index] += 1
        if several[index] > 1:
            found[path] = f"{index}.{seen[index] - 1}"
    return found


def with_schedule(kernel: Kernel, schedule: Schedule, target: Target, called: str) -> Kernel:
    """The kernel with its loops, all serial, as a schedule has them.

    Args:
        called: what the user calls the kernel.

    Raises:
        ScheduleError: a primitive does not fit; the message shows the loops that it found.
    """
    if len(schedule.boxes) > 1:
        raise ScheduleError(
            f"schedule of {called}: it has primitives for {len(schedule.boxes)} boxes of loops, of which there is one"
        )
    for primitive in schedule.boxes[0]:
        try:
            require_kind(primitive, target)
            kernel = replace(kernel, body=_changed(kernel.body, primitive))
        except Misfit as misfit:
            raise _refusal(kernel, f"{show_primitive(primitive)}: {misfit.message}", called) from None
    return kernel


def require_proven(kernel: Kernel, called: str) -> None:
    """
    Raises:
        ScheduleError: the loops that a schedule of the user's has made run into each other.
    """
    for reason in races(kernel):
        kind, _, _, index, *_ = reason.split(" ")
        raise _refusal(kernel, reason, called, f"for {index.rstrip(':')} in [^\n]* {kind} ")


def _refusal(kernel: Kernel, reason: str, called: str, head: str = "") -> ScheduleError:
    """A schedule's error, with the loops as they are, and a mark at those with such a head."""
    text = re.sub(f"^ (?= *{head})", ">", show(kernel), flags=re.MULTILINE) if head else show(kernel)
    return ScheduleError(f"schedule of {called}: {reason}", remedy=f"Its loops:\n{text}")


def _changed(body: tuple[Stmt, ...], p: Primitive) -> tuple[Stmt, ...]:
    if not isinstance(p, (Split, *MARKS)):
        keywords = ", ".join(form.FORM.split()[0] for form in (Split, *MARKS))
        raise Misfit(f"these loops hold statements, in their order; what changes them is {keywords}")
    index, _, place = p.loop.partition(".")
    there = [s.index for s in walk(body) if isinstance(s, Loop)]
    if (new := introduced(p)) and new in {*there, *(s.name for s in walk(body) if isinstance(s, (Let, Cell, Draw)))}:
        raise Misfit(f"the name {new} is taken")
    if index not in there or int(place or 0) >= there.count(index):
        raise Misfit(f"no loop is called {p.loop}; the loops are {', '.join(dict.fromkeys(there)) or 'none'}")
    numbers = count()

    def inside(block: tuple[Stmt, ...], _: object = None) -> tuple[Stmt, ...]:
        return tuple(map(statement, block))

    def statement(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Loop) and stmt.index == index and (not place or next(numbers) == int(place)):
            return _pieces(stmt, p) if isinstance(p, Split) else marked(stmt, p)
        return with_blocks(stmt, inside)

    return inside(body)


def _pieces(loop: Loop, p: Split) -> Loop:
    """for i in a:b  ->  for io in a:b:n { for i in io:minimum(io + n, b) }"""
    if loop.kind != "serial" or p.size < 1:
        raise Misfit(f"{loop.index} is {loop.kind}, and is not cut into pieces of {p.size} iterations")
    first, step = Var(p.outer), p.size * loop.step
    inner = replace(loop, start=first, stop=Apply("minimum", (first + step, loop.stop)))
    return replace(loop, index=p.outer, step=step, body=(inner,))
