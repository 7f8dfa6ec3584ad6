"""Price European call options by Black and Scholes (1973), with the Greeks derived by `jitml.grad`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erf

import jitml

Array = np.ndarray[Any, np.dtype[Any]]


def market(n: int = 1_000_000, seed: int = 0) -> tuple[Array, ...]:
    """Spot, strike, years to expiry, interest rate and volatility of n options, f64."""
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(50, 150, n),
        rng.uniform(60, 140, n),
        rng.uniform(0.1, 2, n),
        rng.uniform(0, 0.05, n),
        rng.uniform(0.1, 0.5, n),
    )


def normal_cdf(x: Array) -> Any:
    """The cumulative normal distribution."""
    return 0.5 * (1.0 + erf(x * 0.7071067811865476))


def call_price(spot: Array, strike: Array, years: Array, rate: Array, volatility: Array) -> Any:
    """Prices, f64[n]."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    d2 = d1 - spread
    return spot * normal_cdf(d1) - strike * np.exp(-rate * years) * normal_cdf(d2)


def prices_and_greeks(spot: Array, strike: Array, years: Array, rate: Array, volatility: Array) -> tuple[Array, ...]:
    """Price, delta, theta, rho and vega; each option's price depends on its own inputs only, so a sum has them all."""

    def total(spot: Array, years: Array, rate: Array, volatility: Array) -> tuple[Any, Array]:
        price = call_price(spot, strike, years, rate, volatility)
        return price.sum(), price

    (_, price), greeks = jitml.value_and_grad(total, argnums=(0, 1, 2, 3), has_aux=True)(spot, years, rate, volatility)
    delta, theta, rho, vega = greeks
    return price, delta, -theta, rho, vega


def prices_and_greeks_by_hand(spot: Array, strike: Array, years: Array, rate: Array, volatility: Array) -> tuple[Array, ...]:
    """The same with the textbook's formulas."""
    root = np.sqrt(years)
    spread = volatility * root
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    d2 = d1 - spread
    cdf1, cdf2 = normal_cdf(d1), normal_cdf(d2)
    density = 0.3989422804014327 * np.exp(-0.5 * d1 * d1)
    discounted = strike * np.exp(-rate * years)
    price = spot * cdf1 - discounted * cdf2
    theta = -spot * density * volatility / (2 * root) - rate * discounted * cdf2
    return price, cdf1, theta, discounted * years * cdf2, spot * density * root
