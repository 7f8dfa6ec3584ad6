import numpy as np


def monte_carlo_pi(rng, batch, tolerance):
    """Pi by batches of random points, until the standard error is small; never fewer than ten batches."""
    inside = 0
    total = 0
    while True:
        x = rng.random(batch)
        y = rng.random(batch)
        inside += np.count_nonzero(x * x + y * y < 1.0)
        total += batch
        p = inside / total
        if total >= 10 * batch and 4 * np.sqrt(p * (1 - p) / total) < tolerance:
            break
    return 4 * p, total


def make(size, rng):
    batch, tolerance = {"small": (20, 0.1), "large": (20000, 0.0015)}[size]
    return np.random.default_rng(int(rng.integers(1000))), batch, tolerance
