"""Small matrices are factorized in loops: as accurate as LAPACK, and what only NumPy can answer is left to it."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]
Answer = tuple[Any, list[str]]


def inv(a: Array) -> Any:
    return np.linalg.inv(a)


def solve(a: Array) -> Any:
    return np.linalg.solve(a, np.arange(1.0, a.shape[-1] + 1).astype(a.dtype))


def solve_columns(a: Array) -> Any:
    return np.linalg.solve(a, np.ones((a.shape[-1], 3), a.dtype))


def det(a: Array) -> Any:
    return np.linalg.det(a)


def slogdet(a: Array) -> Any:
    return tuple(np.linalg.slogdet(a))


def cholesky(a: Array) -> Any:
    return np.linalg.cholesky(a)


FUNCTIONS = {f.__name__: f for f in (inv, solve, solve_columns, det, slogdet, cholesky)}
by_name = pytest.mark.parametrize("name", FUNCTIONS)
JITTED: dict[str, Any] = {name: jitml.jit(f, dynamic=False) for name, f in FUNCTIONS.items()}


def matrices(name: str, n: int, stack: tuple[int, ...] = (), seed: int = 0) -> Array:
    a = np.random.default_rng(seed).normal(size=(*stack, n, n))
    return a @ np.swapaxes(a, -1, -2) + np.eye(n) if name == "cholesky" else a


def answer(f: Callable[[Array], Any], a: Array) -> Answer:
    """The result, or what is raised, and NumPy's warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = f(a)
        except np.linalg.LinAlgError as error:
            result = str(error)
    return result, [str(w.message) for w in caught if w.category is RuntimeWarning]


def require_same(name: str, a: Array, closeness: float) -> None:
    """Args:
    closeness: of results, as a share of the largest number.
    """
    (expected, expected_warnings), (got, got_warnings) = answer(FUNCTIONS[name], a), answer(JITTED[name], a)
    assert got_warnings == expected_warnings
    assert isinstance(got, str) == isinstance(expected, str), f"{got!r}, NumPy gives {expected!r}"
    if isinstance(expected, str):
        assert got == expected
        return
    parts = zip(*((x,) if not isinstance(x, tuple) else x for x in (got, expected)), strict=True)
    for x, y in parts:
        assert x.dtype == y.dtype
        scale = max(1.0, float(np.abs(y[np.isfinite(y)]).max(initial=0.0)))
        np.testing.assert_allclose(x, y, rtol=0, atol=closeness * scale)


@by_name
@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("stack", [(), (3,), (2, 2), (0,)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_as_accurate_as_lapack(name: str, n: int, stack: tuple[int, ...], dtype: type[Any]) -> None:
    a = matrices(name, n, stack, seed=n).astype(dtype)
    condition = float(np.linalg.cond(a.astype(float)).max(initial=1.0))
    require_same(name, a, 8 * n * condition * float(np.finfo(dtype).eps))


@by_name
@pytest.mark.parametrize(("n", "is_called"), [(8, False), (9, True)])
def test_small_matrices_are_not_a_call(name: str, n: int, is_called: bool) -> None:
    assert ("host call" in str(jitml.explain(FUNCTIONS[name], matrices(name, n)))) is is_called


def test_many_columns_are_a_call() -> None:
    def f(a: Array, b: Array) -> Any:
        return np.linalg.solve(a, b)

    assert "host call" in str(jitml.explain(f, np.eye(3), np.ones((3, 100))))
    assert "host call" not in str(jitml.explain(f, np.eye(3), np.ones((3, 10))))


@by_name
@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("dtype", ["i8", "i1", "u2", "?", ">f8"])
def test_other_dtypes(name: str, n: int, dtype: str) -> None:
    require_same(name, (matrices(name, n, (2,), seed=n) * 4).astype(dtype), 1e-9)


PLACES = {"first": (0, 0), "last": (-1, -1), "above": (0, -1), "below": (-1, 0)}


@by_name
@pytest.mark.parametrize("n", [2, 6])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-310, 0.0, -0.0])
def test_single_numbers(name: str, n: int, number: float) -> None:
    for place in PLACES.values():
        a = matrices(name, n, seed=3)
        a[place] = number
        require_same(name, a, 1e-9)


WHOLE: dict[str, Callable[[Array], Array]] = {
    "infinite": lambda a: np.full_like(a, np.inf),
    "zero": np.zeros_like,
    "one": np.ones_like,
    "large": lambda a: a * 1e200,
    "overflowing": lambda a: a * 1e307,
    "small": lambda a: a * 1e-200,
    "subnormal": lambda a: a * 1e-309,
    "transposed": lambda a: a.T,
    "turned": lambda a: a[::-1, ::-1],
    "strided": lambda a: np.kron(a, np.ones((2, 3)))[::2, ::3],
    "counted": lambda a: np.arange(a.size, dtype=float).reshape(a.shape),
    "rows of one direction": lambda a: np.outer(a[0], a[:, 0]),
    "of other sizes": lambda a: np.diag(10.0 ** np.arange(0, -300, -300 // len(a))),
    "negative": lambda a: -a,
}


@by_name
@pytest.mark.parametrize("n", [3, 7])
@pytest.mark.parametrize("kind", WHOLE)
def test_whole_matrices(name: str, n: int, kind: str) -> None:
    require_same(name, WHOLE[kind](matrices(name, n, seed=5)), 1e-9)


@pytest.mark.parametrize("name", ["inv", "solve", "solve_columns"])
@pytest.mark.parametrize("n", range(2, 9))
def test_no_answer_where_numpy_has_none(name: str, n: int) -> None:
    """Of dependent rows, whether a pivot is 0 is a matter of rounding."""
    rng = np.random.default_rng(n)
    raised = 0
    for rank in np.repeat(np.arange(1, n), 24 // n + 1):
        a = (rng.integers(-4, 5, (n, rank)) @ rng.integers(-4, 5, (rank, n))).astype(float)
        (expected, _), (got, _) = answer(FUNCTIONS[name], a), answer(JITTED[name], a)
        assert isinstance(got, str) == isinstance(expected, str), a
        raised += isinstance(expected, str)
        if not isinstance(expected, str):
            np.testing.assert_array_equal(got, expected)  # NumPy's own, since only roundings decide
    assert raised


def test_pivots_are_exchanged() -> None:
    a = np.array([[1e-20, 1.0], [1.0, 1.0]])  # without, the first unknown is lost
    np.testing.assert_allclose(JITTED["solve"](a), [1.0, 1.0], rtol=1e-15)


# ---------------------------------------------------------------------------------------------------------- in loops


def track(zs: Array, f: Array, h: Array, q: Array, r: Array) -> Any:
    x, p = np.zeros(4), np.eye(4)
    found = np.zeros((len(zs), 4))
    score = 0.0
    for k in range(len(zs)):
        x, p = f @ x, f @ p @ f.T + q
        s = h @ p @ h.T + r
        gain = p @ h.T @ np.linalg.inv(s)
        error = zs[k] - h @ x
        score += error @ np.linalg.solve(s, error) + np.log(np.linalg.det(s)) + np.linalg.cholesky(s)[1, 0]
        x, p = x + gain @ error, (np.eye(4) - gain @ h) @ p
        found[k] = x
    return found, p, score


def _system() -> tuple[Array, ...]:
    step = np.eye(4)
    step[0, 2] = step[1, 3] = 0.1
    seen = np.zeros((2, 4))
    seen[0, 0] = seen[1, 1] = 1
    return np.random.default_rng(0).normal(size=(30, 2)), step, seen, np.eye(4) * 0.01, np.eye(2)


def test_a_filter_is_one_kernel() -> None:
    args = _system()
    report = str(jitml.explain(track, *args))
    assert "one kernel of plain loops" in report
    assert "host call" not in report
    for got, expected in zip(jitml.jit(track)(*args), track(*args)):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def accumulate(x: Array, matrices: Array) -> Any:
    total = 0.0
    for k in range(len(matrices)):
        x += 1
        total += np.linalg.inv(matrices[k])[0, 0]
        x[k] = total
    return total


@pytest.mark.parametrize("bad", [np.ones((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), np.inf), np.diag([1.0, 1e-310])])
def test_one_bad_matrix_in_a_loop(bad: Array) -> None:
    stack = np.array([np.eye(2) * 2, np.eye(2) * 4, bad, np.eye(2)])
    eager, mine = np.zeros(4), np.zeros(4)
    expected, expected_warnings = answer(lambda matrices: accumulate(eager, matrices), stack)
    got, got_warnings = answer(lambda matrices: jitml.jit(accumulate)(mine, matrices), stack)
    assert type(got) is type(expected) and (got == expected or np.isnan([got, expected]).all())
    assert got_warnings == expected_warnings
    np.testing.assert_array_equal(mine, eager)


def test_an_error_is_raised_at_the_users_line() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix") as caught:
        jitml.jit(accumulate)(np.zeros(2), np.ones((2, 3, 3)))
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "total += np.linalg.inv(matrices[k])[0, 0]" in lines


def test_derivatives_are_those_of_the_library() -> None:
    def f(a: Array) -> Any:
        return np.linalg.inv(a)[0, 1] + np.linalg.det(a) + np.linalg.slogdet(a)[1] + np.linalg.cholesky(a @ a.T)[2, 1]

    a = matrices("inv", 3, seed=2)
    expected = np.zeros((3, 3))
    for k in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[k] = 1e-6
        expected[k] = (f(a + step) - f(a - step)) / 2e-6
    np.testing.assert_allclose(jitml.jit(jitml.grad(f))(a), expected, rtol=1e-6, atol=1e-6)
