import numpy as np


def exponential_smoothing(x, alpha, beta):
    """Holt's double exponential smoothing (1957): level and trend, one scalar step per observation."""
    level = x[0]
    trend = x[1] - x[0]
    smoothed = [level]
    for value in x[1:]:
        last = level
        level = alpha * value + (1 - alpha) * (level + trend)
        trend = beta * (level - last) + (1 - beta) * trend
        smoothed.append(level + trend)
    return np.array(smoothed)


def make(size, rng):
    n = {"small": 12, "large": 50000}[size]
    return np.cumsum(rng.standard_normal(n)), 0.4, 0.2
