import numpy as np


def histogram(x, low, high, bins):
    """Counts and sums of x in equal bins; values outside are left out."""
    counts = np.zeros(bins, dtype=np.int64)
    sums = np.zeros(bins)
    scale = bins / (high - low)
    for value in x:
        if value < low or value > high:
            continue
        k = int((value - low) * scale)
        if k == bins:
            k -= 1
        counts[k] += 1
        sums[k] += value
    return counts, sums


def make(size, rng):
    n, bins = {"small": (50, 5), "large": (100000, 64)}[size]
    return rng.integers(-20, 1044, n) / 1024.0, 0.0, 1.0, bins
