import numpy as np


def longest_common_subsequence(a, b):
    """A longest common subsequence: the table of lengths (scalar loops), then the walk back through it."""
    n, m = a.size, b.size
    length = np.zeros((n + 1, m + 1), dtype=np.int32)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                length[i + 1, j + 1] = length[i, j] + 1
            else:
                length[i + 1, j + 1] = max(length[i + 1, j], length[i, j + 1])
    common = np.zeros(length[n, m], dtype=a.dtype)
    i, j, k = n, m, int(length[n, m])
    while i > 0 and j > 0:
        if a[i - 1] == b[j - 1]:
            k -= 1
            common[k] = a[i - 1]
            i -= 1
            j -= 1
        elif length[i - 1, j] >= length[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return common


def make(size, rng):
    n, m = {"small": (10, 8), "large": (280, 300)}[size]
    return rng.integers(0, 4, n), rng.integers(0, 4, m)
