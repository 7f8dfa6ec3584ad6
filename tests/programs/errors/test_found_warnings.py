"""Programs that once warned where NumPy does not, or did not where it does, found by fuzz.py and made small."""

from __future__ import annotations

import pytest

from programs.small import check

OVERLAPPING = "(a := np.zeros((4, 4))), a[:, :-1]"

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "what is thrown away warns, and its indices are checked": (
        ["v = np.sqrt(x)[2:] / y[x.astype(int)]", "return x"],
        "np.array([-1.0, 0.0, 1.0, 9.0]), np.arange(4)",
    ),
    "what is written over warns": (
        ["v = 1 / x", "v[0] = 3", "for w in v:", "    np.log(w)", "return v"],
        "np.arange(4.0)",
    ),
    "a divisor that is the number 0": (["x[3:] %= 0", "return x // 0, np.fmod(x, 0)"], "np.arange(33)"),
    "remainders of which nothing is left": (["return (x[:, None] % x) ^ (x[:, None] % x)"], "np.zeros((3, 2), np.int8)"),
    "a quotient that is chosen for nobody": (["return np.where(x[0] > 0, x[1] / y[1], 0)"], "np.arange(2) * 0, np.arange(2) * 0"),
    "a median over nothing warns each time": (["return np.median(x[None], axis=-1), np.median(x)"], "np.zeros(0)"),
    "a quotient in an array that a loop overwrites for nobody": (
        ["y = x * 1", "y[0] /= y[1]", "for i in range(len(y)):", "    y[i] = i", "return 1"],
        "np.zeros(5)",
    ),
    "a quotient of which nothing is read after a loop": (
        ["y = x / x[::-1]", "for i in range(len(y)):", "    y[i] = 1", "y[i + 1 :] *= 2", "return i"],
        "np.arange(5.0)",
    ),
    "quotients in a loop that are compared with themselves": (
        ["y = x * 0", "for i in range(3):", "    assert y.sum() == y.sum()", "    y[1:] //= y[0]", "return x"],
        "np.arange(5)",
    ),
    "quotients in a while that choose between one and one": (
        ["y, k = x * 0, 0", "while k < x[2]:", "    k += np.where(y.sum() > 0, 1, 1)", "    y[1:] //= y[0]", "return k"],
        "np.arange(5)",
    ),
    "a quotient of which a loop reads one window": (
        ["y = x / x[::-1]", "for i in range(3):", "    y[:2] * 2", "return i"],
        "np.arange(5.0)",
    ),
    "a quotient of which a loop reads every other element": (
        ["y = x / x[::-1]", "for i in range(3):", "    y[1:4:2] * 2", "return i"],
        "np.arange(5.0)",
    ),
    "a quotient of which a while reads a part of a shape": (
        ["y = x / x[::-1]", "k = 0", "while k < x[1]:", "    y.reshape(1, -1)[:, 1:4] * 2", "    k += 1", "return k"],
        "np.arange(5.0)",
    ),
    "a branch whose result is overwritten through an argument that shares memory": (
        ["if x[0, 0] > -1:", "    w = y / x[:, 1:]", "else:", "    w = y * 1", "y[...] = w", "y[...] = 3", "return x, z"],
        f"{OVERLAPPING}, 3",
    ),
    "quotients that are sorted, then overwritten through an argument that shares memory": (
        ["y[...] = np.sort(y / x[:, 1:], axis=0)", "y[...] = 3", "return x, z"],
        f"{OVERLAPPING}, 3",
    ),
    "what is picked by a bad index, then overwritten through an argument that shares memory": (
        ["y[...] = x[[z, 0, 0, 0]][:, 1:]", "y[...] = 3", "return x"],
        f"{OVERLAPPING}, 7",
    ),
    "the sum of nothing, less a number": (["x *= x[:0].sum() - 4", "return x"], "np.ones(3, np.uint64)"),
    "a quotient by which a loop chooses between equal arrays": (
        ["y = x / x[::-1]", "a = x * 1", "for _ in range(3):", "    a = np.where(y > 1, a, a)", "return a"],
        "np.arange(5.0)",
    ),
    "quotients that a loop makes and another chooses by": (
        [
            "y = x * 1",
            "for _ in range(3):",
            "    y = y / x[::-1]",
            "a = x * 1",
            "for _ in range(3):",
            "    a = np.where(y > 1, a, a)",
            "return a",
        ],
        "np.arange(5.0)",
    ),
    "a quotient beside what is read of a stack": (["return np.stack([x / x[::-1], x])[1]"], "np.arange(5.0)"),
    "what a branch computes in vain": (["if x.sum() > 3:", "    x + x", "return 1"], "np.full(5, 1e308)"),
    "an element that a branch reads in vain": (["if x.sum() > 3:", "    x[x]", "return 1"], "np.arange(1, 5)"),
    "covariances that nobody needs": (["np.cov(x)", "return 1"], "np.array([1.0, np.inf, 2.0])"),
    "a quotient of numbers that are known": (["x[0] = 0", "return x / x.sum(), x % x.sum()"], "np.ones(1, np.float32)"),
    "a quotient of numbers that are counted": (["x[0] = np.arange(4)", "x /= x", "return x"], "np.ones((1, 4), np.float32)"),
    "a quotient of bits that cancel": (["x ^= x", "return [x / x for _ in range(3)]"], "np.array(3)"),
    "a quotient of what has just been stored": (
        ["for i in range(4):", "    x[i] = 0.0", "    x[i] /= x[i]", "return x"],
        "np.ones(4)",
    ),
    "a quotient by one of two numbers": (["return 1.0 / np.where(x[0] > 0, 0.0, 2.0), 1 / (x > 3)"], "np.ones(4)"),
    "a quotient of what a loop begins with": (
        ["s = np.float64(0.0)", "for i in range(4):", "    s = s / s", "    x[i] = s", "return x"],
        "np.ones(4)",
    ),
    "a remainder of numbers that a loop alone knows": (
        ["x[0] = 0", "for _ in range(2):", "    v = np.any(x % x.sum())", "return v"],
        "np.ones(1, np.float32)",
    ),
    "orders of complex numbers of which one is nan": (
        ["v = x * (1 + 0j)", "return v < y, v[1:] >= 1, v == y"],
        "np.array([np.nan, 1.0, np.nan]), np.ones(3)",
    ),
    "a quotient that a loop hands to one inside, which needs it for nothing": (
        [
            "for _ in range(3):",
            "    y = y / 0",
            "    v = []",
            "    for _ in range(2):",
            "        x[x > 3] = x[x > 3][::-1]",
            "        v.append(y)",
            "return x",
        ],
        "np.arange(6.0), np.ones(5)",
    ),
    "a quotient that a loop hands to a branch, which needs it for nothing": (
        ["v = x * 0", "for _ in range(3):", "    y = y / 0", "    if x[1]:", "        v[x > 2] = y[x > 2]", "return x"],
        "np.arange(5.0), np.ones(5)",
    ),
    "remainders by zero of which a loop reads no element": (
        [
            "for _ in range(5):",
            "    x %= x + x",
            "for _ in range(2):",
            "    np.sqrt(np.cumsum(x) - np.diff(x[None]))",
            "x[()] = 1",
        ],
        "np.array(0)",
    ),
    "what stays in an array that a ufunc writes in part is no number of its dtype": (
        ["np.multiply(x, x, out=y, where=x > 1)", "np.add(x, 2, out=y[:2], where=x[:2] > 0)", "return y"],
        "np.arange(4, dtype=np.uint32), np.array([1, 2, np.nan, 1e30], np.float32)",
    ),
    "what stays in an array that a ufunc writes in part is too large for its dtype": (
        ["np.sqrt(x, out=y, where=x > 1, dtype=np.float32)", "return y"],
        "np.arange(4, dtype=np.float32), np.array([1, 2, np.inf, 1e300])",
    ),
    "what stays in a complex array that a ufunc of real numbers writes in part": (
        ["np.add(x, 1, out=y, where=x > 1)", "np.add(y[1:], 1j, out=z, where=x[1:] > 1)", "return y, z"],
        "np.arange(4, dtype=np.int32), np.array([1, 2j, np.nan, 3], np.complex64), np.full(3, 1e300 + 1j)",
    ),
    "complex sums that a loop computes in vain": (["for _ in range(3):", "    x + x", "return 1"], "np.full(5, 1e308 + 0j)"),
}


SHARED = "overwritten through an argument that shares memory"  # which is left to Python


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.loose] * name.endswith(SHARED)) for name in FOUND])
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.loose
def test_an_element_that_is_multiplied_then_overwritten_through_an_argument_that_shares_memory() -> None:
    """At an index that is left open from the second call on (380000:18160)."""
    arguments = "(a := np.full((7, 7), 100, np.int8)), a[:, :-1], {}"
    check(["y[z, 1] *= x[2, 0]", "y[...] = 3", "return x"], arguments.format("1 + call"), arguments.format(3))


@pytest.mark.parametrize(
    "part",
    [
        "np.where(x > 0, x // x, 1)[y % 4]",
        "(x // x + 1)[y % 4]",
        "(x // x).reshape(-1, 1)[y % 4]",
        "np.stack([x // x, x])[0, y % 4]",
        "np.concatenate([x // x, x])[y % 4]",
        "np.sum((x // x)[:, None] * x, axis=1)[y % 4]",
        "np.flip(x // x)[y % 4]",
        "(x // x)[: y % 4].sum()",
    ],
)
def test_a_part_of_quotients_of_any_number(part: str) -> None:
    """NumPy divides them all, also where sizes are open (150000:35596)."""
    check([f"v = {part} // x[0]", "return y"], "np.arange(-5, 5), 1", "np.arange(-8, 8), 2")
