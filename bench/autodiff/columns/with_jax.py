"""JAX: the workloads' own source with `jax.numpy` for `numpy`, jitted, with 64-bit types and device arrays in.

What writes into arrays, or would be unrolled, is stated anew below, as a JAX user would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from autodiff import dynamics, mixture
from autodiff.columns.translation import translated
from autodiff.workload import Workload

jax.config.update("jax_enable_x64", True)

Function = Callable[..., Any]


class Transforms:
    """See `tasks.Transforms`."""

    def grad(self, f: Function, argnums: int | Sequence[int]) -> Function:
        return jax.grad(f, argnums=argnums)

    def jacobian(self, f: Function, argnums: int) -> Function:
        return jax.jacfwd(f, argnums=argnums)  # the one workload that asks has more results than arguments

    def rows_jacobian(self, f: Function, argnums: Sequence[int]) -> Function:
        return jax.vmap(jax.jacrev(f, argnums=tuple(argnums)))  # two results, fifteen arguments

    def hessian(self, f: Function, argnums: int) -> Function:
        return jax.hessian(f, argnums=argnums)


def triangular(elements):
    rows, columns = jnp.tril_indices(mixture.D, -1)
    return jnp.zeros((mixture.K, mixture.D, mixture.D)).at[:, rows, columns].set(elements)


def lstm(to_gates, again, bias, x, target):
    def step(state, given):
        h, c = state
        x, wanted = given
        gates = x @ to_gates + h @ again + bias
        i, f, o, g = jnp.split(gates, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), ((h - wanted) ** 2).mean()

    start = jnp.zeros(target.shape[1:])
    return lax.scan(step, (start, start), (x, target))[1].mean()


def leapfrog(q, p, stiffness, steps):
    def force(q):
        stretch = q[1:] - q[:-1]
        tension = stiffness * (stretch + 0.5 * stretch**3)
        return (-0.1 * q).at[:-1].add(tension).at[1:].add(-tension)

    def step(state, _):
        q, p = state
        p = p + 0.5 * dynamics.DT * force(q)
        q = q + dynamics.DT * p
        return (q, p + 0.5 * dynamics.DT * force(q)), None

    (q, p), _ = lax.scan(step, (q, p), length=steps)
    return 0.5 * ((q * q).sum() + (p * p).sum())


def jacobi(source, conductivity, target):
    """Reverse mode does not go through a while_loop: as many steps as may be needed, of which those after the end do nothing."""

    def step(state):
        u, _ = state
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = (conductivity * around + source) / (4 * conductivity + 1)
        return u.at[1:-1, 1:-1].set(new), jnp.abs(new - u[1:-1, 1:-1]).max()

    def unless_done(state, _):
        return lax.cond(state[1] > dynamics.TOLERANCE, step, lambda state: state, state), None

    (u, _), _ = lax.scan(unless_done, (jnp.zeros(target.shape), jnp.array(1.0)), length=dynamics.LIMIT)
    return 0.5 * ((u - target) ** 2).sum()


OWN = (triangular, lstm, leapfrog, jacobi)


def primal(workload: Workload) -> Function:
    return translated(workload, "jax.numpy", OWN)


def jitted(workload: Workload) -> tuple[Function, Function]:
    """The primal and its derivative, under jax.jit; an int that counts steps is static."""
    f = primal(workload)
    static = (3,) if workload.name == "leapfrog" else ()
    return jax.jit(f, static_argnums=static), jax.jit(workload.task.of(Transforms(), f), static_argnums=static)


def to_device(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments as JAX likes them best."""
    return tuple(x if isinstance(x, int) else jnp.asarray(x) for x in args)


def finished(f: Function) -> Function:
    """Returns when the result is there."""
    return lambda *args: jax.block_until_ready(f(*args))


def compiled_again(workload: Workload, args: tuple[Any, ...]) -> int:
    """From function to machine code, nothing known from before; the bytes of intermediate values and results."""
    jax.clear_caches()
    memory = jitted(workload)[1].lower(*args).compile().memory_analysis()
    return int(memory.temp_size_in_bytes + memory.output_size_in_bytes)
