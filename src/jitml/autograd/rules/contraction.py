"""Derivatives of `dot_general`, linear in each operand: `ct @ w.T` and `x.T @ ct` in general axes."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.autograd.core.jvp import Tangent, jvp
from jitml.autograd.core.transpose import Cotangent, LinearPlace, Operand, transpose
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.ops.contraction import free_axes

Ints = tuple[int, ...]
Pair = tuple[Ints, Ints]


@jvp.rule(ops.dot_general)
def dot_general_jvp(out: Value, primals: Sequence[Value], tangents: Sequence[Tangent], *, batch: Pair, contract: Pair) -> Tangent:
    (x, y), (dx, dy) = primals, tangents
    left = ops.dot_general(dx, y, batch=batch, contract=contract) if dx is not None else None
    right = ops.dot_general(x, dy, batch=batch, contract=contract) if dy is not None else None
    return left + right if left is not None and right is not None else left if left is not None else right


@transpose.rule(ops.dot_general)
def dot_general_transpose(ct: Value, x: Operand, y: Operand, *, batch: Pair, contract: Pair) -> tuple[Cotangent, ...]:
    """Contract the cotangent with the known operand over the axes that were free there; then restore the axis order.

    The result's axes are the batch, what stayed free of the linear operand, and the once contracted axes in the order
    they have in the known operand. The linear operand keeps its side, so that matrix products need no transpose.
    """
    (xb, yb), (xc, yc) = batch, contract
    x_free, y_free = free_axes(x.ndim, xb, xc), free_axes(y.ndim, yb, yc)
    ct_batch = tuple(range(len(xb)))
    ct_x_free = tuple(range(len(xb), len(xb) + len(x_free)))
    ct_y_free = tuple(range(len(xb) + len(x_free), ct.ndim))
    if isinstance(x, LinearPlace):
        found = ops.dot_general(ct, y, batch=(ct_batch, yb), contract=(ct_y_free, y_free))
        return _arranged(found, (*xb, *x_free, *(xc[yc.index(a)] for a in sorted(yc)))), None
    found = ops.dot_general(x, ct, batch=(xb, ct_batch), contract=(x_free, ct_x_free))
    return None, _arranged(found, (*yb, *(yc[xc.index(a)] for a in sorted(xc)), *y_free))


def _arranged(found: Value, places: Ints) -> Value:
    """Axis k of `found` moved to `places[k]`."""
    perm = tuple(places.index(a) for a in range(len(places)))
    return found if perm == tuple(range(len(perm))) else ops.transpose(found, perm=perm)
