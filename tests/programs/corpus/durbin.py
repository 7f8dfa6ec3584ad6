import numpy as np


def durbin(r):
    """Solve the Yule-Walker equations by Durbin's recursion (Golub and Van Loan, algorithm 4.7.1)."""
    n = len(r)
    y = np.zeros_like(r)
    y[0] = -r[0]
    alpha = -r[0]
    beta = 1.0
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(r[:k][::-1], y[:k])) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def make(size, rng):
    n = {"small": 15, "large": 4000}[size]
    return (0.3 * rng.random(n) / np.arange(1, n + 1),)
