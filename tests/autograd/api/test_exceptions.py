"""What a function raises, it raises under every transform: the same exception, text and line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import DerivativeError

Function = Callable[..., Any]

GOOD, BAD = np.array([1.0, 2.0, 0.5]), np.array([-7.0, 2.0, 0.5])

TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "grad": jitml.grad,
    "value_and_grad": jitml.value_and_grad,
    "jit grad": lambda f: jitml.jit(jitml.grad(f)),
    "grad jit": lambda f: jitml.grad(jitml.jit(f)),
    "jvp": lambda f: lambda x: jitml.jvp(f, (x,), (np.ones(3),)),
    "vjp": lambda f: lambda x: jitml.vjp(f, x)[0],
    "linearize": lambda f: lambda x: jitml.linearize(f, x)[0],
    "jacrev": jitml.jacrev,
    "hessian": jitml.hessian,
    "hvp": lambda f: lambda x: jitml.hvp(f, (x,), (np.ones(3),)),
    "vmap": lambda f: lambda x: jitml.vmap(f)(np.stack([x, x])),
    "jit vmap": lambda f: (lambda g: lambda x: g(np.stack([x, x])))(jitml.jit(jitml.vmap(f))),
    "grad vmap": lambda f: jitml.grad(lambda x: jitml.vmap(f)(np.stack([x, x])).sum()),
    "vmap grad": lambda f: lambda x: jitml.vmap(jitml.grad(f))(np.stack([x, x])),
    "grad checkpoint": lambda f: jitml.grad(jitml.checkpoint(f)),
}


def text_of_a_value(x: Any) -> Any:
    s = x.sum()
    if s < 0:
        raise ValueError(f"negative: {s:.2f}")
    return s * s


def a_value(x: Any) -> Any:
    s = x.sum()
    if s < 0:
        raise ValueError("negative", s)
    return s * s


def asserted(x: Any) -> Any:
    assert x.sum() > 0, "it has to be positive"
    return (x * x).sum()


def asserted_in_a_loop(x: Any) -> Any:
    total = 0.0
    for v in x:
        assert v > 0, f"{v} is not positive"
        total = total + v * v
    return total


def index(x: Any) -> Any:
    return x[int(x[0])] * x[1]


def singular(x: Any) -> Any:
    return np.linalg.inv(np.eye(3) * np.where(x < 0, 0.0, x)).sum()


def divided(x: Any) -> Any:
    return x.sum() / (1.0 / float(np.where(x[0] < 0, 0.0, x[0])))


def always(x: Any) -> Any:
    raise ValueError(f"always {x[1]}")


def helped(x: Any) -> Any:
    return text_of_a_value(x) * 2


CASES = [text_of_a_value, a_value, asserted, asserted_in_a_loop, index, singular, divided, always, helped]


def end_of(function: Function, x: Any) -> tuple[type, list[type], str, int]:
    """What a call raises: its type, arguments, text (without what pytest adds) and the last of this file's lines."""
    with pytest.raises(Exception) as found:
        function(x)
    lines = [frame.lineno for frame in traceback.extract_tb(found.value.__traceback__) if frame.filename == __file__]
    shown = "".join(traceback.format_exception(found.value))
    assert "str() failed" not in shown
    text, *_ = str(found.value).splitlines()
    return type(found.value), [type(x) for x in found.value.args], text, lines[-1] or 0


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("function", CASES)
def test_what_a_function_raises(function: Function, name: str) -> None:
    wanted = end_of(function, BAD)
    transformed = TRANSFORMS[name](function)
    assert end_of(transformed, BAD) == wanted  # when it is traced
    if function is not always:
        transformed(GOOD)
        transformed(GOOD)
        assert end_of(transformed, BAD) == wanted  # when it is known
        transformed(GOOD)


def test_arguments_are_as_they_were() -> None:
    def f(x: Any, things: list[Any]) -> Any:
        x[1] = 5.0
        things.append(x.sum())
        return x[int(x[0])] ** 2

    for transformed in (jitml.grad(f), jitml.jit(jitml.grad(f))):
        x, things = np.array([7.0, 2.0]), [1.0]
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            transformed(x, things)
        assert x.tolist() == [7.0, 2.0]
        assert things == [1.0]


def test_what_a_failing_call_draws_and_prints_happens_once(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)

    def f(x: Any) -> Any:
        d = rng.normal()
        print("drawn", d)
        if x.sum() < 0:
            raise ValueError(f"drawn {d}")
        return (x * d).sum()

    def run(function: Function) -> tuple[str, str, float]:
        rng.bit_generator.state = np.random.default_rng(0).bit_generator.state
        with pytest.raises(ValueError) as found:
            function(BAD)
        return str(found.value), capsys.readouterr().out, rng.normal()

    wanted = run(f)
    gradient = jitml.grad(f)
    assert run(gradient) == wanted
    gradient(GOOD)
    gradient(GOOD)
    capsys.readouterr()
    assert run(gradient) == wanted


def test_what_only_a_derivative_raises_comes_out() -> None:
    @jitml.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    def forward(x: Any) -> Any:
        return x * x, x

    def backward(x: Any, ct: Any) -> Any:
        if x > 1:
            raise ValueError(f"too large: {x}")
        return (2 * x * ct,)

    f.defvjp(forward, backward)
    assert jitml.grad(f)(0.5) == 1.0
    with pytest.raises(Exception) as found:
        jitml.grad(f)(2.0)
    str(found.value)


NAMES: list[tuple[str, Function]] = [
    ("grad", lambda f, x: jitml.grad(f)(x)),
    ("value_and_grad", lambda f, x: jitml.value_and_grad(f)(x)),
    ("hvp", lambda f, x: jitml.hvp(f, (x,), (x,))),
    ("hessian", lambda f, x: jitml.hessian(f)(x)),
    ("jacrev", lambda f, x: jitml.jacrev(f)(x)),
    ("jacfwd", lambda f, x: jitml.jacfwd(f)(x)),
    ("jacobian", lambda f, x: jitml.jacobian(f)(x)),
    ("jvp", lambda f, x: jitml.jvp(f, (x,), (x,))),
    ("vjp", jitml.vjp),
    ("linearize", jitml.linearize),
]


@pytest.mark.parametrize(("name", "call"), NAMES)
@pytest.mark.parametrize("jitted", [False, True])
def test_errors_name_the_transform_that_was_called(name: str, call: Function, jitted: bool) -> None:
    def called(f: Function, x: Any) -> Any:
        return jitml.jit(lambda x: call(f, x))(x) if jitted else call(f, x)

    with pytest.raises(DerivativeError, match=f"^{name}: "):
        called(lambda x: (x > 0).sum(), GOOD)
    with pytest.raises(DerivativeError, match=f"^{name}: argument 0 "):
        called(lambda x: x.sum(), np.arange(3))


def test_errors_of_argnums_name_the_transform_that_was_called() -> None:
    for name in ("grad", "value_and_grad", "hessian", "jacfwd", "jacrev", "jacobian"):
        with pytest.raises(DerivativeError, match=f"^{name}: argnums names argument 2"):
            getattr(jitml, name)(np.sum, argnums=2)(GOOD)
    with pytest.raises(DerivativeError, match=r"^hvp: the tangent is"):
        jitml.hvp(np.sum, (GOOD,), (GOOD[:2],))
