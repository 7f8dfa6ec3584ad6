import numpy as np


def symm(alpha, beta, C, A, B):
    """C := alpha * A @ B + beta * C with A symmetric, only its lower triangle read (BLAS symm)."""
    scratch = np.empty(C.shape[1])
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            scratch[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * scratch


def make(size, rng):
    n, m = {"small": (8, 5), "large": (200, 180)}[size]
    return 1.5, 1.2, rng.random((n, m)), rng.random((n, n)), rng.random((n, m))
