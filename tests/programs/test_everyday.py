"""Programs as people write them around NumPy, classes, containers and Python's own functions: as without jit, call by call."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import jitml
from jitml.config import CONFIG
from programs.comparing import within
from programs.drawn.outcomes import host_calls
from programs.everyday import (
    builtins_on_arrays,
    changed_objects,
    changes,
    classes,
    containers,
    numpy_helpers,
    own_kinds,
    state_in_loops,
    statements,
    texts,
)
from programs.everyday.comparing import difference
from programs.everyday.table import Row

_TABLES = (
    *(containers, changes, changed_objects, own_kinds, classes, statements),
    *(builtins_on_arrays, numpy_helpers, state_in_loops, texts),
)
ROWS = [row for table in _TABLES for row in table.ROWS]


def outcome(row: Row, jit: Any) -> list[Any]:
    """All that a program shows, and its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = row.run(jit)
    return [result, sorted((w.category.__name__, str(w.message)) for w in seen)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_agrees(row: Row) -> None:
    made: list[Any] = []

    def jit(function: Any) -> Any:
        made.append(jitml.jit(function))
        return made[-1]

    if row.refused is not None:
        with pytest.raises(jitml.UnsupportedError, match=row.refused):
            row.run(jit)
        return
    if row.as_python is not None:
        with pytest.raises(jitml.UnsupportedError, match=row.as_python):
            row.run(jit)
        object.__setattr__(CONFIG, "strict", False)  # as of a test that is `loose`
        assert difference(outcome(row, jit), outcome(row, lambda function: function), within(1e-11)) is None
        return
    assert difference(outcome(row, jit), outcome(row, lambda function: function), within(1e-11)) is None
    variants = [variant for jitted in made for variant in jitted.variants]
    assert variants
    assert row.host or not sum(host_calls(variant.traced.graph) for variant in variants)
