"""Programs that once differed from NumPy, made small: sizes and indices that only the running program knows."""

from __future__ import annotations

import pytest

from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "an index from the end of a size, counted by a loop": (
        ["w = x[x > 3]", "for i in range(len(w)):", "    x[-2] -= w[-1 - i] - x[i]", "    x[i] += np.sort(w).sum()", "return x"],
        "np.array([1, 5, 6, 7, 0, 2])",
    ),
    "an index beyond all that a size can be": (
        ["q = x[x > 3][:2]", "q[2] -= x[0]", "return q"],
        "np.array([1, 5, 6, 7, 0, 2])",
    ),
    "an index beyond all that a size can be, where one branch goes": (
        ["q = x[x > 3][:2]", "if x[0] > y:", "    return q[2]", "return x[0]"],
        "np.array([1, 5, 6, 7, 0, 2]), 0",
    ),
    "how often a loop runs is known to be a size, although nothing has that size": (
        ["for i in range(len(x[x > 0])):", "    y[i] = x[i] + i", "return y"],
        "np.arange(6.0) - 2, np.zeros(6)",
    ),
    "a loop goes over the elements of an array of unknown length": (
        ["for i, v in enumerate(x[x > 0]):", "    y[i] += v", "return y"],
        "np.arange(6.0) - 2, np.zeros(6)",
    ),
    "a size that cannot be the other one is 1": (["return x[x > 0] + np.ones(5)"], "np.array([3.0, -1, -2])"),
    "a size that is 1 fits what is written": (["y = x * 1", "y &= y[y > -1]", "return y"], "np.array([3])"),
    "a size that was only computed for an attempt is computed again": (
        ["k = 0", "while k < y[1]:", "    k += 1", "    v = np.power(x, k)", "return v"],
        "np.arange(7, dtype=np.uint64), np.arange(2, 9)",
    ),
    "an array as long as a while has counted": (
        [
            "k = 0",
            "while k < 4 and not (np.max(y) != len(y)):",
            "    k += 1",
            "    x[2:0:-1, :k] = np.clip(np.nan_to_num(np.where(np.arange(k) * 0.5 > 4, (k + 0.5), x.size)), 0, 9)",
            "return x, k",
        ],
        "np.arange(12, dtype=np.int16).reshape(3, 4), np.full((4, 4), 4)",
    ),
}

# Name: what `program` does with its arguments; what the arguments are, and in the last call, where sizes differ.
RESIZED = {
    "a window that ends with the array, each element twice": (
        ["for i in range(len(x)):", "    v = np.repeat(x[i:i + 2], 2)", "    x //= 1", "return v"],
        "np.arange(17, dtype=np.int8)",
        "np.arange(16, dtype=np.int8)",
    ),
    "a few of a selection, turned around": (
        ["return x[x < -1][2:0:-1]"],
        "np.array([[-3, 1, -2], [-5, -4, 0]])",
        "np.array([[-3, 1, 1], [-5, 4, 0]])",
    ),
    "an index by an unsigned remainder": (
        ["for _ in x:", "    for _ in x:", "        v = x[(x @ x) % 4]", "return v"],
        "np.arange(5, dtype=np.uint64)",
        "np.arange(8, dtype=np.uint64)",
    ),
    "an index that is the negation of a constant": (
        [
            "if x.max() > 0:",
            "    k = 0",
            "for _ in x:",
            "    v = np.roll(x[:, -k], -2)",
            "    j = 0",
            "    while v.max() <= x[-j, k + 1] and j < 3:",
            "        j += 1",
            "return v, j",
        ],
        "np.arange(12, dtype=np.uint32).reshape(6, 2)",
        "np.arange(45, dtype=np.uint32).reshape(9, 5)",
    ),
    "nothing is read beside an empty argument": (
        ["if len(y) == 0:", "    return x", "return x[y]"],
        "np.arange(4), np.array([1, 2])",
        "np.zeros(0, int), np.zeros(0, int)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_other_sizes(name: str) -> None:
    check(*RESIZED[name])
