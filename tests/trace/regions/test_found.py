"""Programs that once differed from NumPy, made small: what branches and loops hand out."""

from __future__ import annotations

import pytest

from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "what a loop changes in rows, and an inner loop sums for a window without elements": (
        [
            *("v = np.triu(x)", "for w in v:", "    w[0] ^= 3", "    u = []", "    for i in range(4):"),
            *("        y[1:, :0] = w.sum()", "        u.append(x[0])", "    t = u", "return t"),
        ],
        "np.arange(9, dtype=np.uint32), np.ones((2, 3))",
    ),
    "what a region in a loop does without, and is heard all the same": (
        [
            *("if x.sum() == x.sum() or abs(x[0, 0]) < -1:", "    v = np.cbrt(np.sort(x, axis=0))", "for i in range(5):"),
            *("    v[1:] += v[:-1]", "    if (x > 4).all():", "        assert len(x) == i * 7", "    else:"),
            *("        v[:2] += 5", "return x"),
        ],
        "np.array([[True, False, True, True]])",
    ),
    "a branch makes of a number that very number": (
        ["v, n = y[0], int(x[0])", "if x.sum() > 3:", "    v, n = abs(v), int(n)", "return v, n, ~v, n + 1"],
        "np.arange(4), np.ones(2, bool)",
    ),
    "a loop hands out an array whose size only its body knows": (
        ["for i in range(5):", "    v = x[x > i] * 2", "return v, v.sum()"],
        "np.arange(8.0)",
    ),
    "a loop that runs as often as data say hands out an array": (
        ["for i in range(int(x.sum())):", "    v = x[x == i] // 2", "return v"],
        "np.arange(6)",
    ),
    "a branch hands out an array, and then what it was made of is written": (
        ["if x.sum() > 3:", "    v = np.where(x == 4)[0]", "x[0] = 1", "return v"],
        "np.arange(6)",
    ),
    "what a captured branch is sure to raise is left to the calls that take it": (
        ["if x.sum() > 100:", "    for _ in range(4):", "        x += 1", "        assert 3 % 2 == 0", "return x"],
        "np.arange(6)",
    ),
    "a loop hands out an array and a view of it": (
        ["for i in range(3):", "    a = x * i", "    b = a[1:]", "b[0] = 33", "return a, b"],
        "np.arange(6.0)",
    ),
    "a branch hands out an array whose size only it knows": (
        ["if x.sum() > 3:", "    v = x[x > 2] * 2", "else:", "    v = np.nonzero(x)[0] / 2", "return v"],
        "np.arange(8.0)",
    ),
    "the last element of a loop that only data say to run": (
        ["for row in x[x[:, 0] > 0]:", "    pass", "return row"],
        "np.arange(6).reshape(3, 2)",
    ),
    "an array that may be huge does not leave the branch that alone knows its size": (
        ["if x.sum() > 3:", "    v = x[x]", "x[0] = True", "return v"],
        "np.zeros((1 << 24) + 1, bool)",
    ),
    "a branch changes a list, and another name comes to hold it": (
        ["d, e = [1.0], [2.0]", "if x[0] == 0:", "    e = d", "    d[0] = x[3]", "return e[0] + d[0]"],
        "np.arange(4.0)",
    ),
    "a branch changes a list that NumPy has made, and binds": (
        ["if x[0] == 0:", "    v = np.zeros(3).tolist()", "    v[0] = 0", "    v[1] = x[1]", "return v"],
        "np.arange(4.0)",
    ),
    "a branch on what a loop has drawn": (
        ["for i in range(2):", "    v = z.permutation(5)", "if v[0] < 3:", "    return v", "return []"],
        "np.ones(2), np.ones(3), np.random.default_rng(0)",
    ),
}

# Name: what `program` does with its arguments; what the arguments are, and in the last call, where sizes differ.
RESIZED = {
    "a view that a branch takes shows what is written later": (
        ["if x.sum() > 3:", "    v = x[..., :2]", "w = v", "x.flat[0] = 33", "return w"],
        "np.arange(5)",
        "np.arange(6)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_other_sizes(name: str) -> None:
    check(*RESIZED[name])
