"""Whole programs under threads: the same bits at any count, callers at once, and life after fork()."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import numpy as np
import optree
import pytest

import jitml

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
from workloads import WORKLOADS


@pytest.mark.parametrize(
    "name", ["moments", "standardize_columns", "covariance", "softmax_rows", "attention_gradient", "kl_divergence", "adam_update"]
)
def test_results_do_not_depend_on_the_number_of_threads(name: str) -> None:
    workload = WORKLOADS[name]
    function = workload.function if workload.loss is None else jitml.grad(workload.loss, argnums=workload.argnums)
    results = []
    for threads in (1, 2, 5):
        args = workload.make_inputs(workload.full // 2)
        results.append(optree.tree_leaves((jitml.jit(function, threads=threads)(*args), args)))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_python_threads_compile_and_run_at_once() -> None:
    @jitml.jit
    def f(x, y):
        centred = x - x.mean(axis=0)
        return np.exp(-centred * centred) @ y

    wrong = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for step in range(12):
            n = 50 + 300 * (step % 3)
            x, y = rng.standard_normal((n, 40)), rng.standard_normal((40, 30))
            centred = x - x.mean(axis=0)
            if not np.allclose(f(x, y), np.exp(-centred * centred) @ y):
                wrong.append((seed, step))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads) and not wrong


def halvings(n: float) -> float:
    x = 1.0
    while n > 0:
        x, n = x * 0.5 + 1.0, n - 1.0
    return x


def products(A: np.ndarray, n: float) -> np.ndarray:
    x = A
    while n > 0:
        x, n = np.sin(x) @ A, n - 1.0
    return x


@pytest.mark.parametrize("f, args", [(halvings, (2e7,)), (products, (np.ones((3, 3)), 2e6))], ids=["one kernel", "a region"])
def test_other_threads_run_while_a_while_does(f, args) -> None:
    fast, ticks, stop = jitml.jit(f), [0], threading.Event()
    fast(*args[:-1], 2.0)

    def count() -> None:
        while not stop.wait(0.001):
            ticks[0] += 1

    other = threading.Thread(target=count)
    other.start()
    before = ticks[0]
    fast(*args)
    after = ticks[0]
    stop.set()
    other.join()
    assert after > before + 5
    assert len(fast.variants) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_compiles_and_runs() -> None:
    x = np.random.default_rng(0).standard_normal((400, 300))
    f = jitml.jit(lambda a: np.tanh(a @ a.T).sum(axis=0))
    expected = f(x)
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            same = np.array_equal(f(x), expected)
            new = np.allclose(jitml.jit(lambda a: np.cos(a).mean(axis=1))(x), np.cos(x).mean(axis=1))
            os._exit(0 if same and new else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    np.testing.assert_array_equal(f(x), expected)
