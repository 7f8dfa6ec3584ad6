"""Storages and views: chains of basic views, written and read, are what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import jitml
from jitml.trace.storage.strides import kept_strides, reshape_strides
from support.against_numpy import run_traced

Array = np.ndarray[Any, Any]


def assert_same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@st.composite
def view_steps(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """A program on a list of views that begins with one 3-d array: take a view, write into one, or add to one."""
    program: list[tuple[str, Any]] = []
    for _ in range(draw(st.integers(1, 8))):
        which = draw(st.integers(0, 20))
        kind = draw(st.sampled_from(["slice", "transpose", "flip", "reshape", "ravel", "write", "add", "copy_from"]))
        if kind == "slice":
            bounds = st.integers(-4, 4) | st.none()
            step = draw(st.sampled_from([None, 1, 2, -1, -2]))
            program.append((kind, (which, slice(draw(bounds), draw(bounds), step), draw(st.integers(0, 2)))))
        else:
            program.append((kind, (which, draw(st.integers(0, 20)))))
    return program


def run(x: Array, program: list[tuple[str, Any]]) -> list[Array]:
    views = [x]
    for kind, (which, *detail) in program:
        v = views[which % len(views)]
        if kind == "slice":
            index = [slice(None)] * v.ndim
            if v.ndim:
                index[detail[1] % v.ndim] = detail[0]
            views.append(v[tuple(index)])
        elif kind == "transpose":
            views.append(v.T)
        elif kind == "flip":
            views.append(np.flip(v, detail[0] % v.ndim) if v.ndim else v)
        elif kind == "reshape":
            views.append(v.reshape(v.shape[0], -1) if v.size else v)
        elif kind == "ravel":
            views.append(v.reshape(-1))
        elif kind == "write":
            v[...] = detail[0]
        elif kind == "add":
            v += detail[0] + 0.5
        else:
            source = views[detail[0] % len(views)]
            if source.shape == v.shape:
                v[...] = source * 2
    return views


LAYOUTS = {
    "C": lambda x: x,
    "F": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
}


def check_against_numpy(call: Any, program: list[tuple[str, Any]], layout: str) -> None:
    x, y = (LAYOUTS[layout](np.arange(2.0 * 3 * 4).reshape(2, 3, 4)) for _ in range(2))
    want = run(x, program)
    got = call(lambda a: run(a, program), y)
    np.testing.assert_array_equal(y, x)
    for g, w in zip(got, want, strict=True):
        assert_same(g, w)
        assert np.shares_memory(g, y) == np.shares_memory(w, x)


@settings(max_examples=150, deadline=None)
@given(view_steps(), st.sampled_from(sorted(LAYOUTS)))
def test_random_views_and_writes(program: list[tuple[str, Any]], layout: str) -> None:
    check_against_numpy(run_traced, program, layout)


@settings(max_examples=15, deadline=None)
@given(view_steps(), st.sampled_from(sorted(LAYOUTS)))
def test_random_views_and_writes_compiled(program: list[tuple[str, Any]], layout: str) -> None:
    check_against_numpy(lambda f, x: jitml.jit(f)(x), program, layout)


def test_views_of_a_fresh_array_share_it() -> None:
    def f(n: Array) -> tuple[Array, Array]:
        x = n * 2
        y = x[1:]
        y += 1
        return x, y

    x, y = jitml.jit(f)(np.arange(3.0))
    assert_same(x, np.array([0.0, 3.0, 5.0]))
    y[0] = 7
    assert x[1] == 7


def test_the_argument_itself_is_returned() -> None:
    x = np.arange(3.0)
    same, view = jitml.jit(lambda a: (a, a[::-1]))(x)
    assert same is x
    assert np.shares_memory(view, x) and view[0] == 2


def test_a_broadcast_view_is_read_only() -> None:
    got = jitml.jit(lambda x: np.broadcast_to(x, (2, 3)))(np.arange(3.0))
    assert not got.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        jitml.jit(lambda x: np.broadcast_to(x, (2, 3)).__iadd__(1))(np.arange(3.0))


@pytest.mark.parametrize("shape", [(4, 6), (2, 1, 12), (1,), (), (0, 3), (3, 4, 2)])
def test_reshape_strides_agree_with_numpy(shape: tuple[int, ...]) -> None:
    base = np.zeros(shape)
    for x in (base, base.T, base[..., ::2] if base.ndim else base, np.flip(base) if base.ndim else base):
        for new in ((x.size,), (-1, 2), (2, -1), (1, x.size, 1), x.shape, (*x.shape, 1)):
            if (x.size % 2 and -1 in new) or (not x.size and -1 in new):
                continue
            y = x.reshape(new)
            got = reshape_strides(x.shape, tuple(s // 8 for s in x.strides), y.shape)
            if not x.size:
                continue
            assert (got is not None) == np.shares_memory(x, y)
            if got is not None:
                assert all(n == 1 or s * 8 == t for n, s, t in zip(y.shape, got, y.strides))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_new_arrays_lie_in_memory_as_in_numpy(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))

    def operand() -> Array:
        perm = data.draw(st.permutations(range(len(shape))))
        steps = [data.draw(st.sampled_from([1, 2, -1])) for _ in shape]
        x = np.ones([shape[p] * abs(steps[p]) for p in perm])[tuple(slice(None, None, steps[p]) for p in perm)]
        x = x.transpose(np.argsort(perm))
        narrow = data.draw(st.sampled_from([None, *range(len(shape))]))
        return x if narrow is None else x.take([0], axis=narrow) if data.draw(st.booleans()) else x

    operands = [operand() for _ in range(data.draw(st.integers(1, 2)))]
    want = operands[0] + 1 if len(operands) == 1 else np.add(*operands)
    got = kept_strides([(x.shape, tuple(s // 8 for s in x.strides)) for x in operands], want.shape)
    assert all(n == 1 or 8 * s == t for n, s, t in zip(want.shape, got, want.strides))


@pytest.mark.parametrize(
    "make", [lambda x: x.T + 1, lambda x: np.zeros_like(x.T), lambda x: x.T.astype("f4"), lambda x: x.T.copy()]
)
def test_a_reshape_is_a_view_exactly_where_it_is_in_numpy(make: Any) -> None:
    def f(x: Array) -> tuple[Array, Array]:
        y = make(x)
        z = y.reshape(-1)
        z[0] = 9
        return y, z

    x = np.arange(6.0).reshape(2, 3)
    for g, w in zip(jitml.jit(f)(x), f(x)):
        assert_same(g, w)


def test_in_place_operators_keep_the_dtype() -> None:
    def f(x: Array) -> Array:
        x += 1.9
        return x

    x = np.zeros(3, np.float32)
    assert_same(jitml.jit(f)(x), np.full(3, 1.9, np.float32))
    with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output from dtype\\('float64'\\) to dtype\\('int64'\\)"):
        jitml.jit(f)(np.zeros(3, int))


def test_a_scalar_is_rebound_not_written() -> None:
    def f(x: Array) -> tuple[Any, Any]:
        s = x.sum()
        t = s
        s += 1
        return s, t

    s, t = jitml.jit(f)(np.ones(3))
    assert (s, t) == (4.0, 3.0)


def test_empty_arrays_lie_in_any_order_where_sizes_are_open() -> None:
    def function(x: Array) -> tuple[bool, bool, Array]:
        return x.flags["F_CONTIGUOUS"], x.flags.c_contiguous, np.asfortranarray(x)

    jitted = jitml.jit(function, strict=True)
    rows = np.arange(12.0).reshape(3, 4)
    for x in (rows, rows[1:], rows[1:1], rows[1:2], rows[:, ::2], rows[1:1, ::2], rows):
        *flags, array = jitted(x)
        *expected, plain = function(x)
        assert flags == expected, x.shape
        assert (array is x) == (plain is x), x.shape
