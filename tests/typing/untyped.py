# mypy: allow-untyped-defs, allow-untyped-calls
# pyright: basic
"""Functions without annotations, and lambdas: nothing is known of their parameters, and no right call is reported."""

from __future__ import annotations

import numpy as np

import jitml
from jitml import jit

x = np.ones(3)


@jit
def scale(x, factor=2.0):
    return x * factor


@jit(fastmath=True)
def shift(x, by):
    return x + by


class Model:
    @jit
    def predict(self, x, w):
        return x * w

    @staticmethod
    @jit
    def scaled(x, w):
        return x * w

    @classmethod
    @jit
    def started(cls, x, w):
        return x * w


def use_functions():
    scale(x)
    scale(x, factor=3.0)
    shift(x, 1)


def use_methods():
    model = Model()
    model.predict(x, 1.0)
    model.scaled(x, w=1.0)
    model.started(x, 1.0)
    Model.predict(model, x, 1.0)
    Model.scaled(x, 1.0)
    Model.started(x, w=1.0)


def use_lambdas():
    jit(lambda x: x + 1)(3)
    jitml.explain(lambda x: x + 1, x)
    jitml.grad(lambda x: x * x)(3.0) * 2.0
    jitml.grad(lambda x: (x * x).sum())(x).sum()
    jitml.grad(jitml.grad(lambda x: x * x * x))(3.0)
    jitml.grad(lambda w: w["a"] * 2.0)({"a": 1.0})["a"]
    value, slope = jitml.value_and_grad(lambda x, y: x * y)(3.0, 2.0)
    print(value + slope)
    value, slope = jitml.value_and_grad(lambda x: (x * x, "text"), has_aux=True)(3.0)
    value[1].upper()
    slope.sum()
    jitml.vmap(lambda x, y: x * y)(x, x).sum()
    jitml.vmap(lambda x: {"a": x})(x)["a"]
    jitml.vmap(jitml.grad(lambda x: x * x))(x)
    jitml.vjp(lambda x: x * 2, 2.0)[1](1.0)[0] * 2.0
    jitml.jvp(lambda x: x * 2, (x,), (x,))
    jitml.jacobian(lambda x: x * x)(x).sum()
    jitml.hessian(lambda x: (x * x).sum())(x).sum()
    jitml.hvp(lambda x: (x * x).sum(), (x,), (x,)).sum()
    jitml.checkpoint(lambda x: x * x)(x)
    jitml.custom_jvp(lambda x: x * x)(x)
    jitml.fori_loop(0, 3, lambda i, total: total + i, 0)
    jitml.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    jitml.cond(True, lambda x: x + 1, lambda x: x - 1, 10)
    jitml.scan(lambda total, x: (total + x, total), 0, x)


def use_functions_of_numpy():
    jit(np.sin)(x)
    jitml.vmap(np.dot)(np.ones((2, 3)), np.ones((2, 3)))
    jitml.vmap(np.sin)(x)
    jitml.grad(np.sin)(1.0)
    jitml.vjp(np.sin, x)
    jitml.jvp(np.square, (x,), (x,))
    jitml.jacobian(np.sin)(x)
