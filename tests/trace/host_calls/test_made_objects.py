"""Objects that host calls make inside a jitted function: their attributes, methods and operators are host calls as well."""

from __future__ import annotations

import copy
import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial.transform
import scipy.stats

import jitml
from jitml.errors import DerivativeError, UnsupportedError
from jitml.ir.ops.host import MADE

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


def same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_agrees(function: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(function)
    for x in (X, X[::-1].copy(), X + 1):
        same(compiled(x), function(x))
    gc.collect()
    assert len(compiled.variants) == 1 or function in (made_anew_in_a_while, perhaps_made)  # whose loops are unrolled
    assert not MADE._objects


def interpolated(x: Any) -> Any:
    s = spline(x)
    return s(0.5) + s(x).sum()


@pytest.mark.parametrize("finish", [lambda f: f, jitml.jit], ids=["eager", "jitted"])
def test_rows(finish: Callable[..., Any]) -> None:
    rows = np.stack([X, X + 1, X * 2])
    np.testing.assert_allclose(finish(jitml.vmap(interpolated))(rows), [interpolated(x) for x in rows])
    assert not MADE._objects


@pytest.mark.parametrize("finish", [lambda f: f, jitml.jit], ids=["eager", "jitted"])
def test_derivatives(finish: Callable[..., Any]) -> None:
    with pytest.raises(DerivativeError, match=r"CubicSpline\S* runs in NumPy and has no derivative"):
        finish(jitml.grad(interpolated))(X)
    np.testing.assert_array_equal(finish(jitml.grad(lambda x: (x * x).sum() + spline(X)(0.5)))(X), 2 * X)
    assert not MADE._objects


def test_each_thread_has_its_own() -> None:
    compiled, agreed = jitml.jit(interpolated), list[bool]()

    def work() -> None:
        agreed.extend(bool(np.allclose(compiled(X + k), interpolated(X + k))) for k in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(agreed) == 80 and all(agreed)


def test_arrays_that_an_object_keeps_are_its_own() -> None:
    """A tree looks at the very array that it is given; the program uses that memory for something else by then."""

    def nearest(x: Any) -> Any:
        tree = scipy.spatial.cKDTree(np.sqrt(x)[:, None])
        for _ in range(3):
            x = np.exp(-x) * 3
        return tree.query(np.array([[1.1], [1.9]]))[0], x

    same(jitml.jit(nearest)(X), nearest(X))


def written_later(x: Any) -> Any:
    points = x.copy()
    tree = scipy.spatial.cKDTree(points[:, None])
    points[0] = 9.0
    return tree.data[0]


def written_by_a_view_later(x: Any) -> Any:
    data = x.copy()
    s = scipy.sparse.csr_matrix((data, np.arange(4), np.arange(5)))
    data[1:] *= 2
    return s @ x


def closed_over_and_written_later(x: Any) -> Any:
    gain = x.copy()
    operator = scipy.sparse.linalg.LinearOperator((4, 4), matvec=lambda v: gain * v, dtype=float)
    gain[0] = 9.0
    return operator.matvec(x)


def closed_over_and_bound_later(x: Any) -> Any:
    gain = x.sum()
    operator = scipy.sparse.linalg.LinearOperator((4, 4), matvec=lambda v: gain * v, dtype=float)
    gain = 2.0
    return operator.matvec(x)


@pytest.mark.parametrize(
    "function", [written_later, written_by_a_view_later, closed_over_and_written_later, closed_over_and_bound_later]
)
def test_what_an_object_keeps_is_not_changed_later(function: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match="changed after an object that keeps it has been made"):
        jitml.jit(function)(X)


def adds_in_place(x: Any) -> Any:
    m = np.ma.array(x, mask=x > 2.5)
    m += 0  # nothing changes in this call
    return m.filled(0.0)


def puts(x: Any) -> Any:
    np.ma.array(x, mask=x > 2.5).put([0], [9.0])
    return x


def sorts_its_mask(x: Any) -> Any:
    mask = x > 2.5
    np.ma.array(x * 2, mask=mask).sort()
    return mask


def masks_what_it_divides_by_zero(x: Any) -> Any:
    mask = x > 2.5
    m = np.ma.array(x * 2, mask=mask)
    m /= x[0]
    return mask, m.filled(0.0)


def writes_by_a_view(x: Any) -> Any:
    part = np.ma.array(x, mask=x > 2.5)[1:]
    part -= part.mean()
    return part.filled(0.0)


def sorts_what_is_read_later(x: Any) -> Any:
    data = x * 2
    s = scipy.sparse.csr_array((data, np.array([1, 0, 1, 0]), np.array([0, 2, 4])), shape=(2, 2))
    s.sort_indices()
    return s @ x[:2], data[0]


def writes_what_was_taken(x: Any) -> Any:
    m = np.ma.masked_greater(x, 2.5)
    data = m.data
    m *= 2
    return data.sum(), m.sum()


@pytest.mark.parametrize(
    "function",
    [
        adds_in_place,
        puts,
        sorts_its_mask,
        masks_what_it_divides_by_zero,
        writes_by_a_view,
        sorts_what_is_read_later,
        writes_what_was_taken,
    ],
    ids=lambda f: f.__name__,
)
def test_what_an_object_writes_is_not_shown_by_other_arrays(function: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match="writes into an array that it shares with the function"):
        jitml.jit(function)(X.copy())


@program
def written_beside_arrays_that_are_not_read_later(x: Any) -> Any:
    data, mask = x * 2, x > 2.5
    m = np.ma.array(data, mask=mask)
    m -= m.mean()
    return m.filled(0.0), mask


def test_arrays_of_an_object_that_are_returned_may_be_written() -> None:
    def taken(x: Any) -> Any:
        r = scipy.optimize.minimize(lambda v: ((v - x) ** 2).sum(), np.zeros(4))
        c = spline(x).c
        return r.x, r["jac"], c, c.T[1:], np.broadcast_to(c[0], (2, 3)), np.ma.masked_greater(x, 2.5).mask, np.diagonal(c)

    def is_writeable(f: Callable[[Any], Any]) -> list[bool]:
        return [r.flags.writeable for r in f(X)]

    assert is_writeable(jitml.jit(taken)) == is_writeable(taken)


def in_a_loop(r: Any, x: Any) -> Any:
    for _ in range(3):
        m = r.as_matrix()
    return m, m[1:].T, r.as_quat()


def in_a_while(r: Any, x: Any) -> Any:
    rows, k = [r.as_quat()], 0
    while k < x[3]:
        k += 1
        m = r.as_matrix()[0]
        rows.append(r.as_quat())
    return [m, *rows]


def in_a_branch(r: Any, x: Any) -> Any:
    if x[0] > 0:
        m = r.as_matrix()
        v = m[0]
    else:
        m = r.inv().as_matrix()
        v = m[1]
    return m, v


def replaced_in_a_loop(r: Any, x: Any) -> Any:
    m = np.broadcast_to(r.as_quat(), (2, 4))
    n = r.as_matrix()
    for i in range(3):
        m = np.broadcast_to(r.as_quat() + i, (2, 4))
        if x[i] > 1:
            n = r.inv().as_matrix()
    return m, n


@pytest.mark.parametrize("angle", [lambda x: x[0], lambda x: 0.75], ids=["computed", "known"])
@pytest.mark.parametrize("function", [in_a_loop, in_a_while, in_a_branch, replaced_in_a_loop])
def test_arrays_of_an_object_that_a_region_hands_on_may_be_written(function: Callable[[Any, Any], Any], angle: Any) -> None:
    def turned(x: Any) -> Any:
        return function(scipy.spatial.transform.Rotation.from_euler("z", angle(x)), x)

    mine, numpys = jitml.jit(turned)(X), turned(X)
    assert [m.flags.writeable for m in mine] == [n.flags.writeable for n in numpys]
    for m, n in zip(mine, numpys):
        np.testing.assert_array_equal(m, n)


def test_arrays_that_a_function_closes_over_stay_with_an_object_that_keeps_it() -> None:
    def scaled(x: Any) -> Any:
        gain = np.sqrt(x)
        operator = scipy.sparse.linalg.LinearOperator((4, 4), matvec=lambda v: gain * v, dtype=float)
        for _ in range(3):
            x = np.exp(-x) * 3
        return operator.matvec(np.ones(4)), x

    same(jitml.jit(scaled)(X), scaled(X))


def test_a_part_that_is_another_text_is_another_result() -> None:
    def status(x: Any) -> Any:
        r = scipy.optimize.linprog(x, A_ub=np.eye(2), b_ub=np.ones(2), bounds=(None, None))
        return x * 2 if "unbounded" in r.message else x * 3

    compiled = jitml.jit(status)
    for x in (np.array([-1.0, -2.0]), np.array([1.0, 2.0]), np.array([-3.0, -2.0])):
        np.testing.assert_array_equal(compiled(x), status(x))


def sets_attribute(x: Any) -> Any:
    s = spline(x)
    s.extrapolate = False
    return s(0.5)


def stored_of_masked(x: Any) -> Any:
    y = x.copy()
    y[:] = np.ma.masked_greater(x, 2.0)
    return y


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "draws": (lambda x: scipy.stats.gaussian_kde(x).resample(3), r"resample draws random numbers, or calls a function that does"),
    "a masked array returned": (lambda x: np.ma.masked_greater(x, 2.0), r"returns a numpy.ma\S*MaskedArray"),
    "used as an array": (stored_of_masked, "MaskedArray that the jitted function has made is used as an array"),
    "returned": (spline, r"the function returns a scipy\.interpolate\._cubic\.CubicSpline"),
    "changed": (sets_attribute, "CubicSpline that the jitted function has made has its attribute extrapolate set"),
    "shown": (lambda x: len(str(spline(x))) * x, "has made is shown"),
    "iterated over": (lambda x: sum(v for v in spline(x)), "has made is iterated over"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message):
        jitml.jit(function)(X)


def written(x: Any) -> Any:
    q = np.polynomial.Chebyshev([1.0, 2.0])
    q.coef[0] = 3.0
    return q(0.5) * x


def written_by_another_name(x: Any) -> Any:
    q = np.polynomial.Chebyshev(x)
    c = q.coef
    c *= 3
    return q.deriv().coef


@pytest.mark.parametrize("function", [written, written_by_another_name])
def test_their_arrays_are_not_written(function: Callable[[Any], Any]) -> None:
    """NumPy's own code would not see it."""
    with pytest.warns(jitml.errors.UncompiledWarning, match="shows memory of a library's object"):
        np.testing.assert_array_equal(jitml.jit(function)(X), function(X))


def singular(x: Any) -> Any:
    s = scipy.sparse.csr_array(np.diag(x - x))
    return scipy.sparse.linalg.spsolve(s, x)


def fitted(x: Any) -> Any:
    return scipy.optimize.curve_fit(lambda t, a, b: a + b * 0 * t, T, x)[0][0]


def of_a_spline(x: Any) -> Any:
    s = scipy.interpolate.UnivariateSpline(T, x, s=1.0)
    s.set_smoothing_factor(0.0)
    return s(x, ext=3) + np.ma.masked_greater(x, 9.0).mean()


@pytest.mark.parametrize("function", [singular, fitted, of_a_spline])
def test_warnings_come_from_the_users_line(function: Callable[[Any], Any]) -> None:
    def warned(f: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            f(X)
        return [(w.category, str(w.message), w.filename, w.lineno) for w in seen]

    compiled = jitml.jit(function)
    assert warned(compiled) == warned(compiled) == warned(function)


def test_one_without_a_length() -> None:
    with pytest.raises(TypeError, match=r"object of type 'CubicSpline' has no len\(\)"):
        jitml.jit(lambda x: len(spline(x)) * x)(X)


def test_shown_and_forbidden_as_host_calls() -> None:
    shown = str(jitml.jit(interpolated).explain(X))
    assert "host call scipy.interpolate.CubicSpline" in shown and "CubicSpline.__call__" in shown
    with pytest.raises(UnsupportedError, match="CubicSpline would be a host call"):
        jitml.jit(interpolated, host_calls="error")(X)


def test_no_object_outlives_the_call() -> None:
    def splines() -> int:
        gc.collect()
        return sum(type(x) is scipy.interpolate.CubicSpline for x in gc.get_objects())

    before, compiled = splines(), jitml.jit(interpolated)
    for _ in range(3):
        compiled(X)
    assert splines() == before


def test_two_objects_that_keep_one_array() -> None:
    """What one of them writes is in the other one's memory, too; what it reads itself is there."""

    def both(x: Any) -> Any:
        y = x * 1.0
        a, b = np.ma.array(y, mask=x > 2), np.ma.array(y, mask=x > 5)
        a -= 1
        return b.sum()

    def one(x: Any) -> Any:
        a = np.ma.array(x * 1.0, mask=x > 2)
        a -= 1
        return a.sum(), a.T.filled(0.0)

    with pytest.raises(UnsupportedError, match="changed after an object that keeps it has been made"):
        jitml.jit(both)(X)
    same(jitml.jit(one)(X), one(X))
