import numpy as np


def triangular_solve(L, b):
    """Solve L x = b for lower triangular L by forward substitution (Golub and Van Loan, algorithm 3.1.1)."""
    n = len(b)
    x = np.zeros_like(b)
    for i in range(n):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def make(size, rng):
    n = {"small": 13, "large": 3000}[size]
    L = np.tril(rng.random((n, n)) - 0.5) / n
    L[np.arange(n), np.arange(n)] = 1 + rng.random(n)
    return L, rng.random(n)
