"""Numbers, NumPy's scalars and static arguments of calls that machine code answers."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.native_entry.test_native_entry import entered, hits, same_results

import jitml
from jitml import engine
from jitml.codegen.llvm.runtime import c_api

pytestmark = pytest.mark.skipif(not c_api.native_calls(), reason="arrays of this interpreter cannot be read in place")
X = np.array([1.0, -2.5, 3.0])
EXTREMES = (0, 1, -1, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**64 - 1)
SCALARS: dict[type, list[Any]] = {
    **{
        kind: [kind(n) for n in EXTREMES if np.iinfo(kind).min <= n <= np.iinfo(kind).max]
        for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.longlong)
    },
    **{kind: [kind(x) for x in ("0.0", "-0.0", "1.5", "nan", "inf", "-inf")] for kind in (np.float16, np.float32, np.float64)},
    np.bool_: [np.True_, np.False_],
    np.complex128: [np.complex128(1 + 2j), np.complex128(-0.0)],
}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "OFTEN", 3)


def scaled(x, s):
    return x * s


@pytest.mark.loose
@pytest.mark.parametrize("kind", SCALARS)
def test_numpys_scalars_are_what_they_are(kind: type) -> None:
    f = jitml.jit(scaled)
    with np.errstate(all="ignore"):
        for _ in range(8):
            for s in SCALARS[kind]:
                same_results(f(X, s), scaled(X, s))
        for other in (2, 2.0, True, 1j, np.float64(2.0), np.int64(3), np.array(2.0)):
            same_results(f(X, other), scaled(X, other))


class Number(np.float64):
    def item(self, *args: Any) -> Any:
        return 7.0


class Whole(np.int64):
    def item(self, *args: Any) -> Any:
        return 7


@pytest.mark.loose
@pytest.mark.parametrize(("usual", "other"), [(np.float64(2.0), Number(2.0)), (np.int64(2), Whole(2))])
def test_numbers_of_a_class_of_the_users_are_not_taken_for_numpys(usual: Any, other: Any) -> None:
    f = entered(scaled, X, usual)
    before = hits(f)
    same_results(np.asarray(f(X, other)), np.asarray(scaled(X, other)))
    assert hits(f) == before


def labelled(x, how, n=2):
    return (x * n, how) if how else x - n


STATICS = [1, True, 1.0, "1", None, (1, 2), (2, 1), 0.0, -0.0, b"1", 10**20, frozenset({1}), np.float64(1.0), 1j]


def test_static_arguments_are_told_apart_by_value_and_type() -> None:
    f = jitml.jit(labelled, static_argnames=("how", "n"))
    for _ in range(6):
        for how in STATICS:
            for n in (2, 2.0, True):
                got, wanted = f(X, how, n=n), labelled(X, how, n=n)
                same_results(got, wanted)
                if how:
                    assert type(got[1]) is type(how)
    g = jitml.jit(labelled, static_argnums=(1,))
    for how in STATICS:
        before = hits(g)
        for _ in range(8):
            same_results(g(X, how), labelled(X, how))
            same_results(g(X, how=how) if how is None else g(X, how), labelled(X, how))
        assert hits(g) > before, how
    for unhashable in ([1], {"a": 1}, ([1],)):
        with pytest.raises(TypeError, match="static argument"):
            g(X, unhashable)


class Loose:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loose) and self.value == other.value

    def __hash__(self) -> int:
        return 0


def test_static_objects_are_compared_as_they_want() -> None:
    f = jitml.jit(lambda x, how: x * how.value, static_argnums=1)
    for _ in range(8):
        for n in (1, 2):
            same_results(f(X, Loose(n)), X * n)
    assert hits(f)


def test_nothing_is_held() -> None:
    f, s, text = jitml.jit(labelled, static_argnames="how"), np.float64(2.5), "".join(["la", "bel"])
    whole = np.int64(3)
    for _ in range(8):
        f(X, how=text)
        f(X, text, n=s)
        f(X, text, n=whole)
    held = (X, s, whole, text)
    counts, before = [*map(sys.getrefcount, held)], hits(f)
    for call in (partial(f, X, how=text), partial(f, X, text, n=s), partial(f, X, text, n=whole)):
        for _ in range(30_000):
            call()
    assert hits(f) == before + 90_000
    del call
    assert all(abs(sys.getrefcount(o) - n) < 50 for o, n in zip(held, counts))
