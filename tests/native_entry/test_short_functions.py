"""Functions that take a few microseconds: machine code is what they are compared with, and what answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.runtime.c_api import native_calls
from jitml.dispatch.entry import MISS
from sections.forced_breaks import trials

pytestmark = [
    pytest.mark.skipif(not native_calls(), reason="arrays of this interpreter cannot be read in place"),
    pytest.mark.loose,
]
V, W = np.array([1.0, 2.0]), np.array([2.0, -1.0])


@pytest.fixture(autouse=True)
def rich() -> Iterator[None]:
    with trials():
        yield


def turned(v: Any, angle: Any) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1]])


def distance(v: Any, w: Any) -> Any:
    d = v - w
    return np.sqrt(d[0] ** 2 + d[1] ** 2)


def doubled(v: Any) -> Any:
    return v * 2.0


class Filter:
    def __init__(self) -> None:
        self.state, self.gain = np.array([0.5, -0.5]), 0.25

    def step(self, x: Any) -> Any:
        self.state = self.state + self.gain * (x - self.state)
        return self.state[0]


def answered(f: Any, *args: Any) -> bool:
    """Whether machine code comes to answer these calls."""
    for _ in range(300_000):
        f(*args)
        if f.variants and f._forward and type(f._target) is type(len):
            return True
    return False


@pytest.mark.parametrize(("function", "args"), [(turned, (V, 0.25)), (distance, (V, W)), (doubled, (V,))])
def test_they_are_answered_by_machine_code(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    f = jitml.jit(function, verify="first")
    assert answered(f, *args)
    assert f.variants[0].timed.startswith("used: ")
    assert f.variants[0].checked == "its first answer is as NumPy gives it"
    for other in [args, tuple(-np.asarray(x) for x in args), tuple(x + 1 for x in args), (*args[:-1], np.float64(0.5)), args]:
        try:
            wanted: Any = function(*other)
        except Exception as error:  # numbers are no vectors
            with pytest.raises(type(error)):
                f(*other)
        else:
            got = f(*other)
            assert type(got) is type(wanted)
            np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_methods_are_answered_by_machine_code() -> None:
    f, ours, plain = jitml.jit(Filter.step), Filter(), Filter()
    assert answered(f, ours, 0.75)
    ours = Filter()
    for x in np.linspace(-1, 1, 50):
        assert f(ours, float(x)) == pytest.approx(plain.step(float(x)), rel=1e-14)
    np.testing.assert_allclose(ours.state, plain.state, rtol=1e-14)


def test_other_numbers_are_still_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is right for the first number only: what looks at further calls is not skipped for good."""
    f = jitml.jit(turned, verify="first")
    looked: list[float] = []
    from jitml.verification import verification

    look = verification.look
    monkeypatch.setattr(verification, "look", lambda *given, **how: (looked.append(1.0), look(*given, **how))[1])
    for n in range(300_000):
        f(V, n * 1e-3)
        if f._forward and type(f._target) is type(len):
            break
    assert len(looked) >= 4
    assert "so for other values" in f.variants[0].checked


def test_an_entry_alone_says_that_it_has_no_answer() -> None:
    from jitml.native_entry.entries import alone

    f = jitml.jit(doubled, strict=True)
    f(V)
    ((key, variant),) = f.engine._variants.items()
    enter = variant.enter
    while not hasattr(enter, "execute"):
        enter = enter.enter
    entry = alone(key, variant, enter)
    np.testing.assert_array_equal(entry(V), V * 2)
    for args in [(), (V, V), (V.astype(np.float32),), ([1.0, 2.0],), (np.ones(3),)]:
        assert entry(*args) is MISS
    assert entry(v=V) is MISS
    assert alone(key, variant, lambda leaves: leaves)(V) is MISS
