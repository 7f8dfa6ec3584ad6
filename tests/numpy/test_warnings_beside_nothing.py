"""What is computed for arrays that turn out to have no elements warns all the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]


def filled(x: Array, b: Array) -> Array:
    x[x > 0] = np.log(b[0])
    return x


def divided(x: Array, b: Array) -> Array:
    x[x > 0] *= b[0] / b[1]
    return x


PROGRAMS: dict[str, Callable[[Array, Array], Any]] = {
    "a number": lambda x, b: x * np.log(b[0]),
    "a number that some take": lambda x, b: np.where(x > 7, np.cos(b[-1]), 0),
    "a number of a chain": lambda x, b: x - 2 * np.log(b[0]),
    "rows": lambda x, b: np.sqrt(b)[:, None] * x,
    "rows that are summed": lambda x, b: np.outer(x, np.sqrt(b)).sum(0),
    "a quotient of numbers": lambda x, b: x + b[0] / b[1],
    "a limit": lambda x, b: np.clip(x, np.log(b[0]), 5),
    "a filling": lambda x, b: np.full(x.shape, np.log(b[0])),
    "a border": lambda x, b: np.pad(np.outer(x, x), ((0, 0), (1, 1)), constant_values=np.log(b[0])),
    "a norm": lambda x, b: x / np.sqrt((x * x).sum() - 1),
    "beside another": lambda x, b: np.stack([x, x * np.log(b[0])]),
    "what a mask takes": lambda x, b: x[x > 0] * np.log(b[0]),
    "what a mask fills": filled,
    "what a mask changes": divided,
    "a part": lambda x, b: x[2:] * np.log(b[0]),
    "two parts": lambda x, b: x[:-1] * np.log(b[0]) + x[1:] * (b[0] / b[1]),
    "a product": lambda x, b: (x * np.log(b[0])) @ x,
    "an outer product": lambda x, b: np.add.outer(np.log(b), x),
    "a polynomial": lambda x, b: np.polyval(np.log(b), x),
    "a sum so far": lambda x, b: np.cumsum(x * np.log(b[1])),
}


def heard(f: Callable[[Array, Array], Any], x: Array) -> list[tuple[type, str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f(x.copy(), np.array([-1.0, 0.0, np.inf]))
    return sorted((w.category, str(w.message)) for w in found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_warnings_beside_nothing(name: str) -> None:
    f = PROGRAMS[name]
    jitted = jitml.jit(f)
    for row in ([1.0, -2.0, 3.0], [3.0, 4.0], [], [-1.0], [2.0], [-1.0, -2.0], [0.0, 0.0, 0.0, 5.0]):
        x = np.array(row)
        assert heard(jitted, x) == heard(f, x), row
