import numpy as np


def power_iteration(A, tolerance, limit):
    """Largest eigenvalue and its vector by repeated multiplication."""
    v = np.ones(A.shape[0]) / np.sqrt(A.shape[0])
    value = 0.0
    for _ in range(limit):
        w = A @ v
        new = v @ w
        v = w / np.linalg.norm(w)
        if abs(new - value) < tolerance * abs(new):
            break
        value = new
    return new, v


def make(size, rng):
    n = {"small": 8, "large": 1500}[size]
    A = rng.random((n, n))
    A = A + A.T
    A[np.arange(n), np.arange(n)] += np.linspace(0, n, n)
    return A, 1e-10, 500
