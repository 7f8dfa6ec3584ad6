"""Attention and its kin, as users write them; how such functions are lowered for a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitml
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.pipeline import Lowered, lower

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
RNG = np.random.default_rng(0)


def numbers(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def heads(rows: int, columns: int, depth: int, width: int, *batch: int, dtype: str = "f4") -> tuple[Array, Array, Array]:
    return tuple(numbers(*batch, n, d, dtype=dtype) for n, d in ((rows, depth), (columns, depth), (columns, width)))  # type: ignore[return-value]


def softmax(scores: Any) -> Any:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) * 0.3) @ v


def in_doubles(q: Any, k: Any, v: Any) -> Any:
    """The scale is a double, and so is what is computed of it."""
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) * 0.3
    return softmax(np.where(np.tri(scores.shape[-2], scores.shape[-1], dtype=bool), scores, -np.inf)) @ v


def masked_in_place(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2)
    scores[np.triu(np.ones(scores.shape, dtype=bool), 1)] = -np.inf
    return softmax(scores) @ v


def masked(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return softmax(np.where(mask, q @ k.swapaxes(-1, -2) + bias, -np.inf)) @ v


def division_last(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights @ v) / weights.sum(axis=-1, keepdims=True)


def no_maximum(q: Any, k: Any, v: Any) -> Any:
    weights = np.exp(q @ k.swapaxes(-1, -2) * 0.1)
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


def by_columns(q: Any, k: Any, v: Any) -> Any:
    """Scores with keys down, as some write them."""
    scores = k @ q.T
    weights = np.exp(scores - scores.max(axis=0))
    return (weights / weights.sum(axis=0)).T @ v


def by_einsum(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(np.einsum("nhd,mhd->hnm", q, k) * 0.2)
    return np.einsum("hnm,mhd->nhd", weights, v)


def one_projection(x: Any) -> Any:
    """Batch, length, and for each head queries, keys and values side by side."""
    q, k, v = (x[:, :, n * 24 : n * 24 + 24].reshape(*x.shape[:2], 3, 8).transpose(0, 2, 1, 3) for n in range(3))
    return plain(q, k, v).transpose(0, 2, 1, 3).reshape(*x.shape[:2], 24)


def shared_keys(q: Any, k: Any, v: Any) -> Any:
    """One head of keys and values for all heads of queries."""
    return plain(q, k[:, None], v[:, None])


def kernel_sums(x: Any, y: Any, w: Any) -> Any:
    """A matrix of distances that ends as sums: no softmax."""
    squared = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T)
    near = np.exp(-0.1 * squared)
    return (near @ w) / near.sum(axis=1, keepdims=True), squared.min(axis=0)


def difference_of_two(q: Any, k: Any, v: Any) -> Any:
    """Differential attention: two softmaxes in one square."""
    return (softmax(q @ k.T) - 0.3 * softmax(q[:, ::-1] @ k.T * 0.5)) @ v


def of_its_own_result(q: Any, k: Any, v: Any) -> Any:
    """The second scores take what the first have made."""
    first = softmax(q @ k.T) @ v
    return softmax(q @ k.T * first[:, :1]) @ (v * first.sum())


def two_values(q: Any, k: Any, v: Any) -> Any:
    p = softmax(q @ k.T)
    return p @ v, p @ (v * v), p.T @ q, p.sum(axis=0), p.max(axis=1)


def weights_with_gates(q: Any, k: Any, v: Any) -> Any:
    """What is multiplied is more than a softmax."""
    return (softmax(q @ k.T) * np.tanh(q @ k.T)) @ v


def down_and_across(q: Any, k: Any, v: Any) -> Any:
    """Sums of rows and of columns that need each other."""
    near = np.exp(-0.1 * (q @ k.T) ** 2)
    near = near / near.sum(axis=1, keepdims=True)
    near = near / near.sum(axis=0)
    return near @ v, near.T @ q


def second_derivative(q: Any, k: Any, v: Any) -> Any:
    slope = jitml.grad(lambda q: (plain(q, k, v) ** 2).sum())
    return jitml.grad(lambda q: (slope(q) * v.sum()).sum())(q)


def log_sum_exp(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T
    top = scores.max(axis=-1, keepdims=True)
    return np.log(np.exp(scores - top).sum(axis=-1)) + top[:, 0], np.tanh(scores) @ v


def layers(q: Any, k: Any, v: Any) -> Any:
    for _ in range(3):
        q = q + softmax(q @ k.T) @ k
    return q


KIN = (
    *(difference_of_two, of_its_own_result, two_values, weights_with_gates, down_and_across, second_derivative, log_sum_exp),
    layers,
)


def squared(function: Function) -> Function:
    """The derivative of the sum of a function's squares."""
    return jitml.grad(lambda q, k, v: (function(q, k, v) ** 2).sum(), argnums=(0, 1, 2))


def by_hand(factor: Callable[[Any, Any], Any]) -> Function:
    """Slopes as a user writes them, with some sum of rows."""

    def slopes(q: Any, k: Any, v: Any, given: Any) -> Any:
        p = softmax(q @ k.T)
        out = p @ v
        d_out = 2 * out + given
        d_p = d_out @ v.T
        d_scores = p * (d_p + factor(d_p, p).sum(axis=-1, keepdims=True))
        return d_scores @ k, d_scores.T @ q, p.T @ d_out, out

    return slopes


def lowered(function: Function, *arguments: Any, **options: Any) -> Lowered:
    found = jitml.jit(function, **options).lower(*arguments)
    return lower(found.traced, BACKEND, fastmath=found.options.fastmath)


def steps(made: Lowered) -> list[str]:
    return [step.name for step in made.program.kernels.steps]


def flat(results: Any) -> list[Array]:
    return [r for x in results for r in flat(x)] if isinstance(results, (tuple, list)) else [np.asarray(results)]
