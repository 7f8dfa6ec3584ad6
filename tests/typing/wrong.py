"""Calls that type checkers have to report, and what each of them calls the error: mypy, then pyright.

none: it does not see it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import jitml
from jitml import custom_jvp, custom_vjp, grad, hvp, jit, jvp, linearize, value_and_grad, vjp, vmap
from jitml.typing import JitOptions, Jitted

Floats = NDArray[np.float64]

x: Floats = np.ones(3)


@jit
def scale(x: Floats, factor: float = 2.0) -> Floats:
    return np.multiply(x, factor)


class Model:
    @jit
    def predict(self, x: Floats, shift: float = 0.0) -> Floats:
        return np.add(x, shift)

    @staticmethod
    @jit
    def scaled(x: Floats, factor: int = 2) -> Floats:
        return np.multiply(x, factor)

    @classmethod
    @jit
    def started(cls, x: Floats, at: float = 0.0) -> Floats:
        return np.add(x, at)

    @jitml.checkpoint
    def layer(self, x: Floats) -> Floats:
        return np.sin(x)


def loss(w: Floats, b: float = 1.0) -> float:
    return float(w.sum()) * b


def name(w: Floats) -> str:
    return str(w)


def loss_and_text(w: Floats) -> tuple[float, str]:
    return loss(w), "text"


def bent(x: Floats) -> Floats:
    return np.sin(x)


@custom_jvp
def cube(x: float) -> float:
    return x**3


@custom_vjp
def clipped(x: float) -> float:
    return x


def jitted_functions() -> None:
    scale("text")  # error: arg-type, reportArgumentType
    scale(x, x=2)  # error: misc, reportCallIssue
    scale(x, facto=2.0)  # error: call-arg, reportCallIssue
    scale()  # error: call-arg, reportCallIssue
    scale(x).no_such_method()  # error: attr-defined, reportAttributeAccessIssue
    print(scale.no_such_attribute)  # error: attr-defined, reportAttributeAccessIssue
    scale.explain("text")  # error: arg-type, reportArgumentType
    scale.lower(x, facto=2.0)  # error: call-arg, reportCallIssue
    text: str = scale(x)  # error: assignment, reportAssignmentType
    print(text)


def calls_of_jit() -> None:
    jit(loss, fast=True)  # error: call-overload, reportCallIssue
    jit(fast=True)  # error: call-overload, reportCallIssue
    jit(loss, host_calls="perhaps")  # error: call-overload, reportCallIssue
    jit(3)  # error: call-overload, reportCallIssue
    jit(fastmath=True)(loss)("text")  # error: arg-type, reportArgumentType
    options: JitOptions = {"fastmat": True}  # error: typeddict-unknown-key, reportAssignmentType
    other: Jitted[[str], float] = jit(loss)  # error: arg-type, reportAssignmentType
    print(options, other)
    print(jitml.no_such_name)  # error: attr-defined, reportAttributeAccessIssue
    print(jitml.numpy.no_such_name)  # error: attr-defined, reportAttributeAccessIssue


def methods() -> None:
    model = Model()
    model.predict("text")  # error: call-overload, reportArgumentType
    model.predict(x, shif=1.0)  # error: call-overload, reportCallIssue
    model.predict()  # error: call-overload, reportCallIssue
    Model.predict(model, "text")  # error: call-overload, reportArgumentType
    Model.scaled("text")  # error: none, reportArgumentType
    model.scaled(x, facto=2)  # error: call-overload, reportCallIssue
    Model.started("text")  # error: call-overload, reportArgumentType
    model.started(x, a=2.0)  # error: call-overload, reportCallIssue
    model.layer("text")  # error: call-overload, reportArgumentType


def gradients() -> None:
    grad(loss)("text")  # error: arg-type, reportArgumentType
    grad(loss)(x, c=1.0)  # error: call-arg, reportCallIssue
    grad(loss)(w=x)  # error: call-arg, reportCallIssue
    grad(name)  # error: arg-type, reportCallIssue
    grad(loss_and_text)  # error: arg-type, reportCallIssue
    grad(loss, has_aux=True)  # error: call-overload, reportCallIssue
    grad(loss, argnum=0)  # error: call-overload, reportCallIssue
    grad(3.0)  # error: call-overload, reportCallIssue
    grad(loss, argnums=1)(x, "text")  # error: arg-type, reportArgumentType
    value, slope = value_and_grad(loss)(x)
    value.no_such_method()  # error: attr-defined, reportAttributeAccessIssue
    slope.no_such_method()  # error: attr-defined, reportAttributeAccessIssue
    value_and_grad(name)  # error: type-var, reportCallIssue


def directions() -> None:
    jvp(bent, (x,), (x, x))  # error: arg-type, reportCallIssue
    jvp(bent, x, x)  # error: call-overload, reportCallIssue
    jvp(bent, ("text",), ("text",))  # error: arg-type, reportCallIssue
    vjp(loss, "text")  # error: arg-type, reportArgumentType
    vjp(bent, x)[1]()  # error: call-arg, reportCallIssue
    linearize(bent, x)[1]("text")  # error: arg-type, reportArgumentType
    hvp(loss, (x,), ("text",))  # error: arg-type, reportCallIssue
    jitml.hessian(loss)("text")  # error: arg-type, reportArgumentType
    jitml.jacobian(bent)(x, x)  # error: call-arg, reportCallIssue
    jitml.jacfwd(bent, argnum=0)  # error: call-overload, reportCallIssue


def others() -> None:
    vmap(bent)("text")  # error: arg-type, reportArgumentType
    vmap(loss)(x, c=1.0)  # error: call-arg, reportCallIssue
    vmap(bent)(x).no_such_method()  # error: attr-defined, reportAttributeAccessIssue
    jitml.checkpoint(bent)("text")  # error: arg-type, reportArgumentType
    jitml.checkpoint(bent, polic="dots")  # error: call-overload, reportCallIssue
    cube("text")  # error: arg-type, reportArgumentType
    clipped(1.0, 2.0)  # error: call-arg, reportCallIssue
    print(cube.defvjp)  # error: attr-defined, reportAttributeAccessIssue
    clipped.defvjp(loss)  # error: call-arg, reportCallIssue
    jitml.stop_gradient(x).no_such_method()  # error: attr-defined, reportAttributeAccessIssue
    jitml.fori_loop(0, 3, lambda i: i, 0)  # error: misc, reportArgumentType
    jitml.cond(True, bent, bent, x, x)  # error: arg-type, reportArgumentType
