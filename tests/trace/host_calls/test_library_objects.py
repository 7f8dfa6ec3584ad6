"""Objects of libraries' classes in a jitted function: what their own code reads of them now is compared, or read anew."""

from __future__ import annotations

import array
import collections
import types
import warnings
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
import scipy.sparse
import scipy.sparse.linalg
from numpy.polynomial import Polynomial

import jitml
from jitml.errors import Cause, UnsupportedError

pytestmark = [pytest.mark.loose, pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")]

B = np.array([1.0, 2.0, 3.0])
SPARSE = scipy.sparse.csr_matrix(np.array([[4.0, 1, 0], [1, 3, 0], [0, 0, 2]]))
ROWS = scipy.sparse.lil_matrix(np.eye(3))
POLYNOMIAL = np.poly1d([1.0, 2.0])
SERIES = Polynomial([1.0, 2.0])
SPLINE = scipy.interpolate.CubicSpline([0, 1, 2, 3, 4.0], [0, 1, 4, 9, 16.0])
NUMBERS = array.array("d", [1.0, 2, 3])
BYTES = memoryview(bytearray(8))
SPACE = types.SimpleNamespace(a=np.ones(3), k=2)


class Listed(collections.UserList[float]):
    pass


class Titled(collections.UserDict[str, float]):
    def title(self) -> float:
        return self["a"] * 2


LISTED = Listed([1.0, 2.0])
TITLED = Titled(a=1.0)

PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "sparse, dense": (lambda x: SPARSE.toarray() @ x, lambda: SPARSE.data.__setitem__(0, 5)),
    "sparse, summed": (lambda x: SPARSE.sum() * x, lambda: SPARSE.data.__setitem__(0, 6)),
    "sparse, its diagonal": (lambda x: SPARSE.diagonal() * x, lambda: SPARSE.data.__setitem__(0, 7)),
    "sparse, in another format": (lambda x: SPARSE.tocsc() @ x, lambda: SPARSE.data.__setitem__(0, 8)),
    "sparse, twice": (lambda x: (2 * SPARSE) @ x, lambda: SPARSE.data.__setitem__(0, 9)),
    "sparse, squared": (lambda x: (SPARSE @ SPARSE) @ x, lambda: SPARSE.data.__setitem__(0, 10)),
    "sparse, turned": (lambda x: SPARSE.T @ x, lambda: SPARSE.data.__setitem__(0, 11)),
    "sparse, a row": (lambda x: SPARSE[0] @ x, lambda: SPARSE.data.__setitem__(0, 12)),
    "sparse times a vector": (lambda x: SPARSE @ x, lambda: SPARSE.data.__setitem__(0, 13)),
    "a vector times sparse": (lambda x: x @ SPARSE, lambda: SPARSE.data.__setitem__(0, 14)),
    "sparse by its old operator": (lambda x: SPARSE * x - 1, lambda: SPARSE.data.__setitem__(0, 15)),
    "sparse numbers": (lambda x: SPARSE.nnz * x + SPARSE.shape[0], lambda: None),
    "a linear operator": (lambda x: scipy.sparse.linalg.aslinearoperator(SPARSE) @ x, lambda: SPARSE.data.__setitem__(0, 16)),
    "a polynomial": (lambda x: POLYNOMIAL(x) + x, lambda: POLYNOMIAL.coeffs.__setitem__(0, 5)),
    "a polynomial, twice": (lambda x: (POLYNOMIAL * 2)(x) + x, lambda: POLYNOMIAL.coeffs.__setitem__(0, 6)),
    "a polynomial of a number": (lambda x: POLYNOMIAL(2.0) * x, lambda: POLYNOMIAL.coeffs.__setitem__(0, 7)),
    "a series": (lambda x: SERIES(x) + x, lambda: SERIES.coef.__setitem__(0, 5)),
    "a series' derivative": (lambda x: SERIES.deriv()(x) + x, lambda: SERIES.coef.__setitem__(1, 5)),
    "a spline": (lambda x: SPLINE(x) + x, lambda: SPLINE.c.__setitem__((3, 0), 5)),
    "a spline's derivative": (lambda x: SPLINE.derivative()(x) + x, lambda: SPLINE.c.__setitem__((2, 1), 5)),
    "a spline's integral": (lambda x: SPLINE.integrate(0, 2) * x, lambda: SPLINE.c.__setitem__((3, 0), 9)),
    "an array of numbers": (lambda x: np.array(NUMBERS) * x, lambda: NUMBERS.__setitem__(0, 5)),
    "an item of an array": (lambda x: NUMBERS[0] * x, lambda: NUMBERS.__setitem__(0, 6)),
    "items of an array": (lambda x: sum(NUMBERS) * x, lambda: NUMBERS.__setitem__(0, 7)),
    "an array's list": (lambda x: NUMBERS.tolist()[0] * x, lambda: NUMBERS.__setitem__(0, 8)),
    "a buffer": (lambda x: np.frombuffer(NUMBERS) * x, lambda: NUMBERS.__setitem__(0, 9)),
    "a byte": (lambda x: BYTES[0] * x, lambda: BYTES.__setitem__(0, 9)),
    "a namespace": (lambda x: SPACE.a * x * SPACE.k, lambda: (SPACE.a.__setitem__(0, 5), setattr(SPACE, "k", 3))),
    "a list of the user's": (lambda x: sum(LISTED) * x + len(LISTED), lambda: LISTED.append(5.0)),
    "an item of it": (lambda x: LISTED[0] * x, lambda: LISTED.__setitem__(0, 9.0)),
    "a dict of the user's": (lambda x: TITLED["a"] * x + TITLED.title(), lambda: TITLED.__setitem__("a", 5.0)),
    "what is in it": (lambda x: ("b" in TITLED) * x, lambda: TITLED.__setitem__("b", 5.0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changes_in_an_object_is_seen(name: str) -> None:
    function, change = PROGRAMS[name]
    compiled = jitml.jit(function)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(B), function(B))
        np.testing.assert_array_equal(compiled(B), function(B))
        change()
    np.testing.assert_array_equal(compiled(B), function(B))


def test_a_sparse_matrix_that_the_program_multiplies_by_is_read_at_each_call() -> None:
    def conjugate_gradients(b: Any) -> Any:
        x = np.zeros_like(b)
        r = b - SPARSE @ x
        p = r.copy()
        rs = r @ r
        for _ in range(50):
            q = SPARSE @ p
            alpha = rs / (p @ q)
            x = x + alpha * p
            r = r - alpha * q
            new = r @ r
            if np.sqrt(new) < 1e-10:
                break
            p = r + (new / rs) * p
            rs = new
        return x

    compiled = jitml.jit(conjugate_gradients)
    for value in (5.0, 6.0):
        SPARSE.data[0] = value
        np.testing.assert_allclose(compiled(B), np.linalg.solve(SPARSE.toarray(), B))


def _written_before(s: Any, x: Any) -> Any:
    s.data *= 2
    return s @ x


def _written_after(s: Any, x: Any) -> Any:
    y = s.dot(x)
    s.data[0] = 5
    return y


def _written_by_another_name(s: Any, x: Any) -> Any:
    data = s.data[1:]
    data += 1
    return x @ s


def _written_in_a_loop(s: Any, x: Any) -> Any:
    for _ in range(3):
        x = s @ x
        s.data *= 0.5
    return x


def _set(s: Any, x: Any) -> Any:
    s.data = s.data * 2
    return s @ x


@pytest.mark.parametrize("function", [_written_before, _written_after, _written_by_another_name, _written_in_a_loop, _set])
def test_host_calls_are_given_what_the_function_has_written(function: Callable[..., Any]) -> None:
    compiled, mine, theirs = jitml.jit(function, verify="never"), SPARSE.copy(), SPARSE.copy()
    for n in range(3):
        np.testing.assert_allclose(compiled(mine, B + n), function(theirs, B + n))
        np.testing.assert_allclose(mine.data, theirs.data)


@pytest.mark.parametrize(
    "ask", [lambda s: s @ B, lambda s: s.toarray(), lambda s: -s, lambda s: s[0], lambda s: s.max, lambda s: np.sum(s) * 2]
)
def test_what_an_object_is_asked_is_refused_if_all_is_to_be_compiled(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"s, a scipy\.sparse\._csr\.csr_matrix, is ") as caught:
        jitml.jit(ask, strict=True)(SPARSE)
    assert caught.value.cause is Cause.OBJECT


def test_what_shares_no_memory_with_it_may_be_written() -> None:
    def iterate(s: Any, x: Any, norms: Any) -> Any:
        for i in range(3):
            x[:] = s @ x
            norms[i] = np.abs(x).max()
            x /= norms[i]
        return x

    x, norms, y, same = B.copy(), np.zeros(3), B.copy(), np.zeros(3)
    np.testing.assert_allclose(jitml.jit(iterate)(SPARSE, x, norms), iterate(SPARSE, y, same))
    np.testing.assert_allclose(norms, same)


def test_what_cannot_be_compared_at_each_call_is_read_anew() -> None:
    large = scipy.sparse.eye_array(200_000, format="csr")
    np.testing.assert_array_equal(jitml.jit(lambda x: large @ x)(np.ones(200_000)), np.ones(200_000))
    summed, rows = jitml.jit(lambda x: large.sum() * x), jitml.jit(lambda x: ROWS.toarray() @ x)
    for value in (2.0, 3.0):
        large.data[0], ROWS[0, 0] = value, value
        np.testing.assert_array_equal(summed(B), large.sum() * B)
        np.testing.assert_array_equal(rows(B), ROWS.toarray() @ B)


IMMUTABLE: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "a fraction's float": (lambda x, n: x * float(n), Fraction(1, 3), Fraction(1, 2)),
    "a fraction, twice": (lambda x, n: x * float(n * 2), Fraction(1, 3), Fraction(1, 2)),
    "a fraction's numerator": (lambda x, n: x * n.numerator, Fraction(1, 3), Fraction(2, 3)),
    "a decimal": (lambda x, n: x * float(n), Decimal("1.5"), Decimal("2.5")),
    "the text of a decimal": (lambda x, n: x * len(str(n)), Decimal("1.5"), Decimal("1.50")),
    "a day": (lambda x, n: x * n.day, date(2020, 1, 1), date(2020, 1, 2)),
    "days": (lambda x, n: x * n.days, timedelta(1), timedelta(2)),
    "a path": (lambda x, n: x * len(n.name), PurePosixPath("a"), PurePosixPath("ab")),
}


@pytest.mark.parametrize("name", IMMUTABLE)
def test_arguments_that_never_change_are_compared_by_what_they_are(name: str) -> None:
    function, first, second = IMMUTABLE[name]
    compiled = jitml.jit(function)
    for argument in (first, second, first):
        np.testing.assert_array_equal(compiled(B, argument), function(B, argument))
    again = type(first)(first) if not isinstance(first, (date, timedelta)) else first + timedelta(0)
    compiled(B, again)
    assert len(compiled.variants) <= 2


def masked(k: float) -> Any:
    return np.ma.array([1.0, k, 3.0], mask=[k == 2, False, True])


MASKED: dict[str, Callable[[Any, Any], Any]] = {
    "methods": lambda m, x: (m.sum(), m.filled(0), m.count(), m.compressed().sum()),
    "attributes": lambda m, x: (m.mask, m.data, m.shape, m.dtype, m.ndim, m.size, len(m)),
    "arithmetic": lambda m, x: (x * m.filled(1), (m * x).filled(-1), (m + 1).sum() * x),
    "functions": lambda m, x: (np.sum(m), np.ma.median(m), np.asarray(m) * x),
    "items": lambda m, x: (m[1] * x, m[0] is np.ma.masked, m[1:].sum()),
    "classes": lambda m, x: (isinstance(m, np.ndarray), isinstance(m, np.ma.MaskedArray), x),
    "itself": lambda m, x: (m is m, x * 2, float(m.mean())),
    "a branch": lambda m, x: x if m.count() > 1 else x * 2,
    "a loop": lambda m, x: sum(m.filled(0)[i] * x[i] for i in range(3)),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_arrays_are_those_of_the_call(name: str) -> None:
    function, compiled = MASKED[name], jitml.jit(MASKED[name], verify="never")
    kept = masked(2.0)
    for n, m in enumerate((masked(2.0), masked(5.0), kept, kept)):
        kept[0] = float(n)
        x = np.arange(3.0) + n
        assert repr(compiled(m, x)) == repr(function(m, x))


def test_a_masked_array_that_is_returned_is_the_callers() -> None:
    m = masked(5.0)
    assert jitml.jit(lambda m: m)(m) is m


def written_before_an_item(s: Any, x: Any) -> Any:
    s.data[0] = x[0]
    return s[0, 0]


def written_before_an_attribute(p: Any, x: Any) -> Any:
    p.coeffs[0] = x[0]
    return p.r


def written_after_an_item(s: Any, x: Any) -> Any:
    found = s[0, 0]
    s.data[0] = x[0]
    return found


def written_in_a_loop(s: Any, x: Any) -> Any:
    total = 0.0
    for v in x:
        total += s[0, 0]
        s.data[0] = v
    return total


WRITTEN = [
    (written_before_an_item, lambda: scipy.sparse.eye(2, format="csr")),
    (written_after_an_item, lambda: scipy.sparse.eye(2, format="csr")),
    (written_in_a_loop, lambda: scipy.sparse.eye(2, format="csr")),
    (written_before_an_attribute, lambda: np.poly1d([2.0, 1.0])),
    (written_before_an_item, lambda: np.ma.array([[2.0, 1.0]])),
]


@pytest.mark.parametrize(("function", "make"), WRITTEN)
def test_what_is_read_of_an_object_is_not_stale(function: Callable[[Any, Any], Any], make: Callable[[], Any]) -> None:
    x = np.array([7.0, 8.0, 9.0])
    compiled = jitml.jit(function, verify="never")
    for _ in range(3):
        np.testing.assert_array_equal(compiled(make(), x), function(make(), x))


def product_after(o: Any, x: Any) -> Any:
    before = o @ x
    o.data[0] = x[0]
    return before, o @ x, o.toarray(), o.data


def doubled(o: Any, x: Any) -> Any:
    o.data *= 2
    return o.toarray(), o.nnz, o.shape


def written_in_turns(o: Any, x: Any) -> Any:
    total = 0.0
    for v in x:
        o.data[0] = v
        total = total + (o @ x)[0]
    return total


def written_in_a_branch(o: Any, x: Any) -> Any:
    if x[0] > 1.5:
        o.data[0] = 9.0
    return o.toarray(), o


def evaluated(o: Any, x: Any) -> Any:
    before = o(x)
    o.coef[0] = x[1]
    return before, o(x), o.deriv()(1.0), (o + 1)(2.0), (o * o).coef, o.degree(), len(o), o.coef, o


def evaluated_once(o: Any, x: Any) -> Any:
    o.coef[0] = 5.0
    return o(x)


def evaluated_with_another_array(o: Any, x: Any) -> Any:
    o.coef = np.array([5.0, x[1]])
    return o(x)


def evaluated_elsewhere(o: Any, x: Any) -> Any:
    o.domain[1] = 3.0
    return o(x)


def fed_back(o: Any, x: Any) -> Any:
    for _ in range(3):
        o.coef[0] = o(x[0])
    return o.coef


def coefficients(o: Any, x: Any) -> Any:
    first = o[1]
    o.coeffs[0] = x[1]
    return first, o[1], o(x), o.deriv()(2.0), o.order, o.r


def raised(o: Any, x: Any) -> Any:
    o.coef[0] = x[1]
    if o(x)[0] > 4:
        raise ValueError(float(o(x)[0]))
    return o


def csr(k: float) -> Any:
    return scipy.sparse.csr_array(np.diag([k, 1.0]))


def coo(k: float) -> Any:
    return scipy.sparse.coo_array(np.diag([k, 1.0]))


def polynomial(k: float) -> Any:
    return Polynomial([1.0, k], domain=[-1.0, 1.0])  # one of its own: the usual one is the class's, for all


def chebyshev(k: float) -> Any:
    return np.polynomial.Chebyshev([1.0, 0.0, k], domain=[-1.0, 1.0])


SEEN_AS_WRITTEN = [
    *((f, make) for f in (product_after, doubled, written_in_turns, written_in_a_branch) for make in (csr, coo)),
    *(
        (f, make)
        for f in (evaluated, evaluated_once, evaluated_with_another_array, evaluated_elsewhere, fed_back, raised)
        for make in (polynomial, chebyshev)
    ),
    (coefficients, lambda k: np.poly1d([2.0, k, 1.0])),
]


@pytest.mark.parametrize(("function", "make"), SEEN_AS_WRITTEN)
def test_calls_see_what_has_been_written(function: Callable[[Any, Any], Any], make: Callable[[float], Any]) -> None:
    def told(f: Callable[[Any, Any], Any], o: Any, x: Any) -> str:
        try:
            result = f(o, x)
        except ValueError as error:
            return repr(error)
        array = o.data if hasattr(o, "data") else getattr(o, "coef", None)
        shown = [
            part.toarray() if scipy.sparse.issparse(part) else part for part in (result if type(result) is tuple else [result])
        ]
        return repr((shown, array))

    compiled = jitml.jit(function, verify="never")
    kept = make(2.0), make(2.0)
    for n in range(4):
        mine, theirs = kept if n % 2 else (make(n + 1.0), make(n + 1.0))
        x = np.array([1.0, 2.0]) + n
        assert told(compiled, mine, x) == told(function, theirs, x)


def test_an_argument_that_comes_to_be_an_objects_own_array_is_written_there() -> None:
    def f(o: Any, x: Any) -> Any:
        x[0] = 4.0
        return o(x)

    compiled = jitml.jit(f, verify="never")
    o = Polynomial([1.0, 0.0, 2.0])
    for x in (np.arange(3.0), np.arange(3.0), o.coef):
        before = o.coef.copy()
        got = compiled(o, x)
        x[0] = 1.0
        o.coef[...] = before
        np.testing.assert_array_equal(got, f(o, x))
        o.coef[...] = before


def test_what_an_object_holds_beyond_what_is_looked_at_is_not_taken_for_apart() -> None:
    def f(o: Any, x: Any) -> Any:
        x[0] = 7.0
        return o(2.0)

    o = np.polynomial.Polynomial([1.0, 2.0, 3.0])
    compiled = jitml.jit(f, verify="never")
    assert compiled(o, np.zeros(3)) == f(o, np.zeros(3))
    o.notes = [[k] for k in range(20_000)]
    assert compiled(o, o.coef) == o(2.0)


@pytest.mark.parametrize("coefficients", [[2, 1], [2.0, 1.0]])
def test_an_array_of_an_object_made_inside_is_the_callers(coefficients: list[float]) -> None:
    def function(x: Any) -> Any:
        made = np.poly1d(coefficients)
        return made.c, made.coeffs, x

    compiled = jitml.jit(function, verify="never")
    first, second = compiled(np.ones(2)), compiled(np.ones(2))
    first[0][0] = 7
    assert first[1][0] == 7
    assert second[0][0] == 2


def written_by_a_method(x: Any) -> Any:
    s = scipy.interpolate.UnivariateSpline(np.arange(6.0), np.arange(6.0) ** 2 * x[0], s=0)
    k = s.get_coeffs()
    try:
        k *= x[1]
    except ValueError:
        return None
    return s(x), k


def written_masked(x: Any) -> Any:
    m = np.ma.masked_array(x * 1)
    np.ma.getdata(m)[0] = 50
    return m.sum()


@pytest.mark.parametrize("f", [written_by_a_method, written_masked])
def test_the_memory_that_a_method_gives_is_the_objects(f: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(f, verify="never")
    for x in (B, B * 2):
        assert repr(compiled(x.copy())) == repr(f(x.copy()))


@pytest.mark.parametrize("change", [lambda s: s.setdiag(2), lambda s: s.sort_indices(), lambda s: s.__setitem__((0, 0), 5.0)])
def test_own_methods_do_not_change_a_copy_of_what_is_written(change: Any) -> None:
    def scaled(s: Any, x: Any) -> Any:
        s.data *= 2
        change(s)
        return x

    mine, theirs = (scipy.sparse.csr_matrix((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2, 2]))) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled(theirs, np.ones(2))
        jitml.jit(scaled, verify="never")(mine, np.ones(2))
        assert mine.toarray().tolist() == theirs.toarray().tolist()
