"""Directional derivatives: is the slope of a transformed function along one direction what differences of its values say?

Differences lie at kinks, at the ends of domains and where numbers are large. Two steps have to agree, and the slopes on both
sides, before a derivative is called wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from jitml.autograd.api.directions import jvp, vjp
from jitml.device.array import Array as OnDevice
from jitml.errors import JitmlError
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.values.kinds import rebuilt

Array = np.ndarray[Any, Any]
# By whether all arguments are double: the larger step, and the least error, as a share of the slope, that is called wrong.
_STEPS = {True: 1e-3, False: 3e-2}
_TOLERANCES = {True: 1e-5, False: 5e-2}
_WITH_AUX = {
    "grad": 2,
    "value_and_grad": 2,
    "jacfwd": 2,
    "jacrev": 2,
    "jacobian": 2,
    "hessian": 2,
    "vjp": 1,
    "linearize": 1,
    "jvp": 1,
    "hvp": 1,
}


def wrong_slope(key: Hashable, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """How far a derivative is off along a direction, in words; empty if it is not, or if differences tell nothing.

    Args:
        key: of the transform: its name, and its options.
        function: what is transformed; `args`, `kwargs`: what it is called with.
    """
    what, *options = key if isinstance(key, tuple) else ("",)
    if what not in _WITH_AUX:
        return ""
    has_aux = options[_WITH_AUX[what] - 1 :][:1] == [True]
    leaves, spec = flatten((args, dict(kwargs)))
    leaves = [np.asarray(x) if type(x) is OnDevice else x for x in leaves]
    floats = [isinstance(x, (float, np.floating, np.ndarray)) and np.asarray(x).dtype.kind == "f" for x in leaves]
    places = [n for n, is_float in enumerate(floats) if is_float]

    def varied(*xs: Any) -> Any:
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in leaves]
        for n, x in zip(places, xs, strict=True):
            given[n] = x
        passed, named = rebuilt(spec, given)
        result = function(*passed, **named)
        return result[0] if has_aux else result

    point = [np.array(leaves[n]) for n in places]
    return _Along(varied, point).error() if point else ""


class _Along:
    """A function along a random direction through a point."""

    def __init__(self, f: Callable[..., Any], point: Sequence[Array]) -> None:
        self.f, self.point = f, point
        self.rng = np.random.default_rng(0)
        self.direction = [np.asarray(self.rng.standard_normal(x.shape)).astype(x.dtype) for x in point]
        double = all(x.dtype.itemsize >= 8 for x in point)
        self.step, self.tolerance = _STEPS[double], _TOLERANCES[double]

    def at(self, t: float) -> Array:
        moved = [x + x.dtype.type(t) * d for x, d in zip(self.point, self.direction)]
        return _flat(self.f(*(x if x.ndim else x[()] for x in moved)))

    def error(self) -> str:
        with np.errstate(all="ignore"):
            try:
                slope = self._by_differences()
                forward = None if slope is None else _flat(jvp(self.f, self._shown(self.point), self._shown(self.direction))[1])
            except (JitmlError, ArithmeticError, ValueError, TypeError, IndexError):
                return ""  # the function has no values around, or no derivative
        if slope is None or forward is None or forward.shape != slope[0].shape:
            return ""
        return self._compared("forward", forward, *slope) or self._backward(*slope)

    def _backward(self, slope: Array, slack: Array) -> str:
        y, pull = vjp(self.f, *self._shown(self.point))
        leaves, spec = flatten(y)
        cotangents = [np.asarray(self.rng.standard_normal(np.shape(x))).astype(np.asarray(x).dtype) for x in leaves]
        pulled = pull(unflatten(spec, self._shown(cotangents)))
        got = sum(float(np.sum(np.asarray(p, np.float64) * d)) for p, d in zip(pulled, self.direction))
        weights = np.concatenate([ct.ravel() for ct in cotangents]).astype(np.float64)
        return self._compared("reverse", np.array([got]), np.array([weights @ slope]), np.array([np.abs(weights) @ slack]))

    def _shown(self, arrays: Sequence[Array]) -> tuple[Any, ...]:
        return tuple(x if x.ndim else x[()] for x in arrays)

    def _by_differences(self) -> tuple[Array, Array] | None:
        """The slope of each result, and by how much it may be wrong; None if nobody can say."""
        h = self.step
        y = self.at(0.0)
        if not (np.array_equal(y, self.at(0.0)) and y.size and np.isfinite(y).all()):
            return None  # it draws random numbers
        slopes, bends = [], []
        for step in (h, h / 4):
            a, b, c, d = (self.at(n * step) for n in (-2, -1, 1, 2))
            if not a.shape == b.shape == c.shape == d.shape == y.shape:
                return None
            slopes.append((8 * (c - b) - (d - a)) / (12 * step))
            bends.append(np.abs((c - y) - (y - b)) / step)
        noise = 1e3 * np.finfo(self.point[0].dtype).eps * np.abs(y).max() / h
        if not np.isfinite(slopes).all() or bool(np.any(bends[1] > bends[0] / 2 + noise)):
            return None  # a kink, or an end of the domain
        scale = np.abs(slopes[1]) + np.abs(slopes[1]).max()
        return slopes[1], 50 * np.abs(slopes[0] - slopes[1]) + self.tolerance * scale + noise

    def _compared(self, mode: str, got: Array, slope: Array, slack: Array) -> str:
        off = np.abs(got - slope) - slack
        n = int(np.argmax(off))
        if not off[n] > 0:
            return ""
        return f"its derivative along a random direction ({mode} mode) is {got[n]:.6g}, differences give {slope[n]:.6g}"


def _flat(tree: Any) -> Array:
    """The floats of a result, one after the other."""
    arrays = [np.asarray(leaf) for leaf in flatten(tree)[0]]
    parts = [x.astype(np.float64).ravel() for x in arrays if x.dtype.kind == "f"]
    return np.concatenate(parts) if parts else np.zeros(0)
