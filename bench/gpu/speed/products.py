"""Products of matrices and attention beside PyTorch's, with 32-bit floats left whole; and functions of twenty small kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Skipped
from gpu.speed.columns import compiled, to_device, to_host
from gpu.speed.limits import random
from gpu.speed.suites import model_of, require_near
from gpu.speed.timing import finish, medians, rotating, timings, turn

PRODUCTS = [((n, n), (n, n), dtype) for dtype in ("f4", "f8", "f2") for n in (512, 2048, 4096)]
PRODUCTS += [((8192, 8192), (8192, 8192), "f4"), ((4096, 1024), (1024, 50), "f8"), ((64, 512, 64), (64, 64, 512), "f4")]

ATTENTION = ((32, 256, 64), (32, 1024, 64), (16, 4096, 64), (32, 1024, 128))  # heads, length, width


def product(x, y):
    return x @ y


def product_bias_relu(x, y, b):
    return np.maximum(x @ y + b, 0)


def product_bias_gelu(x, y, b):
    h = x @ y + b
    return 0.5 * h * (1 + np.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))


def attention(q, k, v):
    scores = 0.125 * (q @ k.transpose(0, 2, 1))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


def attention_slopes(q, k, v):
    """Of the sum of squares, for all three; as one array, so that there is one result to compare."""
    import jitml

    dq, dk, dv = jitml.grad(lambda q, k, v: (attention(q, k, v) ** 2).sum(), argnums=(0, 1, 2))(q, k, v)
    return dq + dk + dv


def step(x):
    return 0.9 * x - 0.1 * x.max()


def twenty_steps(x):
    """Each step needs the largest element of the one before."""
    x = step(step(step(step(step(x)))))
    x = step(step(step(step(step(x)))))
    x = step(step(step(step(step(x)))))
    return step(step(step(step(step(x)))))


def layer(x, w):
    return np.tanh(0.1 * (x @ w))


def ten_layers(x, w):
    """Twenty kernels: a product, and what follows it, ten times."""
    x = layer(layer(layer(layer(layer(x, w), w), w), w), w)
    return layer(layer(layer(layer(layer(x, w), w), w), w), w)


def cases(setting: Setting) -> Cases:
    for left, right, dtype in PRODUCTS:
        yield f"{left} x {right}, {dtype}", partial(measure_product, left, right, dtype, setting)
    for n, dtype in ((2048, "f4"), (8192, "f4"), (4096, "f2")):
        yield f"bias and gelu behind {n} x {n}, {dtype}", partial(measure_epilogue, product_bias_gelu, n, dtype, setting)
        yield f"bias and relu behind {n} x {n}, {dtype}", partial(measure_epilogue, product_bias_relu, n, dtype, setting)
    for fastmath in (True, ["tf32", "nnan", "afn"]):
        yield (
            f"bias and gelu by the library, {fastmath}",
            partial(measure_epilogue, product_bias_gelu, 4096, "f4", setting, fastmath),
        )
    for shape in ATTENTION:
        yield f"attention of {shape}, f4", partial(measure_attention, attention, 4, shape, setting)
        yield f"attention and its slopes of {shape}, f4", partial(measure_attention, attention_slopes, 12, shape, setting)
    yield "ten small layers", partial(measure_launches, ten_layers, ((64, 64), (64, 64)), setting)
    for n in (1000, 100_000):
        yield f"twenty steps on {n}", partial(measure_launches, twenty_steps, ((n,),), setting)


def ours(setting: Setting) -> str:
    return "jitml" if setting.backend == "cuda" else "stand-in"


def measure_product(left: tuple[int, ...], right: tuple[int, ...], dtype: str, setting: Setting) -> Outcome:
    """Operations, a product and a sum as two."""
    args = (random(left, dtype), random(right, dtype))
    operations = 2 * np.prod(left) * right[-1]
    seconds, model = beside_torch(product, args, "torch.matmul", setting)
    figures: dict[str, Any] = {f"{name} TFLOP/s": operations / taken / 1e12 for name, taken in seconds.items()}
    if {"ours", "torch.matmul"} <= seconds.keys():
        figures["% of cuBLAS"] = 100 * seconds["torch.matmul"] / seconds["ours"]
    return {"figures": figures | {f"{name} us": 1e6 * taken for name, taken in seconds.items()}, "model": model}


def measure_epilogue(function: Callable[..., Any], n: int, dtype: str, setting: Setting, fastmath: Any = False) -> Outcome:
    args = (random((n, n), dtype), random((n, n), dtype) / np.dtype(dtype).type(n**0.5), random((n,), dtype))
    seconds, model = beside_torch(function, args, "torch, eager", setting, fastmath)
    plain, _ = beside_torch(product, args[:2], "torch.matmul", setting, fastmath)
    seconds |= {f"{name}, product alone": taken for name, taken in plain.items()}
    return {"figures": {f"{name} us": 1e6 * taken for name, taken in seconds.items()}, "model": model}


def measure_attention(function: Callable[..., Any], products: int, shape: tuple[int, ...], setting: Setting) -> Outcome:
    """
    Args:
        products: 2 for each that there is if nothing is computed twice.
    """
    args, (heads, length, width) = tuple(random(shape, "f4") for _ in range(3)), shape
    seconds, model = beside_torch(function, args, "torch, eager", setting)
    figures = {f"{name} TFLOP/s": products * heads * length**2 * width / taken / 1e12 for name, taken in seconds.items()}
    return {"figures": figures | {f"{name} us": 1e6 * taken for name, taken in seconds.items()}, "model": model}


def beside_torch(
    function: Callable[..., Any], args: tuple[Any, ...], name: str, setting: Setting, fastmath: Any = False
) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of ours, and of the same in PyTorch, which also says what is right: NumPy would take too long."""
    column, calls, model = ours(setting), {}, {}
    with turn(alone=True):
        own = to_device(column, args)
        jitted = compiled(column, function, fastmath=fastmath)
        mine = to_host(jitted(*own))
        calls["ours"] = rotating(jitted, [own])
        if setting.device == "real":
            import torch

            torch.backends.cuda.matmul.allow_tf32 = False
            theirs = to_device("torch.compile", args)
            same = _TORCH[function.__name__]
            wanted = to_host(same(*theirs))
            is_coarse = fastmath and fastmath is not True and "tf32" in fastmath
            require_near([mine], [wanted], 1e-2 if is_coarse else {2: 2e-2, 4: 1e-4, 8: 1e-10}[mine.dtype.itemsize])
            calls[name] = rotating(same, [theirs])
        model = dict(model_of(jitted, args))
        return medians(timings(calls, rounds=5, batch=8e-3)), model


def _torch_gelu(x: Any, y: Any, b: Any) -> Any:
    import torch

    return torch.nn.functional.gelu(torch.addmm(b, x, y), approximate="tanh")


def _torch_relu(x: Any, y: Any, b: Any) -> Any:
    import torch

    return torch.relu(torch.addmm(b, x, y))


def _torch_attention(q: Any, k: Any, v: Any) -> Any:
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.125)


def _torch_attention_slopes(q: Any, k: Any, v: Any) -> Any:
    import torch

    own = [x.detach().requires_grad_() for x in (q, k, v)]
    return sum(torch.autograd.grad((_torch_attention(*own) ** 2).sum(), own))


_TORCH: dict[str, Callable[..., Any]] = {
    "product": lambda x, y: x @ y,
    "product_bias_gelu": _torch_gelu,
    "product_bias_relu": _torch_relu,
    "attention": _torch_attention,
    "attention_slopes": _torch_attention_slopes,
}


def measure_launches(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], setting: Setting) -> Outcome:
    """Microseconds of a call among others, and of one that is waited for."""
    plain, args = function, tuple(random(shape, "f4") for shape in shapes)
    calls: dict[str, Callable[[], Any]] = {}
    failures: dict[str, str] = {}
    model: dict[str, Any] = {}
    with turn(alone=True):
        for column in (ours(setting), *(("jax", "torch.compile", "cupy") if setting.device == "real" else ())):
            try:
                function = compiled(column, plain)
                own = to_device(column, args)
                require_near([to_host(function(*own))], [plain(*args)], 1e-4)
                calls[column] = rotating(function, [own])
                model = model or dict(model_of(function, args))
            except Exception as error:  # a column that fails is a result, to be shown
                failures[column] = f"{type(error).__name__}: {str(error)[:300]}"
        if not calls:
            raise Skipped(str(failures))
        seconds = medians(timings(calls))
        waited = medians(timings({name: waiting(call) for name, call in calls.items()}, rounds=5))
    figures: dict[str, Any] = {f"{name} us": 1e6 * taken for name, taken in seconds.items()}
    figures |= {f"{name}, waited for, us": 1e6 * taken for name, taken in waited.items()}
    return {"figures": {"kernels": model.get("launches", "-")} | figures, "model": model, "not run": failures}


def waiting(call: Callable[[], Any]) -> Callable[[], None]:
    """The call, and a wait for what it gives."""
    return lambda: finish(call())
