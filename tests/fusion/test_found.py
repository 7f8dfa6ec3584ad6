"""Programs that once differed from NumPy, made small: how kernels are made of graphs."""

from __future__ import annotations

import numpy as np
import pytest

import jitml
from jitml.kernels.ir import Check, Kernel, walk
from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "a row that goes into a window and is changed by an index that a loop makes": (
        [
            *("for v in x:", "    for w in x:", "        n = v.size", "        v *= 2", "        u = v[::-1]"),
            *("    w[-n] = 100", "return u"),
        ],
        "np.arange(6).reshape(2, 3)",
    ),
    "an index that is out of bounds at one end of every loop": (
        ["for i in range(3):", "    x[i - 1, -i, 0] = 7", "return x"],
        "np.zeros((1, 6, 1), np.int16)",
    ),
    "a window without elements leaves a single number alone": (
        ["if z.sum() > 3:", "    x[0] -= 1", "else:", "    x[1:] = y[:-1]", "return x"],
        "np.array([14]), np.zeros(0, int), np.arange(2)",
    ),
    "an array without elements meets nothing": (["x += 1", "return x.T"], "np.zeros((2, 0))"),
    "a constant that some vector loop was the first to make is known everywhere": (
        ["for v in x:", "    assert 0 <= x[v % 33] < 40 or x.sum() > 1.5", "    x[...] ^= np.zeros_like(x)"],
        "np.arange(33)",
    ),
    "a constant scatter out of bounds is the program's to raise": (
        ["x.fill(2)", "np.put(x, [0, 1], 3)", "return x"],
        "np.arange(1)",
    ),
    "loops that reach past an axis stand behind a check": (
        ["return np.take(x, np.arange(17)[::-1], axis=0) * 2"],
        "np.arange(16)",
    ),
    "a window's loops load from an array that was reshaped": (
        ["x[1] -= y.reshape(-1)[[0, 0, 1]]"],
        "np.arange(6).reshape(2, 3), np.arange(10).reshape(5, 2) % 3 == 0",
    ),
    "one element at most is stored as one, not as a vector": (["return x[x != 3][:1] * 2"], "np.full(5, 7.0)"),
}

# Name: what `program` does with its arguments; what the arguments are, and in the last call, where sizes differ.
RESIZED = {
    "a check of an element's place comes before the element, even beside what is gathered": (
        ["x[y % 7] += abs(y[3])", "return x"],
        "np.arange(7), np.arange(7, dtype=np.uint8)",
        "np.arange(1), np.zeros(1, np.uint8)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_other_sizes(name: str) -> None:
    check(*RESIZED[name])


def test_indices_are_checked_before_they_are_used() -> None:
    """A row was stored in a result without rows, beyond its memory: what an index out of bounds is clamped to is not there."""

    @jitml.jit
    def f(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        y = np.sqrt(x)
        np.maximum.at(y, at, y.max())
        return y

    steps = f.lower(np.ones((3, 4)), np.array([0, 0, 2])).program.kernels.steps
    looking = [
        k for k, step in enumerate(steps) if isinstance(step, Kernel) and any(isinstance(s, Check) for s in walk(step.body))
    ]
    scattering = [k for k, step in enumerate(steps) if isinstance(step, Kernel) and step.updates]
    assert looking and scattering and max(looking) < min(scattering)
