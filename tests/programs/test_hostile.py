"""What people write and jitml once refused or got wrong: results, arguments, exceptions and warnings are NumPy's."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import jitml
from programs.comparing import difference, within
from programs.hostile import ROWS, Row


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a call gives or raises, its arguments afterwards, and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = function(*arguments)
        except Exception as error:
            result = type(error).__name__, str(error)
    return [result, list(arguments), sorted((w.category.__name__, str(w.message)) for w in seen)]


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.function.__name__, marks=[pytest.mark.loose] * row.as_python) for row in ROWS]
)
def test_agrees(row: Row) -> None:
    compiled = jitml.jit(row.function)
    for arguments in row.calls:
        want = outcome(row.function, copy.deepcopy(arguments))
        got = outcome(compiled, copy.deepcopy(arguments))
        assert difference(got, want, within(1e-12)) is None
    assert len(compiled.variants) <= row.most
