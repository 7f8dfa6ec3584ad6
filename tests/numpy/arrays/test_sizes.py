"""Places and sizes that only the running program knows: indices, slices and shapes from data, against NumPy."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitml.dispatch.entry import bind, interpreted
from jitml.errors import WrongPath
from jitml.trace.trace import trace
from support.against_numpy import check, function_of, run_traced

A = np.arange(60.0).reshape(6, 10)
I = np.array([2, 0, -1, 5, 3, 7])
X = np.arange(6.0)


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
a[i[0]:, :-1].reshape(-1) ; np.outer(a[i[0]:, :-1], x[:2])
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
    # Compiled code hands the call to NumPy, which has its own words.
    with pytest.raises(ValueError, match=r"sizes differ|could not be broadcast"):
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


def test_a_size_without_limit_is_limited_by_the_first_call() -> None:
    traced = trace(function_of("i", "np.zeros(i[0])"), (I,), {})
    run = bind(traced, interpreted(traced))
    assert run([I]).shape == (2,)
    assert run([I * 10]).shape == (20,)
    with pytest.raises(WrongPath, match="assumption 0 is 2000"):
        run([I * 1000])


N = np.array([4, 1, 1, 7, 4, 0])
Y = A[:, :4] % 7
C = np.array([True, False, True, True])
MASKS = {"some": np.array([1, 0, 1, 1, 0, 1], bool), "all": np.ones(6, bool), "none": np.zeros(6, bool)}


def masks_for(target: str) -> list[np.ndarray[Any, Any]]:
    """The code for one mask is that for another: only the interpreter sees all of them."""
    return [*MASKS.values()] if target == "interpreted" else [MASKS["some"]]


BY_DATA = """
x[m] ; x[~m] ; y[m] ; x[m].sum() ; x[m] * 2 + x[m] ; y[m, 0] ; y[0, c] ; y[:, c] ; y[m][:, c] ; x[m & (x > 2)] ; y[y > 3]
y[np.ix_([0, 1], [1, 2])] ; np.compress(m, x) ; np.compress(m, y, axis=0) ; np.compress(c, y, axis=1) ; np.compress(m[:3], x)
np.extract(m, x) ; np.nonzero(m) ; np.nonzero(y > 3) ; m.nonzero() ; np.flatnonzero(m) ; np.argwhere(y > 3) ; np.argwhere(m)
np.where(m) ; np.where(m)[0] + 1 ; np.count_nonzero(m) ; np.unique(x) ; np.unique(n) ; np.unique(n, return_counts=True)
np.unique(n, return_inverse=True) ; np.unique(n, return_index=True) ; np.unique(n, True, True, True) ; np.unique(y)
np.union1d(n, x) ; np.intersect1d(n, [1, 2, 9]) ; np.setdiff1d(n, x) ; np.setxor1d(n, x) ; np.setdiff1d(n, [1])
np.isin(x, x[m]) ; np.trim_zeros(x * m) ; np.trim_zeros(x * m, "f") ; np.trim_zeros(x * m, "b") ; np.bincount(n % 5)
np.bincount(n % 5, minlength=8) ; np.bincount(n % 5, weights=x) ; np.histogram(x) ; np.histogram(x, 4)
np.histogram(x, 4, (1, 5)) ; np.histogram(x[m], 3) ; np.histogram(x, [0, 1, 3]) ; np.histogram(x, 4, density=True)
np.histogram(n, 4, weights=x) ; np.histogram(x, [0, 1, 3, 4], weights=x) ; np.histogram_bin_edges(x, 3) ; x[m][1:] ; x[m][:2]
x[m][::-1] ; x[m][-1:] ; len(x[m]) ; x[m].shape ; x[m].size == 3 ; np.zeros(m.sum()) ; np.ones(len(x[m]))
np.zeros((m.sum(), 2)) ; x[m][None] ; x[m].reshape(-1, 1) * x[m] ; np.sort(x[m]) ; np.argsort(x[m]) ; np.cumsum(x[m])
x[m].astype("f4") ; np.sqrt(x[m]) ; x[m].copy() ; np.concatenate([x[m], x]) ; np.concatenate([x[m], x[~m]])
np.append(x[m], 1.0) ; np.stack([x[m], x[m]]) ; np.hstack([x[m], x[m]]) ; np.vstack([x[m], x[m]]) ; x[m].any() ; x[m].all()
x[m].prod() ; np.dot(x[m], x[m]) ; x[m] @ x[m] ; y[m] @ y.T ; y.T @ y @ y[m].T ; y[m].sum(0) ; y[m].sum(1) ; y[:, c].sum(1)
np.where(x[m] > 2, x[m], 0) ; np.clip(x[m], 1, 3) ; np.flip(x[m]) ; y[m].T ; y[m].ravel() ; y[m].reshape(-1) ; y[m].flatten()
np.pad(x[m], 1) ; np.pad(x[m], (2, 0)) ; np.tile(x[m], 2) ; np.repeat(x[m], 2) ; x[m] == x[m] ; np.array_equal(x[m], x[m])
np.zeros_like(x[m]) ; np.ones_like(y[m]) ; x[np.flatnonzero(m)] ; x[np.nonzero(m)] ; y[np.nonzero(y > 3)] ; x[np.where(m)]
np.searchsorted(np.sort(x), x[m]) ; np.searchsorted(np.sort(x[m]), x) ; np.interp(x[m], x, x) ; x[True] ; x[False]
x[m.any()] ; y[m, :2] ; y[m][..., 1]
np.arange(m.sum()) ; np.arange(1, m.sum()) ; np.arange(m.sum(), 10, 2) ; np.arange(len(x[m]) * 1) ; np.arange(10, m.sum(), -3)
x[m].mean() ; x[m].var() ; x[m].std(ddof=1) ; np.mean(x[m]) ; x[m].max()
x[m].min() ; x[m].argmax() ; x[m].argmin() ; np.ptp(x[m]) ; np.max(x[m], initial=2.5) ; y[m].max(0) ; y[m].max(1)
y[m].mean(0) ; y[m].mean(1) ; y[m].mean() ; np.average(x[m]) ; np.average(x, weights=x + m.sum()) ; np.cov(y[m].T)
np.nanmean(x[m]) ; np.nansum(x[m]) ; np.nanmax(x[m]) ; np.diff(x[m]) ; np.diff(np.flatnonzero(m)) ; np.ediff1d(x[m])
np.gradient(x[m]) ; np.trapezoid(x[m]) ; np.cumsum(y[m], 0) ; np.cumprod(x[m]) ; np.linalg.norm(x[m])
np.linalg.norm(y[m], axis=1) ; np.outer(x[m], x[m]) ; np.tensordot(y[m], x[m], (0, 0)) ; np.inner(x[m], x[m])
np.vdot(x[m], x[m]) ; np.kron(x[m], [1., 2.]) ; np.einsum("ij,kj->ik", y[m], y) ; np.einsum("ij,ij->i", y[m], y[m])
np.trace(y[m]) ; np.diagonal(y[m]) ; np.diag(x[m]) ; np.tril(y[m]) ; np.tri(len(x[m])) ; np.eye(m.sum())
np.linspace(0, 1, m.sum()) ; np.linspace(1, 5, m.sum() + 3) ; np.meshgrid(x[m], x) ; np.delete(x, m) ; np.delete(x, [0, 1])
np.array(range(n[0])) ; np.asarray(range(-3, n[3], 2)) + x[0] ; np.array(range(n[1]), float)
np.delete(x, np.flatnonzero(m)) ; np.delete(x[m], slice(1, 2)) ; np.repeat(x, m.astype(int)) ; np.repeat(x, n % 3)
np.repeat(x[m], 3) ; np.repeat(x, m.sum()) ; np.repeat(y, n % 3, axis=0) ; np.roll(x[m], 1) ; np.roll(x[m], -2)
np.roll(x, n[0]) ; np.roll(y, n[1], 1) ; np.roll(y, n[:2] - 9, (0, 1)) ; np.roll(x[m], n[2])
np.roll(x[:0], n[0]) ; np.roll(y, m.sum())
np.tile(y[m], (2, 1)) ; np.take(x, np.flatnonzero(m)) ; np.take(y[m], [0, 2], axis=1)
np.take_along_axis(y[m], np.argsort(y[m], 1), 1) ; np.digitize(x, np.sort(x[m])) ; np.digitize(x[m], [1, 3])
np.lexsort((x[m], x[m])) ; np.isclose(x[m], x[m]) ; np.allclose(x[m], x[m]) ; np.array_equal(x[m], x[m])
np.array_equal(x[m], x) ; np.array_equal(x[m], x[~m], equal_nan=True) ; np.round(x[m], 1) ; np.full_like(x[m], 2)
np.pad(x[m], 2, mode="edge") ; np.array_equal(np.repeat(x, n % 3), np.append(x, x), equal_nan=True)
np.pad(x[m], 2, mode="wrap") ; np.pad(x[m], 1, mode="reflect") ; np.pad(x[m], (2, 1), mode="symmetric") ; np.pad(y[m], 1)
np.array_split(x[m], 4) ; np.array_split(y[m], 2) ; np.split(x[m], 2) ; np.split(x[m], 3) ; np.fft.fftshift(x[m]) ; x[m].imag
np.convolve(x[m], [1., 2.], "valid") ; np.correlate([1., 2., 3.], x[m])
np.gradient(np.append(x[m], [7., 9.]), np.append(x[m], [8., 11.]))
np.lib.stride_tricks.sliding_window_view(x[m], 2) ; np.apply_along_axis(np.sum, 1, y[m]) ; np.linalg.inv(np.diag(x[m] + 1))
np.split(x[m], [1, 2]) ; np.array_split(x[m], [2]) ; np.polyval([1., 2.], x[m]) ; np.interp(x, np.sort(x[m]), x[m])
np.convolve(x[m], [1., 2.]) ; np.convolve(x, [1., 2.])[m.sum():] ; np.unwrap(x[m]) ; np.select([x[m] > 2], [x[m]], 0)
np.where(x[m] > 1, 1, x[m]) ; np.put_along_axis(y[m], np.argsort(y[m], 1), 1, 1) ; np.fill_diagonal(y[m], 1)
np.swapaxes(y[m], 0, 1) ; np.moveaxis(y[m], 0, 1) ; y[m].T @ y[m] ; y[m] @ y[m].T ; np.expand_dims(x[m], 0)
np.atleast_2d(x[m]) ; np.broadcast_to(x[m], (2, len(x[m]))) ; np.column_stack([x[m], x[m]]) ; np.c_[x[m], x[m]]
np.r_[x[m], 1.] ; np.block([x[m], x]) ; np.stack([x[m], x[m]], 1) ; np.concatenate([y[m], y])
np.concatenate([y[m].T, y[m].T], 1) ; np.append(y[m], y, 0) ; np.insert(x, 1, 5.) ; np.ix_(m, [0, 1]) ; y[np.ix_(m, [0, 1])]
np.unravel_index(np.flatnonzero(y > 3), y.shape) ; np.ravel_multi_index(np.nonzero(y > 3), y.shape) ; x[m].sum() / len(x[m])
x[m].sum() / x[m].size ; x[m] / x[m].size ; (x[m] ** 2).sum() ; np.sqrt(len(x[m])) ; float(len(x[m])) ; x[len(x[m]):]
x[:len(x[m])] + x[m] ; min(len(x[m]), 3) ; max(len(x[m]), 3) ; len(x[m]) // 2 ; x[m][len(x[m]) // 2:] ; x[m][:len(x[m]) // 2]
np.zeros((len(x[m]), 3)).shape[1] ; np.int8([1, 2]) + len(x[m]) ; np.int8([1, 2]) < len(x[m]) ; x[m].nbytes ; x[m].ndim
np.maximum.reduce(x[m]) ; np.add.reduce(x[m]) ; np.add.outer(x[m], x) ; np.multiply.accumulate(x[m]) ; np.sort(y[m], 0)
np.sort(y[m], axis=None) ; np.argsort(y[m], 0) ; y[m][:, ::-1] ; y[m][::2] ; y[m][1:, 1:] ; y[m][-1:] ; y[m].reshape(-1, 2)
y[m].reshape(2, -1) ; y[m].reshape(len(x[m]), 2, 2) ; y[m].T.reshape(-1) ; y[m].T.ravel() ; y[m].T.copy()
y[m].sum(axis=1, keepdims=True) ; y[m] - y[m].mean(1, keepdims=True) ; y[m] / y[m].sum() ; y[m].astype(int) ; y[m].any(1)
y[m][y[m].sum(1) > 8] ; x[m][x[m] > 2] ; np.unique(x[m]) ; np.unique(n[m], return_counts=True) ; np.bincount(n[m]%7)
np.flatnonzero(x[m] > 2) ; np.count_nonzero(x[m]) ; np.bincount(n) ; np.bincount(n, minlength=20) ; np.zeros(n.max())
np.arange(n.max()) ; np.repeat(x, n) ; np.zeros(n[0]) ; np.ones((n[0], n[1])) ; np.where(m, x, 0)[m] ; np.cumsum(m)[m]
x[np.argsort(x)[:m.sum()]] ; np.bincount(n, weights=x).sum() ; np.linalg.norm(x[m], np.inf) ; np.linalg.norm(x[m], -np.inf)
np.linalg.norm(y[m], np.inf) ; np.linalg.norm(y[:, c & m[0]], 1) ; np.linalg.norm(y[:0], np.inf) ; np.linalg.norm(y[:0], 2)
np.linalg.vector_norm(x[m], ord=None)
"""


@pytest.mark.parametrize("expression", [e.strip() for line in BY_DATA.strip().splitlines() for e in line.split(" ; ")])
def test_sizes_from_data(expression: str, target: str) -> None:
    function = function_of("x, y, n, c, m", expression)
    for mask in masks_for(target):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(X.copy(), Y.copy(), N, C, mask)
        except (ValueError, IndexError) as error:
            with pytest.raises(type(error)):
                run_traced(function, X.copy(), Y.copy(), N, C, mask)
        else:
            check(function, X, Y, N, C, mask)


SET_BY_MASK = """
x[m] = n[m] | x[m] += 1 | x[m] += x[m] | y[m] = y[m] * 2 | y[m] = y[0] | x[m] = 7 | y[m, 0] = 5 | y[y > 3] = 0 | y[:, c] = 1
y[m] += x[m][:, None] | x[np.flatnonzero(m)] = -1 | x[np.nonzero(m)] += 2 | y[y > 3] -= y[y > 3] | x[m] = x[m][::-1]
y[m, 1] = x[m] | y[m.any()] = 3 | x[True] = 4 | x[~m] = np.arange(6.0)[~m]
"""


@pytest.mark.parametrize("body", [e.strip() for line in SET_BY_MASK.strip().splitlines() for e in line.split(" | ")])
def test_writing_by_mask(body: str, target: str) -> None:
    for mask in masks_for(target):
        check(_program("x, y, n, c, m", body), X, Y, N, C, mask)


def test_values_that_a_mask_has_no_place_for() -> None:
    def write(x: Any, m: Any, v: Any) -> None:
        x[m] = v

    with pytest.raises(ValueError, match=r"sizes differ|cannot assign 2 input values"):
        run_traced(write, X.copy(), MASKS["some"], X[:2])
    with pytest.raises(IndexError, match="boolean index did not match"):
        run_traced(lambda x, m: x[m], X, MASKS["some"][:3])
