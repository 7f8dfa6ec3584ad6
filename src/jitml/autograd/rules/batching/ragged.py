"""Batching of what has another size in each row: ops that do not ask where elements lie, and those that sum them up.

They are computed in the form that the operands have, placed or packed, for all elements that there is room for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.autograd.batching.ragged import Given, Ragged, RaggedRows, RaggedRule, ragged
from jitml.autograd.core.batch import as_value, row_of, vmap
from jitml.ir import ops
from jitml.ir.graph import Node, Value
from jitml.ir.op import OPS, Op
from jitml.ir.types import BOOL, DType, is_complex


def compute_all(rows: RaggedRows, node: Node, *operands: Given) -> Given:
    """The op itself, of all elements; sizes among its parameters are those that there is room for."""
    params = {name: rows.whole(param) for name, param in node.params.items()}
    shape = node.output.shape

    def make(packed: bool) -> Any:
        return rows.op(node.op, *(rows.form(x, packed) for x in operands), **params)

    if not any(isinstance(x, Ragged) and x.forms for x in operands):
        return rows.made(shape, make)
    packed = rows.common_form(*operands, shape=shape)
    return rows.named(make(packed), shape, packed)


ragged.rule(ops.transpose)(compute_all)


@ragged.family("pointwise", "complex")
def _of_elements(op: Op) -> RaggedRule:
    return compute_all


@ragged.rule(ops.full, ops.empty)
def _alike(rows: RaggedRows, node: Node) -> Given:
    made = as_value(node.op(**{name: rows.whole(param) for name, param in node.params.items()}))
    return rows.uniform(made, node.output.shape)


@ragged.rule(ops.broadcast)
def _broadcast(rows: RaggedRows, node: Node, x: Given) -> Given:
    if isinstance(x, Ragged):
        return compute_all(rows, node, x)
    made = rows.op(ops.broadcast, x, **{name: rows.whole(param) for name, param in node.params.items()})
    makes = rows.makers.get(node.inputs[0])
    if makes is not None and makes.op is ops.full:
        return rows.uniform(made, node.output.shape)
    return rows.entering(lambda packed: made, node.output.shape)


@ragged.rule(ops.iota)
def _iota(rows: RaggedRows, node: Node) -> Given:
    axis, shape, dtype = node.params["axis"], node.output.shape, node.params["dtype"]

    def make(packed: bool) -> Any:
        if packed or not rows.is_open(shape[axis]):
            return as_value(ops.iota(shape=rows.whole(shape), axis=axis, dtype=dtype))
        return rows.spread(rows.op(ops.convert, rows.ranks(shape[axis]), dtype=dtype), rows.whole(shape), (axis,))

    return rows.made(shape, make)


@ragged.rule(ops.check, ops.keep, ops.barrier)
def _handed_on(rows: RaggedRows, node: Node, x: Given, *others: Any) -> Given:
    packed = rows.common_form(x)
    return rows.named(rows.op(node.op, rows.form(x, packed), *others, **node.params), node.output.shape, packed)


@ragged.rule(ops.observe)
def _observe(rows: RaggedRows, node: Node, x: Given) -> tuple[()]:
    """Elements that do not count raise what nobody has asked for; transforms report none."""
    return ()


# ---------------------------------------------------------------------------------------------------------- leaving


def _least(dtype: DType) -> Any:
    if is_complex(dtype):
        return complex(-np.inf, -np.inf)
    return False if dtype == BOOL else -np.inf if dtype.kind == "f" else np.iinfo(dtype.name).min


def _greatest(dtype: DType) -> Any:
    if is_complex(dtype):
        return complex(np.inf, np.inf)
    return True if dtype == BOOL else np.inf if dtype.kind == "f" else np.iinfo(dtype.name).max


def _last(dtype: DType) -> Any:
    """What nothing is sorted behind."""
    return complex(np.nan, np.nan) if is_complex(dtype) else np.nan if dtype.kind == "f" else _greatest(dtype)


def _always(value: Any) -> Callable[[DType], Any]:
    return lambda dtype: value


# What changes nothing; of sorts, in no place that counts.
NEUTRAL: dict[Op, Callable[[DType], Any]] = {
    ops.reduce_sum: _always(0),
    ops.reduce_prod: _always(1),
    ops.reduce_max: _least,
    ops.reduce_min: _greatest,
    ops.reduce_all: _always(True),
    ops.reduce_any: _always(False),
    ops.cumsum: _always(0),
    ops.cumprod: _always(1),
    ops.cummax: _least,
    ops.cummin: _greatest,
    ops.argmax: _least,
    ops.argmin: _greatest,
    ops.sort: _last,
    ops.argsort: _last,
}
COMBINED = {"add": _always(0), "mul": _always(1), "max": _least, "min": _greatest}
_BY_RANK = (ops.argmax, ops.argmin, ops.sort, ops.argsort)


@ragged.rule(*NEUTRAL)
def _reduce(rows: RaggedRows, node: Node, x: Ragged) -> Given:
    axes = node.params["axes"] if "axes" in node.params else (node.params["axis"],)
    params, open_axes = dict(node.params), [axis for axis in axes if rows.is_open(x.shape[axis])]
    packed = (node.op in _BY_RANK and bool(open_axes)) or rows.common_form(x)
    value = rows.filled(rows.form(x, packed), x.shape, NEUTRAL[node.op](node.inputs[0].dtype), packed, open_axes)
    if node.op is ops.argsort and open_axes:
        params["kind"] = "stable"  # what counts comes before an equal number that does not
    if node.op in (ops.reduce_max, ops.reduce_min, ops.argmax, ops.argmin) and any(
        row_of(value).shape[axis] == 0 for axis in axes
    ):
        made = as_value(ops.full(value=0, shape=rows.whole(node.output.shape), dtype=node.output.dtype))
        return rows.uniform(made, node.output.shape)  # a check has seen that there are none
    return rows.named(rows.op(node.op, value, **params), node.output.shape, packed)


@ragged.rule(ops.dot_general)
def _dot_general(rows: RaggedRows, node: Node, x: Given, y: Given) -> Given:
    packed = rows.common_form(x, y, shape=node.output.shape)
    values = [
        rows.filled(rows.form(z, packed), v.shape, 0, packed, axes)
        for z, v, axes in zip((x, y), node.inputs, node.params["contract"], strict=True)
    ]
    return rows.named(rows.op(node.op, *values, **node.params), node.output.shape, packed)


# ---------------------------------------------------------------------------------------------------------- graphs


@ragged.rule(
    ops.loop, ops.while_, ops.cond, *(op for op in OPS.values() if op.family == "calls" and op not in (ops.keep, ops.barrier))
)
def _graphs(rows: RaggedRows, node: Node, *operands: Given) -> tuple[Given, ...]:
    """What holds graphs gets arrays that are packed, and gives such."""
    results = vmap[node.op](rows.carrying(), *map(rows.packed, operands), **node.params)
    found = results if isinstance(results, tuple) else (results,)
    return tuple(rows.named(x, v.shape, True) for x, v in zip(found, node.outputs, strict=True))


@ragged.rule(*(op for op in OPS.values() if op.family == "linalg"))
def _factorizations(rows: RaggedRows, node: Node, a: Ragged, *others: Given) -> tuple[Given, ...]:
    """Matrices that do not count are identities."""
    value, shape = rows.packed(a), a.shape[:-2]
    if rows.any_open(a.shape[-2:]):
        rows.refuse()
    aval = row_of(value)
    lines: list[Value] = [as_value(ops.iota(shape=aval.shape, axis=aval.ndim - k, dtype=np.dtype("i8"))) for k in (2, 1)]
    identity = as_value(ops.convert(ops.eq(*lines), dtype=aval.dtype))
    for axis, size in enumerate(shape):
        if rows.is_open(size):
            counting = rows.spread(rows.counting(size, True), aval.shape, (axis,))
            value = rows.op(ops.select, counting, value, identity)
    results = vmap[node.op](rows.batch, value, *map(rows.packed, others), **node.params)
    found: Sequence[Any] = results if isinstance(results, tuple) else (results,)
    return tuple(rows.named(x, v.shape, True) for x, v in zip(found, node.outputs, strict=True))
