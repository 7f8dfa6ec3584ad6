"""Functions and what transforms make of them, with a call of each: run as `__main__`, and imported."""

from __future__ import annotations

import functools
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jitml

X = np.array([0.5, 1.0, 2.0])


def helper(x: Any) -> Any:
    total = 0.0
    for _ in range(40):
        total = total + np.sin(x).sum()
    return total


def plain(x: Any) -> Any:
    return helper(x) * 2


@jitml.jit
def decorated(x: Any) -> Any:
    return plain(x) + 1


@functools.partial(jitml.jit, static_argnames="n")
def recursive(x: Any, n: int) -> Any:
    return x if n == 0 else recursive(x * 2, n=n - 1)


@jitml.grad
def sloped(x: Any) -> Any:
    return (x**3).sum()


@jitml.custom_jvp
def ruled(x: Any) -> Any:
    return np.log1p(np.exp(x))


@ruled.defjvp
def _rule(primals: Any, tangents: Any) -> Any:
    return ruled(*primals), tangents[0] * 7


class Base:
    @jitml.jit
    def total(self, x: Any) -> Any:
        return helper(x) * self.w  # type: ignore[attr-defined]  # of whom inherits it


class Model(Base):
    def __init__(self, w: float) -> None:
        self.w = w

    def loss(self, x: Any) -> Any:
        return (x**2).sum() * self.w

    slope = jitml.jit(jitml.grad(loss, argnums=1))


def around(k: float) -> Callable[..., Any]:
    return lambda x: helper(x) * k


NAMED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "jit": (jitml.jit(plain), (X,)),
    "decorated": (decorated, (X,)),
    "recursive": (functools.partial(recursive, n=3), (2.0,)),
    "a method": (Model(2.0).total, (X,)),
    "a method, unbound": (Base.total, (Model(3.0), X)),
    "a method that is a slope": (Model(2.0).slope, (X,)),
    "grad": (jitml.grad(plain), (X,)),
    "grad as a decorator": (sloped, (X,)),
    "value_and_grad by name": (jitml.value_and_grad(plain, argnames="x"), (X,)),
    "jit of grad": (jitml.jit(jitml.grad(plain)), (X,)),
    "grad of jit": (jitml.grad(jitml.jit(plain)), (X,)),
    "grad of what is decorated": (jitml.grad(decorated), (X,)),
    "jit of grad of grad": (jitml.jit(jitml.grad(jitml.grad(np.sin))), (1.0,)),
    "vmap": (jitml.vmap(plain, in_axes=1), (np.ones((3, 2)),)),
    "vmap of grad": (jitml.vmap(jitml.grad(plain)), (np.ones((2, 3)),)),
    "jacfwd": (jitml.jacfwd(plain), (X,)),
    "jacrev": (jitml.jacrev(plain), (X,)),
    "jacobian": (jitml.jacobian(np.cumsum), (X,)),
    "hessian": (jitml.jit(jitml.hessian(plain)), (X,)),
    "checkpoint": (jitml.grad(jitml.checkpoint(plain, policy="dots")), (X,)),
    "a rule": (ruled, (1.0,)),
    "grad of a rule": (jitml.grad(ruled), (1.0,)),
    "a class's own": (Model.slope, (Model(2.0), X)),
    "grad of a method": (jitml.grad(Model(2.0).loss), (X,)),
    "jit of a method": (jitml.jit(Model(2.0).loss), (X,)),
    "a partial": (functools.partial(jitml.grad(Model.loss, argnums=1), Model(3.0)), (X,)),
    "grad of a partial": (jitml.grad(functools.partial(Model.loss, Model(3.0))), (X,)),
}
# What has no name that leads to it: picklers that go by names cannot have it.
NAMELESS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a closure": (jitml.jit(around(2.0)), (X,)),
    "grad of a closure": (jitml.grad(around(2.0)), (X,)),
    "a rule of a lambda": (jitml.custom_vjp(lambda x: x * 1.0), (X,)),
    "jit of a lambda": (jitml.jit(lambda x: decorated(x) * 2), (X,)),
}


def answers(f: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """The answer; a function that runs as plain Python warns, which is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return repr(f(*args))


def unlike(there_and_back: Callable[[Any], Any], cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[str]:
    """The cases that answer otherwise when they have been pickled or copied."""
    wrong = []
    for name, (f, args) in cases.items():
        try:
            got = answers(there_and_back(f), args)
        except Exception as error:
            got = repr(error)
        if got != (want := answers(f, args)):
            wrong.append(f"{name}: {got} and not {want}")
    return wrong


SENT = (
    "jit", "decorated", "recursive", "a method", "a method that is a slope", "grad as a decorator", "jit of grad", "vmap",
    "a rule", "a partial", "a closure", "grad of a rule", "jit of a lambda",
)  # fmt: skip


def main() -> None:
    """In the process of `__main__`: write what another process is to load."""
    import cloudpickle

    cases = {name: case for name, case in {**NAMED, **NAMELESS}.items() if name in SENT}
    print(*unlike(lambda f: pickle.loads(pickle.dumps(f)), {"decorated": NAMED["decorated"]}), end="")
    with open(sys.argv[1], "wb") as file:
        pickle.dump(
            {name: (cloudpickle.dumps(f), pickle.dumps(args), answers(f, args)) for name, (f, args) in cases.items()}, file
        )


if __name__ == "__main__":
    main()
