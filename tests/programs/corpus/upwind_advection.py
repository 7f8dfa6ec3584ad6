import numpy as np


def upwind_advection(q, velocity, dx, courant, end):
    """Advection by second-order upwinding with a minmod limiter; the time step obeys the Courant number."""
    t = 0.0
    steps = 0
    while t < end:
        dt = min(courant * dx / np.abs(velocity).max(), end - t)
        padded = np.concatenate((q[-2:], q, q[:2]))
        left, right = padded[1:-1] - padded[:-2], padded[2:] - padded[1:-1]
        slope = np.where(left * right > 0, np.where(np.abs(left) < np.abs(right), left, right), 0.0)
        centre = padded[1:-1]
        flux = np.where(velocity > 0, velocity * (centre[:-1] + 0.5 * slope[:-1]), velocity * (centre[1:] - 0.5 * slope[1:]))
        q = q - dt / dx * (flux[1:] - flux[:-1])
        t += dt
        steps += 1
    return q, steps


def make(size, rng):
    n, end = {"small": (16, 0.2), "large": (4000, 0.25)}[size]
    q = np.where(np.arange(n) < n // 2, 1.0, 0.25) + 0.01 * rng.random(n)
    return q, 1.0 + 0.1 * np.sin(np.linspace(0, 2 * np.pi, n + 1)), 1.0 / n, 0.5, end
