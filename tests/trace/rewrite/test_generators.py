"""Generators and context managers made of them do in compiled functions what they do in Python."""

from __future__ import annotations

import contextlib
import gc
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.rewrite.generator_programs import LOG, MODEL, PROGRAMS, STATE, count

import jitml
from jitml.errors import UncompiledWarning, UnsupportedError


def _observed(function: Callable[..., Any], state: int) -> tuple[Any, ...]:
    STATE.v, MODEL.w = state, float(state)
    LOG.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = function(np.arange(1.0, 6.0) * state)
    return repr(result), printed.getvalue(), list(LOG), repr(MODEL.w)


# These, or the generators in them, have a `with` or a `try`.
LEFT = {
    *("what_one_prints", "closed_by_break", "until_it_stops", "raising", "in_a_manager", "ended_among_others", "printed_around"),
    *("logged_around", "gone_on_while", "gone_on_if", "with_a_weight", "in_an_unrolled_loop", "in_a_long_loop", "forgiven"),
    *("under_a_condition", "on_a_stack", "of_a_number", "ended_by_a_value"),
}


@pytest.mark.loose
@pytest.mark.parametrize("name", sorted(LEFT))
def test_what_is_left_to_python_is_as_in_python(name: str) -> None:
    function = PROGRAMS[name]
    compiled = jitml.jit(function, verify="never")
    _observed(compiled, 1)
    gc.collect()  # a refusal keeps what its frames hold, a generator too, until then
    for state in (1, 2, 3, 2):
        assert _observed(compiled, state) == _observed(function, state)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in LEFT])
def test_generators_are_as_in_python(name: str) -> None:
    function = PROGRAMS[name]
    compiled = jitml.jit(function, verify="never")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UncompiledWarning)
        for state in (1, 2, 3, 2):
            assert _observed(compiled, state) == _observed(function, state)


def test_gradients_go_through_generators() -> None:
    def loss(x: Any) -> Any:
        return sum(v * v * k for k, v in zip(count(3), x))

    np.testing.assert_allclose(jitml.grad(loss)(np.array([3.0, 4.0, 5.0])), [0.0, 8.0, 20.0])


def test_a_generator_that_is_returned_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the function returns a generator"):
        jitml.jit(lambda x: count(3))(np.ones(2))


def test_a_clock_in_a_context_manager_is_refused() -> None:
    import time

    @contextlib.contextmanager
    def timed() -> Any:
        before = time.perf_counter()
        yield
        LOG.append(time.perf_counter() - before)

    @jitml.jit
    def f(x: Any) -> Any:
        with timed():
            return x + 1

    with pytest.raises(UnsupportedError, match="`with` enters a"):
        f(np.ones(2))
