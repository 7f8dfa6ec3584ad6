"""JAX: the workloads' own source with `jax.numpy` for `numpy`, jitted, with 64-bit types and device arrays in.

Programs that loop or write into arrays are stated anew in `jax_ports.py`, as a JAX user would.
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

from peers.jax_ports import OWN, STATIC
from workloads import Workload

jax.config.update("jax_enable_x64", True)


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
    jitted = jax.jit(function, static_argnums=STATIC.get(workload.name, ()))
    return lambda *args: jax.block_until_ready(jitted(*args))


def to_device(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments as JAX likes them best; whole numbers may be lengths, which it has to know when it compiles."""
    return tuple(x if isinstance(x, int) else jnp.asarray(x) for x in args)
