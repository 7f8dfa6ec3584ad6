"""Programs that once differed from NumPy, found by fuzz.py and made small: they agree now, call by call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml
from programs.drawn.outcomes import judge

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
    "a row that goes into a window and is changed by an index that a loop makes": (
        [
            *("for v in x:", "    for w in x:", "        n = v.size", "        v *= 2", "        u = v[::-1]"),
            *("    w[-n] = 100", "return u"),
        ],
        "np.arange(6).reshape(2, 3)",
    ),
    "what a loop changes in rows, and an inner loop sums for a window without elements": (
        [
            *("v = np.triu(x)", "for w in v:", "    w[0] ^= 3", "    u = []", "    for i in range(4):"),
            *("        y[1:, :0] = w.sum()", "        u.append(x[0])", "    t = u", "return t"),
        ],
        "np.arange(9, dtype=np.uint32), np.ones((2, 3))",
    ),
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
    "BLAS multiplies nothing by the number 0": (
        ["n = np.reshape(y, (1, 1))", "return np.dot(x, y), np.inner(y, x), np.dot(x[:1], y), n.dot(x[None]), x[:, None] @ n"],
        "np.array([np.nan, -1.0, 2.0]), 0.0",
    ),
    "a sum of booleans that doubles again and again": (
        ["v = x[None]", "s = []", "for i in [0] * 60:", "    v += x", "    s.append(np.unique(v)[-1])", "return v, s"],
        "np.arange(17) % 2 == 1",
    ),
    "an index from the end of a size, counted by a loop": (
        ["w = x[x > 3]", "for i in range(len(w)):", "    x[-2] -= w[-1 - i] - x[i]", "    x[i] += np.sort(w).sum()", "return x"],
        "np.array([1, 5, 6, 7, 0, 2])",
    ),
    "what a region in a loop does without, and is heard all the same": (
        [
            *("if x.sum() == x.sum() or abs(x[0, 0]) < -1:", "    v = np.cbrt(np.sort(x, axis=0))", "for i in range(5):"),
            *("    v[1:] += v[:-1]", "    if (x > 4).all():", "        assert len(x) == i * 7", "    else:"),
            *("        v[:2] += 5", "return x"),
        ],
        "np.array([[True, False, True, True]])",
    ),
    "an index beyond all that a size can be": (
        ["q = x[x > 3][:2]", "q[2] -= x[0]", "return q"],
        "np.array([1, 5, 6, 7, 0, 2])",
    ),
    "an index beyond all that a size can be, where one branch goes": (
        ["q = x[x > 3][:2]", "if x[0] > y:", "    return q[2]", "return x[0]"],
        "np.array([1, 5, 6, 7, 0, 2]), 0",
    ),
    "an index that is out of bounds at one end of every loop": (
        ["for i in range(3):", "    x[i - 1, -i, 0] = 7", "return x"],
        "np.zeros((1, 6, 1), np.int16)",
    ),
    "a window without elements leaves a single number alone": (
        ["if z.sum() > 3:", "    x[0] -= 1", "else:", "    x[1:] = y[:-1]", "return x"],
        "np.array([14]), np.zeros(0, int), np.arange(2)",
    ),
    "what is copied to be read lies in memory as it did": (
        ["v, w = x.ravel(), y.ravel()", "x += 1", "y += 1", "return v * 1, w * 1, x.strides, y.strides"],
        "np.arange(12, dtype='>i4').reshape(3, 4).T, np.zeros(5, 'i1,i4')['f1']",
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
    "items of a list that have more bits than NumPy's": (
        ["return [a if a > 0 else 300 for a in x], [a if a > 0 else 0.1 for a in x * np.float32(2)]"],
        "np.array([1, -2, 3], np.int8)",
    ),
    "a number of Python's keeps its digits beside NumPy's of fewer": (
        ["v = x[0] if x[1] > 0 else 0.1", "return v, v * 3, np.float64(1) + v, v > 0.1, v * x"],
        "np.array([1, -2], np.float32)",
    ),
    "an integer of Python's does not fit where NumPy's does": (
        ["v, w = x[0] if x[1] > 0 else 300, 300", "for a in x:", "    if a > 5:", "        w = a", "return v, v > 100, w"],
        "np.array([1, -2], np.int8)",
    ),
    "a branch makes of a number that very number": (
        ["v, n = y[0], int(x[0])", "if x.sum() > 3:", "    v, n = abs(v), int(n)", "return v, n, ~v, n + 1"],
        "np.arange(4), np.ones(2, bool)",
    ),
    "an array is read as it was and as it becomes": (
        ["v = x * 1", "for i in range(3):", "    x[i + 1, 1] = v[i + 2, 1] - v[i, 1] * x[i, 0]", "return v"],
        "np.arange(12).reshape(6, 2)",
    ),
    "loops see indices and what they write, which are one array, in one shape": (
        ["y[x] = x[:, None]", "v = x[x > 0]", "return y, np.append(v, v[:1]), np.concatenate([v[:2], v, v[:1]])"],
        "np.arange(5)[::-1], np.zeros((7, 1))",
    ),
    "a window that depends on a size is written long after it was made": (
        ["v, k = x[x == 0], 0", "while k < x[1]:", "    k += 1", "    x += np.append(v[::-1], 1)", "return x"],
        "np.array([0, 2, 0, 0])",
    ),
    "an array without elements meets nothing": (["x += 1", "return x.T"], "np.zeros((2, 0))"),
    "a constant that some vector loop was the first to make is known everywhere": (
        ["for v in x:", "    assert 0 <= x[v % 33] < 40 or x.sum() > 1.5", "    x[...] ^= np.zeros_like(x)"],
        "np.arange(33)",
    ),
    "a mask's elements are taken from the array itself, although it is also stored reshaped": (
        ["for _ in range(3):", "    inside = x < 4", "    a = x[inside]", "    y[inside] = a", "    x[inside] = a + 1"],
        "np.arange(12).reshape(3, 4), np.ones((3, 4))",
    ),
    "a constant scatter out of bounds is the program's to raise": (
        ["x.fill(2)", "np.put(x, [0, 1], 3)", "return x"],
        "np.arange(1)",
    ),
    "loops that reach past an axis stand behind a check": (
        ["return np.take(x, np.arange(17)[::-1], axis=0) * 2"],
        "np.arange(16)",
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
    "one branch alone binds a name to an array whose size only it knows": (
        ["if x.sum() > 3:", "    v = x[x > 2] * 2", "return v.sum()"],
        "np.arange(8.0)",
    ),
    "a window's loops load from an array that was reshaped": (
        ["x[1] -= y.reshape(-1)[[0, 0, 1]]"],
        "np.arange(6).reshape(2, 3), np.arange(10).reshape(5, 2) % 3 == 0",
    ),
    "two results that begin as one value go to memory of their own": (
        ["for _ in range(2):", "    for v, w in zip(x, x):", "        np.random.default_rng(1).integers(0, 4)", "return v, w"],
        "np.arange(4)",
    ),
    "how often a loop runs is known to be a size, although nothing has that size": (
        ["for i in range(len(x[x > 0])):", "    y[i] = x[i] + i", "return y"],
        "np.arange(6.0) - 2, np.zeros(6)",
    ),
    "a loop goes over the elements of an array of unknown length": (
        ["for i, v in enumerate(x[x > 0]):", "    y[i] += v", "return y"],
        "np.arange(6.0) - 2, np.zeros(6)",
    ),
    "what is thrown away warns, and its indices are checked": (
        ["v = np.sqrt(x)[2:] / y[x.astype(int)]", "return x"],
        "np.array([-1.0, 0.0, 1.0, 9.0]), np.arange(4)",
    ),
    "what is written over warns": (
        ["v = 1 / x", "v[0] = 3", "for w in v:", "    np.log(w)", "return v"],
        "np.arange(4.0)",
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
    "memory of one element is seen in two shapes": (
        ["v1 = x", "if True < x[0] <= x[0]:", "    v2 = v1", "return v2"],
        "np.array([5])",
    ),
    "a name that one branch binds to an array from outside is that array": (
        ["if x.sum() > 3:", "    v = x[1:]", "v[0] = 7", "x[2] = 8", "return v"],
        "np.arange(6)",
    ),
    "the last element of a loop that only data say to run": (
        ["for row in x[x[:, 0] > 0]:", "    pass", "return row"],
        "np.arange(6).reshape(3, 2)",
    ),
    "a size that cannot be the other one is 1": (["return x[x > 0] + np.ones(5)"], "np.array([3.0, -1, -2])"),
    "a size that is 1 fits what is written": (["y = x * 1", "y &= y[y > -1]", "return y"], "np.array([3])"),
    "rows of sizes from data are as long as each other": (["return np.array([x[x > 0], 2 * x[x > 0]])"], "np.array([3, -1, 2])"),
    "one element at most is stored as one, not as a vector": (["return x[x != 3][:1] * 2"], "np.full(5, 7.0)"),
    "branches make complex arrays, each with memory of its own": (
        ["if x[0] == 1:", "    y = np.sort(x)", "else:", "    y = np.sort(x) + 1", "return y"],
        "np.ones(5, complex)",
    ),
    "an array that may be huge does not leave the branch that alone knows its size": (
        ["if x.sum() > 3:", "    v = x[x]", "x[0] = True", "return v"],
        "np.zeros((1 << 24) + 1, bool)",
    ),
    "a size that was only computed for an attempt is computed again": (
        ["k = 0", "while k < y[1]:", "    k += 1", "    v = np.power(x, k)", "return v"],
        "np.arange(7, dtype=np.uint64), np.arange(2, 9)",
    ),
    "a branch makes an array anew that then lies where a strided argument does": (
        ["if y.any():", "    x[x == 2] = x[x == 2][::-1] * 5", "else:", "    x += 1", "return x"],
        "np.arange(18).reshape(3, 2, 3).T[:, :, ::-1], np.array([0, 1])",
    ),
    "an updated argument that is not contiguous is not seen in another shape": (
        ["x[:-1] = x[1:] * 2", "v = x.ravel()", "return v[v > 4], np.sort(x.ravel()), x"],
        "np.arange(10).reshape(5, 2)[:, 1:]",
    ),
    "an int that does not fit a dtype wraps around in np.where": (
        ["x[:2] = np.where(y > 1, z * 4, x[:2])", "return np.where(y > 1, -8, x[:2]), np.where(y > 1, z * y.size, x[:2])"],
        "np.arange(3, dtype=np.uint8), np.arange(2), -2",
    ),
    "no element is raised to a negative power": (
        ["for i in range(2):", "    v = y ** (i - 1)", "return v, np.power(y, -1), y ** np.array([-2])"],
        "np.arange(3), np.zeros(0, int)",
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
    "a branch on what a loop has drawn": (
        ["for i in range(2):", "    v = z.permutation(5)", "if v[0] < 3:", "    return v", "return []"],
        "np.ones(2), np.ones(3), np.random.default_rng(0)",
    ),
}


# As above, where the sizes of the last call differ.
RESIZED = {
    "a reshape to what is the array's own shape for one size is a view": (
        ["y = x.reshape(-1, 2).T", "z = y.reshape(-1, 2)", "z[0] = 7", "v = y.T != 2", "return x, z, v, v.T.reshape(-1)"],
        "np.arange(10.0).reshape(2, 5)",
        "np.arange(4.0).reshape(4, 1)",
    ),
    "a reshape of which one size cuts what would be copied": (
        ["y = np.zeros((3, x.shape[0], 4)).transpose(0, 2, 1)", "z = y.reshape(3, x.shape[0], 4)", "z[0] = x[0]", "return y, z"],
        "np.arange(6.0)",
        "np.arange(4.0)",
    ),
    "BLAS multiplies nothing by the number 0, but one element": (
        ["v = x[x != 1][:z]", "return np.dot(v, y), np.tensordot(v[:, None], np.array([[y]]), axes=1)"],
        "np.array([np.nan, -1.0]), 0.0, 2",
        "np.array([np.nan, -1.0]), 0.0, 1",
    ),
    "a flat array's rows are as long as they are, not as they may become": (
        ["for _ in range(2):", "    x[...] = y", "return x"],
        "np.zeros((2, 3)), np.arange(6).reshape(2, 3)",
        "np.zeros((3, 2)), np.arange(6).reshape(3, 2)",
    ),
    "a diagonal shows what is written into its base later": (
        ["z = x[:, ::-1]", "d = np.diagonal(z, 1)", "z[...] = 7", "return d, np.diag(x, -1), x"],
        "np.arange(12).reshape(3, 4)",
        "np.arange(30).reshape(6, 5)",
    ),
    "a diagonal beside elements of the same array at places from data": (
        ["return (x[y, y[::-1]] ** 2).sum() + (np.diagonal(x) ** 2).sum(), x[y, y] * x.ravel()[1:4]"],
        "np.arange(12.0).reshape(4, 3), np.array([0, 2, 1])",
        "np.arange(12.0).reshape(4, 3)[::-1], np.array([2, 2, 1])",
    ),
    "a check of an element's place comes before the element, even beside what is gathered": (
        ["x[y % 7] += abs(y[3])", "return x"],
        "np.arange(7), np.arange(7, dtype=np.uint8)",
        "np.arange(1), np.zeros(1, np.uint8)",
    ),
    "a result without elements has its shape": (["return np.diff(x[None], 1, axis=0)"], "np.arange(4)", "np.arange(3)"),
    "a result without elements has its shape, which data say": (
        ["return np.outer(np.zeros(0), x[x > 1])"],
        "np.arange(4)",
        "np.arange(5)",
    ),
    "a draw beside a number and an array that is written": (
        ["x[:-1] += y", "return z.standard_normal(4), x"],
        "np.arange(4.0), 5, np.random.default_rng(0)",
        "np.arange(5.0), 3, np.random.default_rng(1)",
    ),
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
    "an argument turned around and folded into the other": (
        ["v = 0", "if y[1, 0, 0] < 1:", "    for _ in x:", "        y += x", "else:", "    v = x.sum()", "return x, v"],
        "*(lambda x: (x, x[::-1]))(np.arange(24).reshape(2, 3, 4))",
        "*(lambda x: (x, x[::-1]))(np.arange(30).reshape(5, 6, 1))",
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
    "a reshape of every second element is a copy at any length": (
        ["v = x.ravel()", "x[1:] += x[:-1]", "return v"],
        "np.arange(13)[::2]",
        "np.arange(19)[::2]",
    ),
    "a view that a branch takes shows what is written later": (
        ["if x.sum() > 3:", "    v = x[..., :2]", "w = v", "x.flat[0] = 33", "return w"],
        "np.arange(5)",
        "np.arange(6)",
    ),
    "the lesser of an int and a float is the one, then the other": (
        ["if x.sum() < 7:", "    y = min(y, z + 0.25)", "return y, max(1, z * 0.5), [z, -y]"],
        "np.ones(1), 4, 4",
        "np.ones(1), 5, 0",
    ),
    "nothing is read beside an empty argument": (
        ["if len(y) == 0:", "    return x", "return x[y]"],
        "np.arange(4), np.array([1, 2])",
        "np.zeros(0, int), np.zeros(0, int)",
    ),
}

# As above, for the interpreter of a layer.
INTERPRETED: dict[str, tuple[str, list[str], str, str]] = {
    "an array is carried with its size": (
        "program",
        ["for i, row in enumerate(x):", "    v = np.full(i, 2.5)", "return v"],
        "np.zeros((2, 4))",
        "np.zeros((2, 4))",
    ),
    "as many elements are copied as there are": (
        "program",
        ["for i in range(3):", "    v = y[~(y != 2)]", "return v, i"],
        "np.zeros(1), np.arange(6)",
        "np.zeros(1), np.arange(2)",
    ),
    "NumPy raises for an index out of bounds, after what it has written": (
        "graph",
        ["x += x", "return y[x]"],
        "np.arange(3), np.arange(6)",
        "np.arange(4), np.arange(6)",
    ),
    "NumPy raises what a call of it raises, after what it has written": (
        "graph",
        ["x += x", "return (x > 1) ** y"],
        "np.arange(3), np.arange(3)",
        "np.arange(3), np.arange(-1, 2)",
    ),
    "a step raises what a call of NumPy raises": (
        "program",
        ["x += x", "return (x > 1) ** y"],
        "np.arange(3), np.arange(3)",
        "np.arange(3), np.arange(-1, 2)",
    ),
    "as many elements are sorted as there are": (
        "program",
        ["for i in range(3):", "    x = np.unique(x)", "return x"],
        "np.array([2, 1, 2, 3])",
        "np.array([1, 1, 0, 1])",
    ),
    "a generator draws once": (
        "graph",
        ["v = y.random(3)", "x += 1", "return v[:2] * x[1::2]"],
        "np.arange(4), np.random.default_rng(0)",
        "np.arange(7), np.random.default_rng(0)",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_other_sizes(name: str) -> None:
    check(*RESIZED[name])


@pytest.mark.parametrize("name", INTERPRETED)
def test_interpreters_agree(name: str) -> None:
    layer, *case = INTERPRETED[name]
    check(*case, layer=layer)


def check(lines: list[str], arguments: str, last: str, layer: str = "machine") -> None:
    verdict = judge(program(lines, arguments, last), exact=True, layer=layer)
    assert verdict.kind == "equal", verdict.detail


def program(lines: list[str], arguments: str, last: str) -> str:
    parameters = ", ".join("xyz"[: len(eval(f"({arguments},)", {"np": np, "call": 0}))])
    body = "".join(f"    {line}\n" for line in lines)
    made = f"def arguments(call):\n    return ({arguments},) if call < 2 else ({last},)\n"
    return f"import numpy as np\n\n{made}\n\ndef program({parameters}):\n{body}"


def test_work_with_branches_is_hoisted_out_of_a_while() -> None:
    """Code of several blocks in front of the loop: its phi named the block before them, and LLVM's optimiser aborted."""

    def f(y: Any, limit: int) -> Any:
        k = 0
        while abs(y[0, -1]) > limit and k < 3:
            k += 1
        return k

    compiled = jitml.jit(f)
    for last in (15, -15, 2, -32768):
        y = np.array([[-1, 0, 8, last]], np.int16)
        with np.errstate(over="ignore"):
            assert compiled(y, 6) == f(y, 6)


def test_a_choice_between_equal_values_drops_no_check() -> None:
    """`select(c, x, x)` became x, and an index that c had got wrong went unnoticed once its size was open (31000:677)."""

    def chosen(x: Any, a: Any) -> Any:
        return np.where(np.take(x[:-1], [0], axis=0) > 7, a, a)

    jitted = jitml.jit(chosen)
    for rows in (3, 2):
        np.testing.assert_array_equal(jitted(np.ones(rows), np.arange(3.0)), np.arange(3.0))
    with pytest.raises(IndexError):
        jitted(np.ones(1), np.arange(3.0))


def test_tiles_of_nothing_that_cannot_be_written() -> None:
    """NumPy gives a view of an empty array; where the length is open, a new one was given that may be written (510000:49442)."""

    def tiled(x: Any) -> Any:
        return np.tile(np.diag(x, 1), 2)

    jitted = jitml.jit(tiled)
    for shape in ((2, 0), (1, 1), (3, 3), (0, 2), (4, 4)):
        found, expected = jitted(np.ones(shape)), tiled(np.ones(shape))
        np.testing.assert_array_equal(found, expected)
        assert found.flags.writeable == expected.flags.writeable
