"""x[index] and x[index] = v: views, gathers, scatters and masks, and NumPy's exceptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from support.against_numpy import check, run_traced

X = np.arange(60.0).reshape(3, 4, 5)
ROWS = np.array([0, 2, -1])
COLUMNS = np.array([[1], [3]])

INDICES: list[Any] = [
    0, -1, (0, 1), (0, 1, 2), (0, ...), (0, 1, 2, ...), ..., (None, 0), (), slice(None, None, -1), slice(5, 0, -2),
    slice(-100, 100), slice(2, 1), (slice(None), slice(1, None, 2)), (..., None, 2), [0, 2], (slice(None), [0, 1]),
    ([0, 1], slice(None), [1, 2]), (slice(None), [0, 1], [1, 2]), (0, slice(None), [1, 2]), (slice(None), 0, [1, 2]),
    ([[0], [1]], [0, 1]), ([0, 1], None, [1, 0]), ([0, 1], ..., [1, 0]), (slice(None), [0, 1], ..., [1, 0]),
    (slice(0, 0), [0]), [], [True, False, True], (slice(None), [True, False, True, True]), ([0, 1], slice(1, 3), 2),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading(index: Any) -> None:
    check(lambda x: x[index], X)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_writing_a_number(index: Any, dtype: str) -> None:
    def write(x: Any) -> None:
        x[index] = 7

    check(write, X.astype(dtype))


@pytest.mark.parametrize("index", [0, (slice(None), 1), [0, 2], (slice(None), [0, 1]), slice(None, None, -2)], ids=str)
def test_writing_an_array_of_another_dtype(index: Any) -> None:
    def write(x: Any, v: Any) -> None:
        x[index] = v

    check(write, X.astype("i4"), X[index] * -1.5)


def test_traced_indices() -> None:
    check(lambda x, i: x[i], X, ROWS)
    check(lambda x, i, j: x[i, j], X, ROWS, COLUMNS)
    check(lambda x, i, j: x[i, :, j], X, ROWS, COLUMNS)
    check(lambda x, i: x[:, i], X, ROWS)
    check(lambda x, i: x[i], np.arange(4.0), np.array(1))
    check(lambda x, n: (x[n], x[:n], x[n:, 0]), X, 1)


def test_views_write_through() -> None:
    def write(x: Any) -> Any:
        x[:, 0][1] += 5
        x.T[0] *= 2
        x.reshape(-1)[3] = -1
        x[...] = x[::-1]
        x[0, 0, 0] = 2.7
        x[1, :, ::-1][2] = x[0, 0]
        return x[1]

    check(write, X)
    check(write, X.astype("i8"))
    check(write, X[:, :, ::-1])


def test_a_copy_is_not_a_view() -> None:
    def write(x: Any) -> Any:
        flat = x.T.reshape(-1)
        flat[0] = 100
        picked = x[[0, 1]]
        picked[...] = 0
        return flat, picked

    check(write, X)


def test_masks() -> None:
    def write(x: Any, mask: Any) -> None:
        x[mask] = 0

    check(write, X, X > 30)
    check(write, X, np.array([True, False, True]))
    check(write, X, X[:, :, 0] > 20)

    def write_rows(x: Any, mask: Any, row: Any) -> None:
        x[mask] = row

    check(write_rows, X, np.array([True, False, True]), X[1] * 2)
    check(write_rows, X, X[:, :, 0] > 20, np.arange(5.0))


def test_updates_by_masks() -> None:
    def update(x: Any) -> Any:
        x[x > 30] += 1
        x[x < 10] *= -0.5
        x[x[:, 0, 0] > 10] /= 3
        x[x[:, :, 0] > 10] -= np.arange(5.0)
        y = x.copy()
        y[y < 0] **= 2
        return y

    check(update, X)

    def integers(x: Any) -> None:
        x[x > 30] //= 2
        x[x == 3] *= 1.5

    with pytest.raises(TypeError):
        integers(X.astype("i8"))
    with pytest.raises(TypeError):
        run_traced(integers, X.astype("i8"))


def test_duplicate_places_keep_the_last() -> None:
    def write(x: Any, i: Any, v: Any) -> None:
        x[i] = v

    check(write, np.zeros(4), np.array([1, 1, 2]), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("index", [3, (0, 0, 0, 0), (0, 9), "a", 1.5, (..., ...), ([0, 1], [0, 1, 2]), [0.5]], ids=str)
def test_bad_indices_raise_what_numpy_raises(index: Any) -> None:
    with pytest.raises(IndexError) as expected:
        X[index]
    with pytest.raises(IndexError) as got:
        run_traced(lambda x: x[index], X)
    assert str(got.value).strip() == str(expected.value).strip()


def test_bad_values_raise_what_numpy_raises() -> None:
    def too_big(x: Any) -> None:
        x[0] = 300

    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for int8"):
        run_traced(too_big, np.zeros(3, "i1"))

    def too_long(x: Any) -> None:
        x[:2] = np.ones(3)

    with pytest.raises(ValueError, match="shape"):
        run_traced(too_long, np.zeros(3))


STORED: list[Any] = [
    lambda a, v: a.__setitem__(0, v), lambda a, v: a.__setitem__(slice(None), v), lambda a, v: a.__setitem__([0, 1], v),
    lambda a, v: a.__setitem__(a == 0, v), lambda a, v: np.put(a, 1, v), lambda a, v: np.putmask(a, a == 0, v),
    lambda a, v: a.fill(v), lambda a, v: np.full(2, v, a.dtype), lambda a, v: a.dtype.type(v), lambda a, v: np.array(v, a.dtype),
    lambda a, v: np.array([v, 1.0], a.dtype), lambda a, v: np.fill_diagonal(a.reshape(2, 2), v),
    lambda a, v: np.copyto(a, v, casting="unsafe"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint64"])
@pytest.mark.parametrize("number", range(len(STORED)))
@pytest.mark.filterwarnings("ignore")
def test_floats_of_python_that_become_integers_must_fit(number: int, dtype: str) -> None:
    def stored(x: Any) -> Any:
        a = np.zeros(4, dtype)
        return STORED[number](a, float(x[0])), a

    compiled = jitml.jit(stored)
    for x in ([2.7], [-0.5], [-1.0], [300.0]):
        assert _told(compiled, np.array(x)) == _told(stored, np.array(x))
    constant = jitml.jit(lambda: (a := np.zeros(4, dtype), STORED[number](a, -1.0)))
    assert _told(constant) == _told(lambda: (a := np.zeros(4, dtype), STORED[number](a, -1.0)))


def _told(function: Any, *args: Any) -> str:
    try:
        return repr(function(*args))
    except OverflowError:
        return "OverflowError"


def test_zero_dimensional() -> None:
    z = np.array(3.0)
    check(lambda x: (x[()], x[...], x[None]), z)
    check(lambda x: (x[0], x[0, ...], x[-1]), np.arange(4.0))


@pytest.mark.parametrize("place", [6, -1])
def test_a_place_outside_of_a_shape_is_an_error(place: int) -> None:
    with pytest.raises((IndexError, ValueError)):
        run_traced(lambda i: np.unravel_index(i, (2, 3)), np.array([0, place]))


def test_what_numpy_finds_at_run_time_is_found_at_run_time() -> None:
    with pytest.raises((IndexError, ValueError)):
        run_traced(lambda x: np.nanargmax(x, 1), np.array([[1.0, np.nan], [np.nan, np.nan]]))
    with pytest.raises((IndexError, ValueError)):
        run_traced(lambda i, x: np.choose(i, [x, x]), np.array([0, -1]), np.ones(2))
    with pytest.raises(IndexError):
        run_traced(lambda x, i: x[i], X, np.array([0, 3]))


def _number(x: Any) -> Any:
    out = np.zeros(())
    out[...] = x[x > 0]
    return out


def _element(x: Any) -> Any:
    out = np.zeros(3)
    out[0] = x[x > 0]
    return out


def _row(x: Any) -> Any:
    out = np.zeros((2, 3))
    out[1] = np.ones((len(x[x > 0]), 1, 3))
    return out


def _beginning(x: Any) -> Any:
    np.copyto(x[:1], x[x > 0])
    return x


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("f", [_number, _element, _row, _beginning])
def test_a_length_that_must_turn_out_to_be_one(f: Any) -> None:
    jitted = jitml.jit(f)
    for row in ([-1.0, 1.0], [1.0, 2.0], [-1.0, -2.0], [5.0, -1.0, -1.0]):
        x = np.array(row)
        try:
            expected = f(x.copy())
        except ValueError:
            with pytest.raises(ValueError):
                jitted(x.copy())
            continue
        np.testing.assert_array_equal(jitted(x.copy()), expected)


@pytest.mark.parametrize(
    "index", [lambda x: x > 0, lambda x: (x > 0,), lambda x: [True, False], lambda x: np.array([True, False])]
)
def test_a_mask_of_everything_takes_no_table(index: Any) -> None:
    def f(x: Any) -> Any:
        x[index(x)] = np.ones((1, 1))
        return x

    for g in (f, jitml.jit(f)):
        with pytest.raises(TypeError, match="0 or 1-dimensional input"):
            g(np.array([1.0, -1.0]))


def less_mean(v: Any) -> Any:
    return v - v.mean()


@pytest.mark.loose
@pytest.mark.parametrize("piece", [less_mean, lambda v: v - v.mean()])
def test_functions_of_pieces_that_mix_elements(piece: Any) -> None:
    def f(x: Any) -> Any:
        return np.piecewise(x, [x > 0], [piece, 0])

    np.testing.assert_allclose(jitml.jit(f)(X), f(X))


@pytest.mark.loose
def test_a_function_that_handles_an_index_of_a_wrong_kind_reads_numpys_message() -> None:
    def f(x: Any, i: Any) -> Any:
        try:
            return x[i]
        except IndexError as error:
            return str(error)

    for i in (np.float64(1.0), 1.0, np.array([1.0]), [1.0]):
        assert jitml.jit(f)(X, i) == f(X, i)
