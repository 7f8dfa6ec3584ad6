import numpy as np


def match(a, b):
    return 1 if a + b == 3 else 0


def nussinov(sequence):
    """Most base pairs of an RNA sequence without crossings (Nussinov and others 1978)."""
    n = len(sequence)
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + match(sequence[i], sequence[j]))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def make(size, rng):
    n = {"small": 10, "large": 90}[size]
    return (rng.integers(0, 4, n).astype(np.int32),)
