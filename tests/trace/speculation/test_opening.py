"""Sizes that change from call to call are left open: few variants serve calls of many sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitml
import jitml.dispatch.specialize
from jitml.config import CONFIG
from jitml.errors import UnsupportedError
from jitml.trace.speculation.dynamic_shapes import (
    MOST_BYTES,
    VariantKey,
    choices,
    count_host_calls,
    is_excessive,
    open_places,
    seen,
)
from jitml.trace.trace import trace

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(0)


def calls_agree(f: Callable[..., Any], calls: Sequence[Sequence[Any]], most: int = 3, **options: Any) -> Any:
    """Compiled and plain function agree on each call, mutated arguments included, with few compilations."""
    fast = jitml.jit(f, **options)
    for args in calls:
        mine, plain = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
        expected = f(*plain)
        got = fast(*mine)
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
        for a, b in zip(mine, plain):
            np.testing.assert_array_equal(a, b)
    assert len(fast.variants) <= most
    return fast


def lengths(*ns: int) -> list[list[Array]]:
    return [[rng.normal(size=n)] for n in ns]


def test_a_thousand_calls_of_random_lengths_compile_thrice_at_most() -> None:
    f = jitml.jit(lambda x, y: (np.exp(-x) * y + 1).sum() + x.size)
    for n in (*rng.integers(0, 3000, 997), 0, 1, 100_000):
        x, y = rng.normal(size=(2, n))
        np.testing.assert_allclose(f(x, y), (np.exp(-x) * y + 1).sum() + n)
    assert len(f.variants) <= 3


def test_floats_and_ints_that_are_only_values_never_compile_again() -> None:
    f = jitml.jit(lambda x, a, n: a * x + n)
    for k in range(20):
        np.testing.assert_array_equal(f(np.arange(3.0), k / 7, k), k / 7 * np.arange(3.0) + k)
    assert len(f.variants) == 1


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def scale_in_place(x: Array) -> Array:
    x *= 2
    x[1:] += 1
    return x.sum()


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "pointwise": (lambda x: np.exp(x) * 2 + x.sum(), lengths(5, 7, 0, 1, 1000, 3)),
    "in place": (scale_in_place, lengths(5, 7, 1, 1000, 3)),
    "neighbours": (lambda x: x[2:] - 2 * x[1:-1] + x[:-2], lengths(5, 7, 30, 3)),
    "strided": (lambda x: x * 2, [[rng.normal(size=2 * n)[::2]] for n in (5, 7, 30)]),
    "sorted": (lambda x: np.sort(x)[::-1], lengths(5, 7, 0, 1, 1000)),
    "what is positive": (lambda x: x[x > 0], lengths(5, 7, 0, 1, 1000)),
    "rows": (softmax, [[rng.normal(size=(n, 4))] for n in (5, 7, 1, 200)]),
    "rows and columns": (softmax, [[rng.normal(size=(n, m))] for n, m in ((5, 3), (7, 4), (1, 1), (100, 30), (3, 200))]),
    "in place, rows and columns": (scale_in_place, [[rng.normal(size=(n, m))] for n, m in ((5, 3), (7, 4), (2, 1), (40, 30))]),
    "a layer": (lambda x, w: np.tanh(x @ w), [[rng.normal(size=(n, 4)), rng.normal(size=(4, 3))] for n in (5, 7, 1, 200)]),
    "all pairs": (lambda x: x[:, None] * x[None, :], lengths(5, 7, 1, 100)),
    "joined": (lambda x, y: np.concatenate([x, y, x]), [lengths(n)[0] + lengths(m)[0] for n, m in ((3, 4), (5, 2), (1, 9))]),
    "a slice up to an int": (lambda x, n: x[:n] * n, [[np.arange(4.0), n] for n in (1, 2, 2, 1, 3, 0, 4)]),
    "as long as an int": (lambda n: np.zeros(n) + 1, [[n] for n in (1, 2, 5, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_variants_stay_few(name: str) -> None:
    f, calls = PROGRAMS[name]
    calls_agree(f, calls)


def test_equal_sizes_are_one_until_they_differ() -> None:
    pairs = [[rng.normal(size=n), rng.normal(size=m)] for n, m in ((3, 3), (4, 4), (5, 6))]
    fast = calls_agree(lambda x, y: x * 2 + y.sum(), pairs)
    assert "y.shape[0] is x.shape[0]" in fast.variants[1].checks
    assert "y.shape[0] is x.shape[0]" not in fast.variants[0].checks


def test_a_size_beyond_its_limit_widens_it() -> None:
    fast = calls_agree(lambda x: x + 1, lengths(3, 4, 200_000, 5, 70_000), most=3)
    assert len(fast.variants) == 3


def test_reasons_name_the_argument_its_sizes_and_the_line() -> None:
    f = jitml.jit(lambda x, n: x[:n] * 2)
    for n in (2, 3):
        f(np.arange(5.0), n)
    assert "n was 2, is 3, and is left open from here on" in f.variants[0].reason
    assert "test_opening.py" in f.variants[0].reason
    f(np.arange(6.0), 3)
    assert "x.shape[0] was 5, is 6" in f.variants[0].reason


def test_slices_that_leave_out_equally_many_elements_have_one_size() -> None:
    """`x[1:-1]` beside `x[:-2]`: nothing is left to check, and no place to be clipped."""
    f = jitml.jit(lambda x: x[1:-1] + x[:-2] + x[2:], dynamic=True)
    kernels = str(f.lower(np.ones(9)).kernels)
    assert "check" not in kernels and "maximum(i0" not in kernels


ENDS = [(start, stop, step) for start in (None, 0, 1, 3) for stop in (None, 0, -1, -2, -5, 2) for step in (1, 2, 3)]


def test_slices_of_open_sizes_are_numpy_s() -> None:
    def parts(x: Array) -> list[Array]:
        return [x[slice(*ends)] for ends in ENDS]

    f = jitml.jit(parts, dynamic=True)
    for n in (*range(9), 40):
        x = rng.normal(size=n)
        for ends, got, expected in zip(ENDS, f(x), parts(x), strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=f"{ends} of {n}")
    assert len(f.variants) <= 2


def test_dynamic_forces_and_forbids() -> None:
    calls_agree(lambda x: x.sum(axis=0), [[rng.normal(size=(n, 3))] for n in (2, 5, 9)], most=1, dynamic=True)
    fast = calls_agree(lambda x: x * 2, lengths(2, 5, 9), dynamic=False)
    assert len(fast.variants) == 3


def test_what_cannot_be_left_open_is_compiled_for_its_size() -> None:
    def unrolled(x: Array) -> Any:
        return x * float(str(len(x)))

    fast = calls_agree(unrolled, lengths(2, 5, 9, 5))
    assert len(fast.variants) == 3


SPARED: dict[str, Callable[..., Any]] = {
    "convolve": lambda x: np.convolve(x, x[:2]),
    "correlate": lambda x: np.correlate(x, x[:2]),
    "polyval": lambda x: np.polyval(x, 0.5),
    "polyfit": lambda x: np.polyfit(np.arange(len(x)), x, 1),
    "fft": lambda x: np.fft.fft(x).real,
    "quantile": lambda x: np.quantile(x, 0.3, method="hazen"),
    "nanmedian": np.nanmedian,
    "inv": lambda x: np.linalg.inv(np.outer(x, x) + np.eye(len(x))),
    "pairs": lambda x: np.array([[v, 2 * v] for v in x]),
}  # fmt: skip


def host_calls(fast: Any) -> list[int]:
    """Of its variants, the newest first."""
    return [count_host_calls(variant.traced.graph) for variant in fast.variants]


@pytest.mark.parametrize("name", SPARED)
def test_a_size_is_not_left_open_at_the_price_of_a_host_call(name: str) -> None:
    fast = calls_agree(SPARED[name], lengths(4, 5, 6, 5))
    assert host_calls(fast) == [0, 0, 0]


def test_only_the_size_that_would_cost_a_host_call_is_closed() -> None:
    calls = [[rng.normal(size=n), rng.normal(size=m)] for n, m in ((4, 3), (5, 3), (5, 4), (5, 6), (5, 9))]
    fast = calls_agree(lambda x, y: np.polyval(x, 0.5) * y, calls)
    assert host_calls(fast) == [0, 0, 0]
    assert list(fast.variants[0].traced.key.opened) == [(1, 0)]


def test_what_has_been_traced_to_compare_is_not_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[Any] = []
    tracing = jitml.dispatch.specialize.tracing
    monkeypatch.setattr(tracing, "trace", lambda *args, **kwargs: traced.append(args) or trace(*args, **kwargs))
    calls_agree(lambda x: np.polyval(x, 0.5), lengths(4, 5))
    assert len(traced) == 3


def test_many_sizes_are_left_open_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.dispatch.specialize.CONFIG", replace(CONFIG, max_paths=3))
    fast = calls_agree(lambda x: np.polyval(x, 0.5), lengths(4, 5, 6, 7, 8, 9), most=4)
    assert host_calls(fast) == [1, 0, 0, 0]
    dynamic = calls_agree(lambda x: np.polyval(x, 0.5), lengths(4, 5, 6), most=1, dynamic=True)
    assert host_calls(dynamic) == [1]


def test_only_the_size_that_cannot_be_left_open_is_closed() -> None:
    calls = [[rng.normal(size=n), rng.normal(size=m)] for n, m in ((4, 3), (5, 4), (5, 6), (5, 9), (6, 9), (6, 10))]
    calls_agree(lambda x, y: float(str(len(x))) * y, calls)


def test_errors_come_as_in_numpy() -> None:
    f = jitml.jit(lambda x, y: x + y)
    for n in (3, 4, 5):
        f(np.zeros(n), np.zeros(n))
    with pytest.raises(ValueError, match="could not be broadcast"):
        f(np.zeros(3), np.zeros(4))
    np.testing.assert_array_equal(f(np.zeros(1), np.arange(4.0)), np.arange(4.0))


def test_limits_of_several_axes_fit_into_memory() -> None:
    before, now = seen([np.zeros((1000, 1000))]), seen([np.zeros((900, 800))])
    opened = open_places({}, before, now, ())
    assert opened[0, 0].high * opened[0, 1].high * 8 <= MOST_BYTES
    assert min(size.high for size in opened.values()) >= 2000


def test_where_memory_is_taken_limits_are_tight_unless_all_is_small() -> None:
    def pairs(x: Array) -> Any:
        return x[:, None] * x

    for n, most in ((3000, 4096), (4096, 4096), (20, 1448)):
        before, now = np.zeros(10), np.zeros(n)
        earlier = trace(pairs, (before,), {}, VariantKey(seen=seen([before])))
        for opened in choices([earlier], seen([now]), (), None, is_taken=True):
            graph = trace(pairs, (now,), {}, VariantKey(opened=opened, seen=seen([now]))).graph
            if not is_excessive(graph, opened, seen([now]), is_taken=True):
                break
        assert n <= opened[0, 0].high <= most


def test_a_place_may_be_open_though_the_one_it_is_like_is_closed() -> None:
    def f(n: int, m: int) -> Any:
        return np.zeros(n).sum() + np.arange(m).sum()

    earlier = trace(f, (3, 3), {}, VariantKey(seen=seen((3, 3))))
    found = [*choices([earlier], seen([4, 4]), {(0, None)}, None)]
    assert found[0].keys() == {(1, None)} and len(found) > 2 and found[-1] == {}


def test_arrays_of_other_strides_or_orders_have_other_variants() -> None:
    def shares_with_its_ravel(x: Array) -> Any:
        flat = x.ravel()
        x += 1
        return flat * 1

    makers: list[Callable[[], Array]] = [
        lambda n=n, step=step: np.arange(40.0)[::step][:n]
        for n, step in ((5, 1), (6, 1), (7, 2), (8, 2), (8, -1), (9, 2), (1, 2), (9, 3))
    ]
    makers += [lambda n=n: np.arange(4 * n, dtype=">i4").reshape(n, 4) for n in (5, 6, 7)]
    makers.append(lambda: np.arange(20, dtype=">i4").reshape(4, 5).T)
    fast = jitml.jit(shares_with_its_ravel)
    for made in makers:
        np.testing.assert_array_equal(fast(made()), shares_with_its_ravel(made()))
    assert len(fast.variants) <= 9


def fills(x: Array, n: int) -> Any:
    x[0] = 7
    return np.full(n, 2.5)


def fills_before_a_loop(x: Array, n: int) -> Any:
    x[0] = 7
    rows, last = np.ones((n - 3, 2)), 0
    for i in range(n):
        last = i
    return rows, last


def reads_what_a_loop_names(x: Array, n: int) -> Any:
    x[0] = 7
    v, u = np.arange(n - 2), np.zeros(2 * n - 5)
    for i in range(n):
        last = i
    return v, u, last


@pytest.mark.parametrize("f", [fills, fills_before_a_loop, reads_what_a_loop_names])
def test_what_was_written_before_a_size_that_cannot_be_stays(f: Callable[..., Any]) -> None:
    fast = jitml.jit(f)
    for n in (3, 4, 5, -2, -3, 2**40, 2**61, 2**62, 1, 0, 6):
        outcomes = []
        for function in (f, fast):
            x = np.arange(6.0)
            try:
                result: Any = [np.asarray(part).tolist() for part in function(x, n)]
            except (ValueError, MemoryError, UnboundLocalError) as error:
                result = next(kind for kind in (ValueError, MemoryError, UnboundLocalError) if isinstance(error, kind))
            outcomes.append((result, x.tolist()))
        assert outcomes[0] == outcomes[1], n


def change_for(coins: Array, total: int) -> Any:
    fewest, last, ways = np.full(total + 1, 10_000), np.zeros(total + 1, int), np.zeros(total + 1, int)
    fewest[0], ways[0] = 0, 1
    for coin in coins:
        for t in range(coin, total + 1):
            if fewest[t - coin] + 1 < fewest[t]:
                fewest[t], last[t] = fewest[t - coin] + 1, coin
            ways[t] += ways[t - coin]
    taken = []
    if fewest[total] > total:
        return [*taken, ways[total]]
    while total > 0:
        taken.append(last[total])
        total -= last[total]
    return taken


def test_a_while_is_not_unrolled_on_and_on_where_open_sizes_hide_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals: list[str] = []

    def traced(*args: Any, **options: Any) -> Any:
        try:
            return trace(*args, **options)
        except UnsupportedError as error:
            refusals.append(error.message)
            raise

    monkeypatch.setattr(jitml.dispatch.specialize.tracing, "trace", traced)
    calls_agree(change_for, [(np.array([2, 3, 5, 7, 11]), 30), (np.array([2, 3]), 7)])
    assert {*refusals} <= {"which way the function goes depends on what a long loop computes"}
