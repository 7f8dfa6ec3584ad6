"""What do matrix products read, and where do they write?  No operand is copied that BLAS can read where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir.passes import run_passes
from jitml.kernels.ir import Const, Kernel, Loop, walk
from jitml.kernels.metrics import bytes_moved
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.trace.trace import trace
from support.fused import fuse

Array = np.ndarray[Any, Any]


def steps_of(program: KernelProgram) -> Iterator[Step]:
    for step in program.steps:
        if isinstance(step, Region):
            for body in step.bodies:
                yield from steps_of(body)
        else:
            yield step


def moves(f: Callable[..., Any], *args: Any) -> tuple[int, int]:
    """Kernels and copies that touch arrays, and bytes moved; after a comparison with NumPy."""
    given, ours = ([x.copy(order="K") if isinstance(x, np.ndarray) else x for x in args] for _ in range(2))
    expected, got = f(*given), jitml.jit(f)(*ours)
    for one, other in zip((expected, *given), (got, *ours)):
        if one is not None:
            np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)
    program = jitml.jit(f).lower(*args).program.kernels
    kernels = [s for s in steps_of(program) if isinstance(s, Kernel) and any(b.size > 3 for b in s.params)]
    copies = [s for s in steps_of(program) if isinstance(s, Call) and s.name == "copy"]
    return len(kernels) + len(copies), bytes_moved(program)


def element_of_stack(x: Array, w: Array) -> Array:
    return x @ w[2]


def element_on_the_left(x: Array, w: Array) -> Array:
    return w[1] @ x.T


def rows(x: Array, w: Array) -> Array:
    return x[3:19] @ w[0]


def columns(x: Array, w: Array) -> Array:
    return x[:, 8:24] @ w[0][8:24]


def transposed_window(x: Array, w: Array) -> Array:
    return x @ w[1:3].transpose(0, 2, 1)[1]


def same_for_all(x: Array, w: Array) -> Array:
    return np.broadcast_to(x, (4, *x.shape)) @ w


def element_at_run_time(x: Array, w: Array) -> Array:
    total = np.zeros((x.shape[0], w.shape[2]))
    for n in range(w.shape[0]):
        total = x @ w[n]
    return total


def only_the_transpose(x: Array, w: Array) -> Array:
    return (x @ w[0]).T


N = 32
X, W = np.random.default_rng(0).standard_normal((48, N)), np.random.default_rng(1).standard_normal((4, N, N))


@pytest.mark.parametrize(
    ("f", "elements"),
    [
        (element_of_stack, 48 * N + N * N + 48 * N),
        (element_on_the_left, N * N + 48 * N + 48 * N),
        (rows, 16 * N + N * N + 16 * N),
        (columns, 48 * 16 + 16 * N + 48 * N),
        (transposed_window, 48 * N + N * N + 48 * N),
        (same_for_all, 48 * N + 4 * N * N + 4 * 48 * N),
        (only_the_transpose, 48 * N + N * N + 48 * N),
    ],
)
def test_nothing_is_copied_for_a_product(f: Callable[..., Any], elements: int) -> None:
    assert moves(f, X, W) == (0, 8 * elements)


def windows(x: Array, w: Array) -> Array:
    out = np.zeros(x.shape)
    for n in range(0, x.shape[0], 16):
        out[n : n + 16] = x[n : n + 16, :] @ w[n // 16]
    return out


def test_windows_in_loops_are_read_where_they_lie() -> None:
    zeros_and_update = 2
    assert moves(windows, X, W)[0] == zeros_and_update
    assert moves(element_at_run_time, X, W)[0] <= zeros_and_update


def heads(x: Array, packed: Array, out: Array) -> Array:
    qkv = (x @ packed).reshape(3, 16, 3, 4, 8)
    q, k, v = (qkv[:, :, n].transpose(0, 2, 1, 3) for n in range(3))
    return ((q @ k.transpose(0, 1, 3, 2)) @ v).transpose(0, 2, 1, 3).reshape(48, N) @ out


def test_packed_heads_are_read_and_written_by_two_strides() -> None:
    packed, out = np.random.default_rng(2).standard_normal((N, 3 * N)), np.random.default_rng(3).standard_normal((N, N))
    assert moves(heads, X, packed, out)[0] == 0


def overwritten(x: Array, w: Array) -> Array:
    old = w[2]
    y = x @ old
    w[2] = 0
    return y


def lost(x: Array, w: Array) -> Array:
    old = w[2].copy()
    w[2] = x[:N]
    return (w @ x.T)[:, :, :N].sum(axis=0) @ old


def shifted(x: Array, w: Array) -> Array:
    for n in range(1, 3):
        old = x[16 * n - 16 : 16 * n].copy()
        x[16 * n - 16 : 16 * n] = x[16 * n : 16 * n + 16]
        x[16 * n : 16 * n + 16] = old @ w[n]
    return x


def written_out(x: Array, w: Array) -> None:
    x[:] = x @ w[1]


def gaps(x: Array, w: Array) -> tuple[Array, Array]:
    return (x[::2, ::2] @ w[0, ::2]), x[::-1] @ w[0][:, ::2]


def of_itself(x: Array, w: Array) -> tuple[Array, Array]:
    return w[0] @ w[0].T, w[:, 3:20].transpose(0, 2, 1) @ w[:, 3:20]


@pytest.mark.parametrize("f", [overwritten, lost, shifted, written_out, gaps, of_itself])
@pytest.mark.parametrize("order", "CF")
def test_parts_that_are_overwritten_or_have_no_stride(f: Callable[..., Any], order: str) -> None:
    def both(x: Array, w: Array) -> Any:
        result = f(x, w)
        return sum(map(np.sum, result)) if isinstance(result, tuple) else result

    moves(both, np.asarray(X, order=order), np.asarray(W, order=order))
    moves(both, np.repeat(X, 2, 1)[:, ::2], W)


def test_a_part_that_is_lost_is_copied_rather_than_the_whole() -> None:
    program = jitml.jit(lost).lower(X, W).program.kernels
    assert not any(isinstance(step, Call) and step.name == "copy" for step in steps_of(program))


def _in_turn(p: Array, x: Array) -> Any:
    return p @ x, np.exp(p)


def _needed_by_the_loops(p: Array, x: Array) -> Any:
    y = p @ x
    return y, p * y.sum()


def _just_made(p: Array, x: Array) -> Any:
    q = np.exp(p)
    return q @ x, np.sin(p), q + np.sin(x).sum()


def _overwritten(p: Array, x: Array) -> Any:
    y = p @ x
    p *= 2
    return y


@pytest.mark.parametrize(
    "f, waits", [(_in_turn, True), (_needed_by_the_loops, False), (_just_made, False), (_overwritten, False)]
)
def test_a_product_waits_for_loops_that_stream_an_operand_from_memory(f: Callable[..., Any], waits: bool) -> None:
    rng = np.random.default_rng(0)
    p, x = rng.standard_normal((600, 600)), rng.standard_normal((600, 8))
    for ours, theirs in zip(jitml.jit(f)(p.copy(), x), f(p.copy(), x)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    traced = trace(f, (p, x), {})
    decisions = fuse(run_passes(traced.graph), aliases=traced.aliases).decisions
    assert waits == any("waits for loops" in d.why for d in decisions)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("m", "k", "n"), [(3, 3, 3), (2, 2, 2), (4, 4, 4), (3, 2, 5)])
def test_rows_of_small_products_are_vectors(m: int, k: int, n: int, dtype: str) -> None:
    """They were written out number by number."""
    rng = np.random.default_rng(m)
    a, b = rng.integers(-4, 5, (33, m, k)).astype(dtype), rng.integers(-4, 5, (33, k, n)).astype(dtype)
    product = jitml.jit(lambda a, b: a @ b)
    np.testing.assert_array_equal(product(a, b), a @ b)
    (kernel,) = (s for s in steps_of(product.lower(a, b).program.kernels) if isinstance(s, Kernel))
    assert [loop.stop for loop in walk(kernel.body) if isinstance(loop, Loop) and loop.kind == "vector"] == [Const(n)]


@pytest.mark.parametrize("f", [lambda a, b: a @ b.swapaxes(1, 2), lambda a, b: (a * b).sum(axis=1), lambda a, b: a @ b[0]])
def test_small_products_and_sums_of_other_layouts(f: Callable[..., Any]) -> None:
    a, b = np.random.default_rng(1).integers(-4, 5, (2, 50, 3, 3)).astype(float)
    np.testing.assert_array_equal(jitml.jit(f)(a, b), f(a, b))
