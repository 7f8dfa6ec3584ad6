import numpy as np


def newton_roots(coefficients, guesses, tolerance):
    """Real roots of polynomials, one per row, by Newton's method in lockstep; each row stops when it has converged."""
    x = guesses.copy()
    active = np.ones(len(x), dtype=bool)
    for _ in range(50):
        value = np.zeros_like(x)
        slope = np.zeros_like(x)
        for k in range(coefficients.shape[1]):
            slope = slope * x + value
            value = value * x + coefficients[:, k]
        step = np.divide(value, slope, out=np.zeros_like(x), where=active & (slope != 0))
        x -= step
        active &= np.abs(step) > tolerance
        if not active.any():
            break
    assert np.isfinite(x).all(), "a root has run away"
    return x


def make(size, rng):
    n, degree = {"small": (10, 3), "large": (40000, 7)}[size]
    roots = np.sort(rng.random((n, degree)), axis=1) + np.arange(degree)
    coefficients = np.ones((n, 1))
    for k in range(degree):
        coefficients = np.pad(coefficients, ((0, 0), (0, 1))) - np.pad(coefficients * roots[:, k : k + 1], ((0, 0), (1, 0)))
    return coefficients, roots[:, -1] + 0.5, 1e-12
