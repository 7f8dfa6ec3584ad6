import numpy as np


def householder_qr(A):
    """Upper triangular factor of A by Householder reflections (Golub and Van Loan, algorithm 5.2.1)."""
    R = A.copy()
    m, n = R.shape
    for k in range(n):
        v = R[k:, k].copy()
        norm = np.sqrt(v @ v)
        v[0] += norm if v[0] >= 0 else -norm
        v /= np.sqrt(v @ v)
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
    return np.triu(R)


def make(size, rng):
    m, n = {"small": (10, 6), "large": (600, 200)}[size]
    return (rng.standard_normal((m, n)),)
