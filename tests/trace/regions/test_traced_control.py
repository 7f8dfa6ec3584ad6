"""Control flow on traced conditions and ranges: results, exceptions and shared memory are NumPy's, from one compiled variant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.trace.regions.traced_choices import CHOICES, DECIDED, kept_by_a_branch, while_may_not_run
from tests.trace.regions.traced_loops import LOOPS
from tests.trace.regions.traced_programs import PROGRAMS, Program

import jitml

pytestmark = pytest.mark.filterwarnings("error::jitml.errors.UncompiledWarning")
Array = np.ndarray[Any, Any]
INPUTS = ([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0], [-3.0, -1.0, -4.0, -1.0, -5.0, -9.0, -2.0, -6.0])


def compare(want: Any, got: Any) -> None:
    if isinstance(want, (tuple, list)):
        assert type(want) is type(got)
        assert len(want) == len(got)
        for w, g in zip(want, got):
            compare(w, g)
    elif isinstance(want, str):
        assert want == got
    elif isinstance(want, np.ndarray):
        assert (want.dtype, want.shape) == (got.dtype, got.shape)
        np.testing.assert_allclose(got, want, rtol=1e-12)
    else:
        # A float that a loop may leave as it was comes out as the np.float64 that it would have become.
        assert isinstance(got, type(want)) or isinstance(want, type(got))
        assert got == pytest.approx(want, rel=1e-12)


def outcome(function: Program, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


LEFT = ("list_break", "list_break_k", "try_fin", "bound_anew_in_a_try_and_written")  # to Python, or to a program for each way


@pytest.mark.parametrize("function", [f for f in PROGRAMS + LOOPS if f.__name__ not in LEFT], ids=lambda f: f.__name__)
def test_traced_control_flow_is_numpys(function: Program) -> None:
    compiled = jitml.jit(function)
    for values in INPUTS:
        eager, jitted = np.array(values), np.array(values)
        compare(outcome(function, eager), outcome(compiled, jitted))
        compare(eager, jitted)
    assert len(compiled.variants) == 1


@pytest.mark.loose
@pytest.mark.parametrize("function", [f for f in PROGRAMS + LOOPS if f.__name__ in LEFT], ids=lambda f: f.__name__)
def test_what_is_left_to_python_is_numpys(function: Program) -> None:
    compiled = jitml.jit(function)
    for values in (*INPUTS, INPUTS[0][::-1], INPUTS[0]):
        eager, jitted = np.array(values), np.array(values)
        compare(outcome(function, eager), outcome(compiled, jitted))
        compare(eager, jitted)


@pytest.mark.parametrize("function", CHOICES, ids=lambda f: f.__name__)
def test_a_result_is_the_array_that_the_branch_chose(function: Program) -> None:
    compiled = jitml.jit(function)
    for values in ([3.0, 1, 4, 1, 5], [-3.0, 1, 4, 1, 5], [-3, -1.0, 4, 1, 5], [3.0, -1, 4, 1, 500]):
        count = function.__code__.co_argcount
        eager, jitted = ([np.array(values) * (n + 1) for n in range(count)] for _ in range(2))
        arrays = []
        for run, args in ((function, eager), (compiled, jitted)):
            result = run(*args)
            arrays.append([*(result if isinstance(result, tuple) else (result,)), *args])
        compare(*arrays)
        shared = [[np.shares_memory(x, y) for n, x in enumerate(found) for y in found[:n]] for found in arrays]
        assert shared[0] == shared[1]
    assert len(compiled.variants) == 1


def test_a_result_that_a_loop_may_have_left_is_a_copy() -> None:
    for function in (while_may_not_run, kept_by_a_branch):
        x = np.array([-3.0, -1, -4, -1, 500])
        np.testing.assert_array_equal(jitml.jit(function)(x), function(x))


@pytest.mark.parametrize("function", DECIDED, ids=lambda f: f.__name__)
def test_which_array_is_written_is_assumed(function: Program) -> None:
    compiled = jitml.jit(function)
    for _ in range(2):
        for values in ([3.0, 1, 4, 1, 5], [-3.0, 1, 4, 1, 500], [-3, -1.0, 4, 1, 1]):
            eager, jitted = np.array(values), np.array(values)
            want, got = function(eager), compiled(jitted)
            compare((want, eager), (got, jitted))
            assert np.shares_memory(want, eager) == np.shares_memory(got, jitted)
    assert all(variant.assumes for variant in compiled.variants)


def test_loops_over_lists_that_end_on_traced_flags() -> None:
    def f(x: Array) -> Any:
        total = 0.0
        for k, weight in zip([1, 2, 3], [0.5, 1.5, 2.5]):
            if x[k] < 0:
                continue
            total += x[k] * weight
            if total > 4:
                break
        else:
            total = -total
        return total, k

    compiled = jitml.jit(f)
    for values in INPUTS:
        compare(f(np.array(values)), compiled(np.array(values)))
