"""Tests that compare a trace with NumPy run twice: by the graph interpreter, which judges tracing alone, and by compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest

from support import against_numpy


@pytest.fixture(autouse=True)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """How the test's functions are run; None for a test that runs once, where `run_traced` refuses."""
    chosen: str | None = getattr(request, "param", None)
    monkeypatch.setattr(against_numpy, "target", chosen)
    return chosen


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if any("target" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")):
        return
    asks = "target" in metafunc.function.__code__.co_varnames
    if asks or any(function is against_numpy.run_traced for function in called(metafunc.function)):
        metafunc.parametrize("target", ["interpreted", "compiled"], indirect=True)


def called(function: Callable[..., Any], seen: set[Any] | None = None) -> Iterator[Callable[..., Any]]:
    """The functions that one names, and those that they name, as far as they are the tests' own."""
    seen = set() if seen is None else seen
    for name in names(function.__code__):
        value = function.__globals__.get(name)
        if hasattr(value, "__code__") and value not in seen and value.__module__.startswith(("support", "tests")):
            seen.add(value)
            yield value
            yield from called(value, seen)


def names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names(constant)
