"""`RecompileWarning`: once for each function that is compiled again and again, with what changes and what helps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.diagnostics import recompiles
from jitml.diagnostics.recompiles import Compilations
from sections.forced_breaks import no_trials, trials

pytestmark = pytest.mark.loose


def told(calls: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls()
    return [warning for warning in caught if warning.category is jitml.RecompileWarning]


def modes(x: Any, mode: str) -> Any:
    return x + 1 if mode == "a" else x


def test_once_for_a_function_with_the_users_line_the_reason_and_the_remedy() -> None:
    jitted = jitml.jit(modes)

    def calls() -> None:
        for n in range(20):
            jitted(np.ones(3), f"m{n}")

    with no_trials():
        (warning,) = told(calls)
    first, remedy, code = str(warning.message).splitlines()
    assert code.startswith("JM302: ")
    assert first.startswith("modes was compiled 9 times within a minute; what changes is mode (8 times). No longer so: mode is")
    assert remedy.startswith("Pass what changes as an array or a number")
    assert warning.filename == __file__
    assert calls.__code__.co_firstlineno < warning.lineno <= calls.__code__.co_firstlineno + 2


def test_a_function_of_eight_programs_is_not_told() -> None:
    jitted = jitml.jit(modes)
    with no_trials():
        assert not told(lambda: [jitted(np.ones(3), f"m{n}") for n in range(8)])


def test_where_no_more_are_compiled_that_is_told_too() -> None:
    """With the limit that usual functions have."""

    def calls() -> None:
        jitted = jitml.jit(modes)
        for n in range(12):
            jitted._rent.spent = 1e6
            assert (jitted(np.ones(3), f"m{n}") == 1).all()

    with trials():
        found = told(calls)
    assert len(found) == 1
    assert "No more of them are compiled: what depends on it runs as Python." in str(found[0].message)


REASONS = {
    "arguments of another structure": "same arguments in the same containers",
    "not so any more: x has the shape (3,)": "jit(dynamic=True)",
    "not so any more: x has the strides (16,)": "np.ascontiguousarray",
    "not so any more: x is not aligned": "np.ascontiguousarray",
    "not so any more: x is float32[3]": "one dtype",
    "not so any more: x is float64, of 1 axes": "one dtype",
    "not so any more: type of s is float": "one dtype",
    "not so any more: f is the same function": "Make the function once",
    "not so any more: mode is 'a' (model.py:3 in step)": "Pass what changes as an array",
}


@pytest.mark.parametrize("reason", REASONS)
def test_remedies(reason: str) -> None:
    made = Compilations()
    for _ in range(recompiles.MOST + 1):
        assert not made.complaint()
        made.note(reason, at=1.0)
    assert REASONS[reason] in made.complaint()
    assert not made.complaint()


def test_what_is_compiled_now_and_then_is_not_told() -> None:
    made = Compilations()
    for n in range(30):
        made.note("first call", at=10.0 * n)
    assert not made.complaint()
