"""A call that gives an object, a spline or a masked array, is a break, and what is asked of the object is one as well."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.spatial.transform
import scipy.stats

import jitml
from jitml.errors import Cause, UnsupportedError

X = np.array([1.0, 2.0, 4.0, 3.0])
T = np.arange(4.0)
KNOTS = [-1.0, 0.5, 1.5]
PROGRAMS: list[Callable[[Any], Any]] = []


def spline(x: Any) -> Any:
    return scipy.interpolate.CubicSpline(T, x)


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


@program
def made_before_a_loop(x: Any) -> Any:
    s, y = spline(x), np.zeros(3)
    for i in range(3):
        y[i] = s(i + 0.5)
    return y


@program
def closed_over(x: Any) -> Any:
    s = spline(x)
    return scipy.integrate.quad(lambda v: s(v) * x[0], 0, 3)[0]


@program
def passed_to_a_function_made_inside(x: Any) -> Any:
    s, a, b = spline(x), x.sum(), x[1]
    return scipy.integrate.quad(lambda v, f: f(v) * a + b, 0, 3, args=(s,))[0]


@program
def a_truth(x: Any) -> Any:
    return x if spline(x) and not np.ma.masked_greater(x, 2.0).mask.all() else -x


@program
def of_which_class(x: Any) -> Any:
    return x * 2 if type(spline(x)).__name__ == "CubicSpline" else x


@program
def changed_in_place(x: Any) -> Any:
    s = t = scipy.sparse.csr_array(np.diag(x))
    s *= 2
    return t @ x


@program
def made_in_a_loop(x: Any) -> Any:
    y = np.zeros(3)
    for i in range(3):
        s = spline(x + i)
        y[i] = s(0.5) * s(i)
    return y


@program
def made_in_branches(x: Any) -> Any:
    if x.sum() > 3:
        s = spline(x)
        return s(0.5)
    return spline(-x)(1.5)


@program
def made_anew_in_a_while(x: Any) -> Any:
    s, n = spline(x), 0
    while s(0.5) > 1.0 and n < 5:
        n += 1
        s = spline(x * 0.5**n)
    return s(0.5), n


@program
def perhaps_made(x: Any) -> Any:
    s = None
    for i in range(3):
        if x[i] > 1.5:
            s = spline(x)
    return s(0.5) if s is not None else 0.0


@program
def made_where_it_matters(x: Any) -> Any:
    total = 0.0
    for v in x:
        if v > 1.5:
            total = total + spline(x * v)(0.5)
    return total


@program
def unpacked(x: Any) -> Any:
    slope, intercept, *_, error = scipy.stats.linregress(T, x)
    return slope * 2 + intercept, error, scipy.stats.linregress(T, x).rvalue


@program
def in_a_list(x: Any) -> Any:
    splines = [spline(x * k) for k in range(1, 4)]
    return sum(s(0.5) for s in splines), np.array([s(1.5) for s in splines])


@program
def of_another_object(x: Any) -> Any:
    s = spline(x)
    d = s.derivative()
    return d(0.5), s.c, d.integrate(0, 2), s(x), s(x, 1), d.derivative()(KNOTS)


@program
def sparse(x: Any) -> Any:
    d = scipy.sparse.diags(x)
    solved = scipy.sparse.linalg.spsolve(d.tocsc(), x)
    return d @ x, x @ d, (d + d) @ x, d.toarray(), solved, (2 * d).diagonal(), d * x, d.T @ x, (d != d).toarray()


@program
def factors(x: Any) -> Any:
    lu = scipy.sparse.linalg.splu(scipy.sparse.csc_matrix(np.diag(np.abs(x) + 1)))
    return lu.solve(x), lu.solve(2 * x)


@program
def neighbours(x: Any) -> Any:
    tree = scipy.spatial.cKDTree(np.stack([x, x], 1))
    distances, places = tree.query(np.array([[1.2, 1.1], [3.0, 3.0]]))
    return distances, places


@program
def optimum(x: Any) -> Any:
    r = scipy.optimize.linprog(x, A_ub=np.eye(4), b_ub=np.ones(4))
    return r.x, r["x"], r.fun if r.message.startswith("Opt") else -1.0, r.success


@program
def in_a_callback(x: Any) -> Any:
    s = spline(x)
    return scipy.optimize.brentq(lambda v: 20 * v + s(v) - s(0.5), -1, 3), scipy.integrate.quad(s, 0, 1)[0]


@program
def that_keeps_a_callback(x: Any) -> Any:
    a = np.outer(x, x) + 10 * np.eye(4)
    operator = scipy.sparse.linalg.LinearOperator((4, 4), matvec=lambda v: a @ v, dtype=float)
    b = np.exp(-x) * 3
    for _ in range(3):
        b = np.sqrt(b + 1)
    solution, _ = scipy.sparse.linalg.cg(operator, b, rtol=1e-12)
    return operator @ x, solution, b


@program
def that_a_generator_of_solutions_keeps(x: Any) -> Any:
    k = x[0]
    found = scipy.integrate.solve_ivp(lambda t, y: -k * y, (0, 1), x, dense_output=True, t_eval=np.array([0.0, 0.5, 1.0]))
    return found.sol(0.25), found.y, found.success


@program
def polynomials(x: Any) -> Any:
    p, q = np.polynomial.Polynomial(x), np.polynomial.Chebyshev([1.0, 2.0])
    return p(2.0), (-p).coef, (p * p - 1).coef, p.deriv()(x), p.degree(), q(0.5), q.convert(kind=np.polynomial.Polynomial)(x)


@program
def with_traced_numbers_in_it(x: Any) -> Any:
    d = scipy.stats.norm(loc=x[0], scale=2.0)
    return d.cdf(x), d.mean(), d.ppf(0.3)


@program
def copied(x: Any) -> Any:
    s = spline(x)
    r = scipy.optimize.linprog(x, A_ub=np.eye(4), b_ub=np.ones(4))
    return copy.copy(s)(0.5), copy.deepcopy(s)(x), "x" in r, "y" not in r, np.broadcast(x, x[:, None]).shape


@program
def masked(x: Any) -> Any:
    m = np.ma.masked_greater(x, 2.5)
    rest = (x * m + 1 - m).filled(-1.0), np.sqrt(m).sum(), np.ma.concatenate([x, m]).mask, m.count(), m[:2].filled(0.0)
    return m.mean(), np.mean(m), m.data, m.T.filled(0.0), (m > 1).filled(False), np.asarray(m), np.ones(m.shape), len(m), *rest


@program
def matrices(x: Any) -> Any:
    m = np.matrix(x.reshape(2, 2))
    return np.asarray(m * m), m.A1, (m.I @ m).A, np.rec.fromarrays([x, x + 1], names="a, b").b


@program
def asked_what_it_is(x: Any) -> Any:
    s = spline(x)
    return isinstance(s, scipy.interpolate.PPoly), hasattr(s, "c"), hasattr(s, "nothing"), s is s, getattr(s, "nothing", 2.0)


@program
def handed_on_by_regions(x: Any) -> Any:
    r = scipy.spatial.transform.Rotation.from_euler("z", x[0])
    m, rows, k = r.as_quat(), [r.as_quat()], 0
    while k < x[3]:
        k += 1
        m = r.as_matrix()[0]
        rows.append(r.as_quat())
    n = r.as_matrix() if x[0] > 1 else r.inv().as_matrix()
    m[0] = 7.0
    return m, n, rows[0], m.flags.writeable, n.flags.writeable


def same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@program
def written_beside_arrays_that_are_not_read_later(x: Any) -> Any:
    data, mask = x * 2, x > 2.5
    m = np.ma.array(data, mask=mask)
    m -= m.mean()
    return m.filled(0.0), mask


@pytest.mark.loose
@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_agrees(function: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(function)
    for x in (X, X[::-1].copy(), X + 1):
        same(compiled(x), function(x))


def test_one_is_refused_if_all_is_to_be_compiled() -> None:
    with pytest.raises(UnsupportedError, match=r"CubicSpline returns a scipy\.interpolate\S*CubicSpline, which cannot") as caught:
        jitml.jit(made_before_a_loop)(X)
    assert caught.value.cause is Cause.OBJECT
