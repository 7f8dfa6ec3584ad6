"""Arrays with a number among ordinary ones that raises floating-point errors, and what a call warns of and raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ORDINARY = np.array([2.0, 0.5, 3.0, 1.5, 0.25, 7.0, 1.25, 0.75, 5.0])
BAD = {
    "zero": 0.0, "minus": -2.0, "infinite": np.inf, "nan": np.nan, "huge": 1e300, "tiny": 1e-310,
}  # fmt: skip


def with_one(value: float) -> Array:
    x = ORDINARY.copy()
    x[5] = value
    return x


STATES: dict[str, dict[str, Any]] = {
    "default": {}, "ignore": {"all": "ignore"}, "warn": {"all": "warn"}, "raise": {"all": "raise"},
    "raise division": {"divide": "raise", "invalid": "ignore"},
}  # fmt: skip


def outcome(f: Callable[[Array], Any], x: Array, state: dict[str, Any]) -> Any:
    with warnings.catch_warnings(record=True) as caught, np.errstate(**state):
        warnings.simplefilter("always")
        try:
            result = f(x)
            error = ""
        except FloatingPointError as raised:
            result, error = None, str(raised)
    return result, error, [(str(w.message), w.category, w.filename, w.lineno) for w in caught]
