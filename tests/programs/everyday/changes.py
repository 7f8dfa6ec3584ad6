"""What is done to lists, dicts and deques that come from outside, one way after the other."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import bisect
import heapq
from collections import Counter, defaultdict, deque

import numpy as np

from programs.everyday.table import rows

ROWS, calls, session = rows()

X = np.arange(4.0)


def twice(make):
    return make, make, make


@calls(*twice(lambda: ({"w": X},)))
def the_changed_dict_is_returned(d):
    d["w"] = d["w"] * 2
    return d, d is d


@session()
def returned_containers_are_the_callers_own(jit):
    d, xs = {"w": X}, [X]

    @jit
    def f(d, xs):
        d["w"] = d["w"] * 2
        return d, (xs, 1)

    e, (ys, _) = f(d, xs)
    return e is d, ys is xs, d["w"]


@calls(lambda: ({"a": 1, "b": X},), lambda: ({"a": 2, "b": X},), lambda: ({"b": X, "a": 3},))
def keys_come_and_go(d):
    a = d.pop("a")
    d["c"] = d["b"] * a
    d["a"] = a + 1
    del d["b"]


@calls(lambda: ([1, 2, 3], X), lambda: ([3, 1, 2], X), lambda: ([3, 1, 2, 5], X))
def all_that_lists_can_do(xs, x):
    xs.insert(1, x.sum())
    xs.remove(3)
    xs.reverse()
    xs += [x]
    xs[0] = 5
    return len(xs)


@calls(lambda: (deque([1, 2, 3], maxlen=3), X), lambda: (deque([1.5], maxlen=3), X), lambda: (deque(), X))
def a_deque_with_an_end(q, x):
    q.append(x.sum())
    q.appendleft(2)
    return sum(q)


@calls(lambda: (defaultdict(list), X), lambda: (defaultdict(list, {"a": [1]}), X), lambda: (defaultdict(list), X[:2]))
def a_defaultdict_grows(d, x):
    d["a"].append(x.sum())
    d["b"].append(1)


@calls(*twice(lambda: ({"x": X, "y": X * 2},)))
def items_are_exchanged(d):
    d["x"], d["y"] = d["y"], d["x"]
    d["x"] += 1


@session()
def a_view_is_kept(jit):
    @jit
    def f(d):
        d["v"] = d["x"][1:]
        d["v"] *= 2
        a = d["x"] + 1
        d["a"], d["b"] = a, a[::2]
        return a

    d = {"x": X.copy()}
    a = f(d)
    return d, np.shares_memory(d["v"], d["x"]), d["a"] is a, np.shares_memory(d["b"], a)


@session()
def a_new_list_in_two_places(jit):
    @jit
    def f(d, x):
        new = [1, x + 1]
        d["a"], d["b"] = new, (new, {"c": new})
        return new, new[1]

    d = {"x": X}
    new, y = f(d, X)
    return d, new, [each is new for each in (d["a"], d["b"][0], d["b"][1]["c"])], y is new[1]


@session()
def a_container_is_kept_in_another(jit):
    @jit
    def f(d):
        d["p"]["q"].append(d["p"]["q"][1].sum())
        d["old"] = d["p"]

    d = {"p": {"q": [1, X]}}
    f(d)
    return d, d["old"] is d["p"]


@session()
def nothing_changes_where_something_raises(jit):
    @jit
    def f(xs, n, x):
        xs.append(n)
        if n < 0:
            raise ValueError("negative")
        xs.append(x[n])
        return xs[-1]

    seen = []
    for n in (1, -1, 9, 2):
        xs = [3.0, 1]
        try:
            f(xs, n, X)
        except (ValueError, IndexError) as error:
            xs.append(str(error))
        seen.append(xs)
    return seen


@calls(lambda: ([3, 1], X), lambda: ([3, 1], X - 10), lambda: ([3, 1], X * 2))
def changed_under_a_computed_condition(xs, x):
    if x.sum() > 0:
        xs.append(x[0])
    else:
        xs.pop()


@calls(lambda: ([], X), lambda: ([], X - 10), lambda: ([1], X[:2]))
def a_list_argument_grows_in_a_loop(xs, x):
    for v in x:
        xs.append(v * 2)
    return np.array(xs).sum()


# More iterations than a loop is unrolled to, in the next rows.


@calls(lambda: ([], [2.5], X.copy(), 1200), lambda: ([1.5], [], -X, 5))
def each_iteration_appends_to_one_of_two_lists(xs, ys, x, n):
    for i in range(n):
        x[0] = (x[0] * 7 + 3) % 11
        if x[0] > 5:
            xs.append(x[0])
            if i % 3 == 1:
                ys += [(i, x.copy())]
        else:
            xs.append(-x[0])
    return len(xs), xs


@calls(lambda: ({"a": []}, X, 1200), lambda: ({"a": [1, 2]}, X, 1200))
def loops_in_loops_append_for_helpers(d, x, n):
    def note(v):
        d["a"].append(v)

    for i in range(n):
        note(i)
        if x[i % 4] > 1:
            for j in range(3):
                note(x[j] + i)
    d["a"].append(None)
    for i in range(n):
        d["a"].append((i, x[i % 4]))


@calls(lambda: ([], X.copy(), 1200), lambda: ([3.0], X.copy(), 1200))
def a_while_reads_how_many_it_has_appended(xs, x, n):
    while len(xs) < n:
        x[0] += 1
        if x[0] > n - 10:
            break
        xs.append(x[0])


@calls(lambda: ([], X, 1200))
def a_loop_reads_the_last_that_it_has_appended(xs, x, n):
    xs.append(x[1])
    for i in range(n):
        xs.append(xs[-1] * 0.5 + x[i % 4])


@calls(lambda: ([[1.0], {"k": 1}, X.copy()], X, 1200), lambda: ([[1.0, 2.0], {"k": 3}, -X], X, 1200))
def what_is_in_a_list_that_is_appended_to_changes_too(xs, x, n):
    inner = xs[0]
    for i in range(n):
        xs.append(x[i % 4] + xs[2][1])
    inner.append(5.0)
    inner[0] = 7.0
    xs[1]["k"] += 1
    xs[2][0] = 50.0
    return inner


@calls(lambda: ([], X, 5), lambda: ([1.0], X, 3), lambda: ([], X, 0))
def a_list_that_is_appended_to_is_written(xs, x, n):
    for i in range(n):
        xs.append(i)
    return f"{xs} {xs!r}", str(xs), "%s" % xs, "{}".format(xs)


@calls(lambda: ([], X, 5), lambda: ([1.0], X, 3), lambda: ([], X, 0), as_python="patterns are matched")
def a_list_that_is_appended_to_is_matched(xs, x, n):
    for i in range(n):
        xs.append(i)
    match xs:
        case [first, *rest]:
            return first, len(rest)
    return None


# A branch or a loop leaves open which of several containers a name holds.


@calls(lambda: ([], [], X), lambda: ([], [], -X), lambda: ([1.0], [2.0], X))
def one_of_two_lists_is_appended_to(xs, ys, x):
    low, high = [], []
    for v in x:
        (low if v < 1 else high).append(v)
    zs = xs if x[3] > 1 else ys
    zs.append(x[1])
    return low, high, zs is xs


@calls(lambda: ({"v": 1.0}, {"v": 2.0}, X), lambda: ({"v": 1.0}, {"v": 2.0}, -X))
def one_of_two_dicts_changes(a, b, x):
    if x[3] > 1:
        a, b = b, a
    a["v"] += 10
    c = d = {"n": 0.0}
    if x[2] > 1:
        c = {"n": 2.0}
    c["n"] = x[1]
    return a, c, d


@calls(lambda: (X,), lambda: (-X,))
def a_list_with_two_names_in_one_branch(x):
    if x[3] > 1:
        a = [1.0]
        b = a
    else:
        a, b = [2.0], [3.0]
    b.append(5.0)
    xs = [1.0]
    pair = (xs, 1) if x[2] > 1 else (xs, 2)
    pair[0].append(4.0)
    return a, b, xs, pair


@calls(lambda: (X,), lambda: (-X,))
def a_loop_comes_to_hold_another_list(x):
    xs, ys, zs = [1.0], [2.0], [3.0]
    last, best, pair = [0.0, 0], [0.0, 0], (zs, 0)
    for i in range(4):
        if x[i] > 1:
            xs = ys
        last = [last[0] + x[i], i]
        if last[0] > best[0]:
            best = last
        pair = (pair[0], i * x[i])
    xs.append(3)
    best[1] = -5
    pair[0].append(4.0)
    return xs, ys, zs, last, best, pair


@session()
def one_of_two_arguments_is_returned(jit):
    @jit
    def f(xs, ys, x):
        for v in x:
            if v < -2:
                return {"z": xs}
        return {"z": xs if x[3] > 1 else ys}

    pairs = [([1.0], [2.0]) for _ in range(3)]
    return [[f(xs, ys, x)["z"] is one for one in (xs, ys)] for (xs, ys), x in zip(pairs, (X, -X, X * 0))]


@calls(lambda: (Counter("aab"), X), lambda: (Counter("aabb"), X), lambda: (Counter("b"), X))
def a_counter_as_argument(c, x):
    c["a"] += 1
    return x * c["b"]


class Settings(dict):
    pass


class Pieces(list):
    pass


@calls(lambda: (Settings(a=1), Pieces([X])), lambda: (Settings(a=2), Pieces([X])), lambda: (Settings(a=2), Pieces([X, X])))
def containers_of_classes_of_their_own(settings, pieces):
    pieces[0] += settings["a"]
    return sum(pieces)


@calls(lambda: (X[::-1],), lambda: (X,), lambda: (X[:3],))
def heaps_and_sorted_lists(x):
    heap, ordered = [], []
    for v in x:
        heapq.heappush(heap, v)
        bisect.insort(ordered, v)
    return [heapq.heappop(heap) for _ in range(len(x))], ordered


@calls(lambda: (X[::-1],), lambda: (X,), lambda: (X[:3],))
def lists_and_dicts_grow_by_augmented_assignment(x):
    ones, values, d = [], [0.0], {}
    for v in x:
        ones += [1]
        values += [values[-1] + v]
        d |= {"last": v}
    return ones, values, d


@session()
def a_global_list_and_a_default_are_one(jit):
    seen = []

    @jit
    def f(x, xs=seen):
        xs.append(x.sum())
        return len(seen)

    return f(X), f(X * 2), seen
