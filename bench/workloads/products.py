"""Products of matrices: skinny, small and many, a matrix and its transpose, convolutions."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


@workload(lambda n, rng: (rng.standard_normal((n, 30)), rng.standard_normal(n), 20), small=12, full=20_000)
def least_squares_descent(a, b, steps):
    """Steps down the gradient of the squared residuals."""
    x = np.zeros(a.shape[1])
    for _ in range(steps):
        x = x - (0.5 / len(b)) * (a.T @ (a @ x - b))
    return x


def _pictures(n, rng):
    return rng.standard_normal((4, n, n, 16)).astype(np.float32), rng.standard_normal((3, 3, 16, 16)).astype(np.float32)


@workload(_pictures, small=7, full=64, rtol=1e-4)
def convolution_layer(x, weights):
    """A layer of a network: 3 by 3 weights between channels, and a threshold."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    out = np.zeros((x.shape[0], height, width, weights.shape[3]), np.float32)
    for i in range(3):
        for j in range(3):
            out += x[:, i : i + height, j : j + width, :] @ weights[i, j]
    return np.maximum(out, 0)


@workload(
    lambda n, rng: (rng.standard_normal((n, 12)), rng.standard_normal(12), np.cov(rng.standard_normal((12, 40)))),
    small=9,
    full=30_000,
)
def mahalanobis(x, mean, precision):
    """How far are points from a distribution?"""
    d = x - mean
    return np.sqrt(np.einsum("ij,jk,ik->i", d, precision, d))


@workload(lambda n, rng: (rng.standard_normal((n, 4, 4)) + 5 * np.eye(4), rng.standard_normal((n, 4, 1))), small=6, full=20_000)
def small_solves(a, b):
    return np.linalg.solve(a, b)


@workload(lambda n, rng: (rng.standard_normal((n, 20)), rng.standard_normal(n), 0.1), small=30, full=50_000)
def ridge_fit(x, y, penalty):
    """Regression with a penalty on large coefficients."""
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)
