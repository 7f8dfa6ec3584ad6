import numpy as np


def correlation(data):
    """Correlation matrix of the columns; columns that hardly vary count as having deviation 1."""
    n, m = data.shape
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(n) * stddev
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 : m, i] = corr[i, i + 1 : m] = data[:, i] @ data[:, i + 1 : m]
    return corr


def make(size, rng):
    n, m = {"small": (20, 8), "large": (1000, 400)}[size]
    data = rng.random((n, m))
    data[:, 2] = 0.5
    return (data,)
