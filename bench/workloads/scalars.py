"""Loops over single elements, and strings of operations on a few numbers."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


@workload(lambda n, rng: (np.cumsum(rng.standard_normal(n)), np.cumsum(rng.standard_normal(n + 10))), small=7, full=150)
def time_warping(x, y):
    """The distance of two series that may run at different speeds."""
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            cost[i, j] = abs(x[i - 1] - y[j - 1]) + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[len(x), len(y)]


@workload(lambda n, rng: (rng.uniform(-1, 1, (n, n)) + n * np.eye(n), rng.standard_normal(n), 10), small=8, full=200)
def gauss_seidel(a, b, sweeps):
    """Each unknown from the newest values of the others."""
    x = np.zeros_like(b)
    for _ in range(sweeps):
        for i in range(len(b)):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def _message(n, rng):
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return rng.integers(0, 256, n).astype(np.uint8), table


@workload(_message, small=30, full=20_000)
def crc32(message, table):
    """The checksum of ZIP and PNG."""
    crc = np.uint32(0xFFFFFFFF)
    for byte in message:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ np.uint32(0xFFFFFFFF)


@workload(lambda n, rng: (rng.standard_normal(n), np.array([0.2, 0.4, 0.2]), np.array([1.0, -0.4, 0.2])), small=20, full=20_000)
def biquad(x, b, a):
    """A recursive filter of second order."""
    y = np.empty_like(x)
    s1 = s2 = 0.0
    for n in range(len(x)):
        y[n] = b[0] * x[n] + s1
        s1 = b[1] * x[n] - a[1] * y[n] + s2
        s2 = b[2] * x[n] - a[2] * y[n]
    return y


@workload(lambda n, rng: (np.array([1, 2, 5, 10, 20, 50, 100, 200]), n), small=40, full=3000)
def coin_ways(coins, amount):
    """In how many ways do coins make an amount?"""
    ways = np.zeros(amount + 1, np.int64)
    ways[0] = 1
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return ways[amount]


@workload(lambda n, rng: (n,), small=20, full=2000)
def longest_collatz(limit):
    """The start below the limit whose sequence (halve, or triple and add one) is the longest, and its length."""
    best, longest = 1, 1
    for start in range(1, limit):
        n, length = start, 1
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            length += 1
        if length > longest:
            best, longest = start, length
    return best, longest


@workload(lambda n, rng: (np.array([1.0, 0.0, 0.0, 0.9]), 0.01, n), small=10, full=500)
def orbit(state, dt, steps):
    """A planet, by the classical Runge-Kutta method."""

    def slope(state):
        x, y, u, v = state
        pull = -1 / (x * x + y * y) ** 1.5
        return np.array([u, v, pull * x, pull * y])

    for _ in range(steps):
        k1 = slope(state)
        k2 = slope(state + 0.5 * dt * k1)
        k3 = slope(state + 0.5 * dt * k2)
        k4 = slope(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


@workload(lambda n, rng: (rng.standard_normal((n, 3)), 0.01), small=9, full=1000)
def attitude(rates, dt):
    """Where a gyroscope points: a quaternion that follows the measured rates."""
    q = np.array([1.0, 0.0, 0.0, 0.0])
    for p, r, s in rates:
        w, x, y, z = q
        change = np.array([-x * p - y * r - z * s, w * p + y * s - z * r, w * r - x * s + z * p, w * s + x * r - y * p])
        q = q + 0.5 * dt * change
        q = q / np.sqrt((q * q).sum())
    return q


@workload(lambda n, rng: (rng.uniform(-1, 1, n), rng.uniform(0.5, 1, n)), small=3, full=6)
def robot_arm(angles, lengths):
    """Where the hand of a jointed arm is."""
    pose = np.eye(3)
    for angle, length in zip(angles, lengths):
        c, s = np.cos(angle), np.sin(angle)
        pose = pose @ np.array([[c, -s, length * c], [s, c, length * s], [0.0, 0.0, 1.0]])
    return pose[:2, 2]


def _chain(n, rng):
    transition, emission = rng.uniform(0, 1, (8, 8)), rng.uniform(0, 1, (8, 20))
    transition, emission = (m / m.sum(axis=1, keepdims=True) for m in (transition, emission))
    return np.full(8, 1 / 8), transition, emission, rng.integers(0, 20, n)


@workload(_chain, small=10, full=1000)
def hidden_markov(start, transition, emission, observed):
    """How likely are observations?  The forward algorithm."""
    belief, total = start, 0.0
    for symbol in observed:
        belief = (belief @ transition) * emission[:, symbol]
        scale = belief.sum()
        belief = belief / scale
        total += np.log(scale)
    return total
