"""Names that stand for one array, or may do so, after a branch or a loop: writes through one are seen through the other."""

from __future__ import annotations

import pytest

from programs.small import check

FIRST = "np.array([0, 3, 0, 0]), np.arange(4)"
LONGER = "np.arange(6), np.arange(6)"
TWICE = ["if x.sum() > 1:", "    v = x * 2", "    w = v", "else:", "    v = x * 3"]
LISTED = ["u = []", "t = []", "w = x", "v = x + 1", "z = v", "for k in range(3):"]

# What happens to the names v and w; the program returns them, or what else tells.
PROGRAMS = {
    "one array, in one branch": [*TWICE[:3], "else:", "    x += 1", "v %= 2", "return v, w"],
    "one array in both": [*TWICE, "    w = v", "v %= 2", "return v, w"],
    "one array in one, a copy in the other": [*TWICE, "    w = v.copy()", "v %= 2", "return w"],
    "both returned": [*TWICE, "    w = v.copy()", "return v, w"],
    "bound on one side each": ["if x.sum() > 1:", "    v = x * 2", "else:", "    w = x * 3", "return v"],
    "in a list, too": [*TWICE[:2], "    w = (v, [v])", *TWICE[3:], "    w = (v, [v])", "v += 1", "return v, w"],
    "a part of it": [*TWICE[:2], "    w = v[1:]", *TWICE[3:], "    w = v[1:]", "v += 1", "return w"],
    "a part, both returned": [*TWICE[:2], "    w = v[1:]", *TWICE[3:], "    w = v[1:]", "return v, w"],
    "one view or two": [
        *("if x.sum() > 1:", "    v = x[1:]", "    w = v", "else:", "    v = x[1:]", "    w = x[1:]", "return v, w, v is w"),
    ],
    "one view or two, returned": [
        *("if x.sum() > 1:", "    v = x[1:]", "    w = v", "else:", "    v = x[1:]", "    w = x[1:]", "return v, w"),
    ],
    "one view or two of what was made": [
        *TWICE[:2],
        "    w = v[:]",
        "else:",
        "    v = x * 3",
        "    w = v",
        "return v, w, v is w",
    ],
    "three views, two of them one": [
        *("z = x * 2", "if x.sum() > 1:", "    u = z[1:]", "    v = w = z[1:]"),
        *("else:", "    u = v = z[1:]", "    w = z[1:]", "return u, v, w"),
    ],
    "a view, or another of the same": ["v = x[1:]", "w = v", "if x.sum() > 1:", "    w = x[1:]", "return v, w"],
    "another of the same in a loop": [
        *("v = x[1:]", "w = v", "for i in range(3):", "    if x[i] > 1:", "        w = x[1:]", "return v, w, [w]"),
    ],
    "another of the same, alone": ["w = x[1:]", "if x.sum() > 1:", "    w = x[1:]", "w += 1", "return w, x"],
    "a branch inside a branch": ["v = x * 3", "if x.sum() > 1:", "    v = x if y[1] > 0 else x * 2", "v += 1", "return x"],
    "what the loop counts with is bound to an array, and another name to a part of it": [
        *("for v in range(4):", "    v = x * 2", "    w = v[::-1]", "    z = y"),  # z: the first iteration runs apart
        *("w[0] = 5", "return v, w, z"),
    ],
    "an element of what the loop goes over is bound anew, and another name to a part of it": [
        *("for v in np.stack([x, x]):", "    v = x * 2", "    w = v[1:]", "    z = y", "v += w.shape[0]", "return v, z"),
    ],
    "the same in a tuple": [
        *("for v in range(4):", "    v = (x * 2, 3)", "    w = v[0][1:]", "    z = y", "w[0] = 5", "return v, w, z"),
    ],
    "chosen in a loop": ["w = x * 2", "for i in range(3):", "    v = w if x[i] > 1 else x * 2", "v += 1", "return w"],
    "chosen and carried": [
        *("w = x * 2", "v = x * 4", "for i in range(3):", "    v = w if x[i] > 1 else v", "v += 1", "return w"),
    ],
    "carried, chosen and changed": [
        *("w = x * 2", "v = x * 4", "for i in range(3):", "    v += 1", "    v = w if x[i] > 1 else v", "return v, w"),
    ],
    "appended, an argument": [*LISTED, "    u.append(x)", "    x = x + 1", "u[0] += 5", "return u"],
    "appended, a part of an argument": [*LISTED, "    u.append(x)", "    x = x + 1", "u[0][1] = 7", "return u[1] * 2"],
    "appended, views of an argument": [*LISTED, "    x = x[0:]", "    u.append(x)", "u[0] += 5", "return u"],
    "appended, then written one by one": [*LISTED, "    u.append(x)", "    x = x + 1", "for t in u:", "    t *= 2", "return u"],
    "appended, then written by name": [*LISTED, "    u.append(x)", "    x = x + 1", "w += 1", "return u"],
    "appended, an array of before": [*LISTED, "    u.append(v)", "    v = v * 2", "u[0] += 1", "return u, z"],
    "appended, an array of before, then written by name": [*LISTED, "    u.append(v)", "    v = v * 2", "z += 1", "return u"],
    "appended, what a branch may have kept": [
        *(*LISTED, "    if x[k] > 1:", "        v = v + 1", "    u.append(v)", "u[0] += 1", "return u"),
    ],
    "appended, what a name holds": [*LISTED, "    v = v + 1", "    u.append(v)", "u[-1] += 1", "return v"],
    "appended with a view of it": [*LISTED, "    v = x + k", "    u.append((v, v[1:]))", "u[0][0][2] = 0", "return u"],
    "appended to two lists": [*LISTED, "    v = x + k", "    u.append(v)", "    t.append(v)", "u[0][2] = 0", "return t"],
    "made in a loop": ["for i in range(3):", "    v = x + 1", "    w = v if x[i] > 1 else v * 2", "w += 1", "return v, w"],
    "a part, made in a loop": [
        *("for i in range(3):", "    if x[i] > 1:", "        v = x + 1", "        w = v[1:]"),
        *("    else:", "        v = x + 2", "        w = v[1:]", "w += 1", "return v, w"),
    ],
    "exchanged, then changed": [
        *("v = x * 3", "w = x * 4", "for i in range(3):", "    t = v"),
        *("    v = w if x[i] > 1 else v", "    w = t", "    w += 1", "return v, w"),
    ],
    "a part as long as data say, made in a loop": [
        *("w = x * 2", "for i, v in zip(range(3), y):", "    v = w[: x[1] - v]", "return v, w"),
    ],
    "a part as long as data say, or another array": [
        *("for i in range(3):", "    n = int((y > i).sum())", "    v = x[:n] if x[i] > 1 else x[:n] * 2", "v += 1", "return x"),
    ],
    "a part as long as data say, returned": [
        *("for i in range(3):", "    n = int((y > i).sum())", "    v = x[:n] if x[i] < 1 else x[:n] * 2", "return v"),
    ],
    "all of an argument, then the argument": ["v = y.reshape(-1)", "for i in range(3):", "    v = y", "return v"],
    "of all elements in their order": [
        *("v = np.array(x.flat)", "w = [np.ravel(x[::-1].flat), np.asarray(x.flat), np.copy(x.flat), np.array(x.flat, float)]"),
        *("v[0] += 2", "return v, w, [u.flags.writeable for u in (v, *w)]"),
    ],
    "in a loop of unknown length": [
        *("i = 0", "v = x * 3", "while i < x.max():", "    i += 1", "    v = x if y[1] > 0 else x * 2", "v += 1", "return x"),
    ],
}

# Views whose sizes a branch has computed, of arrays of one length and, in the last call, of another.
RESIZED = {
    "a half, written through the array": (["if y.sum() > 2:", "    v = x[: len(x) // 2]", "x += 1", "return v"], LONGER),
    "a half, written itself": (["if y.sum() > 2:", "    v = x[: len(x) // 2]", "v += 1", "return x"], LONGER),
    "either of two halves": (
        ["if y.sum() > 2:", "    v = x[: len(x) // 2]", "else:", "    v = y[: len(x) // 2]", "return v, x, y"],
        LONGER,
    ),
    "all but one, at either end": (["if y.sum() > 7:", "    v = x[1:]", "else:", "    v = x[:-1]", "v += 1", "return x"], LONGER),
    "as many as data say": (["if y.sum() > 2:", "    v = x[: int((y > 1).sum())]", "x += 1", "return v"], FIRST),
    "as many as data say, of what the function made": (
        ["w = x * 2", "if y.sum() > 2:", "    v = w[: int((y > 1).sum())]", "return v, w"],
        FIRST,
    ),
    "by columns, of one element": (
        ["v = np.asfortranarray(x[::-1])", "v[0] += 1", "return v, np.asfortranarray(y[::-1].reshape(-1, 1)), x"],
        *("np.arange(1), np.arange(1)", LONGER),
    ),
    "half of it in each of two rows": (
        [
            "if x.any() or x.sum() > 1:",
            "    v = x.reshape(2, -1)",
            "    x |= x",
            "np.add.at(x, [0, 0, -1], v[-1, 0])",
            "return v",
        ],
        "np.arange(1, 5, dtype=np.int8).reshape(4, 1)",
        "np.arange(1, 5, dtype=np.int8).reshape(1, 4)",
    ),
}


@pytest.mark.parametrize("name", RESIZED)
def test_agrees_on_another_length(name: str) -> None:
    lines, last, *first = RESIZED[name]
    check(lines, *(first or [FIRST]), last)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("arguments", [FIRST, "np.zeros(4, int), np.arange(4)"])
def test_agrees(name: str, arguments: str) -> None:
    check(PROGRAMS[name], arguments, arguments)
