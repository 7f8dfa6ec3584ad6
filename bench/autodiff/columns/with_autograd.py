"""HIPS autograd: the workloads' own source with `autograd.numpy` for `numpy`.

It allows no updates in place: what makes them is stated anew below."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import autograd.numpy as np

import autograd
from autodiff import dynamics, mixture
from autodiff.columns.translation import translated
from autodiff.workload import Workload

Function = Callable[..., Any]


class Transforms:
    """See `tasks.Transforms`."""

    def grad(self, f: Function, argnums: int | Sequence[int]) -> Function:
        return autograd.grad(f, argnums if isinstance(argnums, int) else tuple(argnums))

    def jacobian(self, f: Function, argnums: int) -> Function:
        return autograd.jacobian(f, argnums)

    def rows_jacobian(self, f: Function, argnums: Sequence[int]) -> Function:
        """There is no vmap: rows are independent, so the gradient of a column's sum holds a row of each block."""

        def blocks(*args: Any) -> Any:
            columns = [autograd.grad(lambda *xs: f(*xs)[:, k].sum(), tuple(argnums))(*args) for k in range(f(*args).shape[1])]  # noqa: B023
            return tuple(np.stack(parts, axis=1) for parts in zip(*columns))

        return blocks

    def hessian(self, f: Function, argnums: int) -> Function:
        return autograd.hessian(f, argnums)


def triangular(elements):
    rows, columns = np.tril_indices(mixture.D, -1)
    places = np.zeros((len(rows), mixture.D, mixture.D))
    places[np.arange(len(rows)), rows, columns] = 1
    return np.tensordot(elements, places, 1)


def convolved(x, w):
    height, width = x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1
    windows = [(i, j) for i in range(w.shape[0]) for j in range(w.shape[1])]
    return sum(x[:, i : i + height, j : j + width] @ w[i, j] for i, j in windows)


def leapfrog(q, p, stiffness, steps):
    nothing = np.zeros(1)

    def force(q):
        stretch = q[1:] - q[:-1]
        tension = stiffness * (stretch + 0.5 * stretch**3)
        return -0.1 * q + np.concatenate([tension, nothing]) - np.concatenate([nothing, tension])

    for _ in range(steps):
        p = p + 0.5 * dynamics.DT * force(q)
        q = q + dynamics.DT * p
        p = p + 0.5 * dynamics.DT * force(q)
    return 0.5 * ((q * q).sum() + (p * p).sum())


def jacobi(source, conductivity, target):
    u, change = np.zeros(target.shape), 1.0
    while change > dynamics.TOLERANCE:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = (conductivity * around + source) / (4 * conductivity + 1)
        change = np.abs(new - u[1:-1, 1:-1]).max()
        u = np.pad(new, 1, "constant")
    return 0.5 * ((u - target) ** 2).sum()


OWN = (triangular, convolved, leapfrog, jacobi)


def primal(workload: Workload) -> Function:
    return translated(workload, "autograd.numpy", OWN)


def converted(f: Function) -> Function:
    """A function that finds NumPy as a global, with autograd's in its place."""
    return types.FunctionType(f.__code__, {**f.__globals__, "np": np}, f.__name__, f.__defaults__)
