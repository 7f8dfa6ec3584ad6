"""The loops that a Numba user would write for time stepping, iteration, elimination, and single elements.

Loops over elements or systems that know nothing of each other stand outside and run in parallel, time inside.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange


def escape_times(c, limit):
    times = np.zeros(c.shape, np.int32)
    for i in prange(c.shape[0]):
        for j in range(c.shape[1]):
            z = 0j
            for _ in range(limit):
                if z.real * z.real + z.imag * z.imag > 4:
                    break
                z = z * z + c[i, j]
                times[i, j] += 1
    return times


def kepler(mean, eccentricity):
    anomaly = mean + eccentricity * np.sin(mean)
    largest = 1.0
    while largest > 1e-10:
        largest = 0.0
        for i in prange(len(mean)):
            e = eccentricity[i]
            step = (anomaly[i] - e * np.sin(anomaly[i]) - mean[i]) / (1 - e * np.cos(anomaly[i]))
            anomaly[i] -= step
            largest = max(largest, abs(step))
    return anomaly


def pendulums(angle, speed, dt, steps):
    angles, speeds = np.empty_like(angle), np.empty_like(speed)
    for i in prange(len(angle)):
        a, s = angle[i], speed[i]
        for _ in range(steps):
            a1, s1 = s, -np.sin(a) - 0.1 * s
            a2 = s + 0.5 * dt * s1
            s2 = -np.sin(a + 0.5 * dt * a1) - 0.1 * a2
            a3 = s + 0.5 * dt * s2
            s3 = -np.sin(a + 0.5 * dt * a2) - 0.1 * a3
            a4 = s + dt * s3
            s4 = -np.sin(a + dt * a3) - 0.1 * a4
            a += dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
            s += dt / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
        angles[i], speeds[i] = a, s
    return angles, speeds


def poisson(source, tolerance):
    rows, columns = source.shape
    u, new = np.zeros_like(source), np.zeros_like(source)
    change = 2 * tolerance
    while change > tolerance:
        change = 0.0
        for i in prange(1, rows - 1):
            largest = 0.0
            for j in range(1, columns - 1):
                new[i, j] = 0.25 * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] + source[i, j])
                largest = max(largest, abs(new[i, j] - u[i, j]))
            change = max(change, largest)
        u, new = new, u
    return u


def shallow_water(height, u, v, steps):
    rows, columns = height.shape
    for _ in range(steps):
        for i in prange(rows):
            for j in range(columns):
                if i:
                    u[i, j] -= 0.2 * (height[i, j] - height[i - 1, j])
                if j:
                    v[i, j] -= 0.2 * (height[i, j] - height[i, j - 1])
        for i in prange(rows):
            for j in range(columns):
                height[i, j] -= 0.2 * (u[i + 1, j] - u[i, j] + v[i, j + 1] - v[i, j])


def tridiagonal_solves(lower, diagonal, upper, right):
    rows, systems = right.shape
    c, d = np.empty_like(upper), np.empty_like(right)
    for block in prange((systems + 63) // 64):
        first, last = 64 * block, min(64 * block + 64, systems)
        for j in range(first, last):
            c[0, j], d[0, j] = upper[0, j] / diagonal[0, j], right[0, j] / diagonal[0, j]
        for i in range(1, rows):
            for j in range(first, last):
                pivot = diagonal[i, j] - lower[i, j] * c[i - 1, j]
                c[i, j] = upper[i, j] / pivot
                d[i, j] = (right[i, j] - lower[i, j] * d[i - 1, j]) / pivot
        for i in range(rows - 2, -1, -1):
            for j in range(first, last):
                d[i, j] -= c[i, j] * d[i + 1, j]
    return d


def american_put(spot, strike, rate, volatility, steps):
    dt = 1 / steps
    up = np.exp(volatility * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = np.exp(-rate * dt)
    price, value = np.empty(steps + 1), np.empty(steps + 1)
    for i in range(steps + 1):
        price[i] = spot * up ** (2.0 * i - steps)
        value[i] = max(strike - price[i], 0.0)
    for n in range(steps, 0, -1):
        for i in range(n):
            price[i] = price[i + 1] / up
            value[i] = max(discount * (p * value[i + 1] + (1 - p) * value[i]), strike - price[i])
    return value[0]


def garch_volatility(returns, omega, alpha, beta):
    days, assets = returns.shape
    out = np.empty_like(returns)
    for block in prange((assets + 63) // 64):
        first, last = 64 * block, min(64 * block + 64, assets)
        for j in range(first, last):
            out[0, j] = returns[:, j].var()
        for day in range(1, days):
            for j in range(first, last):
                out[day, j] = omega + alpha * returns[day - 1, j] ** 2 + beta * out[day - 1, j]
        for day in range(days):
            for j in range(first, last):
                out[day, j] = np.sqrt(out[day, j])
    return out


def gauss_elimination(a, b):
    a, b = a.copy(), b.copy()
    n = len(b)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        for j in range(k, n):
            a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
        b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for k in range(n - 1, -1, -1):
        total = b[k]
        for j in range(k + 1, n):
            total -= a[k, j] * x[j]
        x[k] = total / a[k, k]
    return x


def banded_product(bands, x):
    n = len(x)
    y = np.empty_like(x)
    for i in prange(2, n - 2):
        y[i] = (
            bands[0, i] * x[i - 2] + bands[1, i] * x[i - 1] + bands[2, i] * x[i] + bands[3, i] * x[i + 1] + bands[4, i] * x[i + 2]
        )
    for i in (0, 1, n - 2, n - 1):
        y[i] = 0.0
        for k in range(max(-2, -i), min(3, n - i)):
            y[i] += bands[k + 2, i] * x[i + k]
    return y


def time_warping(x, y):
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            cost[i, j] = abs(x[i - 1] - y[j - 1]) + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[len(x), len(y)]


def gauss_seidel(a, b, sweeps):
    x = np.zeros_like(b)
    for _ in range(sweeps):
        for i in range(len(b)):
            total = b[i]
            for j in range(len(b)):
                if j != i:
                    total -= a[i, j] * x[j]
            x[i] = total / a[i, i]
    return x


def crc32(message, table):
    crc = np.uint32(0xFFFFFFFF)
    for byte in message:
        crc = table[(crc ^ byte) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


@numba.njit
def slope(x, y, u, v):
    pull = -1 / (x * x + y * y) ** 1.5
    return u, v, pull * x, pull * y


def orbit(state, dt, steps):
    x, y, u, v = state
    half = 0.5 * dt
    for _ in range(steps):
        x1, y1, u1, v1 = slope(x, y, u, v)
        x2, y2, u2, v2 = slope(x + half * x1, y + half * y1, u + half * u1, v + half * v1)
        x3, y3, u3, v3 = slope(x + half * x2, y + half * y2, u + half * u2, v + half * v2)
        x4, y4, u4, v4 = slope(x + dt * x3, y + dt * y3, u + dt * u3, v + dt * v3)
        x += dt / 6 * (x1 + 2 * x2 + 2 * x3 + x4)
        y += dt / 6 * (y1 + 2 * y2 + 2 * y3 + y4)
        u += dt / 6 * (u1 + 2 * u2 + 2 * u3 + u4)
        v += dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
    return np.array([x, y, u, v])


def attitude(rates, dt):
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    half = 0.5 * dt
    for i in range(len(rates)):
        p, r, s = rates[i, 0], rates[i, 1], rates[i, 2]
        a = w + half * (-x * p - y * r - z * s)
        b = x + half * (w * p + y * s - z * r)
        c = y + half * (w * r - x * s + z * p)
        d = z + half * (w * s + x * r - y * p)
        length = np.sqrt(a * a + b * b + c * c + d * d)
        w, x, y, z = a / length, b / length, c / length, d / length
    return np.array([w, x, y, z])


def robot_arm(angles, lengths):
    pose = np.eye(3)
    for k in range(len(angles)):
        c, s = np.cos(angles[k]), np.sin(angles[k])
        pose = pose @ np.array([[c, -s, lengths[k] * c], [s, c, lengths[k] * s], [0.0, 0.0, 1.0]])
    return pose[:2, 2]


def longest_collatz(limit):
    lengths = np.ones(limit, np.int64)
    for start in prange(1, limit):
        n, length = start, 1
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            length += 1
        lengths[start] = length
    best = np.argmax(lengths[1:]) + 1
    return best, lengths[best]


def hidden_markov(start, transition, emission, observed):
    states = len(start)
    belief, new = start.copy(), np.empty(states)
    total = 0.0
    for symbol in observed:
        scale = 0.0
        for j in range(states):
            new[j] = 0.0
            for i in range(states):
                new[j] += belief[i] * transition[i, j]
            new[j] *= emission[j, symbol]
            scale += new[j]
        for j in range(states):
            belief[j] = new[j] / scale
        total += np.log(scale)
    return total
