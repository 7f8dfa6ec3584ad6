"""Programs on the tape against the same programs captured: places, writes, orders drawn by generators, rules that write."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from optree import tree_leaves

import jitml
from jitml import DerivativeError, custom_jvp, custom_vjp, grad, jvp, value_and_grad, vjp, vmap
from jitml.autograd.tape.tape import SlotKind, Tape

pytestmark = pytest.mark.loose

x3 = np.array([0.3, -0.8, 1.1])
x34 = np.arange(12.0).reshape(3, 4) / 7 - 0.6
DATA = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Runs something with nothing captured."""
    from jitml.autograd.api import transform_driver

    capture = transform_driver.run

    def refuse(*given: Any) -> Any:
        if transform_driver.current_trace() is None:
            raise jitml.UnsupportedError("not this time")
        return capture(*given)

    def run(program: Callable[[], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(transform_driver, "run", refuse)
            patch.setattr(transform_driver, "_refused", type(transform_driver._refused)())
            return program()

    return run


def agree(found: Any, expected: Any) -> None:
    for ours, theirs in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        assert type(ours) is type(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def tuples_as_indices(x: Any) -> Any:
    y = np.zeros(4)
    y[(0, 0, 1),] = x
    return (x[(0, 0, 1),] ** 2).sum() + (y * np.arange(1, 5)).sum() + x[[]].sum()


def flat_of_columns(x: Any) -> Any:
    y = np.asfortranarray(np.zeros((4, 3)))
    y.flat[::5] = x[0, :2]
    y.T.flat[2] = x[0, 0] ** 2
    z = x.T[:, ::2] * 2
    z.flat[1] = 4.0
    return (y * np.arange(12).reshape(4, 3)).sum() + sum(v * v for v in z.T.flat) + np.cumsum(z[::2].flat)[2]


def divided_where(x: Any) -> Any:
    b = x - x[1]
    ratio = np.divide(x, b, out=np.zeros_like(x), where=b != 0)
    return ratio.sum() + np.log(x, out=np.ones_like(x), where=x > 0).sum()


def arrays_of_operators(x: Any) -> Any:
    y, total = DATA[0] * 2, 0.0
    z = DATA.copy()
    for i in range(3):
        total += (x * y).sum()
        y[i] = x[i]
        z[:, i] += y[::2]
        y -= 0.1 * x
    y[0], z[1, 1] = z[0, 0], y[1]

    def double() -> None:
        y[:] = y * 2

    double()
    return total + (y * z).sum()


def functions_handed_over(x: Any) -> Any:
    pairs = [(v * v, 2.0) for v in x]
    powers = sum(itertools.starmap(math.pow, pairs)) + [*itertools.accumulate(x, math.hypot)][-1]
    return sum(map(math.sin, x)) + functools.reduce(math.atan2, x) + powers + sum(map(float, x))


def iterated(x: Any) -> Any:
    total = 0.0
    for v in np.nditer(x):
        total = total + v * v
    return total + complex(x[0], 2).conjugate().imag * x[0]


def filled_from_outside(x: Any) -> Any:
    drawn = np.random.default_rng(0).random(out=np.empty(3))
    noise = np.empty(3)
    np.random.default_rng(1).standard_normal(out=noise)
    return (drawn * x * noise).sum()


def rows_of_closures(x: Any) -> Any:
    return vmap(lambda row: (row * x).sum())(DATA).prod() + vmap(lambda row: row @ x)(np.eye(3)).sum()


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (tuples_as_indices, x3), (flat_of_columns, x34), (divided_where, x3), (arrays_of_operators, x3),
        (functions_handed_over, x3), (iterated, x3), (filled_from_outside, x3), (rows_of_closures, x3),
    ],
)  # fmt: skip
def test_programs_are_as_captured(f: Any, x: Any, tape: Any) -> None:
    before = DATA.copy()
    found = tape(lambda: (value_and_grad(f)(x), jvp(f, (x,), (np.ones_like(x),))))
    agree(found, (value_and_grad(f)(x), jvp(f, (x,), (np.ones_like(x),))))
    np.testing.assert_array_equal(DATA, before)


def test_results_that_are_one_value_have_the_sum_of_their_cotangents(tape: Any) -> None:
    cts = (x3, 2 * x3, 4 * x3)
    agree(tape(lambda: vjp(lambda x, y: (x, y, x), x3, x3)[1](cts)), vjp(lambda x, y: (x, y, x), x3, x3)[1](cts))


def writing_rules(x: Any) -> Any:
    f, g = custom_vjp(lambda x: x**3), custom_jvp(lambda x: x**2)

    def backward(kept: Any, ct: Any) -> Any:
        ct *= 3
        kept *= kept
        kept *= ct
        return (kept,)

    def forward(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        dx *= 2
        dx *= x
        x *= x
        return x, dx

    f.defvjp(lambda x: (x**3, x), backward)
    g.defjvp(forward)
    y, z = x * 1.0, x * 2.0
    return ((f(y) + z) * np.arange(3) + g(y) * z).sum() + (y * z).sum()


def test_rules_may_write_what_they_are_given(tape: Any) -> None:
    def plain(x: Any) -> Any:
        return ((x**3 + 2 * x) * np.arange(3) + x**2 * 2 * x).sum() + (2 * x * x).sum()

    def derivatives(f: Any) -> Any:
        return grad(f)(x3), jvp(f, (x3,), (x3,))[1], grad(lambda x: (grad(f)(x) * x3).sum())(x3)

    agree(tape(lambda: derivatives(writing_rules)), derivatives(plain))


@pytest.mark.parametrize("axis", [0, 1])
def test_what_generators_put_in_order_moves_with_its_slopes(axis: int, tape: Any) -> None:
    weights = np.arange(12.0).reshape(3, 4)

    def f(x: Any) -> Any:
        rng, y = np.random.default_rng(3), x * 2
        rng.shuffle(y, axis=axis)
        chosen = rng.choice(x, 5, axis=axis, p=np.full(x.shape[axis], 1 / x.shape[axis])).sum()
        return (y * weights + rng.permutation(x, axis=axis) * weights**2).sum() + chosen

    value, slope = tape(lambda: value_and_grad(f)(x34))
    np.testing.assert_allclose(value, f(x34))
    along = np.cos(weights)
    np.testing.assert_allclose((slope * along).sum(), (f(x34 + 1e-6 * along) - f(x34 - 1e-6 * along)) / 2e-6, rtol=1e-6)


def handled(x: Any) -> Any:
    y = DATA[0]
    try:
        y[0] = x[0]
    except (TypeError, ValueError):
        return (x * x).sum()
    return y.sum()


def of_two_holders(x: Any) -> Any:
    y = DATA[0] * 2
    others = [y]
    y[0] = x[0]
    return others[0].sum()


def with_a_view(x: Any) -> Any:
    y = DATA * 2
    row = y[0]
    y[0] = x
    return row.sum()


@pytest.mark.parametrize("f", [handled, of_two_holders, with_a_view])
def test_what_is_refused_is_not_lost_where_it_is_handled(f: Any, tape: Any) -> None:
    before = DATA.copy()
    with pytest.raises(DerivativeError, match=f"test_faithful.py:[0-9]+ in {f.__name__}"):
        tape(lambda: grad(f)(x3))
    np.testing.assert_array_equal(DATA, before)


def test_threads_give_values_different_places() -> None:
    made, kind = Tape(), SlotKind((), np.dtype(float), is_array=False)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            slots = [slot for part in pool.map(lambda _: [made.new(kind) for _ in range(5000)], range(4)) for slot in part]
    finally:
        sys.setswitchinterval(before)
    assert len({*slots}) == len(slots) == len(made.kinds)


def test_what_is_left_of_an_iterator_goes_on(tape: Any) -> None:
    left: list[Any] = []

    def f(x: Any) -> Any:
        left.append(iter(x))
        return next(left[-1]) ** 2

    tape(lambda: grad(f)(x3))
    assert [*left[0]] == [*x3[1:]]


def test_jitted_functions_that_libraries_call_are_differentiated(tape: Any) -> None:
    twice = jitml.jit(lambda x: x * 2)

    def f(x: Any) -> Any:
        largest = sorted(x, key=twice)[-1]
        return largest**2

    agree(tape(lambda: grad(f)(x3)), np.array([0, 0, 2.2]))
    assert not twice.variants


ONES = np.ones(3)


def set_first(array: Any, value: Any) -> None:
    array[0] = value


def set_first_of_another_name(array: Any, value: Any) -> None:
    """It writes what its caller holds, too."""
    same = array
    same[0] = value


@pytest.mark.parametrize("write", [set_first, set_first_of_another_name])
def test_an_array_that_the_caller_holds_is_not_replaced_where_it_is_written(write: Any, tape: Any) -> None:
    """Since Python 3.14 the caller alone holds it: a parameter borrows it."""

    def f(x: Any) -> Any:
        y = ONES * 2
        write(y, x[0] * 2)
        return y.sum()

    with pytest.raises(jitml.DerivativeError, match="taken as a float"):
        tape(lambda: grad(f)(x3))


def kept_by_a_closure(x: Any) -> Any:
    y = ONES * 2
    y[0] = x[0] ** 2
    return (lambda: y.sum() + x[1])()


def perhaps_deleted(x: Any) -> Any:
    y = ONES * 2
    if x[0] > 100:
        del y
    y[0] = x[0] ** 2
    return y.sum()


def new_in_a_call(x: Any) -> Any:
    def changed(y: Any, *, by: Any) -> Any:
        """A copy with another first item."""
        y[0] = by
        return y

    assert changed.__doc__ == "A copy with another first item."
    return changed(ONES * 2, by=x[0] ** 2).sum()


@pytest.mark.parametrize("f", [kept_by_a_closure, perhaps_deleted, new_in_a_call])
def test_an_array_of_one_variable_may_be_written(f: Any, tape: Any) -> None:
    value, slope = tape(lambda: value_and_grad(f)(x3))
    np.testing.assert_allclose(value, f(x3))
    np.testing.assert_allclose(slope, [2 * x3[0], float(f is kept_by_a_closure), 0.0])
