"""Members of an enumeration are one object each, however a function comes by them: users compare them by `is`."""

# mypy: ignore-errors

from __future__ import annotations

import enum

import numpy as np
import pytest

import jitml


class Mode(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class State(enum.Enum):
    IDLE = 1
    BUSY = 2


def _joined(x, mode):
    return x * 2, mode | Mode.WRITE, mode & Mode.READ, ~mode, mode


def _by_value(x, mode):
    return x, Mode(3), Mode(mode.value), State(1), State["BUSY"]


def _after_a_test(x, mode):
    if mode & Mode.READ:
        x = x + 1
    return x, mode, [mode], {"mode": mode}


def _members(result):
    for part in result:
        if isinstance(part, enum.Enum):
            yield part
        elif isinstance(part, (list, dict)):
            yield from _members(part.values() if isinstance(part, dict) else part)


@pytest.mark.parametrize("function", [_joined, _by_value, _after_a_test], ids=lambda f: f.__name__)
def test_members_are_those_of_the_class(function):
    jitted = jitml.jit(function, verify="never", strict=False)
    for mode in (Mode.READ, Mode.READ | Mode.RUN, Mode.WRITE, Mode.READ):
        want = function(np.ones(2), mode)
        for _ in range(2):
            got = jitted(np.ones(2), mode)
            np.testing.assert_array_equal(got[0], want[0])
            assert [*map(id, _members(got[1:]))] == [*map(id, _members(want[1:]))]
