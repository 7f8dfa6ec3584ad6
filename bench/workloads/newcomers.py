"""What newcomers bring first, as in the how-to pages: a plate that cools, a curve to fit, a noisy signal, the Game of Life."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _plate(n, rng):
    u = np.zeros((n, n))
    u[0] = 100.0
    return u, 20


@workload(_plate, small=9, full=500, mutates=(0,))
def advance(u, steps):
    """Steps of the heat equation; the border stays as it is."""
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


def _measured(n, rng):
    t = np.linspace(0, 5, n)
    return np.array([1.8, 0.6, 2.9]), t, model([2.0, 0.5, 3.0], t) + 0.05 * rng.standard_normal(n)


def model(p, t):
    """A damped wave: amplitude, decay, frequency."""
    return p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t)


def squared_residuals(p, t, y):
    """The loss, with the measurements as arguments."""
    return ((model(p, t) - y) ** 2).sum()


@workload(_measured, small=30, full=200_000, loss=squared_residuals, argnums=(0,))
def fit_gradient(p, t, y):
    decay, cosine = np.exp(-p[1] * t), np.cos(p[2] * t)
    twice = 2 * (p[0] * decay * cosine - y)
    by_decay = -(twice * p[0] * t * decay * cosine).sum()
    by_frequency = -(twice * p[0] * decay * t * np.sin(p[2] * t)).sum()
    return (np.array([(twice * decay * cosine).sum(), by_decay, by_frequency]),)


def _noisy(n, rng):
    time = np.linspace(0, 1, n, endpoint=False)
    return np.sin(2 * np.pi * 5 * time) + 0.5 * np.sin(2 * np.pi * 40 * time) + 0.3 * rng.standard_normal(n), 0.1


@workload(_noisy, small=64, full=1 << 18)
def denoise(signal, keep):
    """Drop all frequencies whose power is small."""
    spectrum = np.fft.rfft(signal)
    power = np.abs(spectrum) ** 2
    return np.fft.irfft(np.where(power >= keep * power.max(), spectrum, 0.0), n=len(signal))


@workload(lambda n, rng: (rng.integers(0, 2, (n, n)).astype(np.int8), 20), small=8, full=200)
def life(grid, steps):
    """Conway's Game of Life. Each side of the grid touches the opposite one."""
    for _ in range(steps):
        count = np.zeros_like(grid)
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                if down or right:
                    count += np.roll(np.roll(grid, down, axis=0), right, axis=1)
        grid = ((count == 3) | ((grid == 1) & (count == 2))).astype(grid.dtype)
    return grid
