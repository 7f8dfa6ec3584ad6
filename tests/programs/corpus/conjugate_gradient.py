import numpy as np


def laplacian(u):
    """Minus the five-point Laplacian with zero boundary."""
    out = 4.0 * u
    out[1:] -= u[:-1]
    out[:-1] -= u[1:]
    out[:, 1:] -= u[:, :-1]
    out[:, :-1] -= u[:, 1:]
    return out


def conjugate_gradient(b, tolerance):
    """Poisson's equation without a matrix by conjugate gradients (Hestenes and Stiefel 1952)."""
    x = np.zeros_like(b)
    r = b - laplacian(x)
    p = r.copy()
    rr = np.sum(r * r)
    limit = tolerance**2 * rr
    iterations = 0
    while rr > limit:
        q = laplacian(p)
        alpha = rr / np.sum(p * q)
        x += alpha * p
        r -= alpha * q
        rr, previous = np.sum(r * r), rr
        p = r + (rr / previous) * p
        iterations += 1
    return x, iterations


def make(size, rng):
    n = {"small": 9, "large": 180}[size]
    return rng.random((n, n)), 1e-6
