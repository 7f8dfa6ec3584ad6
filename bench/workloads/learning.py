"""Networks forward and backward, clustering, an optimiser. Gradients are written by hand here, and found by the compilers."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _layers(n, rng):
    shapes = ((64, 128), (128,), (128, 10), (10,))
    parameters = tuple(0.1 * rng.standard_normal(shape) for shape in shapes)
    return (*parameters, rng.standard_normal((n, 64)), rng.integers(0, 10, n))


def network(w1, b1, w2, b2, x):
    return np.tanh(x @ w1 + b1) @ w2 + b2


def network_loss(w1, b1, w2, b2, x, labels):
    logits = network(w1, b1, w2, b2, x)
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(labels)), labels].mean()


@workload(lambda n, rng: _layers(n, rng)[:5], small=6, full=4096)
def mlp_forward(w1, b1, w2, b2, x):
    return network(w1, b1, w2, b2, x)


@workload(_layers, small=6, full=2048, loss=network_loss, argnums=(0, 1, 2, 3))
def mlp_gradient(w1, b1, w2, b2, x, labels):
    hidden = np.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(labels)), labels] -= 1
    p /= len(labels)
    back = (p @ w2.T) * (1 - hidden * hidden)
    return x.T @ back, back.sum(axis=0), hidden.T @ p, p.sum(axis=0)


def _heads(n, rng):
    return tuple(rng.standard_normal((4, n, 32)) for _ in range(3))


@workload(_heads, small=5, full=256)
def attention_forward(q, k, v):
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v


def attention_loss(q, k, v):
    return (attention_forward(q, k, v) ** 2).sum()


@workload(_heads, small=5, full=256, loss=attention_loss, argnums=(0, 1, 2))
def attention_gradient(q, k, v):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ k.transpose(0, 2, 1) * scale
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    d_out = 2 * (p @ v)
    d_p = d_out @ v.transpose(0, 2, 1)
    d_scores = p * (d_p - (d_p * p).sum(axis=-1, keepdims=True)) * scale
    return d_scores @ k, d_scores.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ d_out


def logistic_loss(w, x, y):
    margin = y * (x @ w)
    return np.log1p(np.exp(-margin)).mean() + 0.01 * (w * w).sum()


def _labelled(n, rng):
    return rng.standard_normal(50), rng.standard_normal((n, 50)), np.sign(rng.standard_normal(n))


@workload(_labelled, small=9, full=50_000, loss=logistic_loss, argnums=(0,))
def logistic_gradient(w, x, y):
    margin = y * (x @ w)
    weight = -y / (1 + np.exp(margin)) / len(y)
    return (x.T @ weight + 0.02 * w,)


@workload(lambda n, rng: (rng.standard_normal((n, 16)), rng.standard_normal((8, 16))), small=20, full=20_000)
def k_means_step(points, centres):
    distance2 = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
    nearest = distance2.argmin(axis=1)
    member = (nearest[:, None] == np.arange(len(centres))).astype(np.float64)
    return member.T @ points / np.maximum(member.sum(axis=0), 1)[:, None]


@workload(
    lambda n, rng: (*(rng.standard_normal(n) for _ in range(3)), rng.uniform(0, 1, n)),
    small=17,
    full=1_000_000,
    mutates=(0, 2, 3),
)
def adam_update(parameters, gradient, first, second):
    first *= 0.9
    first += 0.1 * gradient
    second *= 0.999
    second += 0.001 * gradient * gradient
    parameters -= 0.001 * (first / 0.9) / (np.sqrt(second / 0.999) + 1e-8)


@workload(lambda n, rng: (rng.standard_normal((n, 16, 64)), rng.uniform(0.5, 1, 64), rng.standard_normal(64)), small=3, full=1000)
def batch_norm(x, scale, shift):
    mean, variance = x.mean(axis=(0, 1)), x.var(axis=(0, 1))
    return scale * (x - mean) / np.sqrt(variance + 1e-5) + shift


def smooth_loss(x, target):
    steps = x[1:] - x[:-1]
    return ((x - target) ** 2).sum() + 5 * np.sqrt(1 + steps * steps).sum()


@workload(lambda n, rng: (rng.standard_normal(n), rng.standard_normal(n)), small=15, full=500_000, loss=smooth_loss, argnums=(0,))
def smoothing_gradient(x, target):
    steps = x[1:] - x[:-1]
    pull = 5 * steps / np.sqrt(1 + steps * steps)
    gradient = 2 * (x - target)
    gradient[1:] += pull
    gradient[:-1] -= pull
    return (gradient,)
