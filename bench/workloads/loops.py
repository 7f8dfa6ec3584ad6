"""Loops over whole arrays: steps of time, iterations until something has converged, elimination, bands."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _plane(n, rng):
    return np.linspace(-2.2, 0.8, n) + 1j * np.linspace(-1.2, 1.2, n)[:, None], 50


@workload(_plane, small=13, full=300)
def escape_times(c, limit):
    """After how many steps do points leave the Mandelbrot set?"""
    z = np.zeros_like(c)
    times = np.zeros(c.shape, np.int32)
    for _ in range(limit):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        times[inside] += 1
    return times


@workload(lambda n, rng: (rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 0.9, n)), small=20, full=100_000)
def kepler(mean, eccentricity):
    """Kepler's equation by Newton's method, until the slowest orbit has converged."""
    anomaly = mean + eccentricity * np.sin(mean)
    step = np.ones_like(mean)
    while np.abs(step).max() > 1e-10:
        step = (anomaly - eccentricity * np.sin(anomaly) - mean) / (1 - eccentricity * np.cos(anomaly))
        anomaly = anomaly - step
    return anomaly


@workload(lambda n, rng: (rng.uniform(-2, 2, n), rng.uniform(-1, 1, n), 0.02, 50), small=9, full=10_000)
def pendulums(angle, speed, dt, steps):
    """Damped pendulums by the classical Runge-Kutta method."""

    def slope(angle, speed):
        return speed, -np.sin(angle) - 0.1 * speed

    for _ in range(steps):
        a1, s1 = slope(angle, speed)
        a2, s2 = slope(angle + 0.5 * dt * a1, speed + 0.5 * dt * s1)
        a3, s3 = slope(angle + 0.5 * dt * a2, speed + 0.5 * dt * s2)
        a4, s4 = slope(angle + dt * a3, speed + dt * s3)
        angle = angle + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        speed = speed + dt / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
    return angle, speed


@workload(lambda n, rng: (rng.standard_normal((n, n)), 0.02), small=9, full=150)
def poisson(source, tolerance):
    """Jacobi's iteration, until nothing changes by more than the tolerance."""
    u = np.zeros_like(source)
    change = 2 * tolerance
    while change > tolerance:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] + source[1:-1, 1:-1])
        change = np.abs(new - u).max()
        u = new
    return u


def _basin(n, rng):
    return 1 + 0.1 * rng.uniform(0, 1, (n, n)), np.zeros((n + 1, n)), np.zeros((n, n + 1)), 25


@workload(_basin, small=9, full=300, mutates=(0, 1, 2))
def shallow_water(height, u, v, steps):
    """Waves in a basin with walls; velocities stand on the faces of the cells."""
    for _ in range(steps):
        u[1:-1] -= 0.2 * (height[1:] - height[:-1])
        v[:, 1:-1] -= 0.2 * (height[:, 1:] - height[:, :-1])
        height -= 0.2 * (u[1:] - u[:-1] + v[:, 1:] - v[:, :-1])


def _bands(n, rng):
    lower, upper, right = (rng.uniform(-1, 1, (100, n)) for _ in range(3))
    return lower, rng.uniform(3, 4, (100, n)), upper, right


@workload(_bands, small=7, full=2000)
def tridiagonal_solves(lower, diagonal, upper, right):
    """Thomas' algorithm for many systems at once, a column each."""
    rows = len(right)
    c, d = np.empty_like(upper), np.empty_like(right)
    c[0], d[0] = upper[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, rows):
        pivot = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / pivot
        d[i] = (right[i] - lower[i] * d[i - 1]) / pivot
    for i in range(rows - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


@workload(lambda n, rng: (100.0, 105.0, 0.03, 0.25, n), small=12, full=1000)
def american_put(spot, strike, rate, volatility, steps):
    """A put that may be exercised early, on a binomial tree that shrinks."""
    dt = 1 / steps
    up = np.exp(volatility * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = np.exp(-rate * dt)
    price = spot * up ** (2.0 * np.arange(steps + 1) - steps)
    value = np.maximum(strike - price, 0)
    for _ in range(steps):
        price = price[1:] / up
        value = np.maximum(discount * (p * value[1:] + (1 - p) * value[:-1]), strike - price)
    return value[0]


@workload(lambda n, rng: (0.01 * rng.standard_normal((500, n)), 1e-6, 0.08, 0.9), small=5, full=1000)
def garch_volatility(returns, omega, alpha, beta):
    """The variance of each asset, from day to day."""
    variance = np.empty_like(returns)
    variance[0] = returns.var(axis=0)
    for day in range(1, len(returns)):
        variance[day] = omega + alpha * returns[day - 1] ** 2 + beta * variance[day - 1]
    return np.sqrt(variance)


@workload(lambda n, rng: (rng.standard_normal((n, n)), rng.standard_normal(n)), small=8, full=200, rtol=1e-6)
def gauss_elimination(a, b):
    """A system of equations, with the largest pivot of each column."""
    a, b = a.copy(), b.copy()
    n = len(b)
    for k in range(n):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        a[[k, pivot]] = a[[pivot, k]]
        b[[k, pivot]] = b[[pivot, k]]
        factor = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= factor[:, None] * a[k, k:]
        b[k + 1 :] -= factor * b[k]
    x = np.zeros(n)
    for k in range(n - 1, -1, -1):
        x[k] = (b[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x


@workload(lambda n, rng: (rng.standard_normal((5, n)), rng.standard_normal(n)), small=11, full=400_000)
def banded_product(bands, x):
    """A matrix of five diagonals times a vector."""
    n = len(x)
    y = np.zeros_like(x)
    for k in range(-2, 3):
        first, last = max(0, -k), min(n, n - k)
        y[first:last] += bands[k + 2, first:last] * x[first + k : last + k]
    return y
