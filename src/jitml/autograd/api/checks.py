"""`check_grads`: are the derivatives of a function what differences of its values say?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitml.autograd.api.directions import jvp, vjp
from jitml.autograd.api.transform_driver import require_sequence
from jitml.autograd.arguments.point import is_number
from jitml.diagnostics.tracebacks import entry
from jitml.errors import DerivativeError
from jitml.records import dataclass
from jitml.trace.hooks.convert import convert
from jitml.trace.record.pytree import flatten, unflatten
from jitml.trace.values.kinds import rebuilt

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
# Of float64 (complex128) and of narrower floats: the step of a difference of fourth order, and what it is good for.
_STEPS = {True: 1e-3, False: 2e-2}
_TOLERANCES = {True: 1e-6, False: 2e-2}


@entry
def check_grads(
    f: Function,
    args: Sequence[Any],
    order: int = 2,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of `f` at `args` with differences along random directions; raise where they disagree.

    Forward mode has to give what a difference quotient gives: how much `f` changes for a small step in a random direction.
    Reverse mode has to give the same, weighted with random numbers. For order 2, the derivative itself is checked in the same
    way.

    Args:
        args: a tuple; what in them is no float or complex number is held fixed.
        order: up to which derivative.
        modes: "fwd", "rev", or both.
        atol: the difference that is allowed; default 1e-6 in double precision, 2e-2 in less.
        rtol: the same, relative to the value; the same default.
        eps: the step; default 1e-3 in double precision. `f` is evaluated up to two steps away from `args`.

    Raises:
        AssertionError: a derivative is not what the differences say.

    >>> import numpy as np
    >>> check_grads(lambda x: np.sin(x) * x, (np.array([0.5, 1.0]),), order=2)
    """
    args = require_sequence("check_grads: args", args)
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if unknown := set(chosen) - {"fwd", "rev"}:
        raise ValueError(f"check_grads: no such mode: {', '.join(sorted(unknown))}; there are fwd and rev")
    if order < 1:
        raise ValueError(f"check_grads: order is {order}; derivatives are counted from 1")
    leaves, spec = flatten(args)
    places = [n for n, leaf in enumerate(leaves) if _varies(leaf)]
    if not places:
        raise DerivativeError("check_grads: no argument is made of floats", remedy="Pass floats: 1.0, or x.astype(np.float64).")

    def varied(*xs: Any) -> Any:
        given = list(leaves)
        for n, x in zip(places, xs, strict=True):
            given[n] = x
        return convert(f)(*rebuilt(spec, given))

    point = tuple(leaves[n] for n in places)
    double = all(np.finfo(x.dtype).bits == 64 for x in _arrays(point))
    tolerance, step = _TOLERANCES[double], _STEPS[double]
    checker = _Checker(
        chosen,
        tolerance if atol is None else atol,
        tolerance if rtol is None else rtol,
        step if eps is None else eps,
        np.random.default_rng(0),
    )
    checker.check(varied, point, order, ())


@dataclass(frozen=True)
class _Checker:
    modes: tuple[str, ...]
    atol: float
    rtol: float
    eps: float
    rng: np.random.Generator

    def check(self, f: Function, args: tuple[Any, ...], order: int, path: tuple[str, ...]) -> None:
        """Args: path: the modes whose derivative `f` is already, for messages."""
        if order < 1:
            return
        dx = self._random_like(args)
        quotient = self._difference(f, args, dx)
        if "fwd" in self.modes:
            _, dy = jvp(f, args, dx)
            self._compare(_arrays(dy), quotient, (*path, "fwd"))
            self.check(lambda *xs: jvp(f, xs, dx), args, order - 1, (*path, "fwd"))
        if "rev" in self.modes:
            y, pull = vjp(f, *args)
            ct = self._random_like(y)
            self._compare([_product(pull(ct), dx)], [_product(ct, quotient)], (*path, "rev"))
            self.check(lambda *xs: vjp(f, *xs)[1](ct), args, order - 1, (*path, "rev"))

    def _difference(self, f: Function, args: tuple[Any, ...], dx: tuple[Any, ...]) -> list[Array]:
        """The derivative along dx by the central difference of fourth order."""

        def at(steps: int) -> list[Array]:
            moved = [x + x.dtype.type(steps * self.eps) * d for x, d in zip(_arrays(args), _arrays(dx))]
            return _arrays(f(*unflatten(flatten(args)[1], [m if m.ndim else m[()] for m in moved])))

        values = [at(steps) for steps in (-2, -1, 1, 2)]
        return [(8 * (c - b) - (d - a)) / (12 * self.eps) for a, b, c, d in zip(*values)]

    def _random_like(self, tree: Any) -> Any:
        leaves, spec = flatten(tree)
        return unflatten(spec, [self._random(np.asarray(leaf)) for leaf in leaves])

    def _random(self, x: Array) -> Any:
        direction = np.asarray(self.rng.normal(size=x.shape))
        if x.dtype.kind == "c":
            direction = direction + 1j * self.rng.normal(size=x.shape)
        return direction.astype(x.dtype)

    def _compare(self, got: Sequence[Any], expected: Sequence[Any], path: tuple[str, ...]) -> None:
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(
                ours, theirs, rtol=self.rtol, atol=self.atol, err_msg=f"check_grads: the derivative {' of '.join(path[::-1])}"
            )


def _varies(leaf: Any) -> bool:
    return is_number(leaf) and np.asarray(leaf).dtype.kind in "fc"


def _arrays(tree: Any) -> list[Array]:
    return [np.asarray(leaf) for leaf in flatten(tree)[0]]


def _product(a: Any, b: Any) -> Any:
    """The real part of the sum of products: what pairs a cotangent with a tangent."""
    return sum(np.real(np.sum(x * y)) for x, y in zip(_arrays(a), _arrays(b), strict=True))
