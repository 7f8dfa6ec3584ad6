"""Programs that once differed from NumPy, made small: what is a view, what a copy, and who sees a write."""

from __future__ import annotations

import pytest

from programs.small import check

# Name: what `program` does with its arguments; what the arguments are.
FOUND = {
    "what is copied to be read lies in memory as it did": (
        ["v, w = x.ravel(), y.ravel()", "x += 1", "y += 1", "return v * 1, w * 1, x.strides, y.strides"],
        "np.arange(12, dtype='>i4').reshape(3, 4).T, np.zeros(5, 'i1,i4')['f1']",
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
    "a mask's elements are taken from the array itself, although it is also stored reshaped": (
        ["for _ in range(3):", "    inside = x < 4", "    a = x[inside]", "    y[inside] = a", "    x[inside] = a + 1"],
        "np.arange(12).reshape(3, 4), np.ones((3, 4))",
    ),
    "memory of one element is seen in two shapes": (
        ["v1 = x", "if True < x[0] <= x[0]:", "    v2 = v1", "return v2"],
        "np.array([5])",
    ),
    "a branch makes an array anew that then lies where a strided argument does": (
        ["if y.any():", "    x[x == 2] = x[x == 2][::-1] * 5", "else:", "    x += 1", "return x"],
        "np.arange(18).reshape(3, 2, 3).T[:, :, ::-1], np.array([0, 1])",
    ),
    "an updated argument that is not contiguous is not seen in another shape": (
        ["x[:-1] = x[1:] * 2", "v = x.ravel()", "return v[v > 4], np.sort(x.ravel()), x"],
        "np.arange(10).reshape(5, 2)[:, 1:]",
    ),
}

# Name: what `program` does with its arguments; what the arguments are, and in the last call, where sizes differ.
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
    "an argument turned around and folded into the other": (
        ["v = 0", "if y[1, 0, 0] < 1:", "    for _ in x:", "        y += x", "else:", "    v = x.sum()", "return x, v"],
        "*(lambda x: (x, x[::-1]))(np.arange(24).reshape(2, 3, 4))",
        "*(lambda x: (x, x[::-1]))(np.arange(30).reshape(5, 6, 1))",
    ),
    "a reshape of every second element is a copy at any length": (
        ["v = x.ravel()", "x[1:] += x[:-1]", "return v"],
        "np.arange(13)[::2]",
        "np.arange(19)[::2]",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_agrees(name: str) -> None:
    lines, arguments = FOUND[name]
    check(lines, arguments, arguments)


@pytest.mark.loose
@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_other_sizes(name: str) -> None:
    check(*RESIZED[name])
