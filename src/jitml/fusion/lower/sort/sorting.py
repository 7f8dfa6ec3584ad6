"""Sort and argsort along an axis, as calls into a library that sorts rows; other axes go through copies in rows."""

from __future__ import annotations

from jitml.fusion.lower.nests import NestSite, nests
from jitml.fusion.lower.points import limits
from jitml.fusion.lower.sort.merge_sort import merge_sort
from jitml.ir import ops
from jitml.ir.types import I64
from jitml.kernels.ir import Buffer, Const, Expr, Store, mul
from jitml.kernels.program import Call

FEW = 16  # places, of at least so many times as many, that are selected


@nests.rule(ops.sort, ops.argsort)
def lower_sort(site: NestSite) -> None:
    (x,), out, op = site.reads, site.out, site.node.op
    if out.size == 0:
        return
    if site.node.op.name not in site.target.calls:
        merge_sort(site)
        return
    axis, shape = site.node.params["axis"], site.node.output.shape
    steps = _row_strides(out.shape, axis)
    if not _has_strides(x, steps):
        site.call("copy", x, rows := site.new_buffer(x.dtype, shape, steps))
        x = rows
    result = out if _has_strides(out, steps) else site.new_buffer(out.dtype, shape, steps)
    lengths = () if site.node.output.aval.is_static else (_lengths(site).name,)
    places = _places(site, axis)
    params = dict(site.node.params) | ({} if places is None else {"places": places})
    site.steps.append(Call(op.name, (x.name, *lengths), (result.name,), params, site.sources))
    if result is not out:
        site.call("copy", result, out)


def _places(site: NestSite, axis: int) -> tuple[int, ...] | None:
    """The places of sorted rows that are looked at, if they are few of many that are known now."""
    n = site.node.output.shape[axis]
    is_open = site.node.op is ops.sort or site.node.params["kind"] == "introselect"
    if not is_open or not isinstance(n, int) or (looks := site.looks(site.node.output)) is None:
        return None
    places: set[int] = set()
    for reading in looks:
        ends = limits(reading.index[axis], reading.ranges)
        if ends is None or ends[1] - ends[0] >= FEW:
            return None
        places.update(range(max(0, ends[0]), min(n - 1, ends[1]) + 1))
    return tuple(sorted(places)) if len(places) <= min(FEW, n // FEW) else None


def _lengths(site: NestSite) -> Buffer:
    """How many elements of a row count, and how many rows: known only when the program runs."""
    axis, out = site.node.params["axis"], site.out
    rows: Expr = Const(1)
    for k, a in enumerate(a for a in range(len(out.shape)) if a != axis):
        # Rows beyond the extents of inner axes are sorted too, whatever they hold.
        rows = mul(rows, site.extent(0, a) if k == 0 else out.shape[a])
    lengths = site.new_buffer(I64, (2,))
    values = site.extent(0, axis), rows
    site.emit(tuple(Store(lengths.name, (Const(k),), value) for k, value in enumerate(values)), lengths)
    return lengths


def _row_strides(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Strides with an axis innermost and the others in C order."""
    strides, step = [0] * len(shape), 1
    for a in (axis, *(a for a in reversed(range(len(shape))) if a != axis)):
        strides[a], step = step, step * shape[a]
    return tuple(strides)


def _has_strides(buffer: Buffer, strides: tuple[int, ...]) -> bool:
    return all(n == 1 or have == want for n, have, want in zip(buffer.shape, buffer.element_strides, strides))
