"""Names that are bound in some branches and iterations only: the compiled program hands out what they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from programs.drawn.outcomes import judge
from programs.small import program

SOME = ["for i in range(3):", "    if y[i] > 0:", "        v = {value}"]
ARGUMENTS = "np.arange(6.0), np.array([1, 0, 1]), 3"
OTHERS = "np.arange(6.0), np.array([1, 1, 0]), 3"

# What `v` is where it is bound, and what is done with it after the loop.
VALUES = {
    "a scalar": ("x[i]", "return v + 1"),
    "an array": ("x * i", "v[0] = 9; return v"),
    "a view": ("x[1:4]", "v[0] += 1; return v"),
    "an argument": ("x", "v[1] += 2; return v"),
    "a number": ("i + 1", "return x[:v], np.zeros(v)"),
    "an array of unknown size": ("x[x > i]", "return v"),
    "nothing": ("None", "return v is None"),
    "a text": ("'a'", "return v"),
    "a list": ("[x[i], 3]", "v.append(4); return v"),
    "a tuple": ("(x[i], x * 2)", "return np.add(*v)"),
    "a dict": ("{'a': x[i]}", "return dict(**v)"),
    "a function": ("lambda a: a + 1", "return v(x)"),
}
# Constructs that bind names, and reads of all sorts.
PROGRAMS = {
    "one branch": ["if y[0] > 0:", "    v = x[0]", "return v"],
    "each in one branch": [
        "for i in range(3):",
        "    if y[i] > 0:",
        "        v = x[i]",
        "    elif y[i] == 0:",
        "        w = i",
        "return v, w",
    ],
    "in a branch that the same test guards": [
        "if y[1] > 0:",
        "    v = x * 2",
        "x += 1",
        "if y[1] > 0:",
        "    x += v",
        "return x",
    ],
    "in an inner loop that may not run": ["for i in range(3):", "    for j in range(i):", "        v = x * j", "return v, j"],
    "three loops deep": [
        "for i in range(4):",
        "    for j in range(i):",
        "        for k in range(j):",
        "            v = x * k",
        "return v, k, j",
    ],
    "a target keeps what an outer iteration gave it": [
        "for i in range(3, -1, -1):",
        "    for j in range(i):",
        "        x[j] += 1",
        "return j, i",
    ],
    "a target keeps what it was before": ["j = 7", "for j in range(int(x[0])):", "    pass", "return j"],
    "before a break": ["for i in range(3):", "    if y[i] == 0:", "        v = x * i", "        break", "return v"],
    "before a break of an inner loop": [
        "for i in range(3):",
        "    for j in range(3):",
        "        if y[j] == 0:",
        "            v = x * i",
        "            break",
        "return v, j",
    ],
    "read in the next iteration": ["for i in range(3):", "    if i > 0:", "        x[i] += v", "    v = x[i] * 2", "return x"],
    "read in some next iterations": [
        "for i in range(3):",
        "    if y[i] == 0:",
        "        x[i] += v",
        "    v = x[i] * 2",
        "return x",
    ],
    "read in another branch of later iterations": [
        "for i in range(3):",
        "    if y[i] > 0:",
        "        v = x[i]",
        "    else:",
        "        w = v",
        "return w",
    ],
    "in a while": ["k = 0", "while x[k] < z:", "    v = x * k", "    k += 1", "return v"],
    "not read in this call": [
        "for i in range(3):",
        "    if x[0] > i + 5:",
        "        v = x * i",
        "if x[0] > 3:",
        "    x += v",
        "return x",
    ],
    "deleted in a branch": ["v = x * 2", "if y[0] > 5:", "    del v", "x += v", "return x"],
    "deleted": [*SOME, "del v", "return x"],
    "written with an operator": [*SOME, "v += 1", "return v"],
    "in a comprehension": [*SOME, "return [v * k for k in range(3)], {k: v for k in range(2)}, sum(v * q for q in x)"],
    "as a loop's limit": [
        "for i in range(3):",
        "    if y[i] > 0:",
        "        v = i",
        "k = 0",
        "while k < v:",
        "    k += 1",
        "return k",
    ],
    "in a test that comes later": ["k = 0", "while k < 3 and (k == 0 or v > -1):", "    v = x[k]", "    k += 1", "return k"],
    "in a text": [*SOME, "return f'{v:.2f}'"],
    "rows of an array": ["for r in x:", "    if r > 3:", "        v = r", "return v"],
    "a size that changes further": [
        "for i in range(3):",
        "    for j in range(3):",
        "        if y[j] > 0:",
        "            v = x[x > j + i]",
        "return v",
    ],
}
# Over a difference of two sizes, which calls leave open; in the last one nothing runs.
OPEN = {
    "a target": ["for v in x[n:]:", "    x[0] += 1", "return v"],
    "a target that was something": ["v = 3", "for v in x[n:]:", "    x[0] += 1", "return v"],
    "a target of an inner loop": ["for w, r in zip(x[n:], x[n:]):", "    for v in x[n:]:", "        x[0] += 1", "return v"],
    "an array": ["for r in x[n:]:", "    v = x * 2", "return v"],
    "an array of unknown size": ["for r in x[n:]:", "    v = x[x > r]", "return v"],
    "before a break": ["for r in x[n:]:", "    v = x[0] + r", "    if r > 3:", "        break", "return v, r"],
}
# Where no hook sees the read, or a list is in a list, NumPy answers.
UNSEEN = {
    "a function inside": [*SOME, "f = lambda: v", "return f()"],
    "in a match": [*SOME, "match z:", "    case 3:", "        return v", "return x"],
    "a handler": [*SOME, "try:", "    w = v", "except NameError:", "    w = 0", "return w"],
    "bound within comprehensions first": [
        "t = [[j if x[i] < 3 else -j for j in range(2)] for i in range(z)]",
        "r = [sorted([i, 2], key=lambda j: -j) for i in range(z)]",
        "for j in range(z):",
        "    t[j][0] += y[j]",
        "return t, r, j",
    ],
    "bound as nonlocal": ["def g():", "    nonlocal v", "    v = 3", *SOME, "return v"],
}


def run(lines: list[str]) -> Any:
    verdict = judge(program([line.replace("{value}", "x[i]") for line in lines], ARGUMENTS, OTHERS), exact=True)
    assert verdict.kind == "equal", verdict.detail
    return verdict


@pytest.mark.parametrize("what", VALUES)
def test_values_of_all_sorts(what: str) -> None:
    value, use = VALUES[what]
    verdict = run([*(line.format(value=value) for line in SOME), *use.split("; ")])
    assert verdict.replays == 0


@pytest.mark.parametrize("what", PROGRAMS)
def test_reads_of_all_sorts(what: str) -> None:
    assert run(PROGRAMS[what]).replays == 0


@pytest.mark.parametrize("what", OPEN)
def test_loops_over_sizes_that_calls_leave_open_may_not_run(what: str) -> None:
    arguments = "    n, k = ((7, 3), (7, 5), (1, 1))[call]\n    return np.arange(n), k\n"
    lines = "".join(f"    {line}\n" for line in OPEN[what])
    text = f"import numpy as np\n\n\ndef arguments(call):\n{arguments}\n\ndef program(x, n):\n{lines}"
    verdict = judge(text, exact=True)
    assert verdict.kind == "equal", verdict.detail


@pytest.mark.loose
@pytest.mark.parametrize("what", UNSEEN)
def test_numpy_answers_where_the_read_is_not_seen(what: str) -> None:
    run(UNSEEN[what])


def test_an_unbound_name_is_pythons_error() -> None:
    def f(x: Any, n: int) -> Any:
        x[0] = 9
        for i in range(3):
            if x[i] > n:
                v = x[i]
        return v

    compiled = jitml.jit(f)
    assert compiled(np.arange(3.0), 1) == f(np.arange(3.0), 1)
    x = np.arange(3.0)
    with pytest.raises(UnboundLocalError, match="'v'"):
        compiled(x, 10)
    assert x[0] == 9


def names_after_a_branch(x: Any) -> Any:
    if x[0] > 0:
        y = x + 1
    else:
        z = 2.0
    return sorted(locals())


def names_after_a_loop(x: Any) -> Any:
    k = 0
    while x[k] > 0 and k < 2:
        k += 1
        last = k
    return "last" in locals(), sorted(dir())


def names_after_a_search(x: Any) -> Any:
    for v in x:
        if v > 2:
            hit = v  # noqa: F841
    return vars().get("hit", -1.0)


def names_inside(x: Any) -> Any:
    def inner() -> Any:
        if x[1] > 0:
            y = 1
        return sorted(locals())

    return inner()


@pytest.mark.parametrize("f", [names_after_a_branch, names_after_a_loop, names_after_a_search, names_inside])
@pytest.mark.loose
def test_names_that_may_be_bound_are_not_listed_as_unbound(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f)
    for x in (np.arange(1.0, 5.0), -np.arange(1.0, 5.0)):
        for _ in range(2):
            np.testing.assert_equal(compiled(x), f(x))
