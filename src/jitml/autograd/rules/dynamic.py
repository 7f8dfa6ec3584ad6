"""Derivatives of windows at run-time places, of picked elements, and of what ties sizes to values.

All are linear in the array. The cotangent of a window is a part of the array's: it is added in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitml.autograd.core.jvp import Tangent, jvp_of_many, not_differentiable
from jitml.autograd.core.transpose import Cotangent, LinearPlace, Operand, PartialCotangent, cleared, transpose, zeros
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.types import I64, Aval

Ints = tuple[int, ...]

not_differentiable(ops.bind, ops.observe)


@jvp_of_many.rule(ops.check)
def check_jvp(node: Node, tangents: Sequence[Tangent]) -> tuple[Sequence[Value], Sequence[Tangent]]:
    """The claim has been checked once; one that says that there is no tangent does not hold here."""
    if node.params["error"] == DerivativeError.__name__ and tangents[0] is not None:
        asked_by = node.params["message"].format() or "code that is not converted"
        raise DerivativeError(
            f"{asked_by} takes a number that is differentiated, and computes with it out of sight: what it returns is a constant",
            source=node.source,
            remedy="Write it with functions that are compiled (docs/supported.md), give it a derivative with jitml.custom_vjp or "
            "custom_jvp, or pass it jitml.stop_gradient of the number.",
        )
    return [node.op(*node.inputs, **node.params)], tangents[:1]


@transpose.rule(ops.dynamic_slice)
def dynamic_slice_transpose(ct: Value, x: Operand, *starts: Value, sizes: Ints, step: Ints) -> tuple[Cotangent, ...]:
    def into(total: Value) -> Value:
        before = cleared(total, ops.dynamic_update_slice, starts, ct.aval, step=step)
        if before is not None:
            return ops.dynamic_update_slice(before, ct, *starts, step=step)
        there = ops.dynamic_slice(total, *starts, sizes=sizes, step=step)
        return ops.dynamic_update_slice(total, ops.add(there, ct), *starts, step=step)

    def alone() -> Value:
        return ops.dynamic_update_slice(zeros(Aval(x.shape, ct.dtype)), ct, *starts, step=step)

    return PartialCotangent(into, alone), *(None for _ in starts)


@transpose.rule(ops.dynamic_update_slice)
def dynamic_update_slice_transpose(ct: Value, x: Operand, v: Operand, *starts: Value, step: Ints) -> tuple[Cotangent, ...]:
    written = ops.dynamic_slice(ct, *starts, sizes=v.shape, step=step) if isinstance(v, LinearPlace) else None
    hidden = zeros(Aval(v.shape, ct.dtype))
    kept = ops.dynamic_update_slice(ct, hidden, *starts, step=step) if isinstance(x, LinearPlace) else None
    return kept, written, *(None for _ in starts)


@transpose.rule(ops.compress)
def compress_transpose(ct: Value, x: Operand, mask: Value, *, axis: int, size: int) -> tuple[Cotangent, ...]:
    every = ops.iota(shape=mask.shape, axis=0, dtype=I64)
    places = ops.compress(every, mask, axis=0, size=size)

    def into(total: Value) -> Value:
        return ops.scatter(total, ct, places, axis=axis, combine="add")

    def alone() -> Value:
        return ops.scatter(zeros(Aval(x.shape, ct.dtype)), ct, places, axis=axis, combine="set")

    return PartialCotangent(into, alone), None


@transpose.rule(ops.resize)
def resize_transpose(ct: Value, x: Operand, *, shape: Ints) -> tuple[Cotangent, ...]:
    return (ops.resize(ct, shape=x.shape),)
