"""Programs that once differed from NumPy, made small: which memory a result takes."""

from __future__ import annotations

import pytest

from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "two results that begin as one value go to memory of their own": (
        ["for _ in range(2):", "    for v, w in zip(x, x):", "        np.random.default_rng(1).integers(0, 4)", "return v, w"],
        "np.arange(4)",
    ),
    "branches make complex arrays, each with memory of its own": (
        ["if x[0] == 1:", "    y = np.sort(x)", "else:", "    y = np.sort(x) + 1", "return y"],
        "np.ones(5, complex)",
    ),
}

# Name: what `program` does with its arguments; what the arguments are, and in the last call, where sizes differ.
RESIZED = {
    "a draw beside a number and an array that is written": (
        ["x[:-1] += y", "return z.standard_normal(4), x"],
        "np.arange(4.0), 5, np.random.default_rng(0)",
        "np.arange(5.0), 3, np.random.default_rng(1)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_other_sizes(name: str) -> None:
    check(*RESIZED[name])
