"""Where NumPy raises, so do we, in its words, and with what it had written by then; where it gives a result, so do we."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml

Array = np.ndarray[Any, Any]
X = np.arange(6.0).reshape(2, 3)


def misaligned(x: Array) -> Array:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    y = raw[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def adds_one(x: Array) -> Array:
    x += 1
    return x


def writes_then_fails(x: Array) -> Array:
    x += 1
    return x[7]


def assigns_to_scalar(x: Array) -> None:
    s = x.sum()
    s[()] = 1


LIKE_NUMPY: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "shapes that do not broadcast": (lambda x: x + np.ones(4), (X,)),
    "shapes that do not multiply": (lambda x: x @ np.ones(4), (X,)),
    "ragged list": (lambda x: x + np.array([[1, 2], [3]]), (X,)),
    "ragged list of traced values": (lambda x: np.array([[x[0, 0]], [x[0, 0], 1]]), (X,)),
    "index out of bounds": (lambda x: x[5], (X,)),
    "axis out of bounds": (lambda x: x.sum(axis=2), (X,)),
    "reduction of nothing": (lambda x: x.max(), (X[:0],)),
    "reshape to another size": (lambda x: x.reshape(4, 2), (X,)),
    "missing attribute": (lambda x: x.nothing, (X,)),
    "truth of an array": (lambda x: 1 if x else 2, (X,)),
    "len of a scalar": (lambda x: len(x[0, 0]), (X,)),
    "iterating a scalar": (lambda x: list(x[0, 0]), (X,)),
    "assigning to a scalar": (assigns_to_scalar, (X,)),
    "integer division by zero": (lambda n: 1 // n, (0,)),
    "negative integer power": (lambda x: x ** np.array(-1), (np.arange(3),)),
    "too large a number": (lambda x: x + 300, (np.zeros(2, np.int8),)),
    "arrays too large to allocate": (lambda x: np.zeros((10**9, 10**9)) + x, (1.0,)),
    "read-only": (adds_one, (np.broadcast_to(X, (2, 2, 3)),)),
    "in-place cast": (lambda x: np.add(x, 1.5, out=x), (np.arange(3),)),
    "a user's own exception": (lambda x: {}["key"], (X,)),
    "wrong number of arguments": (lambda x: x, (X, X)),
    "failing after a write": (writes_then_fails, (X.copy(),)),
    "zero size": (lambda x: (x.sum(axis=0), x * 2, x.T), (X[:0],)),
    "0-d": (lambda x: (x * 2, x[...], x.sum(), x.reshape(1)), (np.array(3.0),)),
    "not contiguous": (lambda x: (x * 2, x.sum(axis=0)), (X[:, ::-2],)),
    "Fortran order": (lambda x: (x * 2, x.sum(axis=0)), (np.asfortranarray(X),)),
    "byte-swapped": (lambda x: x * 2.0, (X.astype(">f8"),)),
    "byte-swapped, written": (adds_one, (X.astype(">f8"),)),
    "misaligned": (lambda x: x * 2, (misaligned(X),)),
    "misaligned, written": (adds_one, (misaligned(X),)),
    "nan-laden": (lambda x: (x.max(), x.sum(), np.sort(x), x > 0), (np.array([np.nan, 1, np.nan]),)),
    "strings as options": (lambda x, mode: x + 1 if mode == "a" else x, (X, "a")),
    "None": (lambda x, y: x if y is None else y, (X, None)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("f, args", LIKE_NUMPY.values(), ids=LIKE_NUMPY)
def test_like_numpy(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    def copied() -> tuple[Any, ...]:
        return tuple(misaligned(a) if not getattr(a, "flags", X.flags).aligned else a for a in args)

    mine, theirs = copied(), tuple(np.array(a) if isinstance(a, np.ndarray) and a.flags.writeable else a for a in args)
    try:
        want = f(*theirs)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            jitml.jit(f)(*mine)
        assert type(caught.value) is type(error)
        assert str(caught.value) == str(error)
        for a, b in zip(mine, theirs):
            np.testing.assert_array_equal(a, b)
        return
    got = jitml.jit(f)(*mine)
    for g, w in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
        assert type(g) is type(w)
        np.testing.assert_array_equal(g, w)
        assert g.dtype.newbyteorder("=") == w.dtype.newbyteorder("=")
    for a, b in zip(mine, theirs):
        np.testing.assert_array_equal(a, b)
