"""Mutation and views: values, dtypes, order of strides, shared memory and writeability are NumPy's, for results and arguments.

A row is a function of arrays with effects; it runs eagerly and jitted, twice each, on equal arrays that share memory alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.trace.storage.mutation_programs import ROWS, Array, namedtuple_takes_no_values

import jitml
from jitml.errors import UncompiledWarning, UnsupportedError

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")


def leaves(tree: Any) -> Iterator[Array]:
    if isinstance(tree, (tuple, list)):
        for part in tree:
            yield from leaves(part)
    elif isinstance(tree, np.ndarray):
        yield tree


def order(x: Array) -> list[int]:
    """Axes by stride, of those that have one."""
    axes = [n for n in range(x.ndim) if x.shape[n] > 1 and x.size]
    return sorted(axes, key=lambda n: -abs(x.strides[n]))


def compare(want: Any, got: Any) -> None:
    assert type(want) is type(got)
    if isinstance(want, (tuple, list)):
        assert len(want) == len(got)
        for w, g in zip(want, got):
            compare(w, g)
    elif isinstance(want, np.ndarray):
        assert (want.dtype.str, want.shape, order(want)) == (got.dtype.str, got.shape, order(got))
        assert want.flags.writeable == got.flags.writeable
        np.testing.assert_allclose(got, want, rtol=1e-14)
    else:
        assert want == pytest.approx(got, rel=1e-14) if isinstance(want, float) else want == got


def shared(arrays: Sequence[Array]) -> list[bool]:
    return [np.shares_memory(x, y) for n, x in enumerate(arrays) for y in arrays[:n]]


def outcome(function: Any, arguments: Sequence[Array]) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)


def made(make: Callable[[], Any]) -> list[Array]:
    arguments = make()
    return arguments if isinstance(arguments, list) else [arguments]


# Arguments that share memory in part, of which some is written.
OVERLAPPING = {
    *(f"both_written-{name}" for name in (
        "blocks", "every_other", "every_other_row", "flat_memory", "from_a_buffer", "one_element", "overlapping", "reversed_too",
        "transposed_too", "with_a_stranger",
    )),
    *(f"one_written-{name}" for name in ("flat_memory", "from_a_buffer", "overlapping", "transposed_too")),
}  # fmt: skip


def row(name: str, *given: Any) -> Any:
    """What a refusal is about runs as Python: what that raises is seen as users see it."""
    is_loose = given[1] is namedtuple_takes_no_values or name in OVERLAPPING
    return pytest.param(*given, id=name, marks=[pytest.mark.loose] if is_loose else [])


@pytest.mark.parametrize(("make", "function"), [row(*r) for r in ROWS])
def test_mutation_and_views(make: Callable[[], Any], function: Callable[..., Any]) -> None:
    compiled = jitml.jit(function)
    for _ in range(2):
        eager, jitted = made(make), made(make)
        want, got = outcome(function, eager), outcome(compiled, jitted)
        compare(want, got)
        compare(eager, jitted)
        assert shared([*leaves(want), *eager]) == shared([*leaves(got), *jitted])


@pytest.mark.loose
def test_arguments_that_overlap_elsewhere_have_their_own_answer() -> None:
    def f(x: Array, y: Array) -> Array:
        x += 1
        return y * 2

    compiled = jitml.jit(f)
    for start in (0, 3, 1, 9, 0):
        eager, jitted = np.arange(20.0), np.arange(20.0)
        np.testing.assert_array_equal(f(eager[:9], eager[start : start + 9]), compiled(jitted[:9], jitted[start : start + 9]))
        np.testing.assert_array_equal(eager, jitted)


def test_an_argument_returned_is_the_argument() -> None:
    a = np.arange(6.0)
    x, y = a[1:], a[:-1]
    first, second = jitml.jit(lambda x, y: (x, y))(x, y)
    assert first is x
    assert second is y


def test_memory_shared_in_ways_without_a_grid_is_refused_when_written() -> None:
    a = np.zeros(12)
    with pytest.raises(UnsupportedError, match="is written and overlaps"):
        jitml.jit(lambda x, y: x.fill(1))(a[1:], a.view(np.int64)[:3])


def test_an_array_that_meets_itself_is_refused_when_written() -> None:
    x = np.lib.stride_tricks.as_strided(np.arange(5.0), (3, 2), (8, 8))
    assert jitml.jit(lambda x: x.sum())(x) == x.sum()
    with pytest.raises(UnsupportedError, match="stands in several places"):
        jitml.jit(lambda x: x.fill(1))(x)


def test_a_broadcast_of_an_argument_is_not_unlocked() -> None:
    def f(x: Array) -> Array:
        y = np.broadcast_to(x, (2, 3))
        y.flags.writeable = True
        y[0, 1] = 7
        return x

    with pytest.warns(UncompiledWarning, match="cannot set WRITEABLE flag"):
        np.testing.assert_array_equal(jitml.jit(f)(np.arange(3)), [0, 7, 2])
