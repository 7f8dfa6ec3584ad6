"""Warnings with a `stacklevel` name the line that calls a jitted function, as they do where it is not decorated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UncompiledWarning
from sections.forced_breaks import no_trials, trials

Array = np.ndarray[Any, Any]


def is_old(x: Array) -> Any:
    warnings.warn("is old", DeprecationWarning, stacklevel=2)
    return np.sqrt((x * x).sum())


def recurs(x: Array, n: int = 3) -> Any:
    if n == 0:
        warnings.warn("is old", DeprecationWarning, stacklevel=6)
    return np.sin(x).sum() if n == 0 else again(x, n - 1) + 1


def again(x: Array, n: int) -> Any:
    return recurs(x, n)


def places(call: Callable[[Array], Any]) -> list[tuple[str, int]]:
    found = []
    for n in range(6):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call(np.arange(4.0) + n)
        found += [(w.filename, w.lineno) for w in told]
    return found


@pytest.mark.parametrize("function", [is_old, recurs])
@pytest.mark.parametrize("when", [trials, no_trials])
def test_warnings_name_the_line_of_the_caller(function: Callable[..., Any], when: Callable[[], Any]) -> None:
    def call(x: Array) -> Any:
        return called(x)

    called = function
    expected = places(call)
    assert expected == [(__file__, expected[0][1])] * 6
    with when():
        called = jitml.jit(function, strict=False)
        assert places(call) == expected


def test_our_own_warnings_name_it_too() -> None:
    exec_scope: dict[str, Any] = {"np": np}
    exec("def unread(x):\n    return np.sin(x) if x.sum() > 0 else np.cos(x)", exec_scope)
    unread = jitml.jit(exec_scope["unread"], strict=False)
    with no_trials(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        unread(np.ones(3))  # here
    assert [w.filename for w in told if w.category is UncompiledWarning] == [__file__]
