"""Programs that once differed from NumPy, made small: lists that loops fill and take apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "a list that may be unbound, from which a loop takes items": (
        ["for v in x:", "    if v > 0:", "        u = [v, 2.0, v * 2]", "for i in range(2):", "    u.pop()", "return u"],
        "np.arange(4.0)",
    ),
    "a list that a while has bound, from which a loop around it takes an item": (
        [
            *("for i in range(3):", "    k = 0", "    while k < 3:", "        k += 1", "        u = [x[0], x.max()]"),
            *("    u.pop()", "n = 0", "while u:", "    u.pop()", "    n += 1", "return u, n"),
        ],
        "np.arange(4.0)",
    ),
    "items of a list are Python's or NumPy's, each for itself": (
        ["v = [a if a > 0 else 0 for a in x]", "return v, v[0] + 1, v[1:], sum(v), max(v), min(v), np.array(v)"],
        "np.array([1.5, -2, 3])",
    ),
    "all items of a list are Python's": (
        ["v = [a if a > 9 else 0 for a in x]", "return v, sum(v), max(v), np.array(v)"],
        "np.array([1.5, -2, 3])",
    ),
    "items of a list take turns": (
        ["v = []", "for a in x:", "    v.append(a)", "    v.append(0.5)", "return v, sum(v), np.array(v)"],
        "np.arange(3, dtype=np.float32)",
    ),
    "a list that a loop fills is unpacked in it": (
        [
            *("for i in range(3):", "    if x.max() > 1.5:", "        v = []", "        for k in range(3):"),
            *("            v.append([0, k, float(x.min())])", "    else:", "        w = list(map(list, zip(*v)))", "return v[1]"),
        ],
        "np.arange(4.0)",
    ),
    "items of a list that have more bits than NumPy's": (
        ["return [a if a > 0 else 300 for a in x], [a if a > 0 else 0.1 for a in x * np.float32(2)]"],
        "np.array([1, -2, 3], np.int8)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


def one_array_twice(x: Any) -> Any:
    rows = []
    for i in range(3):
        y = x * i
        rows.append((y, i, y))
    return rows


def an_array_and_a_part_of_it(x: Any) -> Any:
    rows = []
    for i in range(3):
        y = x * i
        rows.append({"all": y, "rest": y[1:]})
    return rows


@pytest.mark.parametrize("f", [one_array_twice, an_array_and_a_part_of_it])
def test_what_is_twice_in_an_item_is_one_array(f: Any) -> None:
    for row in jitml.jit(f)(np.arange(3.0)):
        first, *_, last = row.values() if isinstance(row, dict) else row
        last[0] = -1.0
        assert -1.0 in first
