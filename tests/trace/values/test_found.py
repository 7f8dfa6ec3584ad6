"""Programs that once differed from NumPy, made small: numbers of Python's and of NumPy's, names that one branch alone binds."""

from __future__ import annotations

import pytest

from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "a number of Python's keeps its digits beside NumPy's of fewer": (
        ["v = x[0] if x[1] > 0 else 0.1", "return v, v * 3, np.float64(1) + v, v > 0.1, v * x"],
        "np.array([1, -2], np.float32)",
    ),
    "an integer of Python's does not fit where NumPy's does": (
        ["v, w = x[0] if x[1] > 0 else 300, 300", "for a in x:", "    if a > 5:", "        w = a", "return v, v > 100, w"],
        "np.array([1, -2], np.int8)",
    ),
    "one branch alone binds a name to an array whose size only it knows": (
        ["if x.sum() > 3:", "    v = x[x > 2] * 2", "return v.sum()"],
        "np.arange(8.0)",
    ),
    "a name that one branch binds to an array from outside is that array": (
        ["if x.sum() > 3:", "    v = x[1:]", "v[0] = 7", "x[2] = 8", "return v"],
        "np.arange(6)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)
