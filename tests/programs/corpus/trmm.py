import numpy as np


def trmm(alpha, A, B):
    """B := alpha * A.T @ B with A unit lower triangular, in place (BLAS trmm)."""
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha


def make(size, rng):
    n, m = {"small": (8, 6), "large": (250, 220)}[size]
    return 1.5, rng.random((n, n)) / n, rng.random((n, m))
