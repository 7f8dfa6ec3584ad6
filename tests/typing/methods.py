"""What type checkers have to know of functions in classes: methods, static methods, class methods and nested functions."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import jitml
from jitml import jit

Floats = NDArray[np.float64]

x: Floats = np.ones(3)


def square(model: object, x: float) -> float:
    return x * x


class Model:
    def __init__(self, w: float) -> None:
        self.w = w

    @jit
    def predict(self, x: Floats, shift: float = 0.0) -> Floats:
        return np.add(np.multiply(x, self.w), shift)

    @jit(fastmath=True)
    def loss(self, x: Floats) -> float:
        return float(np.sum(self.predict(x, shift=1.0)))

    @staticmethod
    @jit
    def scaled(x: Floats, factor: int = 2) -> Floats:
        return np.multiply(x, factor)

    @classmethod
    @jit
    def started(cls, x: Floats, at: float = 0.0) -> Floats:
        return np.add(x, at)

    @staticmethod
    @jit
    def three() -> Floats:
        return np.ones(3)

    @jitml.checkpoint
    def layer(self, x: Floats) -> Floats:
        return np.sin(x)

    @jitml.custom_jvp
    def squared(self, x: float) -> float:
        return x * x

    slope = jitml.grad(square, argnums=1)

    def use_from_inside(self) -> tuple[Floats, Floats, Floats]:
        return self.predict(x, 1.0), self.scaled(x), self.started(x, at=1.0)


class Child(Model):
    # Pyright compares the type of `self` too, where the method is no plain function.
    @jit
    def predict(self, x: Floats, shift: float = 0.0) -> Floats:  # pyright: ignore[reportIncompatibleVariableOverride]
        return np.multiply(x, self.w - shift)


def use_methods() -> None:
    model = Model(2.0)
    assert_type(model.predict(x), Floats)
    assert_type(model.predict(x, shift=1.0), Floats)
    assert_type(model.loss(x), float)
    assert_type(Model.predict(model, x), Floats)
    assert_type(Child(1.0).predict(x), Floats)
    assert_type(model.use_from_inside(), tuple[Floats, Floats, Floats])
    Model.predict.clear_cache()


def use_static_methods() -> None:
    assert_type(Model.scaled(x), Floats)
    assert_type(Model.scaled(x, factor=3), Floats)
    assert_type(Model(1.0).scaled(x), Floats)
    assert_type(Model.three(), Floats)
    assert_type(Model(1.0).three(), Floats)


def use_class_methods() -> None:
    assert_type(Model.started(x), Floats)
    assert_type(Model.started(x, at=2.0), Floats)
    assert_type(Model(1.0).started(x), Floats)


def use_what_transforms_make() -> None:
    model = Model(2.0)
    assert_type(model.layer(x), Floats)
    assert_type(model.squared(2.0), float)
    assert_type(model.slope(3.0), Any)
    assert_type(jitml.jit(model.predict)(x, shift=2.0), Floats)
    assert_type(jitml.vmap(model.predict)(np.ones((2, 3))), Floats)
