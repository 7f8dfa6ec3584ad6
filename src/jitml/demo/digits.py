"""Train a small neural network on handwritten digits, as plain NumPy, twice.

`step` lets `jitml.value_and_grad` derive the backward pass and updates the parameters in place, as NumPy code does.
`step_by_hand` is the same step as one would write it without a compiler. Both start from the same parameters and see
the same batches, so their loss curves must agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import jitml

Array = np.ndarray[Any, np.dtype[Any]]
Params = list[Array]

BATCH, EPOCHS, HIDDEN = 128, 60, 128
RATE, MOMENTUM, DECAY = 0.1, 0.9, 1e-3


def load() -> tuple[Array, Array, Array, Array]:
    """The digits that ship in scikit-learn: 8 by 8 pixels as f64 rows in 0..1, labels; a fifth held out."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    x, y = digits.data[order] / 16.0, digits.target[order]
    held_out = len(y) // 5
    return x[held_out:], y[held_out:], x[:held_out], y[:held_out]


def init(seed: int = 0) -> Params:
    """Weights and biases of a network 64 -> HIDDEN -> 10."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(64, HIDDEN)) / 8, np.zeros(HIDDEN), rng.normal(size=(HIDDEN, 10)) / 11, np.zeros(10)]


def logits(params: Params, x: Array) -> Any:
    w1, b1, w2, b2 = params
    return np.tanh(x @ w1 + b1) @ w2 + b2


def loss(params: Params, x: Array, y: Array) -> Any:
    """Mean cross-entropy with weight decay."""
    z = logits(params, x)
    z = z - z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    penalty = (params[0] ** 2).sum() + (params[2] ** 2).sum()
    return -log_p[np.arange(len(y)), y].mean() + 0.5 * DECAY * penalty


def step(params: Params, velocity: Params, x: Array, y: Array, rate: float) -> Any:
    """One step of gradient descent with momentum; `params` and `velocity` change in place."""
    value, grads = jitml.value_and_grad(loss)(params, x, y)
    for p, v, g in zip(params, velocity, grads):
        v *= MOMENTUM
        v -= rate * g
        p += v
    return value


def step_by_hand(params: Params, velocity: Params, x: Array, y: Array, rate: float) -> Any:
    """The same step with the backward pass written out."""
    w1, b1, w2, b2 = params
    h = np.tanh(x @ w1 + b1)
    z = h @ w2 + b2
    z -= z.max(axis=1, keepdims=True)
    e = np.exp(z)
    total = e.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    value = (np.log(total[:, 0]) - z[rows, y]).mean() + 0.5 * DECAY * ((w1**2).sum() + (w2**2).sum())
    dz = e / total
    dz[rows, y] -= 1.0
    dz /= len(y)
    dh = (dz @ w2.T) * (1.0 - h * h)
    grads = [x.T @ dh + DECAY * w1, dh.sum(axis=0), h.T @ dz + DECAY * w2, dz.sum(axis=0)]
    for p, v, g in zip(params, velocity, grads):
        v *= MOMENTUM
        v -= rate * g
        p += v
    return value


def batches(x: Array, y: Array, epochs: int = EPOCHS) -> Iterator[tuple[Array, Array]]:
    """Shuffled batches of equal size."""
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        order = rng.permutation(len(y))
        for start in range(0, len(y) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            yield x[rows], y[rows]


def train(
    step: Callable[..., Any], x: Array, y: Array, epochs: int = EPOCHS, tick: Callable[[], None] = lambda: None
) -> tuple[Params, list[float]]:
    """The trained parameters and the loss of every step; `tick` is called after each."""
    params = init()
    velocity = [np.zeros_like(p) for p in params]
    curve: list[float] = []
    for bx, by in batches(x, y, epochs):
        curve.append(float(step(params, velocity, bx, by, RATE)))
        tick()
    return params, curve


def accuracy(params: Params, x: Array, y: Array) -> float:
    return float((logits(params, x).argmax(axis=1) == y).mean())
