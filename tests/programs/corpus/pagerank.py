import numpy as np


def pagerank(links, damping, tolerance):
    """Ranks of pages by the power method on the normalised link matrix; pages without links link everywhere."""
    n = links.shape[0]
    out = links.sum(axis=0)
    M = np.where(out > 0, links / np.where(out > 0, out, 1), 1.0 / n)
    rank = np.full(n, 1.0 / n)
    for count in range(1, 1000):
        new = damping * (M @ rank) + (1 - damping) / n
        if np.abs(new - rank).sum() < tolerance:
            return new, count
        rank = new
    raise RuntimeError("no convergence")


def make(size, rng):
    n = {"small": 12, "large": 800}[size]
    return (rng.random((n, n)) < 4.0 / n).astype(np.float64), 0.85, 1e-8
