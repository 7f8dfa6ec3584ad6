import numpy as np


def gram_schmidt(A):
    """Q and R of A by modified Gram-Schmidt: each new direction is removed from all columns to its right."""
    m, n = A.shape
    V = A.copy()
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.sum(V[:, k] ** 2))
        Q[:, k] = V[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], V[:, j])
            V[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def make(size, rng):
    m, n = {"small": (12, 7), "large": (400, 200)}[size]
    return (rng.standard_normal((m, n)),)
