"""Prices, paths and risk."""

from __future__ import annotations

import numpy as np

from workloads.workload import workload


def _options(n, rng):
    return rng.uniform(80, 120, n), rng.uniform(80, 120, n), rng.uniform(0.1, 2, n), 0.02, rng.uniform(0.1, 0.5, n)


def normal_cdf(x):
    """Abramowitz and Stegun 26.2.17, as it stands in many a script."""
    k = 1 / (1 + 0.2316419 * np.abs(x))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    tail = tail * k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    return np.where(x > 0, 1 - tail, tail)


@workload(_options, small=25, full=500_000)
def black_scholes(spot, strike, years, rate, volatility):
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / (volatility * np.sqrt(years))
    d2 = d1 - volatility * np.sqrt(years)
    return spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d2)


@workload(lambda n, rng: (rng.standard_normal((n, 64)), 100.0, 105.0, 0.01, 0.03), small=9, full=10_000)
def asian_option(noise, spot, strike, drift, volatility):
    paths = spot * np.exp(np.cumsum((drift - 0.5 * volatility**2) / 64 + volatility * noise, axis=1))
    return np.maximum(paths.mean(axis=1) - strike, 0.0).mean()


@workload(lambda n, rng: (rng.uniform(0, 0.1, n), rng.uniform(50, 150, n), rng.uniform(1, 10, n)), small=20, full=1_000_000)
def bond_prices(rates, face, years):
    coupons = 0.04 * face * (1 - np.power(1 + rates, -years)) / np.maximum(rates, 1e-9)
    return coupons + face * np.power(1 + rates, -years)


@workload(lambda n, rng: (100 * np.exp(np.cumsum(0.01 * rng.standard_normal(n))),), small=60, full=1_000_000, rtol=1e-5)
def moving_average_signal(prices):
    total = np.cumsum(prices)
    short = (total[20:] - total[:-20]) / 20
    deviation = prices[20:] - short
    return np.sign(deviation) * np.log1p(np.abs(deviation))


@workload(lambda n, rng: (rng.standard_normal((n, 100)) * 0.01, rng.uniform(0, 1, 100)), small=12, full=10_000)
def portfolio_risk(returns, weights):
    w = weights / weights.sum()
    portfolio = returns @ w
    excess = portfolio - portfolio.mean()
    return portfolio.mean(), np.sqrt((excess * excess).mean()), portfolio.min()
