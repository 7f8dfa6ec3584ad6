import numpy as np


def rotate(A, p, q):
    """One Jacobi rotation that zeroes A[p, q], in place."""
    if A[p, q] == 0.0:
        return
    theta = (A[q, q] - A[p, p]) / (2.0 * A[p, q])
    t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
    if theta < 0.0:
        t = -t
    c = 1.0 / np.sqrt(t * t + 1.0)
    s = t * c
    rows = A[[p, q], :]
    A[p, :] = c * rows[0] - s * rows[1]
    A[q, :] = s * rows[0] + c * rows[1]
    columns = A[:, [p, q]]
    A[:, p] = c * columns[:, 0] - s * columns[:, 1]
    A[:, q] = s * columns[:, 0] + c * columns[:, 1]


def jacobi_eigenvalues(A, sweeps):
    """Eigenvalues of a symmetric matrix by cyclic Jacobi rotations (Golub and Van Loan, section 8.5)."""
    A = A.copy()
    n = len(A)
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                rotate(A, p, q)
    return np.sort(np.diag(A))


def make(size, rng):
    n, sweeps = {"small": (6, 6), "large": (40, 8)}[size]
    A = rng.standard_normal((n, n))
    return A + A.T, sweeps
