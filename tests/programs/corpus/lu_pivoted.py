import numpy as np


def lu_pivoted(A):
    """LU with partial pivoting by rank-1 updates; returns the factors and the row order (Golub and Van Loan, 3.4.1)."""
    A = A.copy()
    n = A.shape[0]
    order = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            A[[k, p]] = A[[p, k]]
            order[[k, p]] = order[[p, k]]
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    return A, order


def make(size, rng):
    n = {"small": 9, "large": 500}[size]
    return (rng.standard_normal((n, n)),)
