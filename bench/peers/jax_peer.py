"""JAX: the workloads' own source with `jax.numpy` for `numpy`, jitted, with 64-bit types and device arrays in.

Programs that write into arrays are stated anew below, as a JAX user would.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from workloads import Workload

jax.config.update("jax_enable_x64", True)


def heat_step(u):
    inner = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u.at[1:-1, 1:-1].set(inner)


def jacobi_in_place(u):
    return u.at[1:-1, 1:-1].set(0.2 * (u[1:-1, 1:-1] + u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]))


def adam_update(parameters, gradient, first, second):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    return parameters - 0.001 * (first / 0.9) / (jnp.sqrt(second / 0.999) + 1e-8), first, second


def advance(u, steps):
    def step(_, u):
        inner = u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].add(0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner))

    return jax.lax.fori_loop(0, steps, step, u)


def life(grid, steps):
    def step(_, grid):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        count = sum(jnp.roll(grid, shift, axis=(0, 1)) for shift in shifts)
        return ((count == 3) | ((grid == 1) & (count == 2))).astype(grid.dtype)

    return jax.lax.fori_loop(0, steps, step, grid)


OWN = {f.__name__: f for f in (heat_step, jacobi_in_place, adam_update, advance, life)}


@cache
def _translated(family: str) -> types.ModuleType:
    """A family's module with `jax.numpy` in the place of `numpy`."""
    path = Path(str(importlib.import_module(f"workloads.{family}").__file__))
    module = types.ModuleType(f"workloads_in_jax.{family}")
    module.__file__ = str(path)
    source = (
        path.read_text()
        .replace("import numpy as np", "import jax.numpy as np")
        .replace("from workloads.workload import workload", "")
    )
    sys.modules[module.__name__] = module
    module.__dict__["workload"] = lambda *_, **__: lambda f: f
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def compiled(workload: Workload) -> Callable[..., Any]:
    """The workload under jax.jit; takes device arrays, returns when the result is there."""
    if workload.name in OWN:
        function = OWN[workload.name]
    else:
        module = _translated(workload.family)
        function = getattr(module, workload.name)
        if workload.loss is not None:
            function = jax.grad(getattr(module, workload.loss.__name__), argnums=workload.argnums)
    jitted = jax.jit(function)
    return lambda *args: jax.block_until_ready(jitted(*args))


def to_device(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments as JAX likes them best."""
    return tuple(jnp.asarray(x) for x in args)
