"""Arrays on a real device: in and out, exchanged with other libraries, and as arguments of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import jitml
from gpu.cases import Cases, Outcome, Setting
from gpu.correctness.leads import microseconds_of
from gpu.failures import Mismatch, Skipped, require_same

Array = np.ndarray[Any, Any]


def cases(setting: Setting) -> Cases:
    yield "in and out", in_and_out
    yield "views", views
    for library in ("torch", "cupy", "jax", "numba"):
        yield f"{library}'s arrays in", partial(arrays_in, library)
        yield f"arrays out to {library}", partial(arrays_out, library)
    for name, (function, make) in FUNCTIONS.items():
        yield f"jit of arrays on the device: {name}", partial(compiled, function, make, as_option=False)
        yield f"jit(device='cuda') of NumPy's arrays: {name}", partial(compiled, function, make, as_option=True)
    yield "arguments changed in place", changed_in_place
    for library in ("torch", "cupy"):
        yield f"{library}'s arrays to a compiled function", partial(arguments_of, library)
    yield "cupy's arrays in managed memory", managed_memory
    yield "a gradient", gradient
    if setting.device == "real":
        yield "the time of a call", time_of_a_call


def on_device(x: Any) -> Any:
    return jitml.asarray(x, device="cuda")


def in_and_out() -> None:
    rng = np.random.default_rng(0)
    for dtype in ("f4", "f8", "f2", "i4", "i8", "u1", "?", "c8", "c16"):
        x = (rng.normal(size=(37, 41)) * 50).astype(dtype)
        require_same([np.asarray(on_device(x))], [x], 0)
    for x in (np.float64(2.5), np.zeros((0, 3)), np.arange(12).reshape(3, 4).T, np.arange(20)[::-3]):
        require_same([np.asarray(on_device(x))], [np.asarray(x)], 0)


def views() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    y = on_device(x)
    require_same([np.asarray(y[1]), np.asarray(y[:, 1:]), np.asarray(y.T)], [x[1], x[:, 1:], x.T], 0)


def require_library(name: str) -> None:
    if find_spec(name) is None:
        raise Skipped(f"no {name}")


def arrays_in(library: str) -> None:
    require_library(library)
    x = np.random.default_rng(0).normal(size=(50, 30))
    theirs = _IN[library](x)
    mine = on_device(theirs)
    require_same([np.asarray(mine)], [x], 0)
    if library != "jax":
        theirs[0, 0] = 7.0
        if library == "torch":
            import torch

            torch.cuda.synchronize()
        if np.asarray(on_device(theirs))[0, 0] != 7.0:
            raise Mismatch("a change does not show")


def _numba_in(x: Array) -> Any:
    from numba import cuda

    try:
        return cuda.to_device(x)
    except AttributeError as error:  # of NumPy, which Numba takes for an older one
        raise Skipped(f"Numba does not run with this NumPy: {error}") from error


def _torch_in(x: Array) -> Any:
    import torch

    return torch.from_numpy(x).cuda()


def _cupy_in(x: Array) -> Any:
    import cupy

    return cupy.asarray(x)


def _jax_in(x: Array) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.device_put(x)


_IN: dict[str, Callable[[Array], Any]] = {"torch": _torch_in, "cupy": _cupy_in, "jax": _jax_in, "numba": _numba_in}


def arrays_out(library: str) -> None:
    require_library(library)
    x = np.random.default_rng(0).normal(size=(50, 30))
    mine = on_device(x)
    if library == "torch":
        import torch

        got = torch.from_dlpack(mine).cpu().numpy()
    elif library == "cupy":
        import cupy

        got = np.concatenate([cupy.from_dlpack(mine).get(), cupy.asarray(mine).get()])
        x = np.concatenate([x, x])
    elif library == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        got = np.asarray(jax.dlpack.from_dlpack(mine))
    else:
        from numba import cuda

        got = cuda.as_cuda_array(mine).copy_to_host()
    require_same([got], [x], 0)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def several(x: Any, y: Any) -> Any:
    return {"sum": x + y, "rest": (x @ y.T, x.sum(), np.sort(y, axis=0))}


def random_matrix() -> tuple[Any, ...]:
    return (np.random.default_rng(0).normal(size=(300, 200)),)


def two_matrices() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(100, 80)), rng.normal(size=(100, 80))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "softmax": (softmax, random_matrix),
    "several results": (several, two_matrices),
    "numbers": (lambda x, k: (x * k, x[k]), lambda: (np.arange(30.0), 3)),
}


def compiled(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], as_option: bool) -> None:
    import optree

    args = make()
    expected = function(*args)
    if as_option:
        found = jitml.jit(function, device="cuda", verify="never")(*args)  # type: ignore[call-arg]  # once it is there
    else:
        given = [on_device(x) if isinstance(x, np.ndarray) else x for x in args]
        found = jitml.jit(function, verify="never")(*given)
        others = {type(x).__name__ for x in optree.tree_leaves(found)} - {"Array"}
        if others:
            raise Mismatch(f"results are {others}, and not on the device")
    require_same([np.asarray(x) for x in optree.tree_leaves(found)], [np.asarray(x) for x in optree.tree_leaves(expected)])


def add_in_place(x: Any) -> None:
    x[1:] += 2 * x[:-1]


def changed_in_place() -> None:
    x = np.arange(1000.0)
    mine = on_device(x)
    jitml.jit(add_in_place, verify="never")(mine)
    add_in_place(x)
    require_same([np.asarray(mine)], [x])


def arguments_of(library: str) -> None:
    """By position and by name, of a gradient, and changed in place, where the library sees it."""
    require_library(library)
    (x,) = random_matrix()
    theirs = _IN[library](x)
    require_same([np.asarray(jitml.jit(softmax, verify="never")(theirs))], [softmax(x)])
    require_same([np.asarray(jitml.jit(softmax, verify="never")(x=theirs[::2]))], [softmax(x[::2])])
    require_same([np.asarray(jitml.grad(lambda v: (v**2).sum())(theirs))], [2 * x])
    jitml.jit(add_in_place, verify="never")(theirs)
    add_in_place(x)
    require_same([theirs.get() if library == "cupy" else theirs.cpu().numpy()], [x])


def managed_memory() -> None:
    require_library("cupy")
    import cupy

    (x,) = random_matrix()
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        theirs = cupy.asarray(x)
    require_same([np.asarray(jitml.jit(softmax, verify="never")(theirs))], [softmax(x)])


def gradient() -> None:
    (x,) = random_matrix()
    found = jitml.jit(jitml.grad(lambda x: (np.tanh(x) ** 2).sum()), verify="never")(on_device(x))
    require_same([np.asarray(found)], [2 * np.tanh(x) * (1 - np.tanh(x) ** 2)])


def time_of_a_call() -> Outcome:
    from jitml.codegen.cuda.runtime.devices import device

    (x,) = random_matrix()
    jitted, mine = jitml.jit(softmax, verify="never"), on_device(x)
    jitted(mine)
    return {"figures": {"host us": microseconds_of(lambda: jitted(mine), device().synchronize)}}
