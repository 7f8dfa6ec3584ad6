"""Classes made of SciPy's sparse matrices are theirs to compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import jitml

pytestmark = [pytest.mark.loose, pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")]


class Rows(scipy.sparse.csr_matrix):
    pass


class Scaling(scipy.sparse.csr_array):
    def scaled(self, factor: Any) -> Any:
        return self * factor


class Keys(scipy.sparse.dok_array):
    pass


DENSE = np.array([[1.0, 2], [0, 3]])
X = np.array([1.0, 2.0])


def product(a: Any, x: Any) -> Any:
    return a @ x


def square(a: Any, x: Any) -> Any:
    return (a @ a) @ x + a.sum()


def scaled(a: Any, x: Any) -> Any:
    return a.scaled(x[0]) @ x if hasattr(a, "scaled") else a.T @ x


@pytest.mark.parametrize("kind", [Rows, Scaling, Keys])
@pytest.mark.parametrize("f", [product, square, scaled])
def test_each_call_computes_with_its_own_matrix(kind: Any, f: Any) -> None:
    fast = jitml.jit(f)
    for dense in (DENSE, DENSE.T * 2, DENSE + 1):
        np.testing.assert_allclose(fast(kind(dense), X), f(kind(dense), X))


def test_one_that_the_function_makes_of_computed_numbers() -> None:
    def f(x: Any) -> Any:
        return Rows(np.outer(x, x)) @ x

    fast = jitml.jit(f)
    for x in (X, X + 1):
        np.testing.assert_allclose(fast(x), f(x))


def test_a_matrix_that_is_a_dict_is_not_gone_through_row_by_row() -> None:
    def f(x: Any) -> Any:
        return scipy.sparse.dok_matrix((2, 2)).toarray() + x[0]

    np.testing.assert_array_equal(jitml.jit(f)(X), f(X))


@pytest.mark.parametrize("make", [scipy.sparse.dok_matrix, scipy.sparse.lil_array, Keys])
def test_an_item_is_set_to_what_is_computed(make: Any) -> None:
    def once(x: Any) -> Any:
        a = make((3, 3))
        a[0, 1] = x[0] * 2
        return a.toarray()

    def in_a_loop(x: Any) -> Any:
        a = make((3, 3))
        for k in range(2):
            a[k, k] += x[k]
        return a.toarray()

    for f in (once, in_a_loop):
        np.testing.assert_array_equal(jitml.jit(f)(X), f(X))


def test_numbers_are_set_as_ever() -> None:
    def f(x: Any) -> Any:
        a = scipy.sparse.lil_matrix((2, 2))
        a[0, 1] = 3.0
        return a @ x

    np.testing.assert_array_equal(jitml.jit(f)(X), f(X))
