"""Under `debug_nans` the first op that makes NaN of numbers, or an infinite slope, is named with the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml import NonFiniteError, debug_nans, explain, grad, hessian, jit, jvp, linearize, value_and_grad, vjp, vmap

x3 = np.array([1.0, 0.0, 2.0])


def root(x: np.ndarray) -> Any:
    y = x * x * x
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


x2 = np.array([1000.0, 1.0])


def gudermannian(x: np.ndarray) -> Any:
    return np.where(x > 0, np.pi / 2 - np.arctan(np.exp(-x)), np.arctan(np.exp(x))).sum()  # here


def softmax(x: np.ndarray) -> Any:
    return (np.exp(x) / np.exp(x).sum())[0]  # here


def vanishing(x: np.ndarray) -> Any:
    return (0.0 * np.exp(x)).sum()  # here


def quotient(x: np.ndarray) -> Any:
    return (np.exp(x) / np.exp(x)).sum()  # here


def exponential(x: np.ndarray) -> Any:
    return np.exp(x).sum()  # here


@pytest.mark.parametrize("how", [lambda f: f, jit, lambda f: lambda x: vmap(f)(x[None])])
@pytest.mark.parametrize(
    ("f", "message"),
    [
        (grad(gudermannian), "the cotangent of exp is nan at [0]: mul(0, inf)"),
        (value_and_grad(gudermannian), "the cotangent of exp is nan at [0]: mul(0, inf)"),
        (grad(softmax), "the result of div is nan at [0]: div(inf, inf)"),
        (grad(vanishing), "the cotangent of exp is nan at [0]: mul(0, inf)"),
        (value_and_grad(quotient), "the result of div is nan at [0]: div(inf, inf)"),
        (grad(exponential), "the cotangent of exp is inf at [0]: mul(1, inf)"),
        (lambda x: jvp(exponential, (x,), (x,)), "the slope of exp is inf at [0]: mul(1000, inf)"),
        (lambda x: vjp(gudermannian, x)[1](1.0), "the cotangent of exp is nan at [0]: mul(0, inf)"),
        (lambda x: vjp(quotient, x)[0], "the result of div is nan at [0]: div(inf, inf)"),
    ],
)
def test_what_comes_of_an_overflow(how: Any, f: Any, message: str) -> None:
    """NaN and slopes that are made of an infinity, which is where they come from."""
    with debug_nans(), pytest.raises(NonFiniteError) as caught:
        how(f)(x2)
    first, _, line, last, code = str(caught.value).splitlines()
    assert code.startswith("JM202: ")
    assert first.replace("[0, 0]", "[0]") == message
    assert "# here" in line
    assert last.replace("[0, 0]", "[0]") == "The result of exp is inf at [0]: exp(1000)"


def test_a_pullback_knows_where_its_residuals_come_from() -> None:
    def f(x: Any) -> Any:
        weights = np.exp(x) / np.exp(x)  # here
        return np.where(x > 100, 1.0, weights * x).sum()

    with debug_nans():
        y, pull = vjp(f, x2)
        assert y == 2.0
        with pytest.raises(NonFiniteError, match=r"result of div is nan at \[0\]: div\(inf, inf\)") as caught:
            pull(1.0)
    assert "# here" in str(caught.value)


def masked_logits(x: np.ndarray) -> Any:
    logits = np.where(np.arange(3) > 0, x, -np.inf)
    top = logits.max(initial=-np.inf)
    return np.log(np.exp(logits - top).sum()) + top


def added_mask(x: np.ndarray) -> Any:
    logits = x + np.array([0.0, -np.inf, 0.0])
    return (logits - np.log(np.exp(logits - logits.max()).sum()))[0]


def unused(x: np.ndarray) -> Any:
    nothing = np.exp(2000 * x) - np.exp(3000 * x)
    return np.where(np.isnan(nothing), x * x, 0.0).sum()


@pytest.mark.parametrize("f", [masked_logits, added_mask, unused])
@pytest.mark.parametrize(
    "transform", [grad, value_and_grad, hessian, lambda f: jit(grad(f)), lambda f: lambda x: linearize(f, x)[1](x)]
)
def test_infinities_that_come_to_nothing(f: Any, transform: Any) -> None:
    x = np.array([3.0, 1.0, 2.0])
    usual = transform(f)(x)
    with debug_nans():
        np.testing.assert_equal(transform(f)(x), usual)


def logarithms(x: np.ndarray) -> Any:
    for _ in range(20):
        x = np.log(x * x - 0.5)  # here
        x = x * 1.5
    return x.sum()


def exponentials(x: np.ndarray) -> Any:
    for _ in range(20):
        x = np.exp(x)
        x = (x - x * 1.0) + x  # here
    return x.sum()


def backwards(x: np.ndarray) -> Any:
    total = 0.0
    for i in range(5):
        total = total + np.where(x[i] > 0, np.arctan(np.exp(x[i])), 0.0) * (x[i] < 100)  # here
    return total


def nested(x: np.ndarray) -> Any:
    total = 0.0
    for i in range(3):
        j = 0
        while j < i:
            total = total + np.sqrt(x[j])  # here
            j = j + 1
    return total


@pytest.mark.parametrize(
    ("f", "x", "message"),
    [
        (logarithms, np.array([1.3, 1.0]), r"the result of log is nan at \[0\] in iteration 1: log\(-0.43"),
        (exponentials, np.array([1.3, 1.0]), r"the result of sub is nan at \[0\] in iteration 3: sub\(inf, inf\)"),
        (backwards, np.array([1.0, 1.0, 1.0, 1000.0, 1.0]), r"the cotangent of \w+ is nan in iteration 3: "),
        (looping, np.array([1.0, 1.0, 0.0]), r"the slope of sqrt is inf in iteration 2: div\(0.5, 0\)"),
        (nested, np.array([1.0, 0.0]), r"the slope of sqrt is inf in iteration 2, 1: div\(0.5, 0\)"),
    ],
)
def test_iterations(f: Any, x: np.ndarray, message: str) -> None:
    """Not the loop but what is in it is named."""
    with debug_nans(), pytest.raises(NonFiniteError, match=message) as caught:
        grad(f)(x)
    assert "# here" in str(caught.value)


def test_nothing_else_changes() -> None:
    with debug_nans():
        np.testing.assert_allclose(grad(root)(x3 + 1), 1.5 * np.sqrt(x3 + 1))
        with debug_nans(False):
            assert np.isnan(grad(root)(x3)[1])
        _, pull = vjp(lambda x: x * np.inf, x3 + 1)  # infinite from the start
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
