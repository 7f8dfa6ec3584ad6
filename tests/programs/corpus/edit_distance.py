import numpy as np


def edit_distance(a, b):
    """Levenshtein distance of two strings of bytes (Wagner and Fischer 1974)."""
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1), dtype=np.int64)
    d[:, 0] = np.arange(n + 1)
    d[0, :] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[n, m]


def make(size, rng):
    n, m = {"small": (9, 11), "large": (300, 320)}[size]
    return rng.integers(97, 101, n).astype(np.uint8), rng.integers(97, 101, m).astype(np.uint8)
