"""Large results have the memory of earlier ones that nobody holds any more, and are arrays like any other."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.runtime.c_api import native_calls
from jitml.codegen.llvm.runtime.results import LARGE, keep_at_most, kept_bytes, release_results
from jitml.config import CONFIG

pytestmark = pytest.mark.skipif(not native_calls(), reason="this interpreter's arrays are made by NumPy alone")

N = LARGE // 4  # doubles: twice as large as has to be


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    keep_at_most(64 << 20)
    yield
    keep_at_most(CONFIG.kept_bytes)


@jitml.jit
def doubled(x: Any) -> Any:
    return x * 2


def address(x: Any) -> int:
    return int(x.__array_interface__["data"][0])


def test_memory_is_used_again_once_nobody_holds_it() -> None:
    x = np.arange(float(N))
    first, second = doubled(x), doubled(x)
    places = {address(first), address(second)}
    assert not np.shares_memory(first, second) and kept_bytes() == 0
    part = second[5:]
    del first, second
    assert kept_bytes() == 8 * N  # the second one lives in its part
    third, fourth = doubled(x + 1), doubled(x + 2)
    assert len({address(third), address(fourth)} & places) == 1
    np.testing.assert_array_equal(part, 2 * x[5:])
    np.testing.assert_array_equal(third, 2 * x + 2)
    np.testing.assert_array_equal(fourth, 2 * x + 4)


def test_a_result_owns_its_memory_and_can_be_resized() -> None:
    x = np.arange(float(N))
    result = doubled(x)
    assert result.flags.owndata and result.flags.writeable and result.base is None
    for size in (3 * N, N // 2, 10, 2 * N, 0, 5):
        kept = result[: min(size, len(result))].copy()
        result.resize(size, refcheck=False)
        np.testing.assert_array_equal(result[: len(kept)], kept)
        assert not result[len(kept) :].any()
    assert address(doubled(x)) % 64 == 0


def test_other_arrays_are_numpys_own() -> None:
    from numpy._core.multiarray import get_handler_name  # NumPy has no public name for it

    x = np.arange(float(N))
    own = get_handler_name()
    assert get_handler_name(doubled(x)) == "jitml" and get_handler_name(doubled(x[:10])) == own
    assert get_handler_name() == own and get_handler_name(np.empty(N)) == own


def test_an_array_that_is_too_large_is_a_memory_error_and_changes_nothing() -> None:
    from numpy._core.multiarray import get_handler_name

    own = get_handler_name()
    with pytest.raises(MemoryError):
        jitml.jit(lambda x: np.zeros((1 << 30, 1 << 20)) + x)(1.0)
    assert get_handler_name() == own
    np.testing.assert_array_equal(doubled(np.ones(N)), np.full(N, 2.0))


def test_no_more_is_kept_than_may_be_and_the_oldest_goes_first() -> None:
    x = np.arange(float(N))
    keep_at_most(3 * 8 * N)
    results = [doubled(x) for _ in range(5)]
    last = address(results[-1])
    while results:
        results.pop(0)
    assert kept_bytes() == 3 * 8 * N
    assert address(doubled(x)) == last
    keep_at_most(8 * N - 1)
    assert kept_bytes() == 0
    doubled(x)
    assert kept_bytes() == 0
    keep_at_most(0)
    np.testing.assert_array_equal(doubled(x), 2 * x)


def test_many_sizes() -> None:
    rng = np.random.default_rng(0)
    held: list[tuple[Any, Any]] = []
    for _ in range(300):
        n = int(rng.integers(1, 8 * N))
        x = rng.integers(0, 100, n).astype(float)
        held.append((doubled(x), x))
        if len(held) > 6:
            held.pop(int(rng.integers(len(held))))
        for result, given in held:
            np.testing.assert_array_equal(result, 2 * given)
    held.clear()
    assert 0 < kept_bytes() <= 64 << 20
    release_results()
    assert kept_bytes() == 0


def test_nothing_is_taken_for_zeros() -> None:
    """Of what a program leaves as it finds it."""

    @jitml.jit
    def zeros(x: Any) -> Any:
        y = np.zeros((20_000_000,))
        y[3] = x
        return y, np.zeros(N)

    for _ in range(2):
        jitml.jit(lambda x: (np.full(20_000_000, x), np.full(N, x)))(7.0)
        large, small = zeros(1.0)
        assert large.sum() == 1 and not small.any()
        del large, small


def test_tracemalloc_sees_them() -> None:
    x = np.ones(N)
    doubled(x)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = doubled(x)
        assert tracemalloc.get_traced_memory()[0] - before >= result.nbytes
        del result
        assert tracemalloc.get_traced_memory()[0] - before < x.nbytes
    finally:
        tracemalloc.stop()


def test_threads() -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for k in range(100):
                x = np.full(N + 500 * (k % 7), float(seed + k))
                result = doubled(x)
                assert (result == 2 * (seed + k)).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_results_outlive_the_program_and_python_itself() -> None:
    program = """
import atexit, numpy as np, jitml
held = [jitml.jit(lambda x: x * 2)(np.ones(100_000)) for _ in range(3)]
atexit.register(lambda: held.append(jitml.jit(lambda x: x + 1)(held[0])))
class Late:
    def __init__(self, array): self.array = array
    def __del__(self): self.array = None
late = Late(held.pop())
late.itself = late
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_finalizers_that_make_results_in_the_midst_of_others() -> None:
    """Each result set a context variable once: CPython 3.11 crashed where a finalizer set another meanwhile."""
    program = """
import gc, numpy as np, jitml
f = jitml.jit(lambda x: x * 2)
x = np.ones(20_000)
f(x)
class Last:
    def __init__(self): self.itself, self.held = self, f(x)
    def __del__(self): self.total = f(self.held)
gc.set_threshold(5, 2, 2)
for n in range(1000):
    Last()
    held = [[] for _ in range(n % 50)]
    f(x)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
