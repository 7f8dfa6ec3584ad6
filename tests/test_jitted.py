"""Jitted functions before anything has been compiled: plain functions, whose calls have no frame of ours in between."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from types import MethodType, WrapperDescriptorType
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch.renting import PURSE, Rent
from jitml.functions import look_away, see_calls, unseen
from sections.forced_breaks import trials

pytestmark = pytest.mark.loose

WITHOUT_ENGINE = """
import sys
import jitml
print(sorted(name for name in sys.modules if name.partition(".")[0] == "jitml"))
import numpy as np

class Scale:
    @jitml.jit
    def __init__(self, by):
        self.by = by

    @jitml.jit
    def __call__(self, x):
        return x * self.by

@jitml.jit
def powers(n):
    yield from (n**i for i in range(3))

@jitml.jit(fastmath=True)
def main():
    x = np.ones(3)
    for _ in range(100):
        x = Scale(2.0)(x) / 2
    return float(x.sum()) + sum(powers(2))

print([main(), main(), main()], repr(main))
heavy = {"llvmlite", "scipy", "jitml.trace.trace", "jitml.ir", "jitml.engine", "jitml.sections.frames"}
print(sorted(heavy & set(sys.modules)), main.variants)
"""


def run(program: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JITML_")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


def test_a_few_cheap_calls_import_nothing_that_compiles() -> None:
    at_once, answers, brought = run(WITHOUT_ENGINE)
    assert at_once == "['jitml']"
    assert answers == "[10.0, 10.0, 10.0] <jit main, 0 variants, runs as Python for now>"
    assert brought == "[] ()"


@pytest.mark.parametrize("asked", ["strict=True", 'verify="always"', "static_argnums=(0,)"])
def test_what_only_the_engine_can_do_brings_it(asked: str) -> None:
    program = f"import sys, jitml\njitml.jit({asked})(abs)\nprint('jitml.engine' in sys.modules)"
    assert run(program) == ["True"]


@pytest.fixture(name="poor")
def with_poor_purse() -> Any:
    with trials():
        PURSE.spent = 1e6
        yield


@pytest.mark.usefixtures("poor")
def test_what_recurs_has_half_of_pythons_stack() -> None:
    def depth(n: int) -> int:
        return 0 if n == 0 else 1 + jitted(n - 1)  # type: ignore[no-any-return]  # the same

    jitted = jitml.jit(depth)
    room = sys.getrecursionlimit() - len(_frames())
    for n in (3, room // 2 - 20, room // 2 - 20):
        assert jitted(n) == n


def _frames() -> list[Any]:
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]  # None at the outermost frame
    return found


@pytest.mark.usefixtures("poor")
def test_a_call_that_is_timed_counts_what_it_calls_once(monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[tuple[float, int]] = []
    monkeypatch.setattr(Rent, "paid", lambda self, seconds, calls=1: paid.append((seconds, calls)) or False)

    def fib(n: int) -> int:
        return n if n < 2 else jitted(n - 1) + jitted(n - 2)  # type: ignore[no-any-return]  # the same

    jitted = jitml.jit(fib)
    assert [jitted(10) for _ in range(2)] == [55, 55]
    assert paid[0][1] == 1
    assert len(paid) <= 2 + 177  # the first call, and no more than each further one


@pytest.mark.usefixtures("poor")
@pytest.mark.parametrize("call", [lambda f, x: f(x), lambda f, x: type(f).__call__(f, x), lambda f, x: f.__call__(x)])
def test_it_is_called_as_any_object(call: Callable[..., Any]) -> None:
    jitted = jitml.jit(lambda x: x + 1)
    for _ in range(300):
        assert call(jitted, 1) == 2


@pytest.mark.usefixtures("poor")
def test_nothing_else_holds_it() -> None:
    jitted = jitml.jit(lambda x: x)
    jitted(1)
    known = weakref.ref(jitted)
    del jitted
    assert known() is None


@pytest.mark.usefixtures("poor")
def test_all_calls_are_seen_in_a_trace() -> None:
    """Also those by code that is not converted; afterwards they are as before."""

    def root(x: Any) -> Any:
        return float(x) ** 0.5 if x > 1 else x

    plain = jitml.jit(root)
    assert [plain(4.0) for _ in range(20)] == [2.0] * 20
    assert plain in unseen()
    jitted = jitml.jit(lambda x: sum(map(plain, x)), strict=True)
    assert jitted(np.array([4.0, 9.0, 0.5])) == 5.5
    assert plain not in unseen()
    assert plain(4.0) == 2.0
    assert plain in unseen()


@pytest.mark.usefixtures("poor")
def test_what_is_left_alone_is_no_switch_while_somebody_looks() -> None:
    plain = jitml.jit(lambda x: x)
    viewer = set[int]()
    see_calls(viewer)
    plain.answer_in_turn(repeat(plain.function))
    assert plain not in unseen()
    assert plain(3) == 3
    look_away(viewer)
    assert plain(3) == 3
    assert plain in unseen()


@pytest.mark.usefixtures("poor")
def test_turns_go_on_where_they_were_before_somebody_looked() -> None:
    """A trace of another function costs the next call no engine, and no call that is timed before it is its turn."""
    other = jitml.jit(lambda x: x)
    turns = iter([lambda x: (x, 1), lambda x: (x, 2), lambda x: (x, 3)])
    other.answer_in_turn(turns)
    assert other(0) == (0, 1)
    jitml.jit(lambda x: x + 1, strict=True)(np.ones(3))
    assert other not in unseen()
    assert other(0) == (0, 2)
    assert other in unseen()
    assert other(0) == (0, 3)
    assert other._engine is None


def test_strict_refuses_each_kind_of_call_that_cannot_be_compiled() -> None:
    def changes(price: Any) -> Any:
        return np.diff(price) / price[:-1]

    pandas = pytest.importorskip("pandas")
    price = pandas.Series([100.0, 110.0, 99.0])
    jitted = jitml.jit(changes, strict=True)
    for _ in range(30):  # it is not left alone, either
        jitted(price.to_numpy())
    for _ in range(3):
        with pytest.raises(jitml.UnsupportedError, match=r"pandas\.Series"):
            jitted(price)


@pytest.mark.usefixtures("poor")
def test_a_derivative_on_a_tape_goes_through_it() -> None:
    inner = jitml.jit(lambda x: np.asarray([x, float(x) ** 2]).sum())
    inner(1.0)

    def outer(x: Any) -> Any:
        print(end="")
        return sum(map(inner, [x, 2 * x]))

    assert jitml.grad(outer)(3.0) == pytest.approx(1 + 6 + 2 + 24)
    assert inner(2.0) == 6.0


def test_what_has_cost_enough_is_compiled() -> None:
    def total(x: np.ndarray) -> float:
        found = 0.0
        for i in range(len(x)):
            found += np.sin(x[i])
        return found

    with trials():
        PURSE.spent = 1e6
        jitted = jitml.jit(total)
        x = np.linspace(0.0, 1.0, 50)
        expected = total(x)
        assert [jitted(x) for _ in range(3)] == [expected] * 3
        assert not jitted.variants
        PURSE.spent = 0.0
        PURSE.spent = PURSE.left - 0.5  # enough for one, if that has been paid for
        for _ in range(3):
            jitted._rent.spent = 1e3
            jitted.go_on()
            assert jitted(x) == pytest.approx(expected)
    assert jitted.variants


def test_consoles_complete_what_users_have_of_it() -> None:
    def plain() -> None: ...

    plain.mine = 1  # type: ignore[attr-defined]  # functions take any
    added = {"__wrapped__", "clear_cache", "explain", "lower", "variants"}
    jitted = jitml.jit(plain)
    assert dir(jitted) == sorted({*dir(plain), *added}) and "mine" in dir(jitted)
    page = (Path(__file__).parents[1] / "docs" / "reference" / "compile.md").read_text()
    assert all(hasattr(jitted, name) and f"`f.{name}" in page for name in added)


def test_methods_are_bound_as_functions_are_and_in_c() -> None:
    """A `__get__` in Python takes longer than many a method."""

    def plus(self: Any, x: int = 1) -> tuple[Any, int]:
        return self, x

    class Plain:
        method = plus

    class Jitted:
        method = jitml.jit(plus)

    class Below(Jitted):
        def method(self, x: int = 1) -> Any:
            return super().method(x)

    made = vars(Jitted)["method"]
    assert Jitted.method is made
    assert made.__get__(None, Jitted) is made
    for kind in (Plain, Jitted):
        obj = kind()
        bound = obj.method
        assert type(bound) is MethodType
        assert (bound.__self__, bound.__func__) == (obj, vars(kind)["method"])
        assert bound() == obj.method(1) == kind.method(obj) == (obj, 1)
        obj.method = 5  # type: ignore[method-assign,assignment]
        assert obj.method == 5
        with pytest.raises(TypeError):
            made.__get__()
    below = Below()
    assert below.method(2) == (below, 2)
    if sys.implementation.name == "cpython":
        assert type(type(made).__get__) is WrapperDescriptorType


@pytest.mark.loose
def test_wraps_copies_what_users_have_set_and_nothing_of_ours() -> None:
    """`functools.wraps` copies all of `__dict__`: a wrapper had the engine of what it wraps, and answered in its place."""

    @jitml.jit
    def inner(x: Any) -> Any:
        return x + 1

    inner.units = "m"  # type: ignore[attr-defined]  # as people do

    def outer(x: Any) -> Any:
        return inner(x) * 10

    x = np.arange(3.0)
    inner(x)
    for wrapper in (functools.wraps(inner)(jitml.jit(outer)), jitml.jit(functools.wraps(inner)(outer))):
        for _ in range(3):
            np.testing.assert_array_equal(wrapper(x), [10, 20, 30])
        assert wrapper.units == "m" and wrapper.__name__ == "inner"
        assert jitml.grad(lambda x, f=wrapper: f(x).sum())(x).tolist() == [10, 10, 10]
    np.testing.assert_array_equal(inner(x), [1, 2, 3])
