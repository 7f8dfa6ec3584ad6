"""What a `for` goes over, bound anew in the body: one object with what another name holds, and rolled as with any other name."""

from __future__ import annotations

import pytest

from programs.small import check

SMALL = "np.array([0.0, 3, 1, 2]), np.arange(4.0)"
LONG = "np.arange(4400.0).reshape(1100, 4) / 7, np.arange(4.0)"  # more iterations than may be unrolled

# A list, a dict or an object that the target and another name hold; `z = y` makes the first iteration run apart.
CONTAINERS = {
    "a list": ["for v in range(3):", "    v = [x.sum()]", "    w = v", "w.append(1)", "return v, w"],
    "a list, first apart": ["for v in range(3):", "    v = [x.sum()]", "    w = v", "    z = y", "w.append(1)", "return v, w, z"],
    "a carried list": ["w = [0.0]", "for v in range(3):", "    w = [w[0] + x.sum()]", "    v = w", "v[0] = 1", "return v, w"],
    "is it one": ["w = [0.0]", "for v in range(3):", "    w = [w[0] + x.sum()]", "    v = w", "return v is w, v, w"],
    "a list of arrays": ["w = [x * 1]", "for v in range(3):", "    w = [w[0] * 2]", "    v = w", "v[0] = 1", "return v, w"],
    "a dict": ["for v in range(3):", "    v = {'a': x.sum()}", "    w = v", "w['b'] = 1", "return v, w"],
    "a dict, an item": ["for v in range(3):", "    v = {'a': x.sum()}", "    w = v", "    z = y", "w['a'] = 1", "return v, w, z"],
    "in a tuple": ["for v in range(3):", "    v = [x.sum()]", "    w = (v, 2)", "w[0].append(1)", "return v, w"],
    "two tuples": [
        *("for v in range(3):", "    u = [x.sum()]", "    v = (u, 1)", "    w = (u, 2)", "w[0].append(1)", "return v, w"),
    ],
    "from outside": ["u = [x.sum()]", "for v in range(3):", "    v = u", "v.append(1)", "return v, u"],
    "from outside, then bound anew": [
        *("u = [x.sum()]", "w = u", "for v in range(3):", "    v = u", "    u = [u[0] + 1]", "v.append(1)", "return v, u, w"),
    ],
    "two targets": ["for a, b in zip(range(3), range(3)):", "    a = [x * 2]", "    b = a", "b.append(1)", "return a, b"],
    "filled in a loop": [
        *("for v in range(3):", "    v = []", "    w = v", "    for k in range(3):", "        v.append(x[k])"),
        *("w.append(1)", "return v, w"),
    ],
}

# Arrays, over many rows.
ROLLED = {
    "also the carried one": ["p = y * 0", "for v in x:", "    v = v + p", "    p = v", "return p, v"],
    "also the carried one, written": ["w = y * 1", "for v in range(1500):", "    v = w = w * 0.99", "v[0] = 5", "return v, w"],
    "a part of the row": ["s = 0.0", "for v in x:", "    v = v[1:]", "    s += v.max()", "return s, v * 2"],
    "pairs": ["s = 0.0", "for p in zip(x, x):", "    s += (p[0] * p[1]).max()", "return s, p[1] * 2"],
    "numbered": ["for p in enumerate(x):", "    s = p[1].max()", "return s, p[0], p[1] * 2"],
    "in a try": [
        *("p = y * 0", "try:", "    for v in x:", "        v = v + p", "        p = v", "except ValueError:", "    pass"),
        "return p",
    ],
    "seen by a closure": [
        *("s = 0.0", "def part():", "    return p[1].max()", "for p in enumerate(x):", "    s += part()", "return s"),
    ],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_that_the_target_holds_is_one_object(name: str) -> None:
    check(CONTAINERS[name], SMALL, SMALL)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.loose) if "try" in n else n for n in ROLLED])
def test_arrays_that_the_target_holds_do_not_unroll_the_loop(name: str) -> None:
    check(ROLLED[name], LONG, LONG)
