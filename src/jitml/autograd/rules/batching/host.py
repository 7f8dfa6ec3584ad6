"""Batching of host calls: NumPy is called once for each row that counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.autograd.core.batch import Batch, Batched, Operand, refuse, vmap
from jitml.ir import ops
from jitml.ir.ops.host import HostFunction

Array = np.ndarray[Any, Any]


@vmap.rule(ops.host_call)
def host_call_rows(batch: Batch, *operands: Operand, function: HostFunction) -> tuple[Operand, ...]:
    size = batch.size
    if not isinstance(size, int) or not all(aval.is_static for aval in function.results):
        refuse(f"{function.name} runs in NumPy, row by row, and the number of rows is not known")
    batched = [isinstance(x, Batched) for x in operands]
    masked = batch.active is not None

    def call_each(*arrays: Array) -> tuple[Array, ...]:
        active, arrays = (arrays[0], arrays[1:]) if masked else (np.ones(size, bool), arrays)
        results = tuple(np.zeros((size, *aval.shape), aval.dtype) for aval in function.results)
        for row in np.flatnonzero(active):
            found = function.call(*(np.asarray(a[row]) if flag else a for a, flag in zip(arrays, batched)))
            for whole, part, aval in zip(results, found, function.results, strict=True):
                if part.dtype != aval.dtype or part.shape != aval.shape:
                    raise ValueError(f"{function.name} gave {part.dtype}{list(part.shape)} where {aval} was foreseen")
                whole[row] = part
        return results

    avals = tuple(aval.with_shape((size, *aval.shape)) for aval in function.results)
    arguments = None if masked else function.arguments
    rows = HostFunction(function.name, call_each, avals, makes=function.makes, arguments=arguments)
    values = [batch.front(x) if isinstance(x, Batched) else x for x in operands]
    results = ops.host_call(*([batch.active] if masked else []), *values, function=rows)
    return tuple(Batched(value, 0) for value in results)


@vmap.rule(ops.draw)
def draw_rows(batch: Batch, *operands: Operand, function: HostFunction) -> tuple[Operand, ...]:
    refuse(
        f"{function.name} draws random numbers that depend on the row, or from a generator that does",
        "Draw the numbers for all rows before, and pass them as an argument that is mapped.",
    )
