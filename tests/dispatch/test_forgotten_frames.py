"""Failures that are dealt with hold nothing of the call until the collector comes: its arrays, and what lends them memory."""

from __future__ import annotations

import array
import gc
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import forget_frames

pytestmark = pytest.mark.loose


def failed_check(x: np.ndarray, t: Any) -> np.ndarray:
    x /= x * 0  # NumPy warns
    return x


def failed_check_of_a_section(x: np.ndarray, t: Any) -> np.ndarray:
    print(end="")
    for _ in range(3):
        x /= x * 0
    print(end="")
    return x


def refused_section(x: np.ndarray, t: Any) -> float:
    for _ in range(2):
        held = (1, t)
        x *= 2
    print(end="")
    return sum(held[1]) + x[0]


FUNCTIONS = [failed_check, failed_check_of_a_section, refused_section]


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Python's own: at the end of a compilation there is one of ours."""
    usual = gc.get_threshold()
    gc.collect()
    gc.set_threshold(0)
    yield
    gc.set_threshold(*usual)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_arrays_go_with_the_call(function: Callable[..., Any]) -> None:
    jitted = jitml.jit(function)
    lent = array.array("d", [1, 2])
    for call in range(4):
        x = np.full(3, float(call))
        gone = weakref.ref(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jitted(x, lent)
        del x
        assert gone() is None, call
        lent.append(1.0)  # a BufferError, if an array of this memory lives on


def test_what_the_user_is_dealing_with_keeps_its_frames() -> None:
    jitted = jitml.jit(failed_check)
    try:
        raise ValueError("the user's")
    except ValueError as error:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jitted(np.ones(3), 0)
        assert error.__traceback__ is not None


def test_causes_are_ours_and_go_too() -> None:
    try:
        try:
            raise ValueError("inside")
        except ValueError as inside:
            raise KeyError("outside") from inside
    except KeyError as error:
        kept = error
    forget_frames(kept)
    assert kept.__traceback__ is None
    assert kept.__cause__ is not None
    assert kept.__cause__.__traceback__ is None
    forget_frames(None)
