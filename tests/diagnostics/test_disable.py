"""`jitml.disable`: jitted functions are the functions as they were written, and nothing is forgotten meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from device.device_cases import on_device
from jitml.functions import is_disabled
from sections.forced_breaks import no_trials, trials
from support.host_device import host_device

pytestmark = pytest.mark.loose


@pytest.fixture(autouse=True)
def enabled_again() -> Iterator[None]:
    yield
    jitml.enable()


def caller() -> str:
    """The file of the function that calls the one which calls this."""
    return os.path.basename(sys._getframe(2).f_code.co_filename)


def square_sum(x: Any) -> Any:
    return (x * x).sum()


def test_a_compiled_function_runs_as_python_and_is_kept() -> None:
    jitted = jitml.jit(square_sum)
    with no_trials():
        assert jitted(np.arange(4.0)) == 14.0
        variants = jitted.variants
        assert len(variants) == 1
        with jitml.disable():
            assert is_disabled()
            assert jitted._next() is square_sum
            assert jitted(np.arange(4.0)) == 14.0
            assert jitted(np.arange(4.0, dtype="f4")) == 14.0  # for which it would have been compiled
        assert not is_disabled()
        assert jitted._next() is not square_sum
        assert jitted(np.arange(4.0)) == 14.0
        assert jitted.variants == variants


def test_a_function_that_was_left_alone_is_so_again() -> None:
    with trials():
        jitted = jitml.jit(lambda x: x)  # which no machine code is faster than
        for _ in range(50):
            jitted(1)
        alone = jitted.alone
        assert alone is not None
        with jitml.disable():
            assert jitted._next() is jitted.function
        assert jitted.alone is alone
        assert jitted._next() == alone.timed


def test_a_trace_leaves_alone_what_has_been_enabled() -> None:
    jitted = jitml.jit(square_sum, strict=True)
    jitted(np.ones(3))
    with jitml.disable():
        pass
    jitml.jit(lambda x: x + 1, strict=True)(np.ones(3))
    assert jitted._next() == jitted.engine.__call__


def test_calls_have_no_frame_of_ours() -> None:
    def depth(n: int) -> int:
        assert caller() == os.path.basename(__file__)
        return 0 if n == 0 else 1 + jitted(n - 1)  # type: ignore[no-any-return]  # the same

    jitted = jitml.jit(depth)
    with no_trials(), jitml.disable():
        deep = sys.getrecursionlimit() // 3
        assert jitted(deep) == deep


def test_it_is_a_switch_too() -> None:
    jitml.disable()
    jitted = jitml.jit(square_sum, strict=True)
    assert jitted(np.ones(3)) == 3.0
    assert not jitted.variants
    jitml.enable()
    assert jitted(np.ones(3)) == 3.0
    assert jitted.variants


def test_blocks_nest_and_end_in_any_order() -> None:
    first, second = jitml.disable(), jitml.disable()
    with first:
        assert is_disabled()
    assert is_disabled()  # by the second
    with second:
        pass
    assert not is_disabled()
    with jitml.disable():
        jitml.enable()
        assert not is_disabled()
        jitml.disable()
    assert is_disabled()  # the block ends what it has begun


def test_all_threads_see_it() -> None:
    jitted = jitml.jit(square_sum, strict=True)
    with jitml.disable():
        thread = threading.Thread(target=jitted, args=(np.ones(3),))
        thread.start()
        thread.join()
    assert not jitted.variants


def test_methods_generators_and_sections() -> None:
    class Model:
        @jitml.jit
        def step(self, x: Any) -> Any:
            self.seen = caller()
            return x + 1

    @jitml.jit
    def batches(x: Any) -> Any:
        for i in range(3):
            yield np.sin(x) + np.cos(x) * i

    model = Model()
    with no_trials():
        model.step(np.ones(2))
        list(batches(np.ones(2)))
        with jitml.disable():
            assert list(model.step(np.ones(2))) == [2.0, 2.0]
            assert model.seen == os.path.basename(__file__)
            assert batches(np.ones(2)).gi_code is batches.function.__code__


@pytest.mark.parametrize(
    ("transform", "point", "expected"),
    [
        (jitml.grad, np.arange(3.0), [0.0, 2.0, 4.0]),
        (jitml.hessian, np.arange(2.0), [[2.0, 0.0], [0.0, 2.0]]),
        (jitml.vmap, np.arange(6.0).reshape(3, 2), [1.0, 13.0, 41.0]),
        (lambda f: jitml.jit(jitml.grad(f)), np.arange(3.0), [0.0, 2.0, 4.0]),
        (lambda f: lambda x: jitml.jvp(f, (x,), (np.ones(3),))[1], np.arange(3.0), 6.0),
        (lambda f: lambda x: jitml.vjp(f, x)[1](2.0)[0], np.arange(3.0), [0.0, 4.0, 8.0]),
    ],
)
def test_transforms_run_the_function_on_the_values_themselves(transform: Any, point: Any, expected: Any) -> None:
    values: list[float] = []

    def loss(x: Any) -> Any:
        values.append(float(x.ravel()[-1]))
        return jitml.jit(square_sum)(x)

    with jitml.disable():
        for n in (1, 2):  # each time anew
            np.testing.assert_allclose(transform(loss)(point), expected)
            assert len(values) == n * (3 if transform is jitml.vmap else 1)
    assert values[-1] == point.ravel()[-1]


@pytest.mark.parametrize(
    ("in_axes", "x", "text"),
    [(2, np.ones((3, 2)), "no axis 2"), (0, 1.0, "no axis of rows"), ((0, 0), np.ones(3), "in_axes has 2 entries")],
)
def test_vmap_says_the_same_of_wrong_arguments(in_axes: Any, x: Any, text: str) -> None:
    with jitml.disable(), pytest.raises(jitml.ShapeError, match=text):
        jitml.vmap(square_sum, in_axes=in_axes)(x)


def test_rows_are_as_usual() -> None:
    xs = np.arange(12.0).reshape(3, 4)
    usual = jitml.vmap(np.sin, 1, 1)(xs)
    with jitml.disable():
        np.testing.assert_array_equal(jitml.vmap(np.sin, 1, 1)(xs), usual)
        assert jitml.vmap(np.sin)(np.ones((0, 3))).shape == (0, 3)


def test_a_trace_of_debug_nans_still_sees_jitted_functions() -> None:
    inner = jitml.jit(lambda x: np.sqrt(x) if x > 0 else x * 0.0)
    with jitml.disable(), jitml.debug_nans(), pytest.raises(jitml.NonFiniteError):
        jitml.grad(lambda x: sum(map(inner, [x])) / (x - x))(2.0)
    with jitml.disable():
        assert inner._next() is inner.function or inner(4.0) == 2.0
        assert inner._next() is inner.function


def test_operations_on_device_arrays_are_computed_on_the_host() -> None:
    with host_device() as device, jitml.disable():
        x = on_device(np.arange(4.0))
        copies = device.copies.to_host
        found = jitml.jit(square_sum)(x)
        assert device.copies.to_host > copies
        assert (float(found), found.device) == (14.0, "cuda")
        assert list(np.asarray(jitml.grad(square_sum)(x))) == [0.0, 2.0, 4.0, 6.0]
        assert list(np.asarray(jitml.vmap(np.sum)(on_device(np.ones((2, 3)))))) == [3.0, 3.0]


PROGRAM = """
import sys, jitml
@jitml.jit(strict=True)
def double(x):
    return x + x
print(double(2.0), "jitml.engine" in sys.modules, jitml.grad(lambda x: x * x)(3.0))
jitml.enable()
print(double(2.0), len(double.variants))
"""


def test_the_environment_disables_it_for_a_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "JITML_DISABLE": "1"},
    )
    assert done.stdout.splitlines() == ["4.0 False 6.0", "4.0 1"]
