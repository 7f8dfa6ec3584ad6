"""Layouts: are the places that they give those of NumPy's own views?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml.fusion.lower.gemm_operands import Axes
from jitml.fusion.lower.layouts import IndexArrays, Layout, ProductDigits, refined
from jitml.ir import ops
from jitml.ir.graph import GraphBuilder
from jitml.ir.interpret import interpret_outputs
from jitml.ir.op import recording
from jitml.ir.types import I64, Aval

I8 = np.dtype("i1")


def places(layout: Layout) -> np.ndarray[Any, Any]:
    """The integers of all indices."""
    extents, steps = zip(*layout.digits(range(len(layout.axes))), strict=True)
    grid = np.indices(extents).reshape(len(extents), -1)
    return (layout.offset + np.array(steps) @ grid).reshape(layout.shape)


def draw(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
    """A view of the kinds that products read through: of an array, and of a layout."""
    match rng.integers(5):
        case 0:
            perm = tuple(rng.permutation(len(shape)).tolist())
            return (lambda x: x.transpose(perm)), (lambda l: l.transposed(perm))
        case 1:
            size = int(np.prod(shape))
            factors = [n for n in range(2, size) if size % n == 0]
            n = int(rng.choice(factors)) if factors else 1
            return (lambda x: x.reshape(n, size // n)), (lambda l: l.reshaped((n, size // n)))
        case 2:
            start = [int(rng.integers(n)) for n in shape]
            step = [int(rng.integers(1, 3)) for _ in shape]
            cut = tuple(slice(a, None, s) for a, s in zip(start, step))
            ends = tuple(-(-(n - a) // s) for n, a, s in zip(shape, start, step))
            return (lambda x: x[cut]), (lambda l: l.sliced(start, step, ends))
        case 3:
            axes = (int(rng.integers(len(shape))),)
            return (lambda x: np.flip(x, axes)), (lambda l: l.flipped(axes))
    n = shape[0]
    windows = np.arange(max(1, n - 1))[:, None] + np.arange(min(n, 2))
    index = Layout.strided(windows.shape, (1, 1))
    return (lambda x: x[windows]), (lambda l: l.gathered([index], 0))


@pytest.mark.parametrize("seed", range(60))
def test_views_of_views_have_numpys_places(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (4, 6, 3)
    memory, layout = np.arange(72).reshape(shape), Layout.strided(shape, (18, 3, 1))
    for _ in range(5):
        of_array, of_layout = draw(memory.shape, rng)
        following = of_layout(layout)
        if following is None:
            break
        memory, layout = of_array(memory), following
        assert layout.shape == memory.shape
        np.testing.assert_array_equal(places(layout), memory)
        assert layout.bounds == (memory.min(), memory.max())


def test_index_arrays_are_linear_in_digits_or_unknown() -> None:
    b = GraphBuilder()
    given = b.add_input(Aval((6,), I64))
    with recording(b):
        i, j = (ops.iota(axis=a, shape=(6, 4), dtype=I64) for a in range(2))
        three = ops.full(value=3, shape=(6, 4), dtype=I64)
        known = [
            i + j,
            ops.sub(ops.mul(three, i), j),
            ops.reshape(ops.transpose(i + j, perm=(1, 0)), shape=(8, 3)),
            ops.broadcast(ops.reshape(i, shape=(24,)), axes=(1,), shape=(2, 24)),
            ops.convert(ops.slice(j, start=(0, 1), step=(1, 2), stop=(6, 4)), dtype=I8),
        ]
        unknown = [i * j, ops.floor_divide(i, three), ops.broadcast(given, axes=(0,), shape=(6, 4))]
    graph = b.build([*known, *unknown])
    arrays = IndexArrays(graph.producers())
    values = interpret_outputs(graph, [np.arange(6)])
    for v, value in zip(graph.outputs, values, strict=True):
        layout = arrays.layout(v)
        assert (layout is None) == (v in unknown)
        if layout is not None:
            np.testing.assert_array_equal(places(layout), value)


def test_integers_that_wrap_have_no_layout() -> None:
    b = GraphBuilder()
    with recording(b):
        i = ops.iota(axis=0, shape=(100,), dtype=I8)
        twice = i + i
    graph = b.build([i, twice])
    arrays = IndexArrays(graph.producers())
    assert arrays.layout(i) is not None and arrays.layout(twice) is None


def test_indices_from_the_end_or_outside_are_no_places() -> None:
    x = Layout.strided((4, 3), (3, 1))
    assert x.gathered([Layout.strided((2,), (3,))], 0) is not None
    assert x.gathered([Layout.strided((2,), (4,))], 0) is None
    assert x.gathered([Layout.strided((2,), (-1,), 0)], 0) is None


def test_what_factors_share_is_counted_in_the_same_digits() -> None:
    assert refined(((2, 9), (5, 1)), ((5, 1), (2, 7))) is None
    windows = Layout((((5, 8), (6, 1)), ((2, 8), (3, 1))))
    weights = Layout.strided((6, 7), (7, 1))
    found = ProductDigits.of(windows, weights, Axes((), (0,), (1,)), Axes((), (0,), (1,)))
    assert found is not None and not found.x.has_strides and not found.has_strides
    assert found.x.columns == ((2, 8), (3, 1)) and found.y.rows == ((2, 21), (3, 7))
