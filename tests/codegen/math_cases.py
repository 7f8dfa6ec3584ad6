"""Where each transcendental function is measured, and the bounds it must keep, in ulp."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

Points = tuple[np.ndarray, ...]
Ranges = Callable[["Sampler"], Iterator[tuple[str, Points]]]


class Sampler:
    """Random points of one format, `n` per range."""

    def __init__(self, dtype: np.dtype, n: int, seed: int) -> None:
        self.dtype, self.n = dtype, n
        self.rng = np.random.default_rng(seed)
        info = np.finfo(dtype)
        self.single = dtype == np.float32
        self.top = float(np.log(info.max))  # exp overflows here
        self.bottom = float(np.log(float(info.smallest_subnormal))) if not self.single else -103.97
        self.bits = info.nmant

    def uniform(self, low: float, high: float) -> np.ndarray:
        return self.rng.uniform(low, high, self.n)

    def powers(self, low: float, high: float, signs: bool = True) -> np.ndarray:
        """e**u with u uniform: as many points in each binade."""
        magnitude = np.exp(self.uniform(low, high))
        return magnitude * self.rng.choice([-1.0, 1.0], self.n) if signs else magnitude

    def near(self, centers: np.ndarray | float, relative: float) -> np.ndarray:
        """Centers times 1 + u with u in many binades below `relative`."""
        return centers * (1 + self.powers(-0.69 * self.bits, float(np.log(relative))))

    def subnormals(self) -> np.ndarray:
        return self.rng.integers(1, 2**self.bits, self.n).astype(f"u{self.dtype.itemsize}").view(self.dtype)


def _tiny_and_zero(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "near 0", (s.powers(-40, 0),)
    yield "subnormal", (s.subnormals(),)


def _exponential(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "whole range", (s.uniform(s.bottom, s.top),)
    yield "moderate", (s.uniform(-2, 2),)
    yield "edges of reduction", (s.near((s.rng.integers(-40, 40, s.n) + 0.5) * np.log(2), 1e-3),)
    yield "underflow", (s.uniform(s.bottom - 1, s.bottom + s.bits * 0.7 + 1),)
    yield "overflow", (s.uniform(s.top - 1, s.top + 1),)
    yield from _tiny_and_zero(s)


def _exp2(s: Sampler) -> Iterator[tuple[str, Points]]:
    for name, (x,) in _exponential(s):
        yield name, (x / np.log(2) if "near" not in name and "sub" not in name else x,)


def _logarithm(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "whole range", (s.powers(-s.top, s.top, signs=False),)
    yield "moderate", (s.uniform(0.25, 4),)
    yield "near 1", (s.near(1.0, 0.5),)
    yield "powers of 2", (s.near(2.0 ** s.rng.integers(-60, 60, s.n), 0.01),)
    yield "edges of reduction", (s.near(np.sqrt(0.5), 0.01),)
    yield "subnormal", (s.subnormals(),)


def _log1p(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "large", (s.powers(0, s.top, signs=False),)
    yield "moderate", (s.uniform(-0.9, 3),)
    yield "near -1", (-1 + s.powers(-0.69 * s.bits, -1, signs=False),)
    yield from _tiny_and_zero(s)


def _circular(s: Sampler) -> Iterator[tuple[str, Points]]:
    limit = 1e5 if s.single else 1e9
    yield "first turns", (s.uniform(-30, 30),)
    yield "fast range", (s.uniform(-limit, limit),)
    yield "near multiples of pi/2", (s.near(s.rng.integers(1, 60000, s.n) * (np.pi / 2), 1e-3),)
    yield "nearest floats to multiples of pi/2", (s.rng.integers(-60000, 60000, s.n) * (np.pi / 2),)
    yield "edges of reduction", (s.near((s.rng.integers(0, 50, s.n) + 0.5) * (np.pi / 2), 1e-4),)
    yield "huge", (s.powers(float(np.log(limit)), s.top),)
    yield from _tiny_and_zero(s)


def _hyperbolic(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "whole range", (s.uniform(-s.top - 0.6, s.top + 0.6),)
    yield "moderate", (s.uniform(-3, 3),)
    yield "overflow", (s.uniform(s.top - 0.5, s.top + 1),)
    yield from _tiny_and_zero(s)


def _saturating(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "to saturation", (s.uniform(-20, 20),)
    yield "moderate", (s.uniform(-2, 2),)
    yield "far", (s.uniform(s.bottom, -s.bottom),)
    yield from _tiny_and_zero(s)


def _arcsine(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "whole range", (s.uniform(-1, 1),)
    yield "near 1", (1 - s.powers(-0.69 * s.bits, 0, signs=False),)
    yield "near -1", (s.powers(-0.69 * s.bits, 0, signs=False) - 1,)
    yield "edges of reduction", (s.near(0.5, 0.01),)
    yield from _tiny_and_zero(s)


def _arctangent(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "all binades", (s.powers(-s.top, s.top),)
    yield "moderate", (s.uniform(-4, 4),)
    yield "edges of reduction", (s.near(np.tan(np.pi / 8) * s.rng.choice([1, 5.828427], s.n), 0.01),)
    yield from _tiny_and_zero(s)


def _arsinh(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "all binades", (s.powers(-s.top, s.top),)
    yield "moderate", (s.uniform(-4, 4),)
    yield "where large begins", (s.near(2.0 ** (13 if s.single else 28), 0.5),)
    yield from _tiny_and_zero(s)


def _arcosh(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "all binades", (1 + s.powers(-0.69 * s.bits, s.top, signs=False),)
    yield "moderate", (s.uniform(1, 5),)
    yield "where large begins", (s.near(2.0 ** (13 if s.single else 28), 0.5),)


def _cube(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "all binades", (s.powers(-s.top, s.top),)
    yield "moderate", (s.uniform(-30, 30),)
    yield from _tiny_and_zero(s)


def _power(s: Sampler) -> Iterator[tuple[str, Points]]:
    base = s.powers(-s.top, s.top, signs=False)
    yield "whole range", (base, s.uniform(s.bottom, s.top) / np.log(base))
    yield "moderate", (s.uniform(0.1, 10), s.uniform(-5, 5))
    yield "bases near 1", (s.near(1.0, 0.01), s.powers(0, s.bits * 0.69))
    yield "integer exponents", (s.uniform(-9, 9), s.rng.integers(-20, 20, s.n).astype(float))
    yield "subnormal bases", (s.subnormals(), s.uniform(-1, 1))


def _hypotenuse(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield "moderate", (s.uniform(-9, 9), s.uniform(-9, 9))
    yield "all binades", (s.powers(-s.top, s.top), s.powers(-s.top, s.top))
    yield "huge", (s.powers(s.top - 9, s.top - 1), s.powers(s.top - 9, s.top - 1))
    yield "subnormal", (s.subnormals(), s.subnormals())


def _angle(s: Sampler) -> Iterator[tuple[str, Points]]:
    yield from _hypotenuse(s)
    x = s.powers(-9, 9)
    yield "edges of reduction", (s.near(x * np.tan(np.pi / 8), 0.05), x)


# name: (where to measure, bound for float64, bound for float32)
CASES: dict[str, tuple[Ranges, float, float]] = {
    "exp": (_exponential, 1.1, 1.1),
    "exp2": (_exp2, 1.0, 1.1),
    "expm1": (_exponential, 2.5, 2.5),
    "log": (_logarithm, 1.0, 1.0),
    "log2": (_logarithm, 1.0, 1.0),
    "log10": (_logarithm, 1.0, 1.0),
    "log1p": (_log1p, 1.0, 1.0),
    "sin": (_circular, 1.6, 1.6),
    "cos": (_circular, 1.6, 1.6),
    "tan": (_circular, 2.5, 2.5),
    "sinh": (_hyperbolic, 2.5, 2.5),
    "cosh": (_hyperbolic, 1.6, 1.6),
    "tanh": (_saturating, 2.5, 2.5),
    "logistic": (_saturating, 2.2, 2.5),
    "arcsin": (_arcsine, 2.5, 2.5),
    "arccos": (_arcsine, 1.6, 1.6),
    "arctan": (_arctangent, 2.0, 2.0),
    "arcsinh": (_arsinh, 2.0, 2.0),
    "arccosh": (_arcosh, 2.5, 2.5),
    "arctanh": (_arcsine, 2.0, 2.0),
    "cbrt": (_cube, 1.0, 0.51),
    "erf": (_saturating, 1.1, 1.1),
    "pow": (_power, 1.1, 0.51),
    "hypot": (_hypotenuse, 1.2, 0.51),
    "arctan2": (_angle, 2.3, 2.3),
}


def points(name: str, dtype: np.dtype, n: int, seed: int = 0) -> Iterator[tuple[str, Points]]:
    """The name and the points of each range."""
    with np.errstate(all="ignore"):
        for where, xs in CASES[name][0](Sampler(dtype, n, seed)):
            yield where, tuple(x.astype(dtype) for x in xs)
