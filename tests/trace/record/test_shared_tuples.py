"""Tuples that hold one another over and over: made once where they are returned, and refused before they are written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError

DEPTH = 60  # of which nobody could write out the leaves


def doubled(t: Any) -> Any:
    for _ in range(DEPTH):
        t = (t, t)
    return t


def test_what_is_returned_is_shared_as_in_python() -> None:
    def f(x: Any) -> Any:
        deep = doubled((x[0],))
        return deep, {"k": deep}, [deep] * 3

    x = np.arange(3.0)
    first, named, listed = jitml.jit(f)(x)
    assert named["k"] is first
    assert all(one is first for one in listed)
    while len(first) > 1:
        assert first[0] is first[1] or repr(first[0]) == repr(first[1])  # small ones are made for each place
        first = first[0]
    assert first == (0.0,)


def test_small_tuples_hold_what_they_held() -> None:
    def f(x: Any) -> Any:
        small = (x, x[0], [x])
        return small, small, (small, [small])

    x = np.arange(3.0)
    one, other, (third, (fourth,)) = jitml.jit(f)(x)
    assert all(t[0] is x and t[1] == 0.0 and t[2] is one[2] for t in (one, other, third, fourth))


@pytest.mark.parametrize(
    "body",
    [
        "for v in x:\n        t = (t, v)",
        "if x[0] > 0:\n        t = (t, 1)\n    else:\n        t = (t, 2)",
        "u = [(t, v) for v in x]",
    ],
    ids=["loop", "branch", "list"],
)
def test_what_goes_through_a_region_is_refused_before_it_is_written_out(body: str, tmp_path: Any) -> None:
    place = tmp_path / "program.py"
    place.write_text(f"def f(x, doubled):\n    t = doubled((x[1],))\n    {body}\n    return t[1]\n")
    space: dict[str, Any] = {}
    exec(compile(place.read_text(), str(place), "exec"), space)  # the line is looked for in the file
    with pytest.raises(UnsupportedError, match="over and over") as raised:
        jitml.jit(space["f"])(np.arange(3.0), doubled)
    assert "program.py" in str(raised.value)
