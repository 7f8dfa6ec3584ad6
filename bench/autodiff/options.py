"""The price of European options and its slopes: delta, theta, rho, vega and gamma."""

from __future__ import annotations

import numpy as np

from autodiff.tasks import Greeks
from autodiff.workload import differentiated


def _options(n, rng):
    limits = ((80, 120), (80, 120), (0.1, 2), (0, 0.05), (0.1, 0.5))  # spot, strike, years, rate, volatility
    return tuple(rng.uniform(low, high, n) for low, high in limits)


def density(x):
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def normal_cdf(x):
    """Abramowitz and Stegun 26.2.17, as it stands in many a script."""
    k = 1 / (1 + 0.2316419 * np.abs(x))
    series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = density(x) * series
    return np.where(x > 0, 1 - tail, tail)


def _normal_slopes(x):
    """The series once more, with its first two derivatives."""
    a = (0.0, 0.319381530, -0.356563782, 1.781477937, -1.821255978, 1.330274429)
    sign, scale = np.sign(x), 0.2316419
    k = 1 / (1 + scale * np.abs(x))
    powers = k ** np.arange(6)[:, None]
    series = sum(a[n] * powers[n] for n in range(1, 6))
    first = sum(n * a[n] * powers[n - 1] for n in range(1, 6))
    second = sum(n * (n - 1) * a[n] * powers[n - 2] for n in range(2, 6))
    k1, k2 = -scale * sign * k * k, 2 * scale**2 * k**3
    d1, d2 = first * k1, second * k1 * k1 + first * k2
    phi = density(x)
    tail, slope, bend = phi * series, phi * (d1 - x * series), phi * (d2 - 2 * x * d1 + (x * x - 1) * series)
    return np.where(x > 0, 1 - tail, tail), np.where(x > 0, -slope, slope), np.where(x > 0, -bend, bend)


def _greeks(spot, strike, years, rate, volatility):
    root = np.sqrt(years)
    deviation = volatility * root
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    d2 = d1 - deviation
    (n1, s1, b1), (n2, s2, b2) = _normal_slopes(d1), _normal_slopes(d2)
    discounted = strike * np.exp(-rate * years)
    by_d1, by_d2 = spot * s1, -discounted * s2
    both = by_d1 + by_d2
    delta = n1 + both / (spot * deviation)
    by_years = (rate + 0.5 * volatility**2) / deviation - 0.5 * d1 / years
    theta = both * by_years - by_d2 * 0.5 * volatility / root + rate * discounted * n2
    rho = both * root / volatility + years * discounted * n2
    vega = both * (root - d1 / volatility) - by_d2 * root
    inner = 1 / (spot * deviation)
    gamma = 2 * s1 * inner + (spot * b1 - discounted * b2) * inner**2 - both * inner / spot
    return delta, -n2 * np.exp(-rate * years) - both / (strike * deviation), theta, rho, vega, gamma


@differentiated(Greeks((0, 1, 2, 3, 4)), _greeks, _options, small=9, full=100_000, bounded=False)
def black_scholes(spot, strike, years, rate, volatility):
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    return spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d1 - deviation)
