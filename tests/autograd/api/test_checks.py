"""`check_grads`: it accepts what is right, to any order, and names what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml import DerivativeError, check_grads, jit, stop_gradient

x3 = np.array([0.3, -1.2, 2.0])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_what_is_right(order: int) -> None:
    check_grads(lambda x, p: {"y": np.sin(x) * p["a"]}, (x3, {"a": 2.0}), order)
    check_grads(jit(lambda x: np.exp(x @ x / 9)), (x3,), order, modes="rev")


def test_single_precision() -> None:
    check_grads(lambda x: np.tanh(x).sum(), (x3.astype(np.float32),), 2)


def test_other_arguments_are_held_fixed() -> None:
    check_grads(lambda n, x: x**n, (3, x3))


def power(p: dict[str, Any], y: float) -> Any:
    return p["a"] ** p["n"] * y


def stopped(p: dict[str, Any], y: float) -> Any:
    return stop_gradient(p["a"]) * p["a"] * y


@pytest.mark.parametrize("finish", [lambda f: f, jit], ids=["eager", "jitted"])
def test_integers_among_floats_are_held_fixed(finish: Any) -> None:
    """An argument with an integer somewhere was left out whole."""
    check_grads(finish(power), ({"a": x3, "n": 2}, 1.0))
    check_grads(finish(power), ({"a": x3, "n": np.arange(3), "what": None}, 1.0))
    with pytest.raises(AssertionError, match="check_grads: the derivative fwd"):
        check_grads(finish(stopped), ({"a": x3, "n": 2}, 1.0))
    with pytest.raises(DerivativeError, match="no argument is made of floats"):
        check_grads(lambda p: p["n"], ({"n": 2, "how": "up"},))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_what_is_wrong(mode: str) -> None:
    with pytest.raises(AssertionError, match=f"check_grads: the derivative {mode}"):
        check_grads(lambda x: x * stop_gradient(x), (x3,), 1, mode)
    with pytest.raises(AssertionError, match=f"check_grads: the derivative {mode} of {mode}"):
        check_grads(lambda x: x**2 + stop_gradient(x) * (x - stop_gradient(x)) ** 2, (x3,), 2, mode)


def test_mistakes() -> None:
    with pytest.raises(DerivativeError, match="no argument is made of floats"):
        check_grads(lambda n: n, (3,))
    with pytest.raises(ValueError, match="no such mode: forward"):
        check_grads(np.sin, (x3,), modes="forward")
    with pytest.raises(ValueError, match="order is 0"):
        check_grads(np.sin, (x3,), order=0)
    with pytest.raises(DerivativeError, match=r"check_grads: args are float64\[3\], and not a tuple"):
        check_grads(np.sin, x3)
