import numpy as np


def cholesky(A):
    """Lower Cholesky factor written over the lower half of A, row by row (Cholesky-Banachiewicz)."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[j, :j]) / A[j, j]
        A[i, i] = np.sqrt(A[i, i] - A[i, :i] @ A[i, :i])


def make(size, rng):
    n = {"small": 10, "large": 350}[size]
    B = rng.random((n, n))
    return (B @ B.T + n * np.eye(n),)
