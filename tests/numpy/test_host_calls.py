"""What is not compiled runs through NumPy at that point of the program, and the answer is NumPy's."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special

import jitml
import jitml.codegen.llvm.runtime.executable
import jitml.codegen.llvm.runtime.host
from jitml.errors import UnsupportedError
from jitml.ir.printer import show
from jitml.ir.text.parser import parse
from jitml.trace.trace import trace
from support.against_numpy import check, compare, run_traced

Array = np.ndarray[Any, Any]
A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
B = np.array([1.0, -2.0, 3.0])
N = np.array([12, 18, 7])


def after_a_write(a: Array, b: Array) -> Any:
    a += 1
    x = scipy.linalg.solve(a, b)
    a[0] = x
    return scipy.linalg.inv(a) @ x


def named(a: Array) -> Any:
    result = np.linalg.svd(a)
    return result.S, abs(result.U), result


def in_a_loop(a: Array) -> Any:
    for n in range(3):
        a = scipy.linalg.inv(a) + n * np.eye(3)
    return a


EXPRESSIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "one result": (lambda a: scipy.linalg.inv(a) * 2, (A,)),
    "several results": (lambda a: [np.abs(x) for x in scipy.linalg.eigh(a)], (A,)),
    "a namedtuple": (lambda a: named(a)[:2], (A,)),
    "a NumPy scalar": (lambda a: scipy.linalg.det(a) + np.linalg.matrix_rank(a), (A,)),
    "two arrays": (lambda a, b: scipy.linalg.solve(a, b).sum(), (A, B)),
    "keywords": (lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], (A, B)),
    "a Python number as an argument": (lambda a, n: np.linalg.matrix_power(a, -n), (A, 3)),
    "a float as an argument": (lambda a, q: np.linalg.pinv(a, q / 2), (A, 1e-10)),
    "a scalar as an argument": (lambda a: np.gcd(np.int64(12), a[0]) + a, (N,)),
    "a ufunc": (lambda n: np.gcd(n, 6), (N,)),
    "a ufunc with out=": (lambda n: np.gcd(n, 6, out=n) + n, (N,)),
    "a ufunc's method": (lambda n: np.add.reduceat(n, [0, 1]), (N,)),
    "a Python result": (lambda a: np.isscalar(3) and scipy.linalg.bandwidth(a)[0] + a, (A,)),
    "SciPy": (lambda a, b: scipy.linalg.solve(a, b, assume_a="pos"), (A, B)),
    "SciPy's ufuncs": (lambda b: scipy.special.gammaln(np.abs(b)) + scipy.special.j0(b), (B,)),
    "SciPy's filters": (lambda a: scipy.ndimage.gaussian_filter(a, 1.0), (A,)),
    "a list of arrays": (lambda a: np.linalg.multi_dot([a, a, a]), (A,)),
    "around a write": (after_a_write, (A, B)),
    "again and again": (in_a_loop, (A,)),
    "views and strides": (lambda a: scipy.linalg.inv(a[::-1].T), (A,)),
    "a result in Fortran order": (lambda a: scipy.linalg.inv(np.asfortranarray(a)).ravel(), (A,)),
    "an empty array": (np.linalg.inv, (np.zeros((0, 2, 2)),)),
    "a result that nobody uses": (lambda a: (scipy.linalg.inv(a), a + 1)[1], (A,)),
}


@pytest.mark.parametrize("f, args", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_the_answer_is_numpys(f: Any, args: tuple[Any, ...]) -> None:
    check(f, *args, ulps=64)


def test_exceptions_are_numpys(target: str) -> None:
    def f(a: Array, b: Array) -> Array:
        b += 1
        return np.linalg.solve(a, b)

    if target == "interpreted":
        return
    jitted = jitml.jit(f)
    for a in (A, np.zeros((3, 3)), A):
        mine, theirs = B.copy(), B.copy()
        try:
            expected = f(a, theirs)
        except np.linalg.LinAlgError as error:
            with pytest.raises(np.linalg.LinAlgError, match=str(error)):
                jitted(a, mine)
        else:
            compare(jitted(a, mine), expected)
        compare(mine, theirs)
    (variant,) = jitted.variants
    assert variant.replays == {"a matrix is singular, or not positive definite": 1}


def test_a_first_call_that_raises() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        run_traced(np.linalg.inv, np.zeros((2, 2)))


def test_a_result_of_another_shape_has_a_program_of_its_own(target: str) -> None:
    if target == "interpreted":
        return
    f = jitml.jit(lambda n: np.polydiv(n, np.array([1.0, 1.0, 0.0]))[1] * 2)  # drops leading zeros of the remainder
    for values in ([1.0, 2.0, 3.0], [1.0, 1.0, 3.0], [5.0, 6.0, 7.0], [1.0, 1.0, 5.0]):
        compare(f(np.array(values)), np.polydiv(values, [1.0, 1.0, 0.0])[1] * 2)
    other, first = f.variants
    assert not other.replays and not first.replays
    (claim,) = other.assumes
    assert claim.endswith("has the result float64[1], float64[1] of a host call")


def peaks_twice(x: Array) -> Any:
    (places, _), others = scipy.signal.find_peaks(x), scipy.signal.argrelmax(x)[0]
    return scipy.special.j0(places) + others, x[places].sum()


def peaks_of_rows(x: Array) -> Any:
    total = 0.0
    for row in x:
        places = scipy.signal.find_peaks(row)[0]
        total += row[places].sum() + len(places)
    return total


def peaks_or_not(x: Array) -> Any:
    places = scipy.signal.find_peaks(x)[0]
    return scipy.special.j0(places[:3] * 1.0) if places.size > 2 else None


def complex_places(x: Array) -> Any:
    return np.roots(np.trunc(x[:4])) * 2


@pytest.mark.loose
@pytest.mark.parametrize(
    "f, shape", [(peaks_twice, (50,)), (peaks_of_rows, (4, 20)), (peaks_or_not, (12,)), (complex_places, (5,))]
)
def test_sizes_that_change_from_call_to_call(f: Any, shape: tuple[int, ...], target: str) -> None:
    if target == "interpreted":
        return
    jitted = jitml.jit(f)
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=shape) * 2
        compare(jitted(x.copy()), f(x.copy()), ulps=8)
    assert len(jitted.variants) <= 16  # one for each size, and then plain Python


def test_a_result_of_another_kind_has_a_program_of_its_own(target: str) -> None:
    if target == "interpreted":
        return
    jitted = jitml.jit(lambda x: np.poly(x) + 1)  # complex only where roots are no conjugate pairs
    for x in (np.array([1j, -1j]), np.array([1j, 2.0]), np.array([2j, -2j]), np.array([1.0, 2j])):
        compare(jitted(x), np.poly(x) + 1)
    assert len(jitted.variants) == 2 and not any(variant.replays for variant in jitted.variants)


def test_they_can_be_forbidden() -> None:
    f = jitml.jit(lambda a: scipy.linalg.eigvalsh(a) * 2, host_calls="error")
    with pytest.raises(UnsupportedError, match=r"scipy\.linalg\.eigvalsh would be a host call, and .*'error'.* forbids them"):
        f(A)
    with pytest.raises(ValueError, match="host_calls='maybe'"):
        jitml.jit(in_a_loop, host_calls="maybe")


def test_a_function_of_elements_has_the_shape_of_its_operands() -> None:
    """Whatever that is: one program for all lengths, and nothing assumed of the result."""
    f = jitml.jit(lambda x, y: scipy.special.gammaln(x[x > 0]) * x[x > 0] + scipy.special.xlogy(y[y > 0], 2.0).sum())
    for x in (np.arange(-3.0, 4.0), np.arange(7.0), -np.ones(7)):
        compare(f(x, x), scipy.special.gammaln(x[x > 0]) * x[x > 0] + scipy.special.xlogy(x[x > 0], 2.0).sum())
    assert len(f.variants) == 1


def test_explain_lists_them() -> None:
    report = jitml.explain(lambda a: scipy.linalg.inv(a) + 1, A)
    assert "host calls\n  scipy.linalg.inv  test_host_calls.py:" in report
    assert "host call scipy.linalg.inv" in report
    assert "host calls" not in jitml.explain(lambda a: a + 1, A)


REFUSED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "objects": (lambda b: scipy.interpolate.CubicSpline(np.arange(3), b), (B,), "CubicSpline"),
    "a view of the argument": (
        lambda b: np.lib.stride_tricks.as_strided(b, (2, 2), (8, 8)), (B,), "returns a view of its argument",
    ),
    "effects on files": (lambda b: np.save("x", b), (B,), "np.save is not supported"),
}  # fmt: skip


@pytest.mark.parametrize("f, args, message", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(f: Any, args: tuple[Any, ...], message: str) -> None:
    import scipy.interpolate  # noqa: F401

    with pytest.raises(UnsupportedError, match=message):
        jitml.jit(f)(*args)


def test_no_derivative() -> None:
    with pytest.raises(jitml.DerivativeError, match=r"scipy\.linalg\.inv runs in NumPy and has no derivative"):
        jitml.grad(lambda a: scipy.linalg.inv(a).sum())(A)
    compare(jitml.grad(lambda b: (scipy.linalg.inv(A) @ b).sum())(B), scipy.linalg.inv(A).sum(axis=0), ulps=64)


def test_names_and_remedy() -> None:
    import scipy.stats

    called = {
        r"scipy\.stats\.norm\.cdf": lambda b: scipy.stats.norm.cdf(b).sum(),
        r"np\.vectorize\(<lambda>\)": lambda b: np.vectorize(lambda v: v * v)(b).sum(),
    }
    for name, f in called.items():
        for derivative in (jitml.grad(f), jitml.jit(jitml.grad(f))):
            with pytest.raises(
                jitml.DerivativeError, match=f"{name} runs in NumPy(.|\n)*jitml.custom_jvp(.|\n)*jitml help derivatives"
            ):
                derivative(B)


def test_text_and_back() -> None:
    graph = trace(lambda a, b: scipy.linalg.solve(a, b) * 2, (A, B), {}).graph
    assert show(parse(show(graph))) == show(graph)


def test_a_host_function_may_call_compiled_code(target: str) -> None:
    if target == "interpreted":
        return
    inner = jitml.jit(lambda x: np.cumsum(np.sort(x)[::-1]))
    outer = jitml.jit(lambda a: np.cumsum(a * 2) + np.apply_along_axis(inner, 0, a).sum(axis=0))
    x = np.random.default_rng(0).normal(size=(2000, 3))
    compare(outer(x[:1]), np.cumsum(x[:1] * 2) + np.apply_along_axis(inner, 0, x[:1]).sum(axis=0))


def test_other_programs_may_run_wherever_python_does() -> None:
    """A signal's handler, say, or a finalizer: around the function's call as well as in it."""
    inner = jitml.jit(lambda x: np.sort(np.sin(x)) @ np.sort(x * 2))
    y = np.arange(5000.0)

    def f(x: Array) -> Any:
        low = np.sort(x)
        return np.cumsum(low * np.linalg.svd(np.outer(low[:4], x[:4]))[1].sum())[::-1] + np.sort(low[::-1] * 2)

    def elsewhere(frame: FrameType, event: str, arg: object) -> None:
        if frame.f_code.co_filename == jitml.codegen.llvm.runtime.host.__file__ and event in ("call", "return"):
            inner(y)

    compiled, x = jitml.jit(f), np.random.default_rng(0).normal(size=300)
    expected = compiled(x)
    inner(y)
    sys.setprofile(elsewhere)
    try:
        result = compiled(x)
    finally:
        sys.setprofile(None)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("is_native", [True, False])
def test_an_interruption_is_the_users(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it comes before the first line of what calls the function."""
    if not is_native:
        monkeypatch.setattr(jitml.codegen.llvm.runtime.executable, "native_calls", lambda: False)
    compiled = jitml.jit(lambda rng, x: np.linalg.svd(x)[1] + rng.binomial(5, 0.5) + rng.normal())
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    expected = compiled(same, A), compiled(same, A)
    assert np.array_equal(compiled(rng, A), expected[0])

    def interrupt(frame: FrameType, event: str, arg: object) -> None:
        if frame.f_code.co_filename == jitml.codegen.llvm.runtime.host.__file__:
            raise KeyboardInterrupt

    sys.setprofile(interrupt)
    with pytest.raises(KeyboardInterrupt):
        compiled(rng, A)
    sys.setprofile(None)
    assert np.array_equal(compiled(rng, A), expected[1])  # and nothing has been drawn


def test_a_matrix_that_a_loop_has_not_filled_yet_is_no_singular_one() -> None:
    def filled(x: np.ndarray) -> np.ndarray:
        v = x[x > 0]
        a = np.zeros((len(v), len(v)))
        for i in range(len(v)):
            a[i, i], a[i, i - 1] = v[i] + 2, 0.1 * v[i]
        return np.linalg.inv(a)

    f = jitml.jit(filled)
    for n in (10, 30):
        compare(f(np.ones(n)), filled(np.ones(n)))
    with pytest.raises(np.linalg.LinAlgError):
        jitml.jit(lambda x: np.linalg.inv(np.outer(x[x > 0], x[x > 0])))(np.ones(2))
    assert f.variants and not any(variant.replays for variant in f.variants)


def test_derivatives_of_lengths_that_change() -> None:
    """Open arguments have memory of their true length only, whatever the host fills."""
    f = jitml.jit(jitml.grad(lambda v: scipy.special.j0(v).sum() + v[:2].sum()))
    for n in (3, 5, 3, 7, 5):
        expected = -scipy.special.j1(np.arange(1.0, n + 1)) + (np.arange(n) < 2)
        np.testing.assert_allclose(f(np.arange(1.0, n + 1)), expected)


def with_masks(x: np.ndarray, n: np.ndarray) -> Any:
    part, power = np.full(3, 7.0), np.full(3, 9)
    found = np.frexp(x, where=x > 0, out=(part, power))
    return found, found[0] is part, power, np.gcd(n, 6, where=n > 4, out=np.zeros(3, int)), np.ldexp(x, 2, part, where=n < 9)


@pytest.mark.loose
def test_masks_of_ufuncs_leave_what_is_there() -> None:
    """They are no arguments of the call, which would find memory with any contents."""
    x, n = np.array([-1.5, 0.0, 4.0]), np.array([4, 6, 9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(jitml.jit(with_masks)(x, n), with_masks(x, n))


def test_warnings_come_from_the_users_line() -> None:
    """Those that a function gives for its caller: each line has its own, and the module says which filters hold."""

    def crossed(x: Array, y: Array) -> Any:
        first = np.cross(x, y)
        return first, np.cross(y, x)

    def warned(function: Any) -> list[tuple[Any, ...]]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", module=__name__)
            try:
                function(B[:2], B[1:])
            except ValueError:
                pytest.skip("this NumPy has no cross product of vectors of two")
        return [(w.category, str(w.message), w.filename, w.lineno) for w in seen]

    jitted = jitml.jit(crossed)
    assert len(warned(crossed)) == 2
    assert warned(jitted) == warned(jitted) == warned(crossed)


def ranges(image: Array) -> Any:
    labels, n = scipy.ndimage.label(image > 0.5)
    sums = scipy.ndimage.sum(image, labels, range(1, n + 1)), scipy.ndimage.mean(image, labels, index=range(n, 0, -1))
    return *sums, np.ldexp(1.0, range(n)), range(n), {"rows": range(2, n, 2)}


@pytest.mark.loose
def test_ranges_of_numbers_that_the_program_finds_are_arguments() -> None:
    """And results."""
    jitted = jitml.jit(ranges)
    for seed in range(3):
        image = np.random.default_rng(seed).random((6, 7))
        *sums, expected, rows = ranges(image)
        *ours, found, more = jitted(image)
        compare(tuple(ours), tuple(sums))
        assert (found, more) == (expected, rows)
        assert type(found) is range
    assert len(jitted.variants) <= 2
