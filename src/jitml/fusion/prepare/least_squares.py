"""Least squares by singular values: `pinv` and `lstsq` as a decomposition and products, for devices that are good at both.

What NumPy's routines do inside is written out: singular values up to `rcond` times the largest count as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from jitml.ir import ops
from jitml.ir.graph import Graph, Node, Value
from jitml.ir.op import OPS, Op
from jitml.ir.rewrite import Producers, sweep
from jitml.ir.types import I32, is_complex

_DEPENDENT = "the columns are dependent, so that there are no residuals"


def over_singular_values(graph: Graph) -> Graph:
    """The graph without `pinv` and `lstsq` of matrices that have elements; the same one if there are none."""

    def visit(node: Node, producers: Producers) -> tuple[Value, ...] | Value | None:
        rule = _RULES.get(node.op)
        if rule is None or not all(v.aval.is_static and prod(v.shape) for v in node.inputs):
            return None
        return rule(*node.inputs, **node.params)

    return sweep(graph, visit)


def _pinv(a: Value, *, rcond: float) -> Value:
    u, s, vh = ops.svd(a, full=False)
    kept = _kept(s, rcond)
    return _product(_scaled(_adjoint(vh), _inverse(s, kept)), _adjoint(u))


def _lstsq(a: Value, b: Value, *, rcond: float) -> tuple[Value, Value, Value, Value]:
    """NumPy's residuals are sums of squares, and there are none unless the columns of a tall matrix are independent."""
    u, s, vh = ops.svd(a, full=False)
    kept = _kept(s, rcond)
    x = _product(_scaled(_adjoint(vh), _inverse(s, kept)), _product(_adjoint(u), b))
    rank: Value = ops.reduce_sum(ops.convert(kept, dtype=I32), axes=(s.ndim - 1,))
    columns = x.shape[-1]
    if a.shape[-2] <= a.shape[-1]:
        none: Value = ops.full(value=0.0, shape=(*a.shape[:-2], 0), dtype=s.dtype)
        return x, none, rank, s
    left = ops.sub(b, _product(a, x))
    squares = ops.mul(left, left)
    if is_complex(left.dtype):
        re, im = ops.real(left), ops.imag(left)
        squares = ops.add(ops.mul(re, re), ops.mul(im, im))
    residuals: Value = ops.reduce_sum(squares, axes=(squares.ndim - 2,))
    assert residuals.shape[-1] == columns
    is_whole: Value = ops.reduce_all(kept, axes=tuple(range(kept.ndim)))
    return ops.check(x, is_whole, error="ValueError", message=_DEPENDENT), residuals, rank, s


def _kept(s: Value, rcond: float) -> Value:
    """Which singular values count."""
    largest = ops.reduce_max(s, axes=(s.ndim - 1,))
    least = ops.mul(largest, ops.full(value=rcond, shape=largest.shape, dtype=s.dtype))
    found: Value = ops.gt(s, ops.broadcast(least, shape=s.shape, axes=tuple(range(s.ndim - 1))))
    return found


def _inverse(s: Value, kept: Value) -> Value:
    """One over each singular value that counts, and 0."""
    one, zero = (ops.full(value=x, shape=s.shape, dtype=s.dtype) for x in (1.0, 0.0))
    found: Value = ops.select(kept, ops.div(one, ops.select(kept, s, one)), zero)
    return found


def _scaled(x: Value, factors: Value) -> Value:
    """Each column of matrices times a real number."""
    spread: Value = ops.broadcast(factors, shape=x.shape, axes=(*range(x.ndim - 2), x.ndim - 1))
    if is_complex(x.dtype):
        spread = ops.complex(spread, ops.full(value=0.0, shape=x.shape, dtype=spread.dtype))
    found: Value = ops.mul(x, spread)
    return found


def _adjoint(x: Value) -> Value:
    turned = ops.conj(x) if is_complex(x.dtype) else x
    found: Value = ops.transpose(turned, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return found


def _product(x: Value, y: Value) -> Value:
    stack = tuple(range(x.ndim - 2))
    found: Value = ops.dot_general(x, y, batch=(stack, stack), contract=((x.ndim - 1,), (x.ndim - 2,)))
    return found


_RULES: dict[Op, Callable[..., Any]] = {OPS["pinv"]: _pinv, OPS["lstsq"]: _lstsq}
