"""Errors in units in the last place, against mpmath (float64) or float64 (float32)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
from scipy import special

mp.mp.prec = 160


def _cbrt(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def _logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


EXACT: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(mp, name) for name in ("exp", "expm1", "log", "log10", "log1p", "sin", "cos", "tan", "erf", "hypot", "tanh")
    },
    **{f"arc{name}": getattr(mp, f"a{name}") for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "exp2": lambda x: mp.mpf(2) ** x,
    "log2": lambda x: mp.log(x, 2),
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "pow": lambda x, y: x**y,
    "cbrt": _cbrt,
    "logistic": _logistic,
    "sqrt": mp.sqrt,
}
WIDE: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in EXACT if name not in ("erf", "logistic", "pow")},
    "pow": np.power,
    "erf": special.erf,
    "logistic": special.expit,
}


def spacing(x: np.ndarray, dtype: Any) -> np.ndarray:
    """The size of one ulp at x; of the largest binade beyond it, of subnormals below."""
    info = np.finfo(dtype)
    _, exponent = np.frexp(np.abs(np.asarray(x, np.float64)))
    return np.ldexp(1.0, np.clip(exponent - 1, info.minexp, info.maxexp - 1) - info.nmant)


@np.errstate(all="ignore")
def errors(name: str, got: np.ndarray, *xs: np.ndarray) -> np.ndarray:
    """|got - f(xs)| in ulp of the exact result. Infinite and nan results must agree: 0, or else inf."""
    dtype = got.dtype
    if dtype == np.float32:
        wide = [x.astype(np.float64) for x in xs]
        exact = np.asarray(WIDE[name](*wide))
        rounded = exact.astype(np.float32)
        difference = np.abs(got.astype(np.float64) - exact) / spacing(exact, dtype)
    else:
        values = [_exact(EXACT[name], *map(float, point)) for point in zip(*xs, strict=True)]
        rounded = np.array([float(v) for v in values])
        step = spacing(rounded, dtype)
        difference = np.array(
            [
                0.0 if not np.isfinite(r) else abs(float((mp.mpf(float(g)) - v) / mp.mpf(float(s)))) if np.isfinite(g) else np.inf
                for g, v, r, s in zip(got, values, rounded, step, strict=True)
            ]
        )
    is_same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(np.isfinite(rounded) & np.isfinite(got), difference, np.where(is_same, 0.0, np.inf))


def _exact(function: Callable[..., Any], *point: float) -> Any:
    try:
        value = function(*map(mp.mpf, point))
    except (ValueError, ZeroDivisionError):
        return mp.nan
    return mp.nan if isinstance(value, mp.mpc) and value.imag != 0 else mp.re(value)
