"""Arrays whose sizes are values: memory of the largest shape, loops to the true extent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir import ops
from jitml.ir.types import I64
from support.sized import Sized, check, graph_of

Build = Callable[[Sized], Any]
rng = np.random.default_rng(0)
CASES: dict[str, tuple[Build, list[Sequence[Any]]]] = {}


def case(*calls: Sequence[Any]) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        CASES[build.__name__] = build, list(calls)
        return build

    return add


def lengths(*ns: int) -> list[list[Any]]:
    """A size, and an array of it."""
    return [[n, rng.normal(size=n)] for n in ns]


@case(*lengths(0, 1, 7, 30))
def pointwise(b: Sized) -> Any:
    x = b.array(b.size("n", 30))
    return ops.mul(ops.exp(x), 2.0), ops.neg(x)


@case(*lengths(0, 1, 7, 30))
def sum_and_extremes(b: Sized) -> Any:
    x = b.array(b.size("n", 30))
    return ops.reduce_sum(x, axes=(0,)), ops.reduce_max(ops.abs(ops.add(x, 1.0)), axes=(0,)) if 0 else ops.reduce_prod(
        x, axes=(0,)
    )


@case(*lengths(0, 5, 3000, 70000))
def long_sum(b: Sized) -> Any:
    x = b.array(b.size("n", 70000))
    return ops.reduce_sum(ops.mul(x, x), axes=(0,))


@case([0], [1], [20])
def counting(b: Sized) -> Any:
    n = b.size("n", 20)
    return ops.iota(shape=(n + 1,), axis=0, dtype=I64), ops.full(value=2.5, shape=(n, 3), dtype=np.dtype("f4"))


@case(*lengths(0, 1, 7, 30))
def flipped(b: Sized) -> Any:
    x = b.array(b.size("n", 30))
    return ops.add(ops.flip(x, axes=(0,)), x)


@case(*([n, rng.normal(size=(n, 6))] for n in (0, 1, 4, 9)))
def rows(b: Sized) -> Any:
    n = b.size("n", 9)
    x = b.array(n, 6)
    top = ops.broadcast(ops.reduce_max(x, axes=(1,)), shape=(n, 6), axes=(0,))
    e = ops.exp(ops.sub(x, top))
    return ops.div(e, ops.broadcast(ops.reduce_sum(e, axes=(1,)), shape=(n, 6), axes=(0,)))


@case(*([n, rng.normal(size=(8, n))] for n in (1, 4, 9)))
def rows_of_a_size(b: Sized) -> Any:
    n = b.size("n", 9)
    x = b.array(8, n)
    top = ops.broadcast(ops.reduce_max(x, axes=(1,)), shape=(8, n), axes=(0,))
    e = ops.exp(ops.sub(x, top))
    return ops.div(e, ops.broadcast(ops.reduce_sum(e, axes=(1,)), shape=(8, n), axes=(0,)))


@case(*([n, m, rng.normal(size=(n, m))] for n in (0, 3, 40) for m in (0, 5, 50)))
def columns(b: Sized) -> Any:
    n, m = b.size("n", 40), b.size("m", 50)
    x = b.array(n, m)
    return ops.reduce_sum(x, axes=(0,)), ops.transpose(x, perm=(1, 0)), ops.mul(x, 3.0)


@case(*([n, m, rng.normal(size=(n, m))] for n in (0, 1, 4) for m in (0, 1, 6)))
def reshaped(b: Sized) -> Any:
    n, m = b.size("n", 4), b.size("m", 6)
    x = b.array(n, m)
    flat = ops.reshape(x, shape=(n * m,))
    return flat, ops.reshape(ops.neg(flat), shape=(n, m)), ops.reshape(x, shape=(n, 1, m))


@case(*lengths(0, 1, 5))
def static_inner_reshape(b: Sized) -> Any:
    n = b.size("n", 5)
    x = b.array(n)
    wide = ops.broadcast(x, shape=(n, 4), axes=(0,))
    return ops.reshape(ops.neg(wide), shape=(4 * n,)), ops.reshape(ops.reshape(ops.neg(wide), shape=(4 * n,)), shape=(n, 2, 2))


@case(*lengths(0, 1, 2, 20))
def cumulative(b: Sized) -> Any:
    x = b.array(b.size("n", 20))
    return ops.cumsum(x, axis=0, reverse=False), ops.cummax(x, axis=0, reverse=True)


@case(*([n, rng.normal(size=(3, n))] for n in (0, 1, 9)))
def cumulative_down(b: Sized) -> Any:
    x = b.array(3, b.size("n", 9))
    return ops.cumsum(x, axis=0, reverse=False), ops.cumsum(x, axis=1, reverse=True)


@case(*lengths(1, 2, 20))
def extremes(b: Sized) -> Any:
    x = b.array(b.size("n", 20, 1))
    return ops.argmax(x, axis=0), ops.argmin(ops.neg(x), axis=0), ops.reduce_max(x, axes=(0,))


@case(*lengths(0, 1, 5, 30))
def computed_size(b: Sized) -> Any:
    """A size that the program itself computes, from an array that is also used."""
    x = b.array(b.size("n", 30))
    positive = ops.reduce_sum(ops.convert(ops.gt(x, 0.0), dtype=I64), axes=(0,))
    m = b.bound(positive, "m", 30)
    return ops.iota(shape=(m,), axis=0, dtype=I64), ops.mul(x, 2.0), positive


@case(*([n, rng.normal(size=(n, 5)), rng.normal(size=(5, 4))] for n in (0, 1, 6)))
def matrix_product(b: Sized) -> Any:
    n = b.size("n", 6)
    return ops.dot_general(b.array(n, 5), b.array(5, 4), batch=((), ()), contract=((1,), (0,)))


@case(*([n, rng.normal(size=n), rng.normal(size=(n, 4))] for n in (0, 1, 6)))
def vector_times_matrix(b: Sized) -> Any:
    n = b.size("n", 6)
    return ops.dot_general(b.array(n), b.array(n, 4), batch=((), ()), contract=((0,), (0,)))


@case(*([n, rng.normal(size=7), rng.integers(-7, 7, size=n)] for n in (0, 1, 9)))
def gathered(b: Sized) -> Any:
    n = b.size("n", 9)
    return ops.gather(b.array(7), b.array(n, dtype="i8"), axis=0)


@case(*([n, rng.normal(size=n), rng.integers(-n, n, size=5)] for n in (1, 9)))
def gathered_from(b: Sized) -> Any:
    n = b.size("n", 9, 1)
    return ops.gather(b.array(n), b.array(5, dtype="i8"), axis=0)


@case(*([n, rng.normal(size=7), rng.normal(size=n), rng.integers(-7, 7, size=n)] for n in (0, 1, 9)))
def scattered(b: Sized) -> Any:
    n = b.size("n", 9)
    return ops.scatter(b.array(7), b.array(n), b.array(n, dtype="i8"), axis=0, combine="add")


def masked(*shape: int) -> list[list[Any]]:
    """Arrays, and masks of their first axis that keep little, some or all of it."""
    return [[rng.normal(size=shape), rng.random(shape[0]) < density] for density in (0.0, 0.4, 1.0)]


@case(*masked(30))
def compressed(b: Sized) -> Any:
    x, mask = b.array(30), b.array(30, dtype="?")
    m = b.bound(ops.reduce_sum(ops.convert(mask, dtype=I64), axes=(0,)), "m", 30)
    kept = ops.compress(ops.mul(x, 2.0), mask, axis=0, size=m)
    return kept, ops.reduce_sum(kept, axes=(0,)), ops.add(kept, 1.0)


@case(*masked(7, 3))
def compressed_rows(b: Sized) -> Any:
    x, mask = b.array(7, 3), b.array(7, dtype="?")
    m = b.bound(ops.reduce_sum(ops.convert(mask, dtype=I64), axes=(0,)), "m", 7)
    kept = ops.compress(x, mask, axis=0, size=m)
    return kept, ops.reduce_sum(kept, axes=(0,)), ops.transpose(kept, perm=(1, 0))


@case(*([x.T, mask] for x, mask in masked(7, 3)))
def compressed_columns(b: Sized) -> Any:
    x, mask = b.array(3, 7), b.array(7, dtype="?")
    m = b.bound(ops.reduce_sum(ops.convert(mask, dtype=I64), axes=(0,)), "m", 7)
    return ops.compress(x, mask, axis=1, size=m)


@case(*([n, m, rng.normal(size=n), rng.normal(size=m)] for n, m in ((0, 0), (0, 3), (4, 0), (5, 6))))
def joined(b: Sized) -> Any:
    n, m = b.size("n", 5), b.size("m", 6)
    x, y = b.array(n), b.array(m)
    return ops.concat(x, ops.neg(y), x, axis=0), ops.concat(ops.exp(x), x, axis=0)


@case(*([n, rng.normal(size=(2, n)), rng.normal(size=(3, n))] for n in (0, 1, 5)))
def joined_along_another_axis(b: Sized) -> Any:
    n = b.size("n", 5)
    return ops.concat(ops.neg(b.array(2, n)), b.array(3, n), axis=0)


@case(*([n, rng.normal(size=(3, n))] for n in (0, 1, 5)))
def joined_along_the_size(b: Sized) -> Any:
    n = b.size("n", 5)
    x = b.array(3, n)
    return ops.concat(ops.neg(x), x, axis=1)


@case(*lengths(0, 1, 5))
def padded(b: Sized) -> Any:
    n = b.size("n", 5)
    zero = ops.full(value=7.0, shape=(), dtype=np.dtype("f8"))
    return ops.pad(ops.neg(b.array(n)), zero, low=(2,), high=(1,), interior=(0,))


@case(*([n, n, rng.normal(size=n), rng.normal(size=n)] for n in (0, 1, 5)))
def renamed(b: Sized) -> Any:
    n, m = b.size("n", 5), b.size("m", 9)
    return ops.add(b.array(n), ops.resize(b.array(m), shape=(n,)))


@case(*lengths(0, 1, 2, 30))
def ordered(b: Sized) -> Any:
    x = b.array(b.size("n", 30))
    return ops.sort(x, axis=0, kind="quicksort"), ops.argsort(ops.neg(x), axis=0, kind="stable")


@case(*([n, rng.normal(size=(n, 4))] for n in (0, 1, 2, 30)))
def ordered_rows_and_columns(b: Sized) -> Any:
    n = b.size("n", 30)
    x = b.array(n, 4)
    return ops.sort(x, axis=0, kind="stable"), ops.sort(x, axis=1, kind="quicksort"), ops.argsort(x, axis=0, kind="stable")


ONE = (np.arange(20.0), rng.normal(size=20))


@case(*([x, start, n] for x in ONE for start, n in ((0, 0), (20, 0), (0, 20), (7, 5), (19, 1))))
def window(b: Sized) -> Any:
    x, start, n = b.array(20), b.array(dtype="i8"), b.size("n", 20)
    part = ops.dynamic_slice(x, start, sizes=(n,), step=(1,))
    return part, ops.reduce_sum(ops.mul(part, part), axes=(0,))


@case(*([rng.normal(size=(9, 8)), i, j] for i, j in ((0, 0), (8, 1), (5, 7))))
def window_at_sizes(b: Sized) -> Any:
    """A row up to a size, and a column from it on: `A[i, :j]` and `A[j:, j]`."""
    x = b.array(9, 8)
    i, j = b.array(dtype="i8"), b.array(dtype="i8")
    row, size = b.bound(i, "i", 8), b.bound(j, "j", 7)
    zero = ops.full(value=0, shape=(), dtype=I64)
    left = ops.reshape(ops.dynamic_slice(x, i, zero, sizes=(1, size), step=(1, 1)), shape=(size,))
    down = ops.reshape(ops.dynamic_slice(ops.exp(x), j, j, sizes=(9 - size, 1), step=(1, 1)), shape=(9 - size,))
    return ops.mul(left, 2.0), down, ops.iota(shape=(row,), axis=0, dtype=I64)


@case(*([x, start] for x in ONE for start in (0, 3, 11)))
def every_second(b: Sized) -> Any:
    return ops.neg(ops.dynamic_slice(b.array(20), b.array(dtype="i8"), sizes=(5,), step=(2,)))


@case(*([rng.normal(size=20), start, n, rng.normal(size=n)] for start, n in ((0, 0), (20, 0), (0, 20), (7, 5))))
def window_replaced(b: Sized) -> Any:
    x, start, n = b.array(20), b.array(dtype="i8"), b.size("n", 20)
    return ops.dynamic_update_slice(ops.exp(x), ops.neg(b.array(n)), start, step=(1,)), x


@case(*([rng.normal(size=(9, 8)), i] for i in (1, 4, 8)))
def row_from_the_row_above(b: Sized) -> Any:
    """`A[i] = A[i - 1] + 1`, in place."""
    x, i = b.array(9, 8), b.array(dtype="i8")
    b.bound(i, "i", 8, 1)
    above, zero = ops.sub(i, ops.full(value=1, shape=(), dtype=I64)), ops.full(value=0, shape=(), dtype=I64)
    row = ops.dynamic_slice(x, above, zero, sizes=(1, 8), step=(1, 1))
    return ops.dynamic_update_slice(x, ops.add(row, 1.0), i, zero, step=(1, 1))


@pytest.mark.parametrize("name", CASES)
def test_layers_agree(name: str) -> None:
    build, calls = CASES[name]
    check(graph_of(build), *calls)


def test_sizes_of_sizes_of_sizes() -> None:
    """Each window is as long as the one before allows: written out, the length of the last has more terms than any memory."""

    def program(x: Any) -> Any:
        for v in x:
            x[v % 33] -= x[v]
            x %= 7
            x = x[x != 3]
        for _ in range(2):
            for i in range(len(x) - 1, 0, -1):
                x = x[..., i : i + 2]
        return x

    x = np.random.default_rng(0).integers(-16, 17, 33)
    np.testing.assert_array_equal(jitml.jit(program)(x.copy()), program(x.copy()))
