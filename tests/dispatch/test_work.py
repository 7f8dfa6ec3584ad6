"""What is a driver, and what is likely to run for long?"""

from __future__ import annotations

import types

import numpy as np
import pytest

from jitml.dispatch.work import is_called_once, is_driver, is_likely_long


class Model:
    def __init__(self, weights: object) -> None:
        self.parts = {"weights": weights}


def loops() -> int:
    return sum(n for n in range(3))


def test_drivers_have_no_numbers() -> None:
    assert is_driver(loops, (), {})
    assert is_driver(loops, ("name", None), {"other": Model("text")})
    assert not is_driver(loops, (), {"n": 3})
    assert not is_driver(loops, (Model([np.ones(3)]),), {})
    assert not is_driver(len, (), {})


def squared(x: np.ndarray) -> np.ndarray:
    return x * x


def squared_by_another(model: Model) -> np.ndarray:
    return squared(model.parts["weights"])


class Looping:
    def __init__(self) -> None:
        self.w = np.ones(2)

    def once(self) -> object:
        return self.w

    def often(self) -> list[object]:
        return [self.once() for _ in range(3)]

    def fit(self) -> object:
        return self.often()


def makes_its_numbers() -> float:
    x = np.zeros(3)
    for n in range(3):
        x[n] += n
    return float(x.sum())


def fit_of(x: np.ndarray, model: Looping) -> object:
    return x, model.fit()


def test_methods_are_looked_for_in_all_arguments() -> None:
    assert is_likely_long(fit_of, (np.ones(2), Looping()), {})


@pytest.mark.parametrize(
    ("text", "name", "is_once"),
    [
        ("said.append(f())", "__main__", True),
        ("for _ in range(1): pass\nsaid.append(f())", "__main__", True),
        ("for _ in range(1): said.append(f())", "__main__", False),
        ("said.append(f())", "other", False),
        ("def main(): said.append(f())\nmain()", "__main__", False),
    ],
)
def test_what_the_top_level_of_a_script_calls_outside_of_loops_is_called_once(text: str, name: str, is_once: bool) -> None:
    said: list[bool] = []
    exec(text, {"__name__": name, "f": is_called_once, "said": said})
    assert said == [is_once]


def test_what_is_likely_long_has_numbers_and_loops_or_large_arrays() -> None:
    small, large = np.ones(1000), np.ones(1_000_000)
    assert [is_likely_long(squared, (x,), {}) for x in (2.0, small, large)] == [False, False, True]
    assert [is_likely_long(squared_by_another, (Model(x),), {}) for x in (small, large)] == [False, True]
    assert [is_likely_long(f, (Looping(),), {}) for f in (Looping.once, Looping.often, Looping.fit)] == [False, True, True]
    assert not is_likely_long(loops, (), {})
    assert not is_likely_long(len, ([1],), {})
    assert is_likely_long(makes_its_numbers, (), {})
    assert not is_likely_long(makes_its_numbers, ("name",), {})
    assert not is_likely_long(lambda x: [[] for _ in x], (small,), {})  # nothing is computed in it


def other_module(name: str, text: str, **names: object) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(names)
    exec(compile(text, f"/{name}/{name}.py", "exec"), vars(module))
    return module


@pytest.mark.parametrize("directory", ["mine", "site-packages"])
def test_what_is_imported_counts_if_it_is_the_users(directory: str) -> None:
    loops = other_module(directory, "def convolved(x): return [v for v in x]")
    own = other_module("own", "def filtered(x): return convolved(x)", convolved=loops.convolved)
    assert is_likely_long(own.filtered, (np.ones(5),), {}) == (directory == "mine")


class Fit:
    def fit(self, x: np.ndarray) -> float:
        total = 0.0
        for v in x:
            total += v
        return total


class OwnFit(Fit):
    def __init__(self, is_whole: bool) -> None:
        self.is_whole = is_whole

    def fit(self, x: np.ndarray) -> float:
        return float(x.sum()) if self.is_whole else super().fit(x)


class Alone:
    def fit(self, x: np.ndarray) -> float:
        return float(x.sum())


@pytest.mark.parametrize("is_inherited", [False, True])
def test_the_loop_of_a_method_that_is_overridden_counts(is_inherited: bool) -> None:
    """`super().fit` is what the work is in."""
    x = np.ones(5)
    assert is_likely_long(Fit.fit, (Fit(), x), {})
    assert not is_likely_long(Alone.fit, (Alone(), x), {})
    kind = type("Kind", (OwnFit,), {}) if is_inherited else OwnFit
    assert is_likely_long(OwnFit.fit, (kind(False), x), {})


def test_an_item_of_an_array_is_no_operation() -> None:
    """Python 3.14 reads it by the instruction that adds and multiplies, too."""
    large = np.ones(200_000)
    assert not is_likely_long(lambda x: (x[0], x[1], x[2], x[3]), (large,), {})
    assert is_likely_long(lambda x: (x + x, x * x), (large,), {})
