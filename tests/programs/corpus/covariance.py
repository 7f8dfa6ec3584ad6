import numpy as np


def covariance(data):
    """Covariance matrix of the columns, the upper triangle computed row by row and mirrored."""
    n, m = data.shape
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i:m, i] = cov[i, i:m] = data[:, i] @ data[:, i:m] / (n - 1.0)
    return cov


def make(size, rng):
    n, m = {"small": (20, 8), "large": (1000, 400)}[size]
    return (rng.random((n, m)),)
