"""Names of Python's own that the user's module defines after the first call, and lets go of again."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import jitml


def inner(x: Any) -> Any:
    return max(x[0], x[1])


def function(x: Any, n: int) -> Any:
    return sum([x[i] * i for i in range(n)]) + len(x) + inner(x)


@pytest.mark.parametrize("name, other", [("len", lambda x: 100), ("sum", lambda x: 3.0), ("max", lambda *x: -1.0)])
def test_a_name_that_comes_to_be_the_users(monkeypatch: pytest.MonkeyPatch, name: str, other: Any) -> None:
    x, compiled = np.arange(4.0), jitml.jit(function, verify="never")
    before = function(x, 3)
    assert compiled(x, 3) == before
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[__name__], name, other, raising=False)
        assert compiled(x, 3) == function(x, 3) != before
        assert f"{name} is Python's own in {__name__}" in compiled.variants[0].reason
    assert compiled(x, 3) == before
    assert len(compiled.variants) == 2


def test_other_names_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, compiled = np.arange(4.0), jitml.jit(function)
    compiled(x, 3)
    monkeypatch.setattr(sys.modules[__name__], "unrelated", 1, raising=False)
    compiled(x, 3)
    assert len(compiled.variants) == 1
