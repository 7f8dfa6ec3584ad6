"""Which numbers are one object: `x is y`, and NaN, which containers find by its identity."""

# ruff: noqa  # code as people write it
# mypy: ignore-errors

from __future__ import annotations

import re

import numpy as np
import pytest

import jitml
from tests.support.against_numpy import function_of

_OTHER = float("nan")
_ROWS = np.array([3.0, 1.0, 2.0])


def _is_nan(v):
    return v is np.nan, v is not np.nan


def _is_among(v):
    return v in [np.nan, 1.0], v not in (1.0, np.nan), v in [v], v in (v, 1.0)


def _are_one(a, b):
    return a is b, a in [b], a in (1.0, b)


def _finds_key(v):
    return {np.nan: 1, 2.0: 3}.get(v), v in {v}, len({v, np.nan})


def _best(x, start):
    best = start
    for v in x:
        if best is np.nan or v > best:
            best = v
    return best


def _marks(x, fill):
    marks = []
    for v in x:
        w = fill if v > 1 else v
        marks.append(w is fill)
    return marks


def _element(x):
    y = x[0]
    return y is y, y is x[0], x[0] is x[0], y in [y], [y] == [y]


def _held(v, l):
    return l.count(v), l == [v], l != [1.0, v], [1.0, v] == l, (v,) == (l[0],), {1: v} == {1: l[0]}, [l[0], 1] < [v, 2]


def _place(v, l):
    rest = [*l, v]
    rest.remove(v)
    return l.index(v), tuple(l).index(v), (*l, v).index(v, 1), rest


_CALLS = [
    (_held, [(np.nan, [np.nan]), (_OTHER, [np.nan]), (1.0, [1.0]), (2.0, [1.0, 2.0]), (np.nan, [1.0, np.nan])]),
    (_place, [(np.nan, [2.0, np.nan]), (np.nan, [np.nan]), (2.0, [np.nan, 2.0]), (2, [1, 2])]),
    (_is_nan, [(np.nan,), (_OTHER,), (1.0,), (None,), (np.nan,)]),
    (_is_among, [(np.nan,), (_OTHER,), (1.0,), (2.0,)]),
    (_are_one, [(np.nan, np.nan), (np.nan, _OTHER), (2.5, 2.5), (np.nan, 1.0), (1, True)]),
    (_finds_key, [(np.nan,), (_OTHER,), (2.0,), (1.0,)]),
    (_best, [(_ROWS, np.nan), (_ROWS, 9.0), (_ROWS[:0], np.nan), (_ROWS.tolist(), np.nan), (_ROWS.tolist(), _OTHER)]),
    (_marks, [(_ROWS, np.nan), (_ROWS, None), (_ROWS, 1.0)]),
    (_element, [(_ROWS,), (np.array([np.nan]),)]),
]


@pytest.mark.parametrize(("function", "calls"), _CALLS, ids=lambda row: getattr(row, "__name__", ""))
def test_numbers_are_one_where_python_has_one_object(function, calls):
    jitted = jitml.jit(function, verify="never", strict=False)
    for args in calls:
        assert repr(jitted(*args)) == repr(function(*args)), args


def test_whether_an_argument_is_the_nan_of_numpy_is_compiled():
    jitted = jitml.jit(_is_nan, strict=True, verify="never")
    assert jitted(np.nan) == (True, False)
    assert jitted(_OTHER) == (False, True)


@pytest.mark.parametrize(("v", "l"), [(_OTHER, [np.nan]), (3.0, [1.0, 2.0])])
@pytest.mark.parametrize("name", ["index", "remove"])
def test_what_is_not_in_a_list_raises_as_in_python(name, v, l):
    expression = f"l.{name}(v)"
    with pytest.raises(ValueError) as expected:
        function_of("v, l", expression)(v, [*l])
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        jitml.jit(function_of("v, l", expression), strict=True, verify="never")(v, [*l])


@pytest.mark.filterwarnings("ignore:.is. with .int. literal:SyntaxWarning")
def test_small_ints_are_one_object_written_out():
    jitted = jitml.jit(function_of("n", "n is 5"), verify="never", strict=True)
    assert [jitted(n) for n in (5, 5.0, 6, True, None, "5")] == [True, False, False, False, False, False]
