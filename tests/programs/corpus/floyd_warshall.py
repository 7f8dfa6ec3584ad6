import numpy as np


def floyd_warshall(path):
    """All shortest paths, in place (Floyd 1962, Warshall 1962); one row at a time."""
    for k in range(path.shape[0]):
        for i in range(path.shape[0]):
            path[i, :] = np.minimum(path[i, :], path[i, k] + path[k, :])


def make(size, rng):
    n = {"small": 9, "large": 220}[size]
    path = rng.integers(1, 1000, (n, n))
    path[np.arange(n), np.arange(n)] = 0
    return (path,)
