import numpy as np


def solve_tridiagonal(lower, diagonal, upper, rhs):
    """Thomas algorithm; returns the solution."""
    n = len(rhs)
    c = np.zeros(n)
    d = np.zeros(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = rhs[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / m
        d[i] = (rhs[i] - lower[i] * d[i - 1]) / m
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def crank_nicolson(u, r, steps):
    """Heat equation with fixed ends by Crank and Nicolson (1947): implicit half and explicit half of each step."""
    n = len(u)
    lower = np.full(n, -r / 2)
    upper = np.full(n, -r / 2)
    diagonal = np.full(n, 1 + r)
    lower[-1] = upper[0] = 0.0
    diagonal[0] = diagonal[-1] = 1.0
    for _ in range(steps):
        rhs = u.copy()
        rhs[1:-1] += r / 2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = solve_tridiagonal(lower, diagonal, upper, rhs)
    return u


def make(size, rng):
    n, steps = {"small": (12, 4), "large": (300, 100)}[size]
    return rng.random(n), 0.8, steps
