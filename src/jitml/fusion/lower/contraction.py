"""dot_general as a call to gemm. What gemm cannot or should not do was expanded before (`expand.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.fusion.loops import Buffer, Const, Expr, Load, Loop, Stmt, Store, Var, mul
from jitml.fusion.lower.nests import Site, nests
from jitml.fusion.program import Call
from jitml.ir import ops
from jitml.ir.ops.contraction import free_axes
from jitml.ir.types import I64


@nests.rule(ops.dot_general)
def lower_dot_general(site: Site) -> None:
    x, y = site.reads
    (xb, yb), (xc, yc) = site.node.params["batch"], site.node.params["contract"]
    xf, yf = free_axes(len(x.shape), xb, xc), free_axes(len(y.shape), yb, yc)
    batch, m, n, k = _extent(x, xb), _extent(x, xf), _extent(y, yf), _extent(x, xc)
    known = site.node.inputs[0].aval.is_static and site.node.inputs[1].aval.is_static
    sizes = () if known else (_extents(site, xf, yf, xc).name,)
    x, a = _matrices(site, x, xb, xf, xc)
    y, b = _matrices(site, y, yb, yc, yf)
    params = {"batch": batch, "m": m, "n": n, "k": k} | ({} if known else {"sized": True})
    for name, steps in (("a", a), ("b", b), ("c", (m * n, n, 1))):
        params |= {f"{name}_{what}": step for what, step in zip(("batch", "row", "col"), steps)} | {f"{name}_offset": 0}
    source = site.node.source
    site.steps.append(Call("gemm", (x.name, y.name, *sizes), (site.out.name,), params, (source,) if source else ()))


def _extents(site: Site, rows: Sequence[int], columns: Sequence[int], inner: Sequence[int]) -> Buffer:
    """m, n and k of this run."""
    extents = site.new_buffer(I64, (3,))
    values: list[Expr] = []
    for operand, axes in ((0, rows), (1, columns), (0, inner)):
        value: Expr = Const(1)
        for a in axes:
            value = mul(value, site.extent(operand, a))
        values.append(value)
    site.emit(tuple(Store(extents.name, (Const(n),), value) for n, value in enumerate(values)), extents)
    return extents


def _extent(buffer: Buffer, axes: Sequence[int]) -> int:
    size = 1
    for a in axes:
        size *= buffer.shape[a]
    return size


def _matrices(
    site: Site, x: Buffer, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]
) -> tuple[Buffer, tuple[int, int, int]]:
    """The operand as a batch of matrices that BLAS can read: where it lies if that can be had, else a copy."""
    extents = _extent(x, rows), _extent(x, columns)
    steps = [_step(x, axes) for axes in (batch, rows, columns)]
    if None in steps or not _has_unit(steps[1:], extents):
        source, x = x, site.new_buffer(x.dtype, x.shape)
        site.steps.append(Call("copy", (source.name,), (x.name,), {}))
        steps = [_step(x, axes) for axes in (batch, rows, columns)]
    if None in steps or not _has_unit(steps[1:], extents):  # axes in an order that no strides describe
        x = _reordered(site, x, (*batch, *rows, *columns))
        steps = [extents[0] * extents[1], extents[1], 1]
    s_batch, s_row, s_column = (s or 0 for s in steps)
    return x, (s_batch, s_row, s_column)


def _step(buffer: Buffer, axes: Sequence[int]) -> int | None:
    """The one stride of several axes taken as one, outer first; None if there is none."""
    strides, step, size = buffer.element_strides, 0, 1
    for a in reversed(axes):
        n = buffer.shape[a]
        if n == 1:
            continue
        if size == 1:
            step = strides[a]
        elif strides[a] != step * size:
            return None
        size *= n
    return step


def _has_unit(steps: Sequence[int | None], extents: Sequence[int]) -> bool:
    """Whether a matrix is contiguous along its rows or its columns, without overlap, as BLAS wants it."""
    (row, column), (m, n) = steps, extents
    assert row is not None and column is not None
    by_row = (column == 1 or n == 1) and (row >= max(1, n) or m == 1)
    by_column = (row == 1 or m == 1) and (column >= max(1, m) or n == 1)
    return by_row or by_column


def _reordered(site: Site, x: Buffer, perm: tuple[int, ...]) -> Buffer:
    out = site.new_buffer(x.dtype, tuple(x.shape[a] for a in perm))
    at = {a: Var(f"i{k}") for k, a in enumerate(perm)}
    body: tuple[Stmt, ...] = (
        Store(
            out.name, tuple(Var(f"i{k}") for k in range(len(perm))), Load(x.name, tuple(at[a] for a in range(len(perm))), x.dtype)
        ),
    )
    for k in reversed(range(len(perm))):
        body = (Loop(f"i{k}", Const(0), Const(out.shape[k]), 1, "vector" if k == len(perm) - 1 else "serial", body),)
    site.emit(body, x, out)
    return out
