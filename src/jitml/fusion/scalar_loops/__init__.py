"""Loops over single elements as one kernel of plain native loops.

`for i: for j: A[i, j] = A[i - 1, j] + ...` is a region of the graph whose bodies load, compute and store numbers, or short
windows. It becomes one kernel: loops, branches and cells, with every array updated where it lies. What does not fit says so
(`NotRolled`) and runs as a region of programs instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitml.fusion.lower.points import Index
from jitml.fusion.lower.scalars import Scalar
from jitml.fusion.lower.statement_writer import StatementWriter
from jitml.fusion.scalar_loops import (
    arrays,  # noqa: F401
    random,  # noqa: F401
    regions,  # noqa: F401
)
from jitml.fusion.scalar_loops.body import GraphBody, Held, Lazy, Memories, WholeMemory, rolled
from jitml.fusion.scalar_loops.drop_proven_checks import may_overflow, without_proven
from jitml.fusion.scalar_loops.drop_unused import without_unused
from jitml.fusion.scalar_loops.forward_stores import with_recurrences
from jitml.fusion.scalar_loops.fuse_loops import with_fused_loops
from jitml.fusion.scalar_loops.hoist_checks import with_checks_outside
from jitml.fusion.scalar_loops.order import NotRolled, continued, is_single
from jitml.fusion.scalar_loops.unroll_loops import with_short_loops_unrolled
from jitml.fusion.scalar_loops.windows import assign
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.kernels.ir import Alloc, Buffer, Const, Expr, Kernel, Stmt, add, mul, stored_by, touched_by, walk
from jitml.kernels.target import Target

__all__ = ["NotRolled", "roll", "with_recurrences"]


def roll(
    name: str,
    node: Node,
    reads: Sequence[Buffer],
    writes: Sequence[Buffer],
    numbers: Mapping[Value, Const],
    new_constant: Callable[[np.ndarray[Any, Any]], Buffer],
    target: Target,
) -> Kernel:
    """A region as one kernel, with all its loops serial.

    Args:
        reads, writes: where its operands and results lie.
        numbers: operands that are constants.
        new_constant: makes a buffer for a literal array.

    Raises:
        NotRolled: what stands in the way.
        UnknownSizeError: which size decides what a loop does, also of one that is written long after its rule has run.
    """
    writer = StatementWriter(b.name for b in (*reads, *writes))
    seen = _seen(reads)
    memories = Memories((*seen.values(), *writes), new_constant)
    body = GraphBody(writer, memories, {}, frozenset(b.name for b in writes), target)
    homes = _homes(node)
    operands: list[Held] = []
    updates: dict[str, str] = {}
    for k, (value, buffer) in enumerate(zip(node.inputs, reads, strict=True)):
        if value in numbers:
            operands.append(writer.b.const(numbers[value].value, value.dtype))
        elif is_single(value):
            ndim = len(seen[buffer.name].shape)
            operands.append(writer.let(writer.b.load(buffer.name, (Const(0),) * ndim, value.dtype)))
        elif k in homes:
            operands.append(WholeMemory(writes[homes[k]].name, 0))
            updates[writes[homes[k]].name] = buffer.name
        elif buffer == seen[buffer.name]:
            operands.append(WholeMemory(buffer.name, 0))
        else:
            operands.append(_flat(body, buffer))
    body.rooms = {out: WholeMemory(b.name, 0) for out, b in zip(node.outputs, writes, strict=True)}
    rolled[node.op](body, node, operands)
    for out, buffer in zip(node.outputs, writes, strict=True):
        held = body.held[out]
        if isinstance(held, Scalar):
            writer.store(buffer.name, (Const(0),) * out.ndim, writer.expr(held))
        elif not isinstance(held, WholeMemory) or held.memory != buffer.name:
            assign(body, buffer.name, out, held, [Const(0)] * out.ndim, [1] * out.ndim)
    kernel = Kernel(
        name,
        (*seen.values(), *writes),
        _with_few_loops_and_checks(writer.finish(), in_order="block" not in target.kinds),
        updates,
        (node.source,) if node.source else (),
    )
    return _trimmed(kernel, writes, memories)


def _with_few_loops_and_checks(body: tuple[Stmt, ...], *, in_order: bool) -> tuple[Stmt, ...]:
    """The statements with few loops, and few checks in them. What may have overflowed is no index whose ends are looked at."""
    if may_overflow(body):
        body = without_proven(body)
    if in_order:
        body = with_short_loops_unrolled(body)
    return without_unused(with_fused_loops(with_checks_outside(body), in_order=in_order))


def _seen(reads: Sequence[Buffer]) -> dict[str, Buffer]:
    """Each memory as the kernel sees it: flat, if operands lie in it in several shapes."""
    seen: dict[str, Buffer] = {}
    for b in reads:
        known = seen.setdefault(b.name, b)
        if known != b:
            seen[b.name] = Buffer(b.name, b.dtype, (max(known.size, b.size),))
    return seen


def _flat(body: GraphBody, buffer: Buffer) -> Lazy:
    """An operand, element by element, in memory that is seen flat."""

    def at(index: Index) -> Scalar:
        place: Expr = Const(0)
        for i, step in zip(index, buffer.element_strides, strict=True):
            place = add(place, mul(i, step))
        return body.b.load(buffer.name, (place,), buffer.dtype)

    return Lazy(at, {buffer.name: 0})


def _homes(node: Node) -> dict[int, int]:
    """Operand -> the result that lies in its place."""
    outputs, before = list(node.outputs), continued(node)
    first = 1 if node.op in (ops.loop, ops.cond) else 0
    homes: dict[int, int] = {}
    for out, old in before.items():
        k = outputs.index(out) + first if node.op is not ops.cond else node.inputs.index(old, first)
        if k in homes:
            raise NotRolled("two results are updates of one array")
        homes[k] = outputs.index(out)
    return homes


def _trimmed(kernel: Kernel, writes: Sequence[Buffer], memories: Memories) -> Kernel:
    """With the parameters that it touches, literal arrays among them."""
    stored, used = stored_by(kernel.body), touched_by(kernel.body)
    for b in writes:
        if b.name not in stored and b.size:
            raise NotRolled("an array is handed on unchanged")
    own = {s.buffer.name for s in walk(kernel.body) if isinstance(s, Alloc)}
    params = tuple(b for name, b in memories.buffers.items() if name in used - own)
    return replace(kernel, params=params, updates={b: base for b, base in kernel.updates.items() if b in used})
