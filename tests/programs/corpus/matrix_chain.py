import numpy as np


def matrix_chain(sizes):
    """Fewest multiplications for a product of matrices (Cormen and others, section 14.2), by diagonals."""
    n = len(sizes) - 1
    cost = np.zeros((n, n), dtype=np.int64)
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            cost[i, j] = np.min(cost[i, i:j] + cost[i + 1 : j + 1, j] + sizes[i] * sizes[i + 1 : j + 1] * sizes[j + 1])
    return cost[0, n - 1]


def make(size, rng):
    n = {"small": 8, "large": 150}[size]
    return (rng.integers(5, 60, n + 1),)
