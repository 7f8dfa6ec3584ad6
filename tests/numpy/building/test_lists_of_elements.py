"""Lists of computed elements, nested or not, wherever NumPy and SciPy take an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import jitml

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
W = np.array([1.0, 2.0, 3.0])


def three(x: Array) -> list[Any]:
    return [x[0], 1, x[1]]


def table(x: Array) -> list[Any]:
    return [[x[0], 1, x[1]], [x[2], x[0], 2.0], (x[1], 3, x[0])]


def fill(x: Array) -> Array:
    y = np.zeros((3, 3))
    np.fill_diagonal(y, [x[0], 1, x[1]])
    return y


def in_a_loop(x: Array) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + np.dot([x[i], 1, i], W) + np.argsort([x[i], 1.0])[0]
    return total


CALLS: dict[str, Callable[[Array], Any]] = {
    "fill_diagonal": fill,
    "in a loop": in_a_loop,
    "dot": lambda x: np.dot([x[0], x[1], 1], W),
    "inner": lambda x: np.inner([x[0], x[1], 1], W),
    "W.dot": lambda x: W.dot([x[0], x[1], 1]),
    "argsort": lambda x: np.argsort([x[0], 1, x[1]]),
    "searchsorted": lambda x: np.searchsorted([x[2], x[0]], x),
    "trapezoid": lambda x: np.trapezoid(x, [0, x[0], 5]),
    "gradient at": lambda x: np.gradient(x, [0, x[0], 9]),
    "histogram": lambda x: np.histogram(x, bins=[x[2], x[0], x[1]])[0],
    "polyder": lambda x: np.polyder([x[0], 1, 2]),
    "logsumexp": lambda x: scipy.special.logsumexp([x[0], x[1]]),
    "softmax": lambda x: scipy.special.softmax([x[0], x[1]]),
    "outer": lambda x: np.outer(three(x), W),
    "kron": lambda x: np.kron(three(x), [x[0], 2]),
    "cross": lambda x: np.cross(three(x), W),
    "tensordot": lambda x: np.tensordot(table(x), W, 1),
    "einsum": lambda x: np.einsum("i,ij", three(x), table(x)),
    "solve": lambda x: np.linalg.solve(table(x), three(x)),
    "norm": lambda x: np.linalg.norm(three(x)),
    "interp": lambda x: np.interp(three(x), [0, x[0], 9], three(x)),
    "interp2": lambda x: np.interp(x[1], [0, x[0], 9], [1, 2, x[0]]),
    "polyval": lambda x: np.polyval(three(x), three(x)),
    "polyfit": lambda x: np.polyfit([0, x[0], 5], three(x), 1),
    "roots": lambda x: np.roots(three(x)),
    "convolve": lambda x: np.convolve(three(x), [1, x[2]]),
    "argmax": lambda x: np.argmax(three(x)),
    "median": lambda x: np.median(three(x)),
    "percentile": lambda x: np.percentile(three(x), [10, 50]),
    "cumsum": lambda x: np.cumsum(three(x)),
    "diff": lambda x: np.diff(three(x)),
    "where": lambda x: np.where([x[0] > 1, x[1] > 1, False], three(x), 0),
    "clip": lambda x: np.clip(three(x), 0.6, [2, x[0], 1]),
    "digitize": lambda x: np.digitize(three(x), [0, 1, x[1]]),
    "diag": lambda x: np.diag(three(x)),
    "roll": lambda x: np.roll(three(x), 1),
    "pad": lambda x: np.pad(three(x), 1),
    "append": lambda x: np.append(three(x), [x[0], x[2]]),
    "insert": lambda x: np.insert(three(x), 1, [x[0], 2]),
    "take": lambda x: np.take(three(x), [0, 2]),
    "isclose": lambda x: np.isclose(three(x), W),
    "isin": lambda x: np.isin(three(x), [1, 2]),
    "cov": lambda x: np.cov(table(x)),
    "average": lambda x: np.average(three(x), weights=[x[0], 1, 2]),
    "gradient": lambda x: np.gradient(three(x)),
    "fft": lambda x: np.fft.fft(three(x)),
    "full": lambda x: np.full((2, 3), three(x)),
    "vander": lambda x: np.vander(three(x)),
    "polymul": lambda x: np.polymul(three(x), [1, x[2]]),
    "lexsort": lambda x: np.lexsort([three(x), W]),
    "partition": lambda x: np.partition(three(x), 1),
    "add.reduce": lambda x: np.add.reduce(three(x)),
    "multiply.outer": lambda x: np.multiply.outer(three(x), three(x)),
    "apply": lambda x: np.apply_along_axis(np.sum, 0, table(x)),
    "multi_dot": lambda x: np.linalg.multi_dot([table(x), table(x), three(x)]),
    "W.searchsorted": lambda x: W.searchsorted([x[0], x[1]]),
    "expit": lambda x: scipy.special.expit(three(x)),
    "jv2": lambda x: scipy.special.jv([0, 1, 2], three(x)),
    "gammaln": lambda x: scipy.special.gammaln(three(x)),
    "sl.solve": lambda x: scipy.linalg.solve(table(x), three(x)),
    "toeplitz": lambda x: scipy.linalg.toeplitz(three(x)),
    "zscore": lambda x: scipy.stats.zscore(three(x)),
    "kw": lambda x: np.dot(a=three(x), b=W),
    "ints": lambda x: np.argsort([int(x[0]), 1, int(x[1])]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_list_is_taken_for_an_array(name: str) -> None:
    x = np.array([1.5, 2.5, 0.5])
    expected, got = CALLS[name](x), jitml.jit(CALLS[name])(x)
    assert type(got) is type(expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-10)


@pytest.mark.parametrize("name", ["dot", "W.dot", "polyder", "logsumexp", "trapezoid", "interp", "in a loop"])
def test_and_so_it_is_under_a_derivative(name: str) -> None:
    jitml.check_grads(lambda x: np.sum(np.sin(CALLS[name](x))), (np.array([1.4, 2.3, 0.6]),), order=1)
