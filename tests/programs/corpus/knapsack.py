import numpy as np


def knapsack(weights, values, capacity):
    """Best value of a knapsack, each item once; an item's row is one shifted maximum."""
    best = np.zeros(capacity + 1, dtype=values.dtype)
    for w, v in zip(weights, values):
        if w <= capacity:
            best[w:] = np.maximum(best[w:], best[: capacity + 1 - w] + v)
    return best[capacity]


def make(size, rng):
    n, capacity = {"small": (8, 30), "large": (1000, 10000)}[size]
    return rng.integers(1, capacity // 2, n), rng.integers(1, 100, n), capacity
