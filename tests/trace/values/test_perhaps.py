"""Names that are None, or a tuple or an array, as data say: value, type and memory are Python's, in one rolled program."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from support.effort import named, pairs

Function = Callable[[Any], Any]
COUNT = 1500  # more iterations than a loop is unrolled to
Place = namedtuple("Place", "index value")


def greatest(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if best is None or x[i] > best[1]:
            best = (i, x[i])
    return best


def greatest_of_some(x: Any) -> Any:
    best, seen = None, 0
    for i in range(len(x)):
        if x[i] > 0 and (best is None or x[i] > best.value):
            best = Place(i, x[i])
            seen += 1
    return best, seen


def taken_apart(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = i, x[i]
    if best is None:
        return -1
    i, v = best
    return i, v, best[0], len(best), [2 * n for n in best]


def first_in_a_while(x: Any) -> Any:
    best, i = None, 0
    while best is None and i < len(x):
        if x[i] > 2:
            best = (i, x[i])
        i += 1
    return best, i


def until(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
            break
    return best


def two_latest(x: Any) -> Any:
    best = before = None
    for i in range(len(x)):
        if x[i] > 2:
            before = best
            best = (i, x[i])
    return best, before


def set_back(x: Any) -> Any:
    best, n = None, 0
    for i in range(len(x)):
        if best is not None and x[i] < best[1]:
            n += best[0]
        if x[i] > 2:
            best = (i, x[i])
        elif x[i] == 1:
            best = None
    return best, n


def lost(x: Any) -> Any:
    best, n = (0, x[0]), 0
    for i in range(len(x)):
        if best is not None:
            n += best[0] + 1
        if x[i] > 2:
            best = None
    return best, n


def lost_each_time(x: Any) -> Any:
    best, n = None, 0
    for i in range(len(x)):
        if x[i] > 0:
            best = (i, x[i])
        if best is not None and best[1] > 1:
            n += 1
        best = None
    return best, n


def in_a_nest(x: Any) -> Any:
    out = []
    for i in range(3):
        best = None
        for j in range(len(x)):
            if x[j] > i and (best is None or x[j] < best[1]):
                best = (j, x[j])
        out.append(-1 if best is None else best[0])
    return out, best


def as_a_truth(x: Any) -> Any:
    best, n = None, 0
    for i in range(len(x)):
        if best and best[1] > x[i]:
            n += 1
        if not best and x[i] > 2:
            best = (i, x[i])
    return (n if best else -1), best or 7


def with_continue(x: Any) -> Any:
    best, n = None, 0
    for i in range(len(x)):
        if best is None:
            if x[i] > 1:
                best = (i, x[i])
            continue
        if x[i] < best[1]:
            n += 1
            continue
        best = (i, x[i])
    return best, n


def handed_to_a_helper(x: Any) -> Any:
    def value(found: Any) -> Any:
        return found[1] * 2

    best, total = None, 0
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
        if best is not None:
            total += value(best)
    return total, best


def read_in_the_next_loop(x: Any) -> Any:
    def value(found: Any, v: Any) -> Any:
        return v if found is None else found[1]

    best, total = None, 0
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
    for v in x:
        total += v if best is None else best[1]
    for v in x:
        total += value(best, v)
    return total


def kept_in_a_list(x: Any) -> Any:
    best, trail = None, []
    for i in range(len(x)):
        if x[i] > 2:
            best = (i, x[i])
        if best is not None:
            trail.append(best)
    return trail[:2], len(trail)


def numbers_of_two_types(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = (1.5, x[i])
        elif x[i] > 1:
            best = (i, 7)
    return best


def pair_of_none(x: Any) -> Any:
    pair, n = (None, None), 0
    for i in range(len(x)):
        if pair[0] is not None and x[i] > pair[1]:
            n += 1
        if x[i] > 1:
            pair = (i, x[i])
    return pair, n


def pairs_in_a_tuple(x: Any) -> Any:
    found = (0, (None, "none"))
    for i in range(len(x)):
        if x[i] > 2:
            found = (i, (x[i], "none"))
        elif x[i] == 1:
            found = (i, (None, "none"))
    return found


def tuple_of_tuples(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = ((i, x[i]), np.full(2, x[i]), "a", None)
    return {"best": best}


def nothing_in_it(x: Any) -> Any:
    best, n = None, 0
    for i in range(len(x)):
        n += 1 if best else 2
        n += best is None
        if x[i] > 2:
            best = ()
    return best, n


def copied(x: Any) -> Any:
    best, w = None, np.zeros(3, x.dtype)
    for i in range(len(x)):
        w[i % 3] = x[i]
        if best is None or w.sum() > best.sum():
            best = w.copy()
    return best, w


def made_anew(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] > 2:
            best = x[:3] + x[i]
    return best


def of_unknown_size(x: Any) -> Any:
    best = None
    for i in range(20):
        found = x[x > x[i]]
        if best is None or len(found) > len(best):
            best = found
    return best


def added_to(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if best is None:
            best = np.full(2, x[i])
        else:
            best += x[i]
    return best


def the_array_itself(x: Any) -> Any:
    """That is written in place all the while: it is one array."""
    total, best = np.zeros(2), None
    for i in range(len(x)):
        total += x[i]
        if best is None or total.sum() > best.sum():
            best = total
    return best


def under_two_conditions(x: Any) -> Any:
    best, other = None, np.zeros(2)
    for i in range(len(x)):
        if x[i] == 1:
            continue
        if x[i] > 2:
            best, other = np.full(2, x[i]), np.full(2, float(i))
    return best, other


def asserted(x: Any) -> Any:
    best = None
    for i in range(len(x)):
        if x[i] >= 0:
            best = (i, x[i])
    assert best is not None
    return best[0], best


LOOPS: list[Function] = [
    greatest, greatest_of_some, taken_apart, first_in_a_while, until, two_latest, set_back, lost, lost_each_time, in_a_nest,
    as_a_truth, with_continue, handed_to_a_helper, read_in_the_next_loop, kept_in_a_list, numbers_of_two_types, pair_of_none,
    pairs_in_a_tuple, tuple_of_tuples, nothing_in_it, copied, made_anew, of_unknown_size, added_to, the_array_itself, asserted,
    under_two_conditions,
]  # fmt: skip


def calls(count: int, dtype: Any) -> list[Any]:
    """Of some numbers, of none but 0, of one early and of one late."""
    early, late = np.zeros((2, count), dtype)
    early[0] = late[-1] = 3
    return [(np.arange(count) * 7 % 11 % 5).astype(dtype), np.zeros(count, dtype), early, late]


CASES = pairs(LOOPS, ["float64", "float32", "int32"])


@pytest.mark.parametrize(("function", "dtype"), CASES, ids=named(CASES))
def test_loops_stay_loops(function: Function, dtype: str) -> None:
    compiled = jitml.jit(function)
    for x in calls(COUNT, dtype):
        assert_same(compiled(x.copy()), function(x.copy()))
    assert len(compiled.variants) <= 4  # what comes out is None in some


def assert_same(got: Any, wanted: Any) -> None:
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        got, wanted = list(got.items()), list(wanted.items())
    if isinstance(wanted, (tuple, list)):
        for one, other in zip(got, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    else:
        assert got == wanted
