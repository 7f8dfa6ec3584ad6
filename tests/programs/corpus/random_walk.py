import numpy as np


def random_walk(rng, steps, walkers):
    """First times at which walkers come home, one scalar step at a time for each."""
    first = np.full(walkers, -1)
    for k in range(walkers):
        x = 0
        for t in range(steps):
            x += 1 if rng.random() < 0.5 else -1
            if x == 0:
                first[k] = t + 1
                break
    return first


def make(size, rng):
    steps, walkers = {"small": (10, 5), "large": (100, 2000)}[size]
    return np.random.default_rng(int(rng.integers(1000))), steps, walkers
