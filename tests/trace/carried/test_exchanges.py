"""Loops in which names exchange their arrays, and write into what they stand for then."""

from __future__ import annotations

import itertools

import pytest

from programs.drawn.outcomes import judge

STATEMENTS = ("z, y = y, z + 1", "y, z = z, y", "z = y", "z *= 2", "y[0] = 5", "w, z = z, w", "y = w + z")
HEAD = """
import numpy as np

def arguments(call):
    return np.arange(4.0), np.arange(4.0) * 10 + 1, np.arange(4.0) - 7, [2, 1, 3][call]

def program(y, z, w, n):
    {before}
    for i in range({trips}):
        {first}
        {second}
    return {result}
"""
COPIES = "y, z, w = y.copy(), z.copy(), w.copy()"


@pytest.mark.parametrize("first, second", [*itertools.product(STATEMENTS, repeat=2)])
def test_agrees(first: str, second: str) -> None:
    before, trips, result = [("pass", 2, "y, z, w"), (COPIES, "n", "z, [w, y]"), ("pass", 3, "z, y, w")][len(first + second) % 3]
    text = HEAD.format(before=before, trips=trips, first=first, second=second, result=result)
    assert judge(text, exact=True).kind == "equal"


@pytest.mark.parametrize("trips", [1, 2, 3, "n"])
@pytest.mark.parametrize("result", ["z, y", "y, z", "[z, y, z]"])
def test_what_a_name_was_before_is_written_by_another_one(trips: int | str, result: str) -> None:
    """The second iteration writes what the first has made, under the other name; its old contents came back (520000:11070)."""
    text = HEAD.format(before="pass", trips=trips, first="z, y = y, z + 1", second="np.negative(z, out=z)", result=result)
    assert judge(text, exact=True).kind == "equal"
