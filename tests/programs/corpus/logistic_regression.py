import numpy as np


def logistic_regression(X, y, rate, tolerance):
    """Weights by gradient descent with momentum, until the gradient is small."""
    w = np.zeros(X.shape[1])
    momentum = np.zeros_like(w)
    steps = 0
    gradient = np.full_like(w, np.inf)
    while np.max(np.abs(gradient)) > tolerance and steps < 5000:
        p = 1 / (1 + np.exp(-(X @ w)))
        gradient = X.T @ (p - y) / len(y) + 0.1 * w
        momentum *= 0.9
        momentum -= rate * gradient
        w += momentum
        steps += 1
    return w, steps


def make(size, rng):
    n, d = {"small": (25, 3), "large": (4000, 20)}[size]
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(np.float64), 0.1, 1e-4
