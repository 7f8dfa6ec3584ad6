"""Train a small neural network on handwritten digits, as plain NumPy, twice.

`step` lets `jitml.value_and_grad` derive the backward pass and updates the parameters in place by Adam, as NumPy code does.
`step_by_hand` is the same step as one would write it without a compiler. Both start from the same parameters and see
the same batches, so their loss curves must agree to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

import jitml

Array = np.ndarray[Any, np.dtype[Any]]
Params = list[Array]

BATCH, EPOCHS = 128, 60
LAYERS = (64, 32, 32, 10)
RATE, DECAY = 8e-3, 1e-4
FADE, FADE_SQUARES = 0.9, 0.999  # of Adam's averages


def load() -> tuple[Array, Array, Array, Array]:
    """The digits that ship in scikit-learn: 8 by 8 pixels as f64 rows in 0..1, labels; a fifth held out."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    x, y = digits.data[order] / 16.0, digits.target[order]
    held_out = len(y) // 5
    return x[held_out:], y[held_out:], x[:held_out], y[:held_out]


def init(seed: int = 0) -> Params:
    """Weights and biases of a network with LAYERS units."""
    rng = np.random.default_rng(seed)
    return [p for m, n in pairwise(LAYERS) for p in (rng.normal(size=(m, n)) / np.sqrt(m), np.zeros(n))]


def moments(params: Params) -> Params:
    """Adam's averages of gradients and of their squares, at rest."""
    return [np.zeros_like(p) for p in params for _ in range(2)]


def gelu(x: Array) -> Any:
    """Hendrycks and Gimpel's activation (2016, arXiv:1606.08415), in its form with tanh."""
    return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def logits(params: Params, x: Array) -> Any:
    w1, b1, w2, b2, w3, b3 = params
    return gelu(gelu(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def loss(params: Params, x: Array, y: Array) -> Any:
    """Mean cross-entropy with weight decay."""
    z = logits(params, x)
    z = z - z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    penalty = sum((w**2).sum() for w in params[::2])
    return -log_p[np.arange(len(y)), y].mean() + 0.5 * DECAY * penalty


def update(params: Params, averages: Params, grads: Params, rate: float) -> None:
    """One step of Adam (Kingma and Ba 2015, arXiv:1412.6980), in place; `rate` includes its correction of the bias."""
    for p, m, v, g in zip(params, averages[::2], averages[1::2], grads):
        m *= FADE
        m += (1 - FADE) * g
        v *= FADE_SQUARES
        v += (1 - FADE_SQUARES) * g * g
        p -= rate * m / (np.sqrt(v) + 1e-8)


def step(params: Params, averages: Params, x: Array, y: Array, rate: float) -> Any:
    """One training step on a batch; returns its loss. `params` and `averages` change in place."""
    value, grads = jitml.value_and_grad(loss)(params, x, y)
    update(params, averages, grads, rate)
    return value


def gelu_slope(x: Array) -> Any:
    t = np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * 0.7978845608028654 * (1.0 + 0.134145 * x**2)


def step_by_hand(params: Params, averages: Params, x: Array, y: Array, rate: float) -> Any:
    """The same step with the backward pass written out."""
    w1, b1, w2, b2, w3, b3 = params
    a1 = x @ w1 + b1
    h1 = gelu(a1)
    a2 = h1 @ w2 + b2
    h2 = gelu(a2)
    z = h2 @ w3 + b3
    z -= z.max(axis=1, keepdims=True)
    e = np.exp(z)
    total = e.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    value = (np.log(total[:, 0]) - z[rows, y]).mean() + 0.5 * DECAY * ((w1**2).sum() + (w2**2).sum() + (w3**2).sum())
    dz = e / total
    dz[rows, y] -= 1.0
    dz /= len(y)
    d2 = (dz @ w3.T) * gelu_slope(a2)
    d1 = (d2 @ w2.T) * gelu_slope(a1)
    grads = [
        x.T @ d1 + DECAY * w1,
        d1.sum(axis=0),
        h1.T @ d2 + DECAY * w2,
        d2.sum(axis=0),
        h2.T @ dz + DECAY * w3,
        dz.sum(axis=0),
    ]
    update(params, averages, grads, rate)
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
    averages = moments(params)
    curve: list[float] = []
    for n, (bx, by) in enumerate(batches(x, y, epochs), 1):
        rate = RATE * (1 - FADE_SQUARES**n) ** 0.5 / (1 - FADE**n)
        curve.append(float(step(params, averages, bx, by, rate)))
        tick()
    return params, curve


def accuracy(params: Params, x: Array, y: Array) -> float:
    return float((logits(params, x).argmax(axis=1) == y).mean())
