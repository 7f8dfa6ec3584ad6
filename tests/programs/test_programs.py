"""Small whole programs, compiled and eager, agree: results, and arguments afterwards. Each was once answered wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.against_numpy import compare

Array = np.ndarray[Any, Any]


def square() -> Array:
    return np.random.default_rng(0).normal(size=(4, 4))


def writes_through_ravel(x: Array) -> None:
    x.ravel()[:2] = 9  # a copy unless x is contiguous
    x.reshape(-1)[-1:] = 4
    x.T.ravel()[:1] = 11


def reads_a_diagonal_later(x: Array) -> Any:
    above, below = np.diag(x, 1), x.T.diagonal(2)
    x[0] = 7
    return above * 1, below * 1, np.diag(x, 9) * 1


def writes_a_diagonal(x: Array) -> None:
    np.diag(x)[0] = 1


def reduces_a_number(x: Array) -> Any:
    s = x[0, 0]
    return s.sum(axis=0), np.max(s, axis=-1), np.argmax(s, axis=0), np.argsort(s), np.count_nonzero(s, axis=0), s.any(axis=0)


def tiles(x: Array) -> Any:
    return np.tile(x, 2), x.cumsum()


def counts_bits(x: Array) -> Any:
    return tuple(np.bitwise_count((x * 0).astype(kind) + np.iinfo(kind).min) for kind in (np.int8, np.int32, np.int64))


def flags_apart() -> Array:
    return (np.random.default_rng(0).random(999 * 2) > 0.5)[::2]


def one_number_seen_often() -> Array:
    return np.broadcast_to(np.array([1.5]), (4,))


@pytest.mark.parametrize(
    ("program", "make"),
    [
        pytest.param(writes_through_ravel, square, id="ravel of contiguous memory"),
        pytest.param(writes_through_ravel, lambda: square()[::2, ::-1], id="ravel of strided memory"),
        pytest.param(writes_through_ravel, lambda: np.asfortranarray(square()), id="ravel of columns"),
        pytest.param(writes_through_ravel, lambda: square()[:, :1], id="ravel of one column"),
        pytest.param(reads_a_diagonal_later, square, id="a diagonal is a view"),
        pytest.param(reads_a_diagonal_later, lambda: square()[:, ::-2], id="a diagonal of strided memory"),
        pytest.param(reduces_a_number, square, id="axes of a number"),
        pytest.param(tiles, one_number_seen_often, id="strides of zero"),
        pytest.param(lambda x: (~x, x == 0), flags_apart, id="every second bool"),
        pytest.param(lambda x: (x[::2] * 1, x[::3] | x[::-3]), flags_apart, id="every fourth and sixth bool"),
        pytest.param(counts_bits, square, id="bits of the least integers"),
    ],
)
def test_a_compiled_program_agrees_with_numpy(program: Callable[[Array], Any], make: Callable[[], Array]) -> None:
    eager, mine = make(), make()
    compare(jitml.jit(program)(mine), program(eager))
    compare(mine, eager)


def test_a_diagonal_cannot_be_written() -> None:
    x = square()
    with pytest.raises(ValueError, match="read-only"):
        jitml.jit(writes_a_diagonal)(x)
    np.testing.assert_array_equal(x, square())


def test_floats_are_not_cut_off_before_they_are_added_to_integers() -> None:
    def program(counts: Array, weight: float) -> None:
        np.add.at(counts, [0, 0], weight)

    mine, theirs = np.array([-3, 1]), np.array([-3, 1])
    jitml.jit(program)(mine, 0.7)
    program(theirs, 0.7)
    np.testing.assert_array_equal(mine, theirs)


def test_asking_a_differentiated_number_for_its_shape() -> None:
    def f(y):
        return y**2 if np.ndim(y) == 0 else y.sum()

    assert jitml.grad(f)(0.7) == pytest.approx(1.4)
    assert jitml.jit(lambda n, x: x * n if np.ndim(n) == 0 else x)(2, np.ones(2)).tolist() == [2.0, 2.0]
