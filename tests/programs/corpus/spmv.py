import numpy as np


def spmv(pointers, columns, values, x):
    """Sparse matrix by vector, rows compressed by pointers."""
    y = np.empty(len(pointers) - 1, values.dtype)
    for i in range(len(pointers) - 1):
        row = slice(pointers[i], pointers[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return y


def make(size, rng):
    rows, each = {"small": (12, 3), "large": (30000, 12)}[size]
    lengths = rng.multinomial(rows * each, np.full(rows, 1 / rows))
    pointers = np.concatenate(([0], np.cumsum(lengths)))
    return pointers, rng.integers(0, rows, rows * each), rng.random(rows * each), rng.random(rows)
