"""Under `debug_nans` the first op that makes NaN of numbers, or an infinite slope, is named with the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml import NonFiniteError, debug_nans, explain, grad, jit, jvp, vjp

x3 = np.array([1.0, 0.0, 2.0])


def root(x: np.ndarray) -> Any:
    y = x * x
    return np.sqrt(y).sum()  # here


def masked(x: np.ndarray) -> Any:
    return np.where(x > 0, np.log(x), 0.0).sum()  # here


def looping(x: np.ndarray) -> Any:
    total = 0.0
    for i in range(3):
        total = total + np.sqrt(x[i])  # here
    return total


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grad(root)(x3), "the slope of sqrt is inf at [1]: div(0.5, 0)"),
        (lambda: jit(grad(root))(x3), "the slope of sqrt is inf at [1]: div(0.5, 0)"),
        (lambda: vjp(root, x3), "the slope of sqrt is inf at [1]: div(0.5, 0)"),
        (lambda: jvp(root, (x3,), (x3,)), "the slope of sqrt is inf at [1]: div(0.5, 0)"),
        (lambda: grad(masked)(x3), "the cotangent of log is nan at [1]: div(0, 0)"),
        (lambda: grad(lambda x: (x / x).sum())(x3), "the result of div is nan at [1]: div(0, 0)"),
        (lambda: grad(lambda x: np.sqrt(x - 1).sum())(x3), "the result of sqrt is nan at [1]: sqrt(-1)"),
        # Elsewhere something is no number already.
        (lambda: grad(lambda x: np.nansum(np.sqrt(x)))(np.array([np.nan, 0.0])), "the slope of sqrt is inf at [1]: div(0.5, 0)"),
        (lambda: grad(lambda x: (x / x).sum())(np.array([np.inf, 0.0])), "the result of div is nan at [1]: div(0, 0)"),
    ],
)
def test_the_op_is_named(call: Any, message: str) -> None:
    with debug_nans(), pytest.raises(NonFiniteError) as caught:
        call()
    assert isinstance(caught.value, FloatingPointError)
    first, place, line, *_ = str(caught.value).splitlines()
    assert first == message
    assert place.strip().startswith(__file__)
    assert "# here" in line or "lambda" in line


def test_inside_of_loops() -> None:
    with debug_nans(), pytest.raises(NonFiniteError, match="the slope of sqrt is inf") as caught:
        grad(looping)(x3)
    assert "np.sqrt(x[i])  # here" in str(caught.value)


def test_nothing_else_changes() -> None:
    with debug_nans():
        np.testing.assert_allclose(grad(root)(x3 + 1), np.ones(3))
        with debug_nans(False):
            assert np.isnan(grad(root)(x3)[1])
        _, pull = vjp(lambda x: x * np.inf, x3)  # made of what is infinite already
        pull(np.ones(3))
    assert np.isnan(grad(root)(x3)[1])


def log_of_positive(x: Any) -> Any:
    y = np.log(x)
    return np.where(x > 0, y, 0.0).sum()


def root_of_positive(x: Any) -> Any:
    return np.where(x > 0, np.sqrt(x) * 2.0, 0.0).sum()


def guarded(x: Any) -> Any:
    return np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0).sum()


def test_explain_points_at_branches_that_are_not_chosen() -> None:
    """The line of the np.where, and the line whose slope meets a cotangent of 0."""
    x = np.array([1.0, -1.0])
    first = log_of_positive.__code__.co_firstlineno
    report = explain(jit(grad(log_of_positive)), x)
    assert f"np.where  test_debug_nans.py:{first + 2}: what test_debug_nans.py:{first + 1} computes" in report
    assert "not chosen" in explain(jit(grad(root_of_positive)), x)
    for harmless in (grad(guarded), grad(lambda x: np.where(x > 0, np.sin(x), x * x).sum()), log_of_positive):
        assert "not chosen" not in explain(jit(harmless), x)
