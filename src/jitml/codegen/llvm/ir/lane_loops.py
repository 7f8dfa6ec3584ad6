"""Loops inside of one scalar expression: operations that are repeated until no lane needs them any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jitml.codegen.llvm.ir.operand import Operand

if TYPE_CHECKING:
    from jitml.codegen.llvm.ir.builder import Builder


def repeat(
    b: Builder,
    start: Sequence[Operand],
    more: Callable[[list[Operand]], Operand],
    step: Callable[[list[Operand]], Sequence[Operand]],
) -> list[Operand]:
    """What is left of some integers of equal lanes; all copies go on as long as one has to."""
    copies = max(len(x.names) for x in start)
    before, head, body, done = b.label, b.fresh("repeat"), b.fresh("step"), b.fresh("done")
    current, following = ([[f"%{b.fresh()}" for _ in range(copies)] for _ in start] for _ in range(2))
    b.emit(f"br label %{head}")
    b.start_block(head)
    for k in range(copies):
        for x, now, later in zip(start, current, following):
            b.emit(f"{now[k]} = phi {x.type} [ {x.names[k % len(x.names)]}, %{before} ], [ {later[k]}, %{body} ]")
    values = [replace(x, names=tuple(names)) for x, names in zip(start, current)]
    b.emit(f"br i1 {b.any(more(values)).names[0]}, label %{body}, label %{done}")
    b.start_block(body)
    for value, names in zip(step(values), following, strict=True):
        for name, result in zip(names, value.names, strict=True):
            b.emit(f"{name} = or {value.type} {result}, {result}")
    b.emit(f"br label %{head}")
    b.start_block(done)
    return values
