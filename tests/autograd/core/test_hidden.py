"""Floats that come out of bits, or of objects, which are made of what is differentiated: no slope is lost in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy import optimize, sparse, spatial, stats

from jitml import DerivativeError, checkpoint, grad, hessian, jacfwd, jit, jvp, stop_gradient


@pytest.fixture(params=[lambda f: f, jit], ids=["eager", "jitted"])
def finish(request: pytest.FixtureRequest) -> Any:
    return request.param


def by_a_loop(x: Any) -> Any:
    total = 0.0
    made = Polynomial(np.array([x, 1.0]))
    for n in range(3):
        total += made(n)
    return total


def made_in_a_loop(x: Any) -> Any:
    total = 0.0
    for n in range(3):
        made = np.ma.masked_greater(np.array([x * n, 5.0]), 4.5)
        total += made.sum()
    return total


def by_a_branch(x: Any) -> Any:
    made = sparse.csr_array(np.array([[x, 1.0], [1.0, 2.0]]))
    return made.sum() if x > 0 else 2 * made.sum()


def put_in_a_loop(x: Any) -> Any:
    made = np.ma.masked_greater(np.array([1.0, 5.0, 2.0]), 3.0)
    for n in range(2):
        made.put([0], x + n)
    return made.sum()


def put_by_another_name(x: Any) -> Any:
    made = other = np.ma.masked_greater(np.array([1.0, 5.0, 2.0]), 3.0)
    made *= x
    return other.sum()


def told_afterwards(x: Any) -> Any:
    made = stats.gaussian_kde(np.array([0.0, 1.0, 2.0]))
    made.set_bandwidth(x)
    return made(np.array([0.5]))[0]


def bits_in_a_loop(x: Any) -> Any:
    b = np.zeros(3, np.int64)
    for n in range(3):
        b[n] = np.array([x, 2 * x, x**2]).view(np.int64)[n]
    return b.view(np.float64).sum()


PROGRAMS: list[Any] = [
    lambda x: optimize.minimize_scalar(lambda y: (y - x) ** 2).x,
    lambda x: optimize.root_scalar(lambda y: y**3 - x, bracket=(0.0, 3.0)).root,
    lambda x: optimize.linprog(np.array([1.0]), A_ub=np.array([[-1.0]]), b_ub=np.array([-1.0]) * x).x[0],
    lambda x: np.ma.masked_invalid(np.array([x, np.nan])).mean(),
    lambda x: Polynomial(np.array([x, 1.0]))(2.0),
    lambda x: (2 * Polynomial(np.array([x, 1.0])))(2.0),
    lambda x: np.poly1d(np.array([x, 1.0]))(2.0),
    lambda x: stats.norm(loc=x).pdf(1.0),
    lambda x: (sparse.csr_matrix(np.array([[x, 1.0], [1.0, 2.0]])) @ np.ones(2)).sum(),
    checkpoint(lambda x: Polynomial(np.array([x, 1.0]))(2.0)),
    by_a_loop,
    made_in_a_loop,
    by_a_branch,
    put_in_a_loop,
    put_by_another_name,
    told_afterwards,
    bits_in_a_loop,
]


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("transform", [grad, jacfwd, lambda f: lambda x: jvp(f, (x,), (1.0,))[1]])
def test_no_slope_is_lost(program: Any, transform: Any, finish: Any) -> None:
    wanted = (program(2.0 + 1e-4) - program(2.0 - 1e-4)) / 2e-4
    try:
        slope = finish(transform(program))(2.0)
    except Exception as error:  # a library's, of a number that is none
        assert isinstance(error, (DerivativeError, TypeError, ValueError, SystemError))
    else:
        np.testing.assert_allclose(slope, wanted, atol=1e-3)


def test_bits_are_refused(finish: Any) -> None:
    for transform in (grad, jacfwd, hessian):
        with pytest.raises(DerivativeError, match="no derivative"):
            finish(transform(bits_in_a_loop))(2.0)


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
def test_what_has_no_slope_is_differentiated_around(finish: Any) -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.2, 1.1]])

    def area(p: Any) -> Any:
        a, b, c = (p[spatial.Delaunay(stop_gradient(p)).simplices[:, n]] for n in range(3))
        u, v = b - a, c - a
        return np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]).sum() / 2

    slope = finish(grad(area))(points)
    np.testing.assert_allclose((slope * points).sum(), 2 * area(points))

    def of_valid(x: Any) -> Any:
        return x.sum() * np.ma.masked_invalid(stop_gradient(x)).count()

    np.testing.assert_allclose(finish(grad(of_valid))(np.ones(3)), 3.0)

    def times_root(x: Any) -> Any:
        held = stop_gradient(x)
        return optimize.root_scalar(lambda y: y**2 - held, bracket=(0.0, 3.0)).root * x

    np.testing.assert_allclose(finish(grad(times_root))(4.0), 2.0)
    np.testing.assert_allclose(finish(grad(lambda x: Polynomial(np.array([1.0, 2.0]))(3.0) * x))(1.0), 7.0)
