import numpy as np


def sor_poisson(u, f, omega, tolerance):
    """Poisson's equation by successive over-relaxation with scalar loops, until a sweep changes little."""
    n, m = u.shape
    h2 = 1.0 / (n - 1) ** 2
    for sweep in range(10000):
        worst = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                residual = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h2 * f[i, j]) / 4.0 - u[i, j]
                u[i, j] += omega * residual
                worst = max(worst, abs(residual))
        if worst < tolerance:
            break
    return sweep


def make(size, rng):
    n = {"small": 8, "large": 24}[size]
    return np.zeros((n, n)), 1.0 + rng.random((n, n)), 1.7, 1e-6
