import numpy as np


def lu(A):
    """LU factors in place, without pivoting: unit lower part and upper part share A (Doolittle's order)."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def make(size, rng):
    n = {"small": 11, "large": 300}[size]
    return (rng.random((n, n)) + n * np.eye(n),)
