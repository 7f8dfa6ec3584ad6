"""Running extremes, sums and products of long rows are NumPy's bit for bit, whatever the rows hold: zeros of both signs, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.fusion.lower.scans import CHUNK, LEAST

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
LENGTHS = (LEAST - 1, LEAST, LEAST + 8 * CHUNK + 77)
SCANS: dict[str, Callable[[Array], Any]] = {
    "max": lambda x: np.maximum.accumulate(x),  # noqa: PLW0108
    "min": lambda x: np.minimum.accumulate(x),  # noqa: PLW0108
    "backwards": lambda x: np.maximum.accumulate(x[::-1])[::-1],
    "rows": lambda x: np.minimum.accumulate(np.stack([x, x[::-1]]), axis=1),
    "sum": lambda x: np.cumsum(x, dtype=x.dtype),
    "product": lambda x: np.cumprod(x, dtype=x.dtype),
}


def numbers(n: int, dtype: str) -> dict[str, Array]:
    d = np.dtype(dtype)
    x = RNG.standard_normal(n).astype(d)
    low = -np.abs(x)

    def with_at(y: Array, **values: tuple[Any, ...]) -> Array:
        y = y.copy()
        for value, places in values.items():
            y[list(places)] = {"nan": np.nan, "inf": np.inf, "zero": 0.0, "minus": -0.0}[value]
        return y

    return {
        "drawn": x,
        "a walk": np.cumsum(x).astype(d),
        "one nan": with_at(x, nan=(n // 2,)),
        "nan at the ends of chunks": with_at(x, nan=(CHUNK - 1, 9 * CHUNK), inf=(n - 1,)),
        "nan at last": with_at(x, nan=(n - 1,)),
        "nan before zeros": with_at(low, nan=(3,), zero=(CHUNK + 5, n - 9), minus=(3 * CHUNK,)),
        "zeros of both signs on top": with_at(low, zero=range(0, n, 2100), minus=range(7, n, 3001)),
        "zeros of both signs below": with_at(-low, zero=range(0, n, 2100), minus=range(7, n, 3001)),
        "only zeros": RNG.choice(np.array([0.0, -0.0], d), n),
        "late zeros": with_at(low, minus=range(n // 2, n), zero=(n // 2 + CHUNK,)),
        "infinite": np.full(n, -np.inf, d),
        "only nan": np.full(n, np.nan, d),
    }


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["max", "min", "backwards", "rows"])
def test_extremes(name: str, dtype: str) -> None:
    for n in LENGTHS:
        fast = jitml.jit(SCANS[name])
        for what, x in numbers(n, dtype).items():
            got, expected = fast(x), SCANS[name](x)
            np.testing.assert_array_equal(got, expected, what)
            zero = expected == 0
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]), what)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u4", "i8", "u8"])
def test_integers(dtype: str) -> None:
    d = np.dtype(dtype)
    for n in LENGTHS:
        x = RNG.integers(np.iinfo(d).min, np.iinfo(d).max, n, dtype=d, endpoint=True)
        for name, scan in SCANS.items():
            got, expected = jitml.jit(scan)(x), scan(x)
            assert (got.dtype, got.tobytes()) == (expected.dtype, expected.tobytes()), name


def test_sums_of_floats_stay_in_order() -> None:
    x = RNG.standard_normal(LEAST + 99) * np.exp(RNG.normal(0, 9, LEAST + 99))
    for scan in (SCANS["sum"], SCANS["product"], lambda x: np.cumsum(x.astype("f4"))):
        with np.errstate(all="ignore"):
            assert jitml.jit(scan)(x).tobytes() == scan(x).tobytes()


def test_what_is_wanted_of_them() -> None:
    """A drawdown, and streaks of games that were won."""

    def drawdown(prices: Array) -> Any:
        loss = 1 - prices / np.maximum.accumulate(prices)
        return loss, loss.max()

    def streaks(won: Array) -> Any:
        total = np.cumsum(won)
        return total - np.maximum.accumulate(np.where(won, 0, total))

    for function, x in ((drawdown, np.exp(RNG.normal(size=3 * LEAST))), (streaks, RNG.random(3 * LEAST) < 0.7)):
        for got, expected in zip(jitml.jit(function)(x), function(x)):
            np.testing.assert_array_equal(got, expected)


def test_threads_share_the_chunks() -> None:
    x = np.zeros(20 * LEAST)
    shown = jitml.jit(np.maximum.accumulate).lower(x).schedules
    assert [("parallel" in s) for s in map(str, shown.values())] == [True, False, True]


@pytest.mark.parametrize("n", [0, 1, CHUNK, LEAST, 3 * LEAST - 5])
def test_lengths_that_only_the_program_knows(n: int) -> None:
    x = RNG.standard_normal(3 * LEAST)
    fast = jitml.jit(lambda x, n: np.maximum.accumulate(x[x < n]))
    kept = np.where(np.arange(x.size) < n, -np.abs(x), np.abs(x) + 1)
    np.testing.assert_array_equal(fast(kept, 0.5), np.maximum.accumulate(kept[kept < 0.5]))
