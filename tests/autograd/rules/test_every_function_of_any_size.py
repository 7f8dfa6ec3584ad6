"""Every function whose derivatives are asked for in `test_every_function.py`, of arrays whose lengths only data decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from jitml import grad, jit
from jitml.errors import DerivativeError, UnknownSizeError
from support.effort import FULL
from support.function_table import ROWS, words

# They run in NumPy for such arrays, and say that they have no derivative there.
ON_THE_HOST = words(
    "np.fft.fft np.fft.fft2 np.fft.fftn np.fft.ifft np.fft.ifft2 np.fft.ifftn np.fft.rfft np.fft.rfft2 np.fft.rfftn "
    "np.fft.irfft np.fft.irfft2 np.fft.irfftn np.fft.hfft np.fft.ihfft np.linalg.qr np.linalg.svd np.linalg.svdvals "
    "np.linalg.pinv np.linalg.lstsq np.linalg.norm:2 np.linalg.norm:-2 np.linalg.norm:nuc np.linalg.matrix_norm:2 "
    "np.linalg.matrix_norm:-2 np.linalg.matrix_norm:nuc np.linalg.cond:None np.linalg.cond:2 np.linalg.cond:-2 "
    "np.convolve:full np.convolve:same np.convolve:valid np.correlate:full np.correlate:same np.correlate:valid np.poly "
    "np.polyadd np.polyder np.polyfit np.polyint np.polymul np.polysub np.polyval np.pad:linear_ramp np.pad:maximum "
    "np.pad:mean np.pad:median np.pad:minimum np.pad:odd np.nanmedian np.insert np.add.reduceat np.ldexp np.frexp "
    "np.nextafter math.fsum math.prod"
)
# How many parts or copies there are would have to be known.
REFUSED = words("np.frombuffer ndarray.resize np.repeat np.tile np.resize")
# Of tables that ask for a square, or for memory that nobody has written.
LEFT_OUT = words("np.linalg.tensorsolve np.diag_indices_from np.put_along_axis np.pad:empty")
NAMES = [name for name, rows in ROWS.items() if name not in LEFT_OUT and any("f" in kinds for kinds, _, _ in rows)]
COMPILED = [name for name in NAMES if name not in ON_THE_HOST and name not in REFUSED]
SOME = COMPILED if FULL else COMPILED[::3]
BATCHES = [SOME[n : n + 10] for n in range(0, len(SOME), 10)]


def squares(result: Any) -> Any:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return sum((np.abs(part) ** 2).sum() for part in parts)


def opened(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function of arguments of which masks, behind them, choose rows."""

    def program(*both: Any) -> Any:
        return squares(function(*(x[mask] if x.ndim else x for x, mask in zip(both[:count], both[count:]))))

    return program


def function_of(name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return next((function, args) for kinds, function, args in ROWS[name] if "f" in kinds)


def masked(args: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each argument with two more rows, and the mask that leaves them out."""
    longer = [np.concatenate([x[:1], x, x[-1:]]) if x.ndim else x for x in args]
    return [(x, np.arange(len(x)) % max(1, len(x) - 1) > 0 if x.ndim else np.True_) for x in longer]


def check(names: Sequence[str]) -> None:
    """All in one program: to compile one takes its time, whatever is in it."""
    functions, points = zip(*map(function_of, names))

    def gradients(*given: Any) -> Any:
        found = []
        for function, pairs in zip(functions, given):
            xs, masks = [x for x, _ in pairs], [mask for _, mask in pairs]
            found.append(grad(opened(function, len(xs)), tuple(range(len(xs))))(*xs, *masks))
        return found

    given = [masked(args) for args in points]
    for name, ours, function, args in zip(names, jit(gradients)(*given), functions, points, strict=True):
        expected = grad(lambda *xs, function=function: squares(function(*xs)), tuple(range(len(args))))(*args)
        for mine, theirs in zip(ours, expected, strict=True):
            if theirs.ndim:
                assert not mine[0].any() and not mine[-1].any(), name
                mine = mine[1:-1]  # what the masks leave
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("names", BATCHES, ids=lambda names: names[0])
def test_derivatives(names: list[str]) -> None:
    try:
        check(names)
    except Exception:
        for name in names:  # which of them?
            check([name])
        raise


@pytest.mark.parametrize("name", [name for name in NAMES if name in ON_THE_HOST or name in REFUSED])
def test_what_has_none(name: str) -> None:
    function, args = function_of(name)
    xs, masks = zip(*masked(args))
    with pytest.raises(DerivativeError if name in ON_THE_HOST else UnknownSizeError):
        jit(grad(opened(function, len(args)), tuple(range(len(args)))))(*xs, *masks)
