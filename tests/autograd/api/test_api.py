"""What users may ask of grad, value_and_grad, vjp, jvp and stop_gradient, and what they are told when it has no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas
import pytest

from jitml import (
    DerivativeError,
    UnsupportedError,
    grad,
    hvp,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    register_pytree_node,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)

x3 = np.array([1.0, 2.0, 3.0])


def same(got: object, expected: object) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_argnums() -> None:
    def f(x: np.ndarray, y: np.ndarray, *, scale: float = 1.0) -> float:
        return (x * y).sum() * scale

    y = 10 * x3
    same(grad(f)(x3, y), y)
    same(grad(f, 1)(x3, y), x3)
    same(grad(f, -1)(x3, y, scale=2.0), 2 * x3)
    both = grad(f, (1, 0))(x3, y)
    assert isinstance(both, tuple)
    same(both[0], x3)
    same(both[1], y)
    assert grad(f).__name__ == "f"


def test_argnames() -> None:
    def f(x: np.ndarray, y: np.ndarray, *, scale: float = 1.0) -> float:
        return (x * y).sum() * scale

    y = 10 * x3
    same(grad(f, argnames="y")(x3, y), x3)
    same(grad(f, argnames="y")(x3, y=y, scale=2.0), 2 * x3)
    dscale, dx = jit(grad(f, argnames=("scale", "x")))(x3, y, scale=2.0)
    same(dscale, (x3 * y).sum())
    same(dx, 2 * y)


def test_aux() -> None:
    def f(x: np.ndarray) -> tuple[float, dict]:
        return (x * x).sum(), {"double": 2 * x, "count": len(x), "name": "f"}

    slope, aux = grad(f, has_aux=True)(x3)
    same(slope, 2 * x3)
    same(aux["double"], 2 * x3)
    assert aux["count"] == 3 and aux["name"] == "f"
    (value, aux), slope = value_and_grad(f, has_aux=True)(x3)
    same(value, 14)
    same(slope, 2 * x3)


def test_python_and_numpy_scalars() -> None:
    for x in (3.0, np.float64(3.0)):
        value, slope = value_and_grad(lambda x: x**3)(x)
        same([value, slope], [27, 27])
        assert isinstance(slope, np.float64)
    assert isinstance(grad(lambda x: x * x)(np.float32(3.0)), np.float32)


def test_zero_dimensional_arrays_stay_arrays() -> None:
    slope = grad(lambda x: x * x)(np.array(3.0))
    assert isinstance(slope, np.ndarray) and slope.shape == ()
    _, dy = jvp(lambda x: x, (np.array(3.0),), (2.0,))
    assert isinstance(dy, np.ndarray)


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


@dataclass
class Layer:
    w: np.ndarray
    b: float


def test_containers() -> None:
    slope = grad(lambda p: (p.a * p.b).sum())(Pair(x3, 2 * x3))
    assert isinstance(slope, Pair)
    same(slope.b, x3)
    layer = grad(lambda p: (p.w * p.b).sum())(Layer(x3, 2.0))
    assert isinstance(layer, Layer)
    same(layer.w, [2, 2, 2])
    same(layer.b, 6)
    nested = grad(lambda p: p["a"][0].sum() + p["b"] ** 2)({"a": [x3, None], "b": 4.0})
    same(nested["b"], 8)
    assert nested["a"][1] is None


class Interval:
    """A container of the user's own."""

    def __init__(self, low: object, high: object, name: str) -> None:
        self.low, self.high, self.name = low, high, name


register_pytree_node(Interval, lambda i: ([i.low, i.high], i.name), lambda name, ends: Interval(*ends, name))


@pytest.mark.parametrize("finish", [lambda f: f, jit])
def test_registered_containers(finish: object) -> None:
    slope = finish(grad(lambda i: (i.high - i.low) ** 2))(Interval(1.0, 3.0, "i"))
    assert isinstance(slope, Interval) and slope.name == "i"
    same([slope.low, slope.high], [-4, 4])


def test_linearize() -> None:
    y, push = linearize(lambda x, a: {"s": np.sin(x) * a, "n": np.float64(2.0)}, x3, 2.0)
    same(y["s"], np.sin(x3) * 2)
    for dx, da in ((np.ones(3), 0.0), (x3, 3.0)):
        moved = push(dx, da)
        same(moved["s"], np.cos(x3) * 2 * dx + np.sin(x3) * da)
        same(moved["n"], 0)
    same(jit(lambda x: linearize(np.sin, x)[1](x))(x3), np.cos(x3) * x3)
    same(grad(lambda dx: push(dx, 1.0)["s"].sum())(x3), np.cos(x3) * 2)
    assert linearize(lambda x: (x, "aux"), 1.0, has_aux=True)[2] == "aux"


def test_vjp_pulls_as_often_as_it_is_asked() -> None:
    y, pull = vjp(lambda x, w: (np.sin(x) * w, w.sum()), x3, 2 * x3)
    same(y[0], np.sin(x3) * 2 * x3)
    for ct in (np.ones(3), x3):
        dx, dw = pull((ct, 5.0))
        same(dx, ct * np.cos(x3) * 2 * x3)
        same(dw, ct * np.sin(x3) + 5)
    y, pull, aux = vjp(lambda x: (x * 2, x + 1), x3, has_aux=True)
    same(aux, x3 + 1)


def test_vjp_remembers_the_point() -> None:
    x = x3.copy()
    _, pull = vjp(lambda x: x * x, x)
    x[:] = 0
    same(pull(np.ones(3))[0], 2 * x3)


def scaled_by_a_part(x: np.ndarray) -> Any:
    return x * (x[x > 0] ** 2).sum()


def part_replaced(x: np.ndarray) -> Any:
    y = x.copy()
    y[x > 0.5] = np.sin(x[x > 0.5])
    return y


def looped_over_a_part(x: np.ndarray) -> Any:
    kept, s = x[x > 0], 0.0
    for v in kept:
        s = s * v + np.sin(v)
    while s < 3:
        s = s * 1.5 + kept[0]
    return s * kept


def slope_of_a_part(x: np.ndarray) -> Any:
    return grad(lambda x: (x[x > 0.5] ** 3).sum())(x)


PARTS = [scaled_by_a_part, part_replaced, looped_over_a_part, slope_of_a_part, lambda x: np.sort(x[x > 0]) ** 2]


@pytest.mark.parametrize("finish", [lambda f: f, jit], ids=["eager", "jitted"])
@pytest.mark.parametrize("f", PARTS)
def test_linear_maps_of_sizes_that_data_decide_are_transformed(f: Any, finish: Any) -> None:
    for x in (np.array([0.9, 0.6, -1.1]), np.array([0.9, 0.6, 0.2]), np.array([-0.9, 0.8, -0.2])):
        y, pull = vjp(f, x)
        rows = np.array([pull(ct)[0] for ct in np.eye(len(y))])
        np.testing.assert_allclose(finish(vmap(pull))(np.eye(len(y)))[0], rows)
        np.testing.assert_allclose(finish(grad(lambda ct, pull=pull: pull(ct)[0].sum()))(y), rows.sum(axis=1))
        _, push = linearize(f, x)
        for made in (jacfwd(push), jacrev(push)):
            np.testing.assert_allclose(finish(made)(x), rows, atol=1e-14)


@pytest.mark.parametrize("finish", [jit, lambda f: lambda *args: vjp(f, *args)[0]], ids=["jitted", "eager"])
def test_linear_maps_at_two_points(finish: Any) -> None:
    """They have one program, and sizes and values of their own; as arguments, too."""
    points = np.array([0.9, 0.6, -1.1]), np.array([0.3, -0.2, -0.5])
    first, second = (vjp(scaled_by_a_part, x)[1] for x in points)
    ct = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(finish(lambda ct: first(ct)[0] + second(ct)[0])(ct), first(ct)[0] + second(ct)[0])
    by_argument = jit(lambda ct, pull: pull(ct)[0])
    for pull in (first, second, first):
        np.testing.assert_allclose(by_argument(ct, pull), pull(ct)[0])
        np.testing.assert_allclose(grad(lambda ct, pull: pull(ct)[0].sum())(ct, pull), pushed(pull))


def pushed(pull: Any) -> Any:
    return np.array([pull(row)[0].sum() for row in np.eye(3)])


def test_jvp() -> None:
    y, dy = jvp(lambda x, a: x * a + a, (x3, 2.0), (np.ones(3), 1.0))
    same(y, 2 * x3 + 2)
    same(dy, 2 + x3 + 1)
    y, dy, _ = jvp(lambda x: (x.sum(), x), (x3,), (x3,), has_aux=True)
    same([y, dy], [6, 6])


def test_stop_gradient() -> None:
    same(grad(lambda x: (x * stop_gradient(x)).sum())(x3), x3)
    tree = {"a": x3, "n": 3}
    same(stop_gradient(tree)["a"], x3)
    assert not np.shares_memory(stop_gradient(tree)["a"], x3)
    same(grad(lambda x: x * stop_gradient({"x": x})["x"])(3.0), 3)


def test_higher_orders() -> None:
    f = lambda x: np.sin(x) * x  # noqa: E731
    same(grad(grad(f))(1.3), 2 * np.cos(1.3) - 1.3 * np.sin(1.3))
    same(grad(grad(grad(lambda x: x**4)))(2.0), 48)
    hessian_times = grad(lambda x: (grad(lambda x: (x**3).sum())(x) * x3).sum())
    same(hessian_times(x3), 6 * x3 * x3)
    same(jvp(grad(lambda x: (x**3).sum()), (x3,), (np.ones(3),))[1], 6 * x3)
    # The inner derivative sees the outer variable through its closure.
    same(grad(lambda x: grad(lambda y: x * y * y)(x))(3.0), 4 * 3.0)
    same(grad(lambda x: vjp(lambda y: x * y * y, 2.0)[1](1.0)[0])(3.0), 4)


def test_jit_and_derivatives_compose() -> None:
    def f(x: np.ndarray) -> float:
        return (np.tanh(x) * x).sum()

    expected = grad(f)(x3)
    same(jit(grad(f))(x3), expected)
    same(grad(jit(f))(x3), expected)
    same(jit(lambda x: vjp(f, x)[1](2.0)[0])(x3), 2 * expected)
    _, pull = vjp(np.sin, x3)
    same(jit(lambda ct: pull(ct)[0])(x3), np.cos(x3) * x3)
    same(jit(lambda x: jvp(grad(f), (x,), (x,))[1])(x3), jvp(grad(f), (x3,), (x3,))[1])


def test_a_training_step_updates_its_argument() -> None:
    x, y = np.arange(12.0).reshape(4, 3) / 10, np.array([0, 2, 1, 1])

    @jit
    def step(w: np.ndarray, lr: float = 0.1) -> float:
        def loss(w: np.ndarray) -> float:
            p = np.exp(x @ w)
            p /= p.sum(axis=1, keepdims=True)
            return -np.log(p[np.arange(len(y)), y]).sum()

        value, slope = value_and_grad(loss)(w)
        w -= lr * slope
        return value

    w = np.zeros((3, 3))
    losses = [step(w) for _ in range(20)]
    assert losses == sorted(losses, reverse=True)
    p = np.exp(x @ w) / np.exp(x @ w).sum(axis=1, keepdims=True)
    before = w.copy()
    step(w, 0.5)
    same(w, before - 0.5 * x.T @ (p - np.eye(3)[y]))


def test_the_callers_arrays_stay_as_they_are() -> None:
    def f(x: np.ndarray, buffer: np.ndarray) -> float:
        x *= 2
        buffer[:] = x
        return (buffer * buffer).sum()

    x, buffer = x3.copy(), np.zeros(3)
    same(grad(f)(x, buffer), 8 * x3)
    same(x, x3)
    same(buffer, 0)


GLOBAL = np.array([1.0, 2.0, 3.0])


def writes_first(x: np.ndarray, y: np.ndarray) -> Any:
    x[0] *= 2
    return (x * y).sum()


def writes_and_uses_a_global(x: np.ndarray) -> Any:
    x[0] *= 2
    return (x * GLOBAL).sum()


def writes_a_global(x: np.ndarray) -> Any:
    GLOBAL[0] = 1.0
    return (x * x).sum()


@pytest.mark.parametrize("finish", [lambda f: f, jit], ids=["eager", "jitted"])
def test_copies_of_arguments_that_are_one_memory_are_not_written(finish: Any) -> None:
    """NumPy would show what is written by the other name; the function gets copies, which are apart."""
    b, line = np.array([1.0, 2.0, 3.0]), np.arange(6.0)
    total = finish(value_and_grad(writes_first))
    for _ in range(2):
        same(total(b, b.copy())[0], 15)
        same(total(line[:3], line[3:])[0], writes_first(line[:3].copy(), line[3:]))
        for pair in ((b, b), (line[:3], line[1:4])):
            with pytest.raises((DerivativeError, UnsupportedError), match=r"is written that shares memory with another|overlaps"):
                total(*pair)
    same(finish(grad(lambda x, y: (x * y).sum()))(b, b), b)
    same(finish(grad(writes_and_uses_a_global))(b), [2, 2, 3])
    for part in (GLOBAL, GLOBAL[:]):
        with pytest.raises((DerivativeError, UnsupportedError), match="that the function also uses by another name"):
            finish(grad(writes_and_uses_a_global))(part)
    same(finish(grad(writes_a_global))(b), 2 * b)
    with pytest.raises((DerivativeError, UnsupportedError), match="is written by another name that it has"):
        finish(grad(writes_a_global))(GLOBAL)
    for nested in (lambda b: grad(lambda x: grad(writes_first)(x, b).sum())(b), lambda b: vmap(writes_first)(b[None], b[None])):
        with pytest.raises((DerivativeError, UnsupportedError), match="an argument is written that"):
            finish(nested)(b)


def test_results_that_do_not_depend_on_the_argument() -> None:
    same(grad(lambda x: 3.0)(x3), np.zeros(3))
    same(grad(lambda x: np.floor(x).sum())(x3), np.zeros(3))
    _, pull = vjp(lambda x: (x, 1.0), x3)
    same(pull((x3, 1.0))[0], x3)


def test_conventions_at_kinks() -> None:
    def slope(f: object, *args: float) -> float:
        return grad(f)(*args)

    assert slope(np.abs, 0.0) == 0
    assert slope(lambda x: np.maximum(x, 0.0), 0.0) == 0.5
    assert slope(lambda x: np.clip(x, 0.0, 1.0), 1.0) == 0.5
    assert slope(lambda x: np.where(x > 0, x, 0.0), 0.0) == 0
    assert slope(lambda x: x**2.0, 0.0) == 0
    assert slope(lambda x: x**0.0, 0.0) == 0
    assert slope(lambda x: np.float64(0.0) ** x, 2.0) == 0
    assert slope(np.sqrt, 0.0) == np.inf
    same(grad(np.max)(np.array([1.0, 5.0, 5.0])), [0, 0.5, 0.5])
    same(grad(np.prod)(np.array([0.0, 2.0, 3.0])), [6, 0, 0])
    same(grad(lambda x: np.hypot(x[0], x[1]))(np.zeros(2)), [0, 0])


def rounded_by_bits(x: np.ndarray) -> np.floating:
    bits = x.view(np.int64) & -8
    return bits.view(float).sum()


def test_what_only_asks_for_bits() -> None:
    def f(x: np.ndarray) -> np.floating:
        weights = (x.view(np.int64) > 0) * 1.0 + (stop_gradient(x).view(np.int64) | 1).view(float)
        return (weights * x).sum()

    x = np.array([-1.0, 2.0])
    np.testing.assert_allclose(grad(f)(x), [-1.0, 3.0])


@dataclass
class Held:
    w: Any
    b: Any


class Bare:
    w = 1.0


class Model:
    w = 1.0

    def __call__(self, x: Any) -> Any:
        return x * self.w


ERRORS = [
    (lambda: grad(np.sum)(np.arange(3)), "grad: argument 0 is int64[3]; derivatives are taken with respect to floats", "astype"),
    (lambda: grad(lambda n: n * 1.0)(3), "grad: argument 0 is a Python int; derivatives", "decimal point"),
    (lambda: grad(lambda p: p["w"])({"w": 1.0, "tag": "a"}), "grad: argument 0['tag'] is a str", "argnums"),
    (lambda: grad(lambda p: p.w)(Held(1.0, [3])), "grad: argument 0.b[0] is a Python int", "decimal point"),
    (lambda: grad(lambda p: p["a"].w)({"a": Held(1, 2.0)}), "grad: argument 0['a'].w is a Python int", "decimal point"),
    (lambda: grad(lambda p: p.w)(Bare()), "grad: argument 0 is a Bare", "Make its class a dataclass, or register it with jitml."),
    (lambda: grad(lambda net: net(x3))(Model()), "grad: argument 0 is a Model", "Make its class a dataclass, or register it"),
    (lambda: grad(lambda f: f(x3))(np.sum), "grad: argument 0 is a ", "Leave it out of argnums"),
    (lambda: grad(lambda f: f(x3))(jit(np.sum)), "grad: argument 0 is a Jit", "Leave it out of argnums"),
    (lambda: grad(np.sum)(pandas.Series(x3)), "grad: argument 0 is a Series", "Pass an array of it, np.asarray(x)."),
    (lambda: grad(np.sin)(np.int64(3)), "grad: argument 0 is an int64 scalar", "astype"),
    (lambda: grad(np.sin)(x3), "grad: the function returns float64[3]; a gradient is that of one number", ".sum()"),
    (lambda: grad(lambda x: (x.sum(), x))(x3), "grad: the function returns a tuple", "has_aux"),
    (lambda: grad(np.argmax)(x3), "grad: the function returns an int64 scalar", "Return a float"),
    (lambda: grad(lambda x: None)(x3), "grad: the function returns None", "number alone"),
    (lambda: grad(np.sum, 1)(x3), "grad: argnums names argument 1, but the function is called with 1 positional", "by position"),
    (lambda: grad(np.sum, (0, -1))(x3), "grad: argnums (0, -1) names an argument twice", ""),
    (lambda: grad(np.sum, argnames="axis")(x3), "grad: argnames names 'axis', but the function is called without it", "passed"),
    (lambda: grad(np.sum, 1, argnames="a")(x3), "grad: arguments are named by argnums or by argnames, not both", ""),
    (lambda: grad(np.sum, holomorphic=True)(x3), "grad(holomorphic=True): argument 0 is float64[3]", "complex"),
    (lambda: linearize(np.sin, x3)[1](np.ones(2)), "linearize: the tangent is f64[2] where f64[3] is wanted", ""),
    (lambda: grad(lambda x: x.sum(), has_aux=True)(x3), "grad with has_aux=True: the function has to return a pair", ""),
    (lambda: vjp(np.sin, x3)[1](np.ones(2)), "vjp: the cotangent is f64[2] where f64[3] is wanted", ""),
    (lambda: jvp(np.sin, (x3,), (x3, x3)), "jvp: the tangent has the structure (*, *), where (*,) is wanted", ""),
    (lambda: jvp(lambda d: d["a"], ({"a": x3},), ({"b": x3},)), "jvp: the tangent has the structure ({'b': *},), where", ""),
    (lambda: jvp(np.sin, (x3,), (np.ones(2),)), "jvp: the tangent is f64[2] where f64[3] is wanted", ""),
    (lambda: jvp(np.sin, (x3,), (x3 * 1j,)), "jvp: the tangent is c128[3] where f64[3] is wanted", ""),
    (lambda: vjp(np.sin, x3)[1](x3 * 1j), "vjp: the cotangent is c128[3] where f64[3] is wanted", ""),
    (lambda: jvp(np.sin, x3, x3), "jvp: primals are float64[3], and not a tuple", "(x,)"),
    (lambda: jvp(np.sin, (x3,), x3), "jvp: tangents are float64[3], and not a tuple", "(x,)"),
    (lambda: hvp(np.sum, x3, (x3,)), "hvp: primals are float64[3], and not a tuple", "(x,)"),
    (lambda: grad(np.sum, "a"), "grad: argnums is 'a', and holds positions of arguments", "argnames"),
    (lambda: grad(np.sum, 1.0), "grad: argnums is 1.0, and holds positions of arguments", "argnames"),
    (lambda: grad(np.sum, True), "grad: argnums is True, and holds positions of arguments", "argnames"),
    (lambda: jacrev(np.sum, (0, "x")), "jacrev: argnums is (0, 'x'), and holds positions of arguments", "argnames"),
    (lambda: grad(np.sum, argnames=0), "grad: argnames is 0, and holds names of arguments", "argnums"),
    (lambda: vjp(lambda x: x > 0, x3), "vjp: the function returns bool[3]", "has_aux"),
    (lambda: grad(rounded_by_bits)(x3), "bits of an array that is differentiated become floats again", "in rounded_by_bits"),
]


@pytest.mark.parametrize(("call", "message", "remedy"), ERRORS, ids=[e[1][:40] for e in ERRORS])
def test_errors_say_what_to_do(call: object, message: str, remedy: str) -> None:
    with pytest.raises(DerivativeError) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(message)
    assert remedy in "\n".join(rest)
