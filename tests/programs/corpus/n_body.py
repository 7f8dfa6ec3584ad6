import numpy as np


def accelerations(position, mass, softening):
    """Gravity of all bodies on all others."""
    x, y, z = position[:, 0:1], position[:, 1:2], position[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inverse = dx**2 + dy**2 + dz**2 + softening**2
    inverse[inverse > 0] = inverse[inverse > 0] ** (-1.5)
    return np.hstack(((dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass))


def n_body(mass, position, velocity, dt, steps):
    """Bodies under their own gravity by kick-drift-kick leapfrog; returns the kinetic energy at every step."""
    velocity -= np.mean(mass * velocity, axis=0) / np.mean(mass)
    acceleration = accelerations(position, mass, 0.1)
    kinetic = np.zeros(steps)
    for i in range(steps):
        velocity += acceleration * dt / 2.0
        position += velocity * dt
        acceleration = accelerations(position, mass, 0.1)
        velocity += acceleration * dt / 2.0
        kinetic[i] = 0.5 * np.sum(mass * velocity**2)
    return kinetic


def make(size, rng):
    n, steps = {"small": (7, 4), "large": (100, 60)}[size]
    return 20.0 * np.ones((n, 1)) / n, rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), 0.01, steps
