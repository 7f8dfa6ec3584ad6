"""Programs that once differed from NumPy, made small: what a function of NumPy does with such values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "booleans to the power of a number that data give, which makes bytes of them if it is 2": (
        ["n = int(x.sum())", "return x ** n, np.where(x[:1], abs(x[2]), x[:1] ** n), [(x**i).dtype.num for i in range(n)]"],
        "np.array([1, 0, 1, 1]) == 1",
    ),
    "booleans to the power of a loop's index": (
        ["for i in range(3):", "    y = x**i", "z = x.astype(np.int8)", "for i in range(5):", "    z = z + x**i", "return y, z"],
        "np.array([1, 0, 1, 1]) == 1",
    ),
    "a median of a size that a loop counts, which a branch hands out": (
        ["if x.any():", "    for i in range(3):", "        v = np.median(np.eye(i), axis=-1)", "return v, i"],
        "np.ones(4)",
    ),
    "BLAS multiplies nothing by the number 0": (
        ["n = np.reshape(y, (1, 1))", "return np.dot(x, y), np.inner(y, x), np.dot(x[:1], y), n.dot(x[None]), x[:, None] @ n"],
        "np.array([np.nan, -1.0, 2.0]), 0.0",
    ),
    "a sum of booleans that doubles again and again": (
        ["v = x[None]", "s = []", "for i in [0] * 60:", "    v += x", "    s.append(np.unique(v)[-1])", "return v, s"],
        "np.arange(17) % 2 == 1",
    ),
    "integer scalars overflow": (
        ["s = x[0]", "for v in x:", "    s = s * v + 1", "return s, -x[-1] - 9, abs(x[1])"],
        "np.array([2, -128, 100, -128, 7], np.int8)",
    ),
    "casts of what does not fit warn": (
        ["return x.astype(np.int32), x.astype(np.float32)"],
        "np.array([1.5, np.nan, 1e300])",
    ),
    "a NumPy scalar that is stored in fewer bits goes through Python": (
        ["x[1] = y.sum()", "return x"],
        "np.zeros(3, np.int16), np.arange(400)",
    ),
    "a mean over nothing warns each time": (
        ["return x[:0].mean(), x[:1].var(ddof=1)"],
        "np.arange(4.0)",
    ),
    "rows of sizes from data are as long as each other": (["return np.array([x[x > 0], 2 * x[x > 0]])"], "np.array([3, -1, 2])"),
    "an int that does not fit a dtype wraps around in np.where": (
        ["x[:2] = np.where(y > 1, z * 4, x[:2])", "return np.where(y > 1, -8, x[:2]), np.where(y > 1, z * y.size, x[:2])"],
        "np.arange(3, dtype=np.uint8), np.arange(2), -2",
    ),
    "no element is raised to a negative power": (
        ["for i in range(2):", "    v = y ** (i - 1)", "return v, np.power(y, -1), y ** np.array([-2])"],
        "np.arange(3), np.zeros(0, int)",
    ),
    "each row without its zeros": (
        [
            "s = 0.0",
            "for i in range(3):",
            "    s += np.trim_zeros(x[i]).sum()",
            "for i in range(3):",
            "    s += np.trim_zeros(x[i, : i + 2], 'f').size + np.trim_zeros(x[:, i], 'b').sum()",
            "return s",
        ],
        "np.array([[0, 1, 2, 0], [0, 0, 3, 4], [5, 0, 0, 0.0]])",
    ),
    "a range up to a NumPy float or bool": (
        ["return np.arange(x.sum()), np.arange(x[0], y[1], 0.5), np.arange(y[1]), np.arange(x[0] > 0)"],
        "np.array([0.5, 2.5]), np.array([1, 3.5], np.float32)",
    ),
}

# Name: what `program` does with its arguments; what the arguments are, and in the last call, where sizes differ.
RESIZED = {
    "BLAS multiplies nothing by the number 0, but one element": (
        ["v = x[x != 1][:z]", "return np.dot(v, y), np.tensordot(v[:, None], np.array([[y]]), axes=1)"],
        "np.array([np.nan, -1.0]), 0.0, 2",
        "np.array([np.nan, -1.0]), 0.0, 1",
    ),
    "a result without elements has its shape": (["return np.diff(x[None], 1, axis=0)"], "np.arange(4)", "np.arange(3)"),
    "a result without elements has its shape, which data say": (
        ["return np.outer(np.zeros(0), x[x > 1])"],
        "np.arange(4)",
        "np.arange(5)",
    ),
    "the lesser of an int and a float is the one, then the other": (
        ["if x.sum() < 7:", "    y = min(y, z + 0.25)", "return y, max(1, z * 0.5), [z, -y]"],
        "np.ones(1), 4, 4",
        "np.ones(1), 5, 0",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_other_sizes(name: str) -> None:
    check(*RESIZED[name])


def test_tiles_of_nothing_that_cannot_be_written() -> None:
    """NumPy gives a view of an empty array; where the length is open, a new one was given that may be written (510000:49442)."""

    def tiled(x: Any) -> Any:
        return np.tile(np.diag(x, 1), 2)

    jitted = jitml.jit(tiled)
    for shape in ((2, 0), (1, 1), (3, 3), (0, 2), (4, 4)):
        found, expected = jitted(np.ones(shape)), tiled(np.ones(shape))
        np.testing.assert_array_equal(found, expected)
        assert found.flags.writeable == expected.flags.writeable
