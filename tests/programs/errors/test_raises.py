"""Small programs at the edge of an exception: where NumPy raises, the same type; where it answers, the same answer, compiled."""

from __future__ import annotations

import pytest

from programs.small import check

# Name: what `program` does with its arguments x, y, z; what the arguments are; what they are in the last call, if others.
RAISING = {
    "an index array into a row of an array without columns": (["x.sort()", "x[np.arange(3) % 2] = 3"], "np.zeros((1, 0))", ""),
    "the same, where sizes are left open": (["x[np.arange(3) % 2] += 7", "return x"], "np.zeros((2, 0))", "np.zeros((1, 0))"),
    "an index array into a part without rows": (["x[1:, ::-2][[0, 0, -1]] = 3"], "np.zeros((1, 3))", ""),
    "one that is overwritten": (["v = x[1:]", "v[y] = 3", "v[:] = 4", "return x"], "np.arange(3.0), np.array([0, 2])", ""),
    "one of which nothing is read": (["return x[y].reshape(-1)[1:1]"], "np.arange(3.0), np.arange(4)", ""),
    "one that a loop hands to one inside, which needs it for nothing": (
        [
            "for _ in range(3):",
            "    y = y + 1",
            "    y[z] = 2",
            "    for _ in range(2):",
            "        x[x > 3] = x[x > 3][::-1]",
            "        y |= 1",
        ],
        "np.arange(6), np.ones(2, int), np.arange(3) % 2",
        "np.arange(6), np.ones(2, int), np.arange(3)",
    ),
    "put into an array without elements": (["np.put(x, [0, 1], 3)", "return x"], "np.ones((1, 4))", "np.ones((0, 5))"),
    "gathered rows of what would fill all memory": (
        ["if y.all():", "    x[y.reshape(-1) * 1] += 5", "return x"],
        "np.zeros((2, 0)), np.zeros((2, 0), int)",
        "np.zeros((1, 1)), np.ones((1, 1), int)",
    ),
    "a stack of what a loop has appended no row to": (
        ["v = []", "for row in x:", "    v.append(row[:2] * 2)", "return np.stack(v)"],
        "np.ones((3, 4))",
        "np.ones((0, 4))",
    ),
    "an iterator over nothing": (
        ["for v in np.nditer(x):", "    y += v", "return y"],
        "np.ones((2, 3)), 0.0",
        "np.ones((2, 0)), 0.0",
    ),
    "an iterator over what data pick": (
        ["for v in np.nditer(x[x > 0]):", "    y += v", "return y"],
        "np.arange(3.0), 0.0",
        "np.zeros(3), 0.0",
    ),
    "one element is set to an array of one": (["x[0] = y", "return x"], "np.zeros(2), np.ones(1)", ""),
    "it is set to a matrix of one": (["x[(-1,)] = y", "return x"], "np.zeros(2), np.ones((1, 1))", ""),
    "an array of one is added to it": (["x[0, 1] += y", "return x"], "np.zeros((2, 2)), np.ones(1)", ""),
    "it is chosen by an index array without axes": (["x[np.array(0)] = y", "return x"], "np.zeros(2), np.ones(1)", ""),
    "the element of an array without axes": (["x[()] = y", "return x"], "np.zeros(()), np.ones(1)", ""),
    "one element is set to what a mask picks, in a loop": (
        ["for i in range(2):", "    x[i] = y[y > i]", "return x"],
        "np.zeros(2), np.array([0.5, 3.0, 0.2])",
        "np.zeros(2), np.array([0.5, 3.0, 1.2])",
    ),
    "a row of one element is": (["x[0] = y", "x[1, ...] = y", "return x"], "np.zeros((2, 1)), np.ones(1)", ""),
    "an array of one to begin with": (["return np.sum(x, initial=y)"], "np.ones(2), np.ones(1)", ""),
    "filled with an array of one element": (["x.fill(x[x > 2])"], "np.array([3.0, 1.0])", ""),
    "one element of x.flat is set to an array": (["x.flat[0] = x[x > 2]"], "np.array([3.0, 1.0])", ""),
    "weights that sum to zero, where no division is heard of": (
        ["with np.errstate(all='ignore'):", "    return np.average(x, axis=0, weights=y)"],
        "np.ones((3, 2)), np.array([1.0, 2.0, 3.0])",
        "np.ones((3, 2)), np.array([1.0, -3.0, 2.0])",
    ),
    "axis 1 of a number": (["return x.cumsum(axis=1)"], "np.array(3.0)", ""),
    "a size of which the call does not get so far as to tell it": (
        ["k = 0", "while k < 3:", "    k += 1", "    np.add.at(x, y, 1)", "    n = k - 1", "return np.arange(k), np.zeros(n)"],
        "np.arange(5), np.arange(5)",
        "np.arange(4), np.arange(5)",
    ),
    "an attribute of a list that a loop has filled": (["for v in x:", "    y.append(v)", "y.foo = 1"], "np.ones(2), []", ""),
    "one of a list of the function's own": (["v = []", "for a in x:", "    v.append(a)", "v.foo = 1"], "np.ones(2)", ""),
    "the dict of such a list": (["v = []", "for a in x:", "    v.append(a)", "return v.__dict__"], "np.ones(2)", ""),
    "the greatest of complex numbers and others": (["return max([1j, 1, np.float32(2)])"], "np.ones(2)", ""),
    "the least of them": (["return min([1j, 1, x[0]])"], "np.ones(2, np.int32)", ""),
    "the greatest of complex numbers alone": (["return max(complex(v) for v in x)"], "np.ones(2)", ""),
    "rows are counted from a float": (["return [(i, v) for i, v in enumerate(x, y)]"], "np.ones(2), 1.5", ""),
    "complex numbers in order": (["return complex(x[0]) < 1"], "np.ones(2)", ""),
}
ANSWERED = {
    "a place that values decide beside a constant": (
        ["x[:-1] //= 1", "v = x.sum()", "x[2] //= x[v] <= x[-1]", "return x"],
        "np.array([3, -1, 0, 0, 0])",
        "",
    ),
    "axis 0 of a number": (
        ["return np.take(x, 0, axis=0), np.repeat(x, 3, axis=0), np.compress([True], x, axis=-1), np.squeeze(x, axis=0)"],
        "np.array(3.0)",
        "",
    ),
    "numbers as arrays of one element": (["return np.kron(x, x), np.isin(x, 3), np.convolve(x, [1, 2])"], "np.array(3.0)", ""),
    "none is left, none is taken": (["return np.delete(x, 0), x.take([])"], "np.array([3])", ""),
    "an array of what a loop has appended no row to": (
        ["v = []", "for row in x:", "    v.append(row[:2] * 2)", "return np.array(v)"],
        "np.ones((3, 4))",
        "np.ones((0, 4))",
    ),
    "a size that has to be 1": (
        ["np.add(1, x[x > 0], out=x)", "x[...] = x[x > 0]", "x += x[x > 0]", "return x"],
        "np.array([3.0])",
        "",
    ),
    "a branch gives a number a type for which the other one raises": (
        [
            "for row in x:",
            "    if x.any():",
            "        v = row",
            "        row[...] = y[-z]",
            "    elif y.any():",
            "        z = z * 0.5",
            "return v",
        ],
        "np.ones((3, 4)), np.arange(33), -2",
        "",
    ),
    "a sum of numbers whose count a loop has left": (
        ["for i in range(5):", "    v = np.arange(i) * 0.5", "return v.sum() > 2 or v[0]", ""],
        "np.ones(3)",
        "",
    ),
    "a sum of one number that is repeated as often as data say": (
        ["for i in range(2):", "    v = x[x < 3]", "v[:] = v[-1]", "return v, v.sum() > 2"],
        "np.arange(6)",
        "",
    ),
    "values are stored as often as needed, how many there are": (
        [
            "np.put(x, [0, 2], x[x > 2])",
            "np.place(x, x < 2, y[y > 0])",
            "np.putmask(y, y < 3, x[x > 1])",
            "x.flat = x[x > 0]",
            "return x, y",
        ],
        "np.array([0, 3, 5, 1]), np.array([1, 2, 4])",
        "",
    ),
    "places are as many as data say": (["np.put(x, np.flatnonzero(x > 0), x[x > 0] + 1)", "return x"], "np.array([0, 3, 5])", ""),
    "an unsigned remainder is a place": (
        ["if y[0] > 2:", "    x[(y % 4)[0]] += 1", "    np.add.at(x, y % 4, 0.5)", "return x"],
        "np.zeros(4, int), np.array([7], np.uint64)",
        "",
    ),
    "a while whose body raises is not entered": (
        ["for i in range(200):", "    for v in y:", "        while v > 9:", "            x.reshape(2, 3)", "        x += v"],
        "np.zeros(3), np.ones(200)",
        "np.zeros(3), np.arange(200.0)",
    ),
    "numbers of four bytes as keys": (
        [
            "d = {}",
            "for v in x:",
            "    d[v] = d.get(v, 0) + 1",
            "return d, {1: 2, np.float32(0.5): 3}[x[0]], {v: 1 for v in x[:2]}",
        ],
        "np.array([1, 0.5, 1], np.float32)",
        "np.array([0.5, 2, 2], np.float32)",
    ),
    "a complex number beside a float": (["return y == x[0], y != x[1], x[0] == y"], "np.arange(2.0), 1j", "np.arange(2.0), 0j"),
    "rows are counted from a scalar": (["return [(i, v) for i, v in enumerate(x, y[0])]"], "np.ones(2), np.array([3, 4])", ""),
    "a range of bytes that leads backwards": (
        ["return list(range(x[0], x[1])), len(range(x[0], x[1])), np.arange(x[0], x[1], -1), np.arange(x[1] - x[0])"],
        "np.array([5, 9], np.uint8)",
        "np.array([5, 7], np.uint8)",
    ),
    "two results in two rows of one array": (
        ["np.divmod(y, 2, out=(x[0], x[2]))", "return x"],
        "np.ones((3, 2)), np.ones(2)",
        "",
    ),
    "a condition that chooses by a method": (["return x.compress([True, False, True])"], "np.arange(3)", ""),
}
AT = {
    "x, [0, 0, -1], y[1]": "np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([0.7, 2.6, 1.1])",
    "x, (slice(None), [0, 0, 1]), 1.7": "np.arange(6, dtype=np.float32).reshape(2, 3)",
    "x[::-1], (y, y), -y": "np.arange(6, dtype=np.uint16).reshape(2, 3), np.array([1, 0, 0, 1], np.int16)",
    "x, x > 2, 1.5": "np.arange(6).reshape(2, 3)",
    "x, [0, 1], -300": "np.arange(6, dtype=np.uint8).reshape(2, 3)",
    "x, (1, slice(1, 3)), 2.5": "np.arange(6, dtype=np.int32).reshape(2, 3)",
    "x, [1, 1, 0], -1": "np.arange(4) > 1",
    "x, [1, 1, 0], 0.5": "np.arange(4, dtype=np.float16) / 3",
    "x, [1, 1, 0], 0.1": "np.arange(4, dtype=np.float16) / 3",
    "x, [1, 1, 0], -0.5": "np.zeros((4, 0), int)",
}


@pytest.mark.parametrize("name", RAISING)
def test_raises(name: str) -> None:
    lines, first, last = RAISING[name]
    check(lines, first, last or first)


@pytest.mark.parametrize("name", ANSWERED)
def test_answers(name: str) -> None:
    lines, first, last = ANSWERED[name]
    check(lines, first, last or first)


@pytest.mark.parametrize("function", ["add", "maximum", "subtract", "multiply", "minimum"])
@pytest.mark.parametrize("given", AT)
def test_at_computes_in_the_wider_dtype_and_casts_each_result(function: str, given: str) -> None:
    check([f"np.{function}.at({given})", "return x"], AT[given], AT[given])
