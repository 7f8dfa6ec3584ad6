"""Batching of draws: rows would draw one after the other, and each another number of times."""

from __future__ import annotations

from typing import Any

from jitml.autograd.core.batch import Batch, Operand, refuse, vmap
from jitml.ir import ops


@vmap.rule(ops.random)
def random_rows(batch: Batch, *operands: Operand, distribution: str, **params: Any) -> tuple[Operand, ...]:
    refuse(
        f"{distribution} numbers are drawn that depend on the row, or from a generator that does",
        "Draw the numbers for all rows before, and pass them as an argument that is mapped.",
    )
