import numpy as np


def lorenz(state, dt, steps):
    """Trajectory of the Lorenz system by the classical Runge-Kutta method, gathered in a list."""

    def slope(s):
        x, y, z = s
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    path = [state]
    for _ in range(steps):
        k1 = slope(state)
        k2 = slope(state + dt / 2 * k1)
        k3 = slope(state + dt / 2 * k2)
        k4 = slope(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return np.array(path)


def make(size, rng):
    steps = {"small": 12, "large": 4000}[size]
    return 1.0 + rng.random(3), 0.001, steps
