"""One list or dict that two names hold, made inside branches and loops inside one another: it is one object after them, too."""

from __future__ import annotations

import itertools

import pytest

from programs.small import check
from support.effort import pairs

NESTS = {
    "if": "if x[{n}] > -9:",
    "else": "if x[{n}] < -9:\n    x[0] += 1\nelse:",
    "for": "for v{n} in range(3):",
    "rows": "for v{n} in x:",
    "while": "while c{n} < 2:\n    c{n} += 1",
}
TWO = list(itertools.product(NESTS, NESTS))
THREE = list(itertools.product(NESTS, NESTS, ("for", "while")))
# What is inside, and what tells afterwards whether the two are one.
CONTAINERS = {
    "a list": (["a = [x[0], 1]", "b = a"], "b.append(2)"),
    "a dict": (["a = {'x': x[1]}", "b = a"], "b['x'] = 7"),
    "inside another": (["a = [x[0], 1]", "b = {'k': a}"], "b['k'].append(3)"),
    "by way of a third": (["b = [x[0], 1]", "d = b", "a = d"], "a.append(5)"),
    "compared": (["a = [x[0], 1]", "b = a"], "x[1] = a is b"),
}


@pytest.mark.parametrize(("nest", "name"), pairs(TWO, CONTAINERS, each=2))
def test_it_is_one_object(nest: tuple[str, str], name: str) -> None:
    inside, after = CONTAINERS[name]
    lines = ["c0 = c1 = 0"]
    for depth, kind in enumerate(nest):
        lines += [4 * depth * " " + line for line in NESTS[kind].format(n=depth).splitlines()]
    lines += [8 * " " + line for line in inside]
    check([*lines, after, "return a, b, x"], "np.arange(3.0), np.arange(3.0)", "np.arange(3.0) - 1, np.arange(3.0)")


# What comes to hold a container, or a part of one, that may not be bound; and what tells whether it is that one.
TAKEN = {
    "the container": ("a = [x[0], 1]", "b = a", "b.append(2)"),
    "a part": ("a = (x[1], [1])", "b = a[1]", "b.insert(0, 3)"),
    "a part of a dict": ("a = {'k': [x[1]]}", "b = a['k']", "a['k'].append(4)"),
    "inside another": ("a = [x[0], 1]", "b = {'k': a}", "b['k'].append(3)"),
    "compared": ("a = [x[0], 1]", "b = a", "x[1] = a is b"),
}


@pytest.mark.parametrize(("nest", "name"), pairs(TWO, TAKEN, each=2))
def test_what_may_be_unbound_is_one_object_with_what_is_taken_of_it(nest: tuple[str, str], name: str) -> None:
    made, taken, after = TAKEN[name]
    lines = ["c0 = c1 = 0"]
    for n, (kind, line) in enumerate(zip(nest, (made, taken))):
        lines += [*NESTS[kind].format(n=n).splitlines(), f"    {line}"]
    check([*lines, after, "return a, b, x"], "np.arange(3.0), np.arange(3.0)", "np.arange(3.0) - 1, np.arange(3.0)")


# Two names for what is made, a third one for what is taken of it; and what changes that.
CHANGED = {
    "the container": (["a = [x[0], 1]", "d = a"], "b = a", "b.append(2)"),
    "a part": (["a = (x[1], [1])", "d = a"], "b = a[1]", "b.insert(0, 3)"),
    "a part of a dict": (["a = {'k': {'l': x[1]}}", "d = a"], "b = a['k']", "b['l'] = 5"),
}


@pytest.mark.parametrize(("nest", "name"), pairs(THREE, CHANGED))
def test_what_a_loop_changes_is_one_object_with_what_it_was_taken_of(nest: tuple[str, str, str], name: str) -> None:
    made, taken, changes = CHANGED[name]
    lines = ["c0 = c1 = c2 = 0"]
    for n, (kind, inside) in enumerate(zip(nest, (made, [taken], [changes]))):
        lines += [*NESTS[kind].format(n=n).splitlines(), *(f"    {line}" for line in inside)]
    check([*lines, "return a, b, d, x"], "np.arange(3.0), np.arange(3.0)", "np.arange(3.0) - 1, np.arange(3.0)")
