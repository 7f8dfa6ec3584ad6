"""What type checkers have to know of transforms: each `assert_type` holds for them, and when the file is run."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, TypedDict, assert_type

import numpy as np
from numpy.typing import NDArray

import jitml
from jitml import (
    checkpoint,
    cond,
    custom_jvp,
    custom_vjp,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    scan,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)

Floats = NDArray[np.float64]

x: Floats = np.ones(3)


class Weights(NamedTuple):
    w: Floats
    b: Floats


class Settings(TypedDict):
    rate: float


def loss(w: Floats, b: float = 1.0) -> float:
    total: float = np.sum(w * w) * b
    return total


def loss_of_weights(weights: Weights, x: Floats) -> np.float64:
    total: np.float64 = np.sum(np.square(weights.w * x + weights.b))
    return total


def loss_of_settings(settings: Settings) -> float:
    return settings["rate"] * 2.0


def loss_and_text(w: Floats) -> tuple[float, str]:
    return loss(w), "text"


def bent(x: Floats) -> Floats:
    return np.sin(x)


def product(x: float, y: float) -> float:
    return x * y


weights = Weights(x, x)


def use_grad() -> None:
    assert_type(grad(loss)(x), Floats)
    assert_type(grad(loss)(x, b=2.0), Floats)
    assert_type(grad(product)(2.0, 3.0), float)
    assert_type(grad(loss_of_weights)(weights, x), Weights)
    assert_type(grad(loss_of_weights)(weights, x).b, Floats)
    assert_type(grad(loss_of_settings)({"rate": 1.0}), Settings)
    assert_type(grad(loss_and_text, has_aux=True)(x), tuple[Floats, str])
    assert_type(grad(loss, argnums=1)(x, 2.0), Any)
    assert_type(grad(loss, argnums=(0, 1))(x, 2.0), tuple[Any, ...])
    assert_type(grad(loss, argnames="b")(x, b=2.0), Any)
    assert_type(grad(loss_and_text, 0, True)(x), tuple[Any, str])
    assert_type(grad(jit(loss_of_weights))(weights, x), Weights)
    assert_type(jit(grad(loss_of_weights))(weights, x), Weights)


def use_value_and_grad() -> None:
    assert_type(value_and_grad(loss)(x, b=2.0), tuple[float, Floats])
    assert_type(value_and_grad(loss_of_weights)(weights, x), tuple[np.float64, Weights])
    assert_type(value_and_grad(loss_and_text, has_aux=True)(x), tuple[tuple[float, str], Floats])
    assert_type(value_and_grad(loss, argnums=(0, 1))(x, 2.0), tuple[float, tuple[Any, ...]])
    assert_type(jit(value_and_grad(loss))(x), tuple[float, Floats])


def dot(x: Floats, y: Floats) -> float:
    product: float = np.dot(x, y)
    return product


def moved(weights: Weights, x: Floats) -> Weights:
    return Weights(weights.w + x, weights.b)


def use_vmap() -> None:
    rows: Floats = np.ones((2, 3))
    assert_type(vmap(bent)(rows), Floats)
    assert_type(vmap(dot)(rows, rows), NDArray[Any])
    assert_type(vmap(dot, in_axes=(0, None))(rows, x), NDArray[Any])
    assert_type(vmap(product)(x, x), NDArray[Any])
    assert_type(vmap(product, in_axes=(0, None))(x, 2.0), NDArray[Any])
    assert_type(vmap(moved)(Weights(rows, rows), rows), Weights)
    assert_type(vmap(grad(loss))(rows), Floats)
    assert_type(jit(vmap(bent))(rows), Floats)


def use_jvp_and_vjp() -> None:
    assert_type(jvp(bent, (x,), (x,)), tuple[Floats, Floats])
    assert_type(jvp(product, (1.0, 2.0), (1.0, 0.0)), tuple[float, float])
    assert_type(jvp(loss_and_text, (x,), (x,), has_aux=True), tuple[float, float, str])
    value, pull = vjp(product, 2.0, 3.0)
    assert_type(value, float)
    assert_type(pull(1.0), tuple[float, float])
    assert_type(vjp(loss_and_text, x, has_aux=True)[2], str)
    value, push = linearize(product, 2.0, 3.0)
    assert_type(value, float)
    assert_type(push(1.0, 0.0), float)
    assert_type(hvp(loss, (x,), (x,)), Floats)
    assert_type(hvp(product, (1.0, 2.0), (1.0, 0.0)), tuple[float, float])


def use_arguments_in_a_tuple(*args: Any) -> None:
    if args:
        jvp(bent, args, args)
        vjp(bent, *args)
    jvp(bent, [x], [x])


def use_jacobians() -> None:
    assert_type(jacobian(bent)(x), Any)
    assert_type(jacfwd(bent)(x), Any)
    assert_type(jacrev(loss, argnums=1)(x, 2.0), Any)
    assert_type(hessian(loss)(x), Any)


@checkpoint
def layer(x: Floats, n: int = 1) -> Floats:
    return np.sin(x) * n


@checkpoint(policy="dots")
def other_layer(x: Floats) -> Floats:
    return np.sin(x)


def use_checkpoint() -> None:
    assert_type(layer(x, n=2), Floats)
    assert_type(other_layer(x), Floats)
    assert_type(jitml.checkpoint_name(x, "hidden"), Floats)
    assert_type(stop_gradient(x), Floats)
    assert_type(stop_gradient(2.0), float)


@custom_jvp
def cube(x: float) -> float:
    return x * x * x


@cube.defjvp
def cube_rule(primals: tuple[float], tangents: tuple[float]) -> tuple[float, float]:
    (x,), (dx,) = primals, tangents
    return cube(x), 3 * x * x * dx


@custom_vjp
def clipped(x: float) -> float:
    return x


def clipped_forward(x: float) -> tuple[float, None]:
    return x, None


def clipped_backward(residuals: None, ct: float) -> tuple[float]:
    return (min(ct, 1.0),)


clipped.defvjp(clipped_forward, clipped_backward)


@partial(custom_jvp, nondiff_argnums=(0,))
def scaled(n: int, x: float) -> float:
    return n * x


def use_custom_rules() -> None:
    assert_type(cube(2.0), float)
    assert_type(cube_rule((1.0,), (1.0,)), tuple[float, float])
    assert_type(clipped(2.0), float)
    assert_type(grad(cube)(2.0), float)
    assert_type(jit(grad(clipped))(2.0), float)
    scaled(2, 3.0)


def next_value(i: int, value: float) -> float:
    return value + i


def use_control() -> None:
    assert_type(fori_loop(0, 3, next_value, 0.0), float)
    assert_type(while_loop(lambda x: x < 10.0, lambda x: 2.0 * x, 1.0), float)
    assert_type(cond(True, bent, layer, x), Floats)
    carry, _ = scan(lambda total, row: (total + 1.0, row), 0.0, x)
    assert_type(carry, float)
