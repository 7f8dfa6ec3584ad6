"""Normalisations, losses, distances, moments."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _matrix(columns, dtype=np.float64):
    return lambda n, rng: (rng.standard_normal((n, columns)).astype(dtype),)


@workload(_matrix(64), small=7, full=20_000)
def standardize_columns(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


@workload(_matrix(256, np.float32), small=5, full=4096, rtol=1e-5)
def softmax_rows(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@workload(_matrix(512), small=5, full=2000)
def log_sum_exp(x):
    top = x.max(axis=1)
    return top + np.log(np.exp(x - top[:, None]).sum(axis=1))


@workload(lambda n, rng: (rng.standard_normal((n, 384)), rng.standard_normal(384), rng.standard_normal(384)), small=4, full=4096)
def layer_norm(x, scale, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * scale + shift


@workload(lambda n, rng: (rng.standard_normal((n, 10)), rng.integers(0, 10, n)), small=13, full=100_000)
def cross_entropy(logits, labels):
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -log_p[np.arange(len(labels)), labels].mean()


@workload(lambda n, rng: (rng.standard_normal(n), rng.standard_normal(n)), small=33, full=1_000_000)
def huber_loss(prediction, target):
    error = np.abs(prediction - target)
    return np.where(error < 1.0, 0.5 * error**2, error - 0.5).mean()


@workload(lambda n, rng: (rng.gamma(2.0, 1.0, n),), small=41, full=2_000_000)
def moments(x):
    centred = x - x.mean()
    variance = (centred**2).mean()
    return variance, (centred**3).mean() / variance**1.5, (centred**4).mean() / variance**2


@workload(_matrix(100), small=12, full=10_000)
def covariance(x):
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (len(x) - 1)


@workload(lambda n, rng: (rng.standard_normal((n, 32)), rng.standard_normal((n // 2, 32))), small=10, full=1500)
def pairwise_distances(x, y):
    squares = (x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1)[None, :] - 2 * (x @ y.T)
    return np.sqrt(np.maximum(squares, 0.0))


@workload(lambda n, rng: (rng.standard_normal((n, 48)), rng.standard_normal((n, 48))), small=8, full=20_000)
def cosine_similarity(x, y):
    return (x * y).sum(axis=1) / np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))


@workload(lambda n, rng: (rng.uniform(0, 1, n), rng.uniform(0, 1, n)), small=20, full=1_000_000)
def kl_divergence(p, q):
    p, q = p / p.sum(), q / q.sum()
    return np.sum(p * np.log((p + 1e-12) / (q + 1e-12)))


@workload(lambda n, rng: (rng.standard_normal((n, n)),), small=9, full=1000)
def normalized_laplacian(a):
    weights = np.exp(-np.abs(a + a.T))
    degree = weights.sum(axis=1)
    scale = 1 / np.sqrt(degree)
    return np.eye(len(a)) - scale[:, None] * weights * scale[None, :]


@workload(_matrix(101), small=6, full=5000)
def robust_scores(x):
    centre = np.median(x, axis=1, keepdims=True)
    spread = np.percentile(x, 75, axis=1, keepdims=True) - np.percentile(x, 25, axis=1, keepdims=True)
    return (x - centre) / spread


@workload(lambda n, rng: (rng.standard_normal(n),), small=30, full=200_000)
def median_filter(x):
    windows = np.stack([x[k : len(x) - 8 + k] for k in range(9)], axis=1)
    return np.sort(windows, axis=1)[:, 4]


@workload(lambda n, rng: (rng.standard_normal(n),), small=31, full=200_000)
def ranks(x):
    order = np.argsort(x)
    result = np.empty(len(x), np.int64)
    result[order] = np.arange(len(x))
    return result
