"""Places and sizes that only the running program knows: indices, slices and shapes from data, against NumPy."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import against_numpy
from against_numpy import check, function_of, run_traced
from jitml.errors import UnsupportedError

A = np.arange(60.0).reshape(6, 10)
I = np.array([2, 0, -1, 5, 3, 7])
X = np.arange(6.0)


@pytest.fixture(autouse=True)
def target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_numpy, "target", "interpreted")


def _program(parameters: str, body: str) -> Callable[..., Any]:
    """A function of statements separated by semicolons; it returns its parameters."""
    lines = "".join(f"    {line.strip()}\n" for line in body.split(";"))
    source = f"def f({parameters}):\n{lines}    return {parameters}\n"
    name = f"<statements {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), names)
    return names["f"]  # type: ignore[no-any-return]  # defined by the source


READS = """
a[i[0]] ; a[i[0], i[1]] ; a[i[0], i[2]] ; a[i[0], :] ; a[:, i[2]] ; a[i[0]-1:i[0]+2, i[1]] ; a[i[0], :i[0]] ; a[:i[0], i[1]]
a[i[0]+1:, i[1]] ; x[len(x)-1-i[0]] ; x[::-1][:i[0]] ; x[i[2]] ; a[None, i[0], ...] ; x[i[0]:i[3]] ; x[i[0]:] ; x[i[2]:]
x[:i[2]] ; x[i[3]:i[0]] ; x[i[3]:i[0]:-1] ; x[i[5]:] ; x[:i[5]] ; a[i[0]:i[3]:2] ; a[i[0]:, ::2] ; x[:i[0]] + x[:i[0]]
x[:i[0]] + x[1:i[4]] ; x[:i[0]].sum() ; x[:i[0]].shape ; len(x[:i[0]]) ; x[:i[0]].size*2 ; (x[:i[0]]*2).shape[0] + 1
a[i[0]][i[1]] ; np.zeros(x[:i[0]].shape) ; np.ones((len(x[:i[0]]), 2)) ; x[:i[0]].reshape(-1, 1) ; a[:i[0]].reshape(-1)
a[:i[0]].reshape(-1, 5) ; a[:i[0]].ravel() ; np.broadcast_to(x[:i[0]], (3, 2)) ; np.broadcast_to(x[:i[4]-1], (3, len(x[:i[0]])))
x[:i[0]][None] ; a[i[0]:, [1, 2]] ; a[i[0], [1, 2]] ; a[i[0]:][i[1]] ; a.T[i[0]] ; a.T[i[0], :i[0]] ; a[:i[4]][::-1]
a[:i[4]][::-1, ::2] ; a[..., i[0]] ; x[i[1:i[0]]] ; a[i[0], i[0]:] ; np.array(i)[i[0]] ; x[i[0]:i[0]] ; x[-i[0]] ; x[-i[0]:]
x[:-i[0]] ; a[i[0], ::-1] ; a[::-1, i[0]] ; x[min(len(x[:i[0]]), 5)] ; x[:i[0]].strides
np.squeeze(a[:i[0], :1]) ; np.squeeze(a[:i[0], :1], 1) ; x[i[0]:i[0]+2] * x[i[4]:i[4]+2] ; x[i[0]//2] ; x[i[5] % 6]
np.broadcast_arrays(x[:i[0]], 1.0)[1] ; np.expand_dims(x[:i[0]], 1) ; np.atleast_2d(x[:i[0]]) ; x[i[3]:i[1]-7:-2] ; x[i.argmax()]
"""


@pytest.mark.parametrize("expression", [e.strip() for line in READS.strip().splitlines() for e in line.split(" ; ")])
def test_reading(expression: str) -> None:
    check(function_of("a, i, x", expression), A, I, X)


WRITES = """
x[i[0]] = 7 | x[i[0]] += 7 | a[i[0], i[1]] -= 2 | a[i[0]] = 1 | a[i[0], :i[0]] = 5 | a[i[0], :i[0]] += x[:i[0]]
x[i[0]:i[4]] = a[0, i[0]:i[4]] | a[i[0]:, i[1]] *= 2 | x[::-1][:i[0]] = 3 | v = a[i[0]]; v[i[1]] = 9; v[:i[0]] = 4
x[i[2]] = 1 | a[:, i[2]] = x | a[i[0], [1, 2]] = 7 | a[i[0]:i[4], 1:3] = [[1, 2]] | a.T[i[0]] = 2 | a[i[0]-1:i[0]+2, i[1]] = 0
y = x[:i[0]].copy(); y[i[1]] = 3; x[:2] = y | x[:i[0]] = x[i[1]:i[0]] | a[i[0]][:, None][i[1]] = 8 | x[i[0]:][i[1]] = -1
a[:i[0]].reshape(-1)[i[3]] = 4
"""


@pytest.mark.parametrize("body", [e.strip() for line in WRITES.strip().splitlines() for e in line.split(" | ")])
def test_writing(body: str) -> None:
    check(_program("a, i, x", body), A, I, X)


@pytest.mark.parametrize("expression", ["x[i[5]]", "a[i[5], 0]", "a[0, i[5] * 2]", "x[-i[5]]", "x[:i[1]][0]"])
def test_an_index_out_of_range_ends_the_program(expression: str) -> None:
    function = function_of("a, i, x", expression)
    with pytest.raises(IndexError) as eager:
        function(A, I, X)
    with pytest.raises(IndexError) as traced:
        run_traced(function, A, I, X)
    assert str(traced.value) == str(eager.value)


def test_sizes_that_do_not_fit_end_the_program() -> None:
    with pytest.raises(ValueError, match="sizes differ"):
        run_traced(lambda i, x: x[: i[0]] + x[: i[4]], I, X)


def test_one_size_read_twice_is_one_size() -> None:
    # No check is needed, so sizes that differ from those of the trace do not end the program.
    function = function_of("i, x", "x[i[0]:i[4]] + x[i[0]:i[4]]")
    check(function, I, X)
    check(function, I * 0, X)


def test_views_are_views() -> None:
    def rows(a: Any, i: Any) -> Any:
        return a[i[0]], a[:, i[1] :]

    a = A.copy()
    for got, expected in zip(run_traced(rows, a, I), rows(a, I)):
        np.testing.assert_array_equal(got, expected)
        assert np.shares_memory(got, a)


def test_a_size_without_limit_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="has no limit"):
        run_traced(lambda i: np.zeros(i[0]), I)
    check(function_of("i", "np.zeros(min(i[0] % 10, 5)) if 0 else np.zeros(i[0] % 10)"), I)


N = np.array([4, 1, 1, 7, 4, 0])
Y = A[:, :4] % 7
C = np.array([True, False, True, True])
MASKS = {"some": np.array([1, 0, 1, 1, 0, 1], bool), "all": np.ones(6, bool), "none": np.zeros(6, bool)}

BY_DATA = """
x[m] ; x[~m] ; y[m] ; x[m].sum() ; x[m] * 2 + x[m] ; y[m, 0] ; y[0, c] ; y[:, c] ; y[m][:, c] ; x[m & (x > 2)] ; y[y > 3]
y[np.ix_([0, 1], [1, 2])] ; np.compress(m, x) ; np.compress(m, y, axis=0) ; np.compress(c, y, axis=1) ; np.compress(m[:3], x)
np.extract(m, x) ; np.nonzero(m) ; np.nonzero(y > 3) ; m.nonzero() ; np.flatnonzero(m) ; np.argwhere(y > 3) ; np.argwhere(m)
np.where(m) ; np.where(m)[0] + 1 ; np.count_nonzero(m) ; np.unique(x) ; np.unique(n) ; np.unique(n, return_counts=True)
np.unique(n, return_inverse=True) ; np.unique(n, return_index=True) ; np.unique(n, True, True, True) ; np.unique(y)
np.union1d(n, x) ; np.intersect1d(n, [1, 2, 9]) ; np.setdiff1d(n, x) ; np.setxor1d(n, x) ; np.setdiff1d(n, [1]) ; np.isin(x, x[m])
np.trim_zeros(x * m) ; np.trim_zeros(x * m, "f") ; np.trim_zeros(x * m, "b") ; np.bincount(n % 5)
np.bincount(n % 5, minlength=8) ; np.bincount(n % 5, weights=x) ; np.histogram(x) ; np.histogram(x, 4) ; np.histogram(x, 4, (1, 5)) ; np.histogram(x[m], 3)
np.histogram(x, [0, 1, 3]) ; np.histogram(x, 4, density=True) ; np.histogram(n, 4, weights=x)
np.histogram(x, [0, 1, 3, 4], weights=x) ; np.histogram_bin_edges(x, 3) ; x[m][1:] ; x[m][:2] ; x[m][::-1] ; x[m][-1:]
len(x[m]) ; x[m].shape ; x[m].size == 3 ; np.zeros(m.sum()) ; np.ones(len(x[m])) ; np.zeros((m.sum(), 2)) ; x[m][None]
x[m].reshape(-1, 1) * x[m] ; np.sort(x[m]) ; np.argsort(x[m]) ; np.cumsum(x[m]) ; x[m].astype("f4") ; np.sqrt(x[m]) ; x[m].copy()
np.concatenate([x[m], x]) ; np.concatenate([x[m], x[~m]]) ; np.append(x[m], 1.0)
np.stack([x[m], x[m]]) ; np.hstack([x[m], x[m]]) ; np.vstack([x[m], x[m]]) ; x[m].any() ; x[m].all() ; x[m].prod()
np.dot(x[m], x[m]) ; x[m] @ x[m] ; y[m] @ y.T ; y.T @ y @ y[m].T ; y[m].sum(0) ; y[m].sum(1) ; y[:, c].sum(1) ; np.where(x[m] > 2, x[m], 0) ; np.clip(x[m], 1, 3) ; np.flip(x[m])
y[m].T ; y[m].ravel() ; y[m].reshape(-1) ; y[m].flatten() ; np.pad(x[m], 1) ; np.pad(x[m], (2, 0)) ; np.tile(x[m], 2)
np.repeat(x[m], 2) ; x[m] == x[m] ; np.array_equal(x[m], x[m]) ; np.zeros_like(x[m]) ; np.ones_like(y[m]) ; x[np.flatnonzero(m)]
x[np.nonzero(m)] ; y[np.nonzero(y > 3)] ; x[np.where(m)] ; np.searchsorted(np.sort(x), x[m]) ; np.searchsorted(np.sort(x[m]), x)
np.interp(x[m], x, x) ; x[True] ; x[False] ; x[m.any()] ; y[m, :2] ; y[m][..., 1]
"""


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("expression", [e.strip() for line in BY_DATA.strip().splitlines() for e in line.split(" ; ")])
def test_sizes_from_data(expression: str, kind: str) -> None:
    check(function_of("x, y, n, c, m", expression), X, Y, N, C, MASKS[kind])


SET_BY_MASK = """
x[m] = n[m] | x[m] += 1 | x[m] += x[m] | y[m] = y[m] * 2 | y[m] = y[0] | x[m] = 7 | y[m, 0] = 5 | y[y > 3] = 0 | y[:, c] = 1
y[m] += x[m][:, None] | x[np.flatnonzero(m)] = -1 | x[np.nonzero(m)] += 2 | y[y > 3] -= y[y > 3] | x[m] = x[m][::-1]
y[m, 1] = x[m] | y[m.any()] = 3 | x[True] = 4 | x[~m] = np.arange(6.0)[~m]
"""


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("body", [e.strip() for line in SET_BY_MASK.strip().splitlines() for e in line.split(" | ")])
def test_writing_by_mask(body: str, kind: str) -> None:
    check(_program("x, y, n, c, m", body), X, Y, N, C, MASKS[kind])


def test_values_that_a_mask_has_no_place_for() -> None:
    def write(x: Any, m: Any, v: Any) -> None:
        x[m] = v

    with pytest.raises(ValueError, match="sizes differ"):
        run_traced(write, X.copy(), MASKS["some"], X[:2])
    with pytest.raises(IndexError, match="boolean index did not match"):
        run_traced(lambda x, m: x[m], X, MASKS["some"][:3])
