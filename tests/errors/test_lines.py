"""Errors name the line of the offending expression itself, however the function is wrapped."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@jitml.jit
def once(x):
    y = x + 1
    return y + np.ones(7)  # here


@plain
@jitml.jit
@plain
def thrice(x):
    y = x + 1

    return y + np.ones(7)  # here


def bare(x):
    return x + np.ones(7)  # here


class Model:
    @jitml.jit
    def method(self, x):
        def inner(x):
            return x + np.ones(7)  # here

        return inner(x)


@pytest.mark.parametrize(
    "function",
    [once, thrice, jitml.jit(bare), Model().method, jitml.jit(lambda x: x + np.ones(7))],  # here
    ids=["decorator", "decorators", "call", "method", "lambda"],
)
def test_the_line_is_the_expressions(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"operands could not be broadcast together with shapes \(3,\) \(7,\)") as caught:
        function(np.ones(3))
    frames = traceback.extract_tb(caught.tb)
    assert (frames[-1].line or "").rstrip().endswith("# here")
    ours = [frame for frame in frames if "jitml" in frame.filename and "tests" not in frame.filename]
    assert [frame.name for frame in ours] == ["__call__"]  # nothing of the tracer
    assert caught.value.__context__ is None


def test_a_transform_names_the_line_too() -> None:
    with pytest.raises(jitml.ShapeError) as caught:
        jitml.grad(lambda x: (x + np.ones(7)).sum())(np.ones(3))  # here
    assert caught.value.source is not None
    assert caught.value.source.text.endswith("# here")


@jitml.jit
def rejects(x: Any) -> Any:
    if x[0] > 0:
        raise ValueError("positive")
    return x


def test_an_exception_of_a_branch_has_nothing_of_ours_behind_it() -> None:
    with pytest.raises(ValueError, match="positive") as caught:
        rejects(np.ones(3))
    assert caught.value.__context__ is None
