import numpy as np


def kalman_filter(observed, F, H, Q, R, x, P):
    """Means and last covariance of a linear state under noisy observations (Kalman 1960)."""
    means = np.empty((len(observed), len(x)))
    identity = np.eye(len(x))
    for t, z in enumerate(observed):
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T / S[0, 0]
        x = x + K @ (z - H @ x)
        P = (identity - K @ H) @ P
        means[t] = x
    return means, P


def make(size, rng):
    n = {"small": 8, "large": 3000}[size]
    F = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.1], [0.0, 0.0, 1.0]])
    H = np.array([[1.0, 0.0, 0.0]])
    return rng.standard_normal((n, 1)), F, H, 0.01 * np.eye(3), np.array([[0.5]]), np.zeros(3), np.eye(3)
