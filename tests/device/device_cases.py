"""Functions for arrays on a device: arguments, and what is compared of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import jitml

x = np.arange(24, dtype=np.float64).reshape(4, 6) / 7 + 0.1


def on_device(value: Any) -> Any:
    """The same with each array on the device, in containers of their own."""
    if isinstance(value, np.ndarray):
        return jitml.asarray(value, device="cuda")
    if isinstance(value, (tuple, list)):
        return type(value)(map(on_device, value))
    if isinstance(value, Layer):
        return Layer(on_device(value.w), on_device(value.b))
    return {k: on_device(v) for k, v in value.items()} if isinstance(value, dict) else value


def on_host(value: Any) -> Any:
    if isinstance(value, jitml.Array):
        return np.asarray(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map(on_host, value))
    return {k: on_host(v) for k, v in value.items()} if isinstance(value, dict) else value


@dataclass
class Layer:
    w: Any
    b: Any


def branch(x: Any) -> Any:
    if x.sum() > 10:
        return x * 2
    return x


def loop(x: Any) -> Any:
    total = np.zeros(6)
    for i in range(len(x)):
        total += x[i]
    return total


def shrink(x: Any) -> Any:
    steps = 0
    while x.max() > 1:
        x = x / 2
        steps += 1
    return x, steps


def change(x: Any) -> Any:
    x += 1
    x[0] = 0
    return x[1:], x.T, x.sum()


def add_into(x: Any, total: Any) -> Any:
    total += x.sum(axis=0)
    return x[0] - total


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "pointwise": (lambda x, s: np.exp(-x) * s, (x, 2.0)),
    "product": (lambda x, y: x @ y, (x, x.T)),
    "containers": (lambda p, x: {"y": x @ p["w"] + p["b"][0], "p": [p["b"], 3]}, ({"w": x.T, "b": (np.ones(4),)}, x)),
    "dataclass": (lambda p, x: x @ p.w + p.b, (Layer(x.T, np.ones(4)), x)),
    "branch": (branch, (x,)),
    "loop": (loop, (x,)),
    "while": (shrink, (x,)),
    "in place": (change, (x,)),
    "numbers": (lambda x: (float(x.sum()), int(x.argmax()), bool((x > 0).all())), (x,)),
    "mask": (lambda x: x[x > 1], (x,)),
    "created": (lambda x: (np.zeros(3), x + np.arange(6)), (x,)),
    "host call": (lambda x: np.linalg.svd(x, compute_uv=False), (x,)),
    "sorted": (lambda x: (np.sort(x, axis=0)[::-1], np.argsort(-x[0])), (x,)),
    "rows": (lambda x: [row.sum() for row in x], (x,)),
    "mixed": (lambda x, y: x + y, (x, np.arange(6.0))),
    "mixed, written": (add_into, (x, np.arange(6.0))),
    "strided": (lambda x: x.sum(0), (x[::2, ::-1],)),
    "empty": (lambda x: x.sum(), (x[:0],)),
    "gradient": (jitml.value_and_grad(lambda v: np.sin(v).sum()), (x,)),
    "batched": (jitml.vmap(lambda row: row.sum() * row), (x,)),
}


def given_and_expected(name: str) -> tuple[list[Any], list[Any]]:
    """The arguments of a case, on the device where they are not meant to be mixed, and as NumPy's."""
    args = CASES[name][1]
    given = [on_device(args[0]), args[1].copy()] if name.startswith("mixed") else on_device(list(args))
    return given, [np.array(a) if isinstance(a, np.ndarray) else a for a in args]


def require_numpys(name: str, verify: str) -> None:
    """A case's answer, and what it changes, are NumPy's."""
    function = CASES[name][0]
    given, expected = given_and_expected(name)
    result, wanted = on_host(jitml.jit(function, verify=verify)(*given)), function(*expected)
    require_same(result, wanted)
    changed = [on_host(g) for g in given if isinstance(g, (np.ndarray, jitml.Array))]
    require_same(changed, [e for e in expected if isinstance(e, np.ndarray)])


def require_same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, (tuple, list)):
        assert len(got) == len(wanted)
        for pair in zip(got, wanted):
            require_same(*pair)
    elif isinstance(wanted, dict):
        assert got.keys() == wanted.keys()
        for key in wanted:
            require_same(got[key], wanted[key])
    else:
        assert np.shape(got) == np.shape(wanted) and np.asarray(got).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
