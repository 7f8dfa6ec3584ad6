import numpy as np


def van_der_pol(y, mu):
    return np.array([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])


def runge_kutta_adaptive(y, mu, end, tolerance):
    """Van der Pol's oscillator by the pair of Bogacki and Shampine (1989), with step size control."""
    t = 0.0
    h = 0.01
    accepted = 0
    rejected = 0
    k1 = van_der_pol(y, mu)
    while t < end:
        if t + h > end:
            h = end - t
        k2 = van_der_pol(y + h * 0.5 * k1, mu)
        k3 = van_der_pol(y + h * 0.75 * k2, mu)
        new = y + h * (2.0 / 9.0 * k1 + 1.0 / 3.0 * k2 + 4.0 / 9.0 * k3)
        k4 = van_der_pol(new, mu)
        error = h * np.max(np.abs(-5.0 / 72.0 * k1 + 1.0 / 12.0 * k2 + 1.0 / 9.0 * k3 - 1.0 / 8.0 * k4))
        if error <= tolerance:
            t += h
            y = new
            k1 = k4
            accepted += 1
        else:
            rejected += 1
        h *= min(5.0, max(0.2, 0.9 * (tolerance / max(error, 1e-30)) ** (1.0 / 3.0)))
    return y, accepted, rejected


def make(size, rng):
    end = {"small": 1.0, "large": 60.0}[size]
    return np.array([2.0, 0.0]) + 0.01 * rng.random(2), 2.0, end, 1e-5
