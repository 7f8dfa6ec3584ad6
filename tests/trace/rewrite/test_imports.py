"""Imports inside a function: what they bind is what modules have at each call, and a failed one is tried again."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jitml

X = np.arange(4.0)


def module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(names)
    sys.modules[name] = made
    return made


@pytest.fixture(autouse=True)
def settings() -> Iterator[ModuleType]:
    package = module("a_package", __path__=[])
    package.settings = module("a_package.settings", rate=2.0, w=np.ones(4), scaled=lambda x: x * 3)  # type: ignore[attr-defined]
    yield package.settings
    for name in ("a_package", "a_package.settings", "a_package.late"):
        sys.modules.pop(name, None)


def names(x: Any) -> Any:
    from a_package.settings import rate  # type: ignore[import-not-found]
    from a_package.settings import w as weights

    return x * rate + weights


def functions(x: Any) -> Any:
    from a_package.settings import scaled

    return scaled(x)


def the_module(x: Any) -> Any:
    import a_package.settings

    return x * a_package.settings.rate


def another_name(x: Any) -> Any:
    import a_package.settings as s

    return x * s.rate


def from_the_package(x: Any) -> Any:
    from a_package import settings  # type: ignore[import-not-found]

    return x * settings.rate


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for v in x:
        from a_package.settings import rate

        if v > 1:
            from a_package.settings import rate as other

            total = total + other * v
        total = total + rate
    return total


def in_an_inner_function(x: Any) -> Any:
    from a_package.settings import rate

    def inner(v: Any) -> Any:
        return v * rate

    return inner(x) + sum(rate * v for v in x)


def of_libraries(x: Any) -> Any:
    from math import sqrt

    import numpy as other
    import scipy.special
    from numpy import pi, sin

    return other.cos(x) + sin(x) * pi + sqrt(2.0) + scipy.special.expit(x)


@pytest.mark.parametrize(
    "f", [names, functions, the_module, another_name, from_the_package, in_a_loop, in_an_inner_function, of_libraries]
)
def test_names_are_those_of_this_call(f: Callable[[Any], Any], settings: Any) -> None:
    fast = jitml.jit(f, verify="never")
    np.testing.assert_allclose(fast(X), f(X), rtol=1e-14)
    settings.rate, settings.w, settings.scaled = 5.0, np.arange(4.0), lambda x: x - 1
    np.testing.assert_allclose(fast(X), f(X), rtol=1e-14)
    sys.modules["a_package"].settings = module("a_package.settings", rate=7.0, w=X, scaled=lambda x: x + 1)  # type: ignore[attr-defined]
    np.testing.assert_allclose(fast(X), f(X), rtol=1e-14)


def a_module(x: Any) -> Any:
    try:
        import a_package.late as late  # type: ignore[import-not-found]
    except ImportError:
        return x
    return x * late.rate


def a_name(x: Any) -> Any:
    try:
        from a_package.settings import late
    except ImportError:
        late = 1.0
    return x * late


def suppressed(x: Any) -> Any:
    late = 1.0
    with suppress(ImportError):
        from a_package.settings import late
    return x * late


def by_default(x: Any) -> Any:
    return x * getattr(sys.modules["a_package.settings"], "late", 1.0)


def an_attribute(x: Any) -> Any:
    try:
        return x * sys.modules["a_package"].settings.late
    except AttributeError:
        return x


def a_global(x: Any) -> Any:
    try:
        return x * LATE  # type: ignore[name-defined]
    except NameError:
        return x


IS_RIGHT = [False]


@functools.lru_cache
def found(n: int) -> float:
    if not IS_RIGHT[0]:
        raise KeyError(n)
    return 3.0


def from_a_cache(x: Any) -> Any:
    try:
        return x * found(1)
    except KeyError:
        return x


@pytest.mark.loose
@pytest.mark.parametrize("f", [a_module, a_name, suppressed, by_default, an_attribute, a_global, from_a_cache])
def test_what_has_failed_is_tried_again(f: Callable[[Any], Any], settings: Any) -> None:
    fast = jitml.jit(f, verify="never")
    np.testing.assert_array_equal(fast(X), X)
    np.testing.assert_array_equal(fast(X), X)
    settings.late, globals()["LATE"], IS_RIGHT[0] = 3.0, 3.0, True
    sys.modules["a_package"].late = module("a_package.late", rate=3.0)  # type: ignore[attr-defined]
    try:
        np.testing.assert_array_equal(fast(X), X * 3)
    finally:
        del globals()["LATE"]
        IS_RIGHT[0] = False
        found.cache_clear()


def test_attributes_of_methods() -> None:
    class Model:
        def step(self) -> None: ...

        step.rate = 2.0  # type: ignore[attr-defined]

    model: Any = Model()
    fast = jitml.jit(lambda x: x * model.step.rate, verify="never")
    np.testing.assert_array_equal(fast(X), X * 2)
    Model.step.rate = 5.0  # type: ignore[attr-defined]
    np.testing.assert_array_equal(fast(X), X * 5)
