"""Columns of the measurements: a NumPy function in each library, compiled, with arguments on the device.

Every column gets the same source. CuPy and JAX get it with their module in the place of `numpy`, `torch.compile` by way of
`torch.compiler.wrap_numpy`, which takes tensors. A gradient is JAX's, PyTorch's and jitml's own of the loss, and CuPy's as
written by hand. A column that cannot run a program says why.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Function = Callable[..., Any]
COLUMNS = ("jitml", "cupy", "cupy fused", "jax", "torch.compile")
PACKAGES = {"cupy": "cupy", "cupy fused": "cupy", "jax": "jax", "torch.compile": "torch"}


def to_device(column: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arrays on the device; numbers and the like as they are."""
    return tuple(_MOVES[column](x) if isinstance(x, np.ndarray) else x for x in args)


def to_host(x: Any) -> Any:
    """An array of any column, as NumPy's."""
    if hasattr(x, "detach"):
        return x.detach().cpu().numpy()
    return x.get() if type(x).__module__.startswith("cupy") else np.asarray(x)


def _of_jitml(x: Any) -> Any:
    import jitml

    return jitml.asarray(x, device="cuda")


def _of_cupy(x: Any) -> Any:
    import cupy

    return cupy.asarray(x)


def _of_jax(x: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.device_put(x)


def _of_torch(x: Any) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(x)).cuda()


_MOVES: Mapping[str, Function] = {
    "jitml": _of_jitml,
    "stand-in": lambda x: x,
    "cupy": _of_cupy,
    "cupy fused": _of_cupy,
    "jax": _of_jax,
    "torch.compile": _of_torch,
}


@cache
def translated(module: str, library: str) -> types.ModuleType:
    """A module of workloads, or of kernels, with a library in the place of `numpy`; its tables stay empty."""
    path = Path(str(importlib.import_module(module).__file__))
    found = types.ModuleType(f"{module}_in_{library}")
    found.__file__ = str(path)
    source = path.read_text().replace("import numpy as np", f"import {library} as np")
    source = source.replace("from workloads.workload import workload", "")
    sys.modules[found.__name__] = found
    found.__dict__["workload"] = lambda *_, **__: lambda f: f
    exec(compile(source, str(path), "exec"), found.__dict__)
    return found


def in_library(function: Function, library: str) -> Function:
    """A function of a module of workloads or kernels, of the module that has another library in the place of `numpy`."""
    module = translated(function.__module__, library)
    name = function.__qualname__
    if name.isidentifier():
        return getattr(module, name)  # type: ignore[no-any-return]  # functions are what is asked for
    # A lambda: of its module's own text, its names are those of the translated module.
    return types.FunctionType(function.__code__, vars(module), "f", function.__defaults__, function.__closure__)


def compiled(
    column: str, function: Function, loss: Function | None = None, argnums: tuple[int, ...] = (), fastmath: Any = False
) -> Function:
    """The function of a column, for arrays on the device; it returns before they are computed.

    Args:
        function: plain NumPy; of a gradient, the one by hand.
        loss, argnums: of a gradient, the function that it is of, and by which arguments.
        fastmath: what jitml may do.
    """
    if column in ("jitml", "stand-in"):
        import jitml

        return jitml.jit(function if loss is None else jitml.grad(loss, argnums=argnums), verify="never", fastmath=fastmath)
    if column == "cupy":
        return in_library(function, "cupy")
    if column == "cupy fused":
        import cupy

        return cupy.fuse(in_library(function, "cupy"))  # type: ignore[no-any-return]  # it has no types
    if column == "jax":
        return _in_jax(function, loss, argnums)
    return _in_torch(function, loss, argnums)


def _in_jax(function: Function, loss: Function | None, argnums: tuple[int, ...]) -> Function:
    import jax

    from peers import jax_peer

    own = jax_peer.OWN.get(function.__name__)
    if loss is not None:
        return jax.jit(jax.grad(in_library(loss, "jax.numpy"), argnums=argnums))  # type: ignore[no-any-return]  # likewise
    static = jax_peer.STATIC.get(function.__name__, ())
    return jax.jit(own or in_library(function, "jax.numpy"), static_argnums=static)  # type: ignore[no-any-return]  # likewise


def _in_torch(function: Function, loss: Function | None, argnums: tuple[int, ...]) -> Function:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch._dynamo.config.suppress_errors = False
    wrapped = torch.compile(torch.compiler.wrap_numpy(function if loss is None else loss), fullgraph=True, dynamic=False)
    if loss is None:
        return wrapped  # type: ignore[no-any-return]  # likewise

    def gradient(*args: Any) -> Any:
        given = [x.detach().requires_grad_(True) if k in argnums else x for k, x in enumerate(args)]
        found = torch.autograd.grad(wrapped(*given), [given[k] for k in argnums])
        return found if len(argnums) > 1 else found[0]

    return gradient
