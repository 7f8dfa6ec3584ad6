"""Errors name the line of the offending expression itself, however the function is wrapped."""

from __future__ import annotations

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
    with pytest.raises(jitml.ShapeError) as caught:
        function(np.ones(3))
    assert caught.value.source is not None
    assert caught.value.source.text.endswith("# here")
    line = caught.value.source.line
    traceback = caught.tb
    lines = []
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == __file__:
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    assert lines[-1] == line  # the traceback agrees
