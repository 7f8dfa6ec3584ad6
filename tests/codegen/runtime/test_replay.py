"""A call that compiled code cannot answer is answered by the function itself: NumPy's exception, result and changes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import JitmlError, UncompiledWarning
from programs.corpus import load

Array = np.ndarray[Any, Any]


def picks(x: Array, i: Array) -> Array:
    return x[i] * 2


def writes_before_it_picks(x: Array, i: Array) -> Any:
    x += 1
    x[:2] = 7
    return x[i]


def writes_before_it_fails(x: Array, i: Array) -> Any:
    x *= 2
    return x + np.zeros(len(i))


@pytest.mark.parametrize("f", [picks, writes_before_it_picks, writes_before_it_fails])
def test_numpys_exception_and_numpys_changes(f: Callable[..., Any]) -> None:
    jitted = jitml.jit(f)
    for i in ([0, 1], [2, 0], [1, 5], [0, 2]):
        mine, theirs = np.arange(3.0), np.arange(3.0)
        try:
            want = f(theirs, np.array(i))
        except Exception as error:
            with pytest.raises(type(error)) as caught:
                jitted(mine, np.array(i))
            assert type(caught.value) is type(error) and str(caught.value) == str(error)
        else:
            np.testing.assert_array_equal(jitted(mine, np.array(i)), want)
        np.testing.assert_array_equal(mine, theirs)


def test_replays_are_counted_and_explained() -> None:
    f = jitml.jit(picks)
    x = np.arange(3.0)
    f(x, np.array([0]))
    for i in (3, 4, 4):
        with pytest.raises(IndexError):
            f(x, np.array([i]))
    (variant,) = f.variants
    assert variant.replays == {
        "index 3 is out of bounds for axis 0 with size 3": 1,
        "index 4 is out of bounds for axis 0 with size 3": 2,
    }
    assert "2 of its calls ran as plain Python: index 4 is out of bounds" in f.explain(x, np.array([0]))


def test_the_exception_looks_as_if_numpy_had_been_called() -> None:
    f = jitml.jit(picks)
    for _ in range(2):  # compiling, and compiled
        with pytest.raises(IndexError) as caught:
            f(np.arange(3.0), np.array([9]))
        assert not isinstance(caught.value, JitmlError)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        assert [entry.name for entry in caught.traceback][1:] == ["__call__", "picks"]


def test_methods_keywords_and_static_arguments() -> None:
    class Table:
        def __init__(self) -> None:
            self.values = np.arange(4.0)

        @jitml.jit
        def look(self, i: Array, *, scale: float = 1.0) -> Any:
            return self.values[i] * scale

    assert Table().look(np.array(3), scale=2.0) == 6
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        Table().look(np.array([4]), scale=2.0)
    chosen = jitml.jit(lambda x, i, axis: np.take(x, i, axis=axis), static_argnums=2)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1 with size 3"):
        chosen(np.zeros((2, 3)), np.array([9]), 1)


def test_the_users_own_exception_comes_with_the_users_changes() -> None:
    def f(x: Array, n: int) -> Array:
        x += 1
        if n < 0:
            raise LookupError(f"no {n}")
        return x

    x = np.zeros(2)
    with pytest.raises(LookupError, match="no -1"):
        jitml.jit(f)(x, -1)
    np.testing.assert_array_equal(x, 1)


def test_what_only_tracing_raises_is_told() -> None:
    def odd(x: Array) -> Any:
        if hasattr(x, "aval"):
            raise ValueError("seen")
        return x * 2

    with pytest.warns(
        UncompiledWarning, match=r"odd was not compiled: tracing it raised ValueError\('seen'\); each call tries again"
    ):
        np.testing.assert_array_equal(jitml.jit(odd)(np.ones(2)), 2)


def seen(x: Array) -> Array:
    if hasattr(x, "aval"):
        raise ValueError("seen")
    return x


def in_a_branch(x: Array) -> Any:
    if x[0] > 0:
        return x * 2
    if hasattr(x, "aval"):
        raise ValueError("seen")
    return x * 3


def in_a_helper(x: Array) -> Any:
    return x * 2 if x[0] > 0 else seen(x) * 3


def in_a_test(x: Array) -> Any:
    while x[0] <= 0 and (not hasattr(x, "aval") or 1 // 0):
        x = x + 1
    return x * 2


def in_a_while(x: Array) -> Any:
    while x[0] <= 0:
        x = seen(x) + 1
    return x * 2


@pytest.mark.parametrize("f", [in_a_branch, in_a_helper, in_a_test, in_a_while])
def test_calls_that_take_a_branch_which_raises_only_when_traced_are_replayed(f: Callable[..., Any]) -> None:
    jitted = jitml.jit(f)
    for x in (np.ones(2), -np.ones(2), np.ones(2), -np.ones(2), -np.ones(2)):
        np.testing.assert_array_equal(jitted(x), f(x))
    (variant,) = jitted.variants
    assert variant.replays.total() == 3


def positive(x: Any) -> Any:
    if np.all(x > 0):
        return x * 2
    raise ValueError("{not} positive")


def handled(x: Array) -> Any:
    try:
        return positive(x)
    except ValueError:
        return x * 5


def suppressed(x: Array) -> Any:
    y = x * 3
    with contextlib.suppress(ValueError):
        y = positive(x)
    return y


def with_all_clauses(x: Array) -> Any:
    n = 0
    try:
        y = positive(x)
    except (KeyError, ValueError) as error:
        y, n = x * len(str(error)), n + 1
    else:
        n += 10
    finally:
        n += 100
    return y, n


class Wrapped(Exception):
    pass


def translated(x: Array) -> Any:
    def wrap(x: Array) -> Any:
        try:
            return positive(x)
        except ValueError as error:
            raise Wrapped("outer") from error

    try:
        return wrap(x)
    except Wrapped as error:
        return x * (9 if isinstance(error.__cause__, ValueError) else 1)


def raised_again(x: Array) -> Any:
    try:
        try:
            return positive(x)
        except ValueError:
            raise
    except ValueError:
        return x * 4


def of_a_dict(x: Array) -> Any:
    def scaled(x: Array, scales: dict[str, float]) -> Any:
        return x * scales["positive" if x[0] > 0 else "negative"]

    try:
        return scaled(x, {"positive": 2.0})
    except KeyError:
        return x


def written_before(x: Array) -> Any:
    def step(x: Array) -> Array:
        x += 1
        if x[1] < 0:
            raise ValueError
        x *= 2
        return x

    try:
        return step(x)
    except ValueError:
        x[0] = 77
        return x * 5


def two_kinds(x: Array) -> Any:
    def look(x: Array) -> Array:
        if x[0] < 0:
            raise IndexError("first")
        if x[1] < 0:
            raise KeyError("second")
        return x * 2

    try:
        return look(x)
    except IndexError:
        return x * 3
    except KeyError:
        return x * 5


def tried_again(x: Array) -> Any:
    try:
        try:
            return positive(x)
        except ValueError:
            return positive(x + 1.5) * 3
    except ValueError:
        return x * 5


def counted_in_a_loop(x: Array) -> Any:
    total, count = 0.0, 0
    for i in range(len(x)):
        try:
            total += positive(x[i])
        except ValueError:
            count += 1
    return total, count


def around_a_loop(x: Array) -> Any:
    total, i = 0.0, 0
    try:
        while i < len(x):
            total += positive(x[i])
            i += 1
    except ValueError:
        total += 100
    return total, i


@pytest.mark.parametrize(
    "f",
    [
        handled, suppressed, with_all_clauses, translated, raised_again, of_a_dict, written_before, two_kinds, tried_again,
        counted_in_a_loop, around_a_loop,
    ],
)  # fmt: skip
@pytest.mark.loose
def test_functions_that_handle_exceptions_answer_as_numpy_does(f: Callable[..., Any]) -> None:
    jitted = jitml.jit(f)
    for way in [(1.0, 3.0), (-1.0, 4.0), (1.0, -5.0), (-2.0, -6.0)] * 3:
        x, mine = np.array(way), np.array(way)
        with warnings.catch_warnings(action="error"):
            expected, got = f(x), jitted(mine)
        for one, other in zip(expected, got, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(x, mine)


def test_an_exception_that_leaves_the_function_is_not_traced_for() -> None:
    jitted = jitml.jit(positive)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"{not} positive"):
            jitted(-np.ones(2))
    (variant,) = jitted.variants
    assert variant.replays.total() == 3


@pytest.mark.loose
def test_outside_jit_exceptions_are_handled_and_raised() -> None:
    def loss(x: Array) -> Any:
        return np.sum(handled(x))

    for x, slope in ((np.ones(2), 2.0), (-np.ones(2), 5.0), (np.ones(2), 2.0), (-np.ones(2), 5.0)):
        np.testing.assert_array_equal(jitml.grad(loss)(x), np.full(2, slope))
    with pytest.raises(ValueError, match=r"{not} positive"):
        jitml.grad(lambda x: np.sum(positive(x)))(-np.ones(2))
    np.testing.assert_array_equal(jitml.vmap(handled)(np.array([[1.0, 2.0], [-1.0, 2.0]])), [[2.0, 4.0], [-5.0, 10.0]])
    assert jitml.grad(lambda x: counted_in_a_loop(x)[0])(np.append(np.ones(2000), -1.0)).shape == (2001,)


def test_outside_jit_the_error_is_ours() -> None:
    with pytest.raises(IndexError):
        jitml.grad(lambda x: x[np.array([5])].sum())(np.ones(3))


def test_lanes_past_the_end_of_a_row_raise_nothing() -> None:
    compiled, n = jitml.jit(load("cavity_flow").function), 101
    for _ in range(2):
        compiled(np.zeros((n, n)), np.zeros((n, n)), np.full((n, n), 0.01), 2, 1, 0.0005, 1.0, 0.1)
    assert not compiled.variants[0].replays


def test_a_size_that_a_long_loop_counts_is_foreseen() -> None:
    def positive_ones(x: Array) -> Array:
        count = 0
        for i in range(len(x)):
            if x[i] > 0:
                count += 1
        return np.arange(count)

    compiled, x = jitml.jit(positive_ones), np.ones(500)
    np.testing.assert_array_equal(compiled(x), positive_ones(x))
    assert not compiled.variants[0].replays
