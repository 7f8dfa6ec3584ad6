"""Jitted functions inside other libraries: pools of processes and threads, joblib, dask, estimators, optimisers."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from people.worker_functions import FUNCTIONS, relative
from tools.jupyter import in_kernel

pytestmark = pytest.mark.loose

XS = [np.linspace(0.0, 1.0 + k, 300) for k in range(2)]

PROGRAM = """
import numpy as np, jitml
from concurrent.futures import ProcessPoolExecutor
import multiprocessing

@jitml.jit
def energy(x):
    return (np.sin(x) ** 2).sum()

class Model:
    def __init__(self, w):
        self.w = w
    @jitml.jit
    def score(self, x):
        return np.exp(-x * self.w).sum()

if __name__ == "__main__":
    xs = [np.linspace(0, 1 + k, 300) for k in range(3)]
    for f, plain in ((energy, lambda x: (np.sin(x) ** 2).sum()), (Model(2.0).score, lambda x: np.exp(-x * 2.0).sum())):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            print(np.allclose([*pool.map(f, xs)], [plain(x) for x in xs]))
"""


def require_same(results: Any, name: str) -> None:
    for x, result in zip(XS, results, strict=True):
        expected = FUNCTIONS[name](x)
        assert type(result) is type(expected)
        np.testing.assert_allclose(result, expected, rtol=1e-12)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_pools_of_processes(start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {start} here")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(start)) as pool:
        waiting = {name: pool.map(function, XS) for name, function in FUNCTIONS.items()}
        for name, results in waiting.items():
            require_same(results, name)


def test_functions_and_methods_of_main(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=300)
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")


NOTEBOOK = [
    PROGRAM.partition("if __name__")[0] + "Model.__call__ = Model.score; xs = [np.linspace(0, 1 + k, 300) for k in range(3)]",
    """
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
    print("forked", [np.allclose([*pool.map(f, xs)], [f(x) for x in xs]) for f in (energy, Model(2.0).score)])
""",
    """
import joblib
with joblib.Parallel(n_jobs=2) as parallel:
    print("joblib", [np.allclose(parallel(joblib.delayed(f)(x) for x in xs), [f(x) for x in xs]) for f in (energy, Model(2.0))])
""",
]


def test_functions_and_methods_of_a_notebook(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    _, forked, with_joblib = in_kernel(NOTEBOOK, str(tmp_path))
    assert "forked [True, True]" in forked
    assert "joblib [True, True]" in with_joblib


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(backend: str) -> None:
    joblib = pytest.importorskip("joblib")
    with joblib.Parallel(n_jobs=2, backend=backend) as parallel:
        for name, function in FUNCTIONS.items():
            require_same(parallel(joblib.delayed(function)(x) for x in XS), name)
        local = jitml.jit(lambda x: x.sum() * 2)  # a lambda, which travels by value
        assert parallel(joblib.delayed(local)(x) for x in XS) == [local(x) for x in XS]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask(scheduler: str) -> None:
    dask = pytest.importorskip("dask")
    for name, function in FUNCTIONS.items():
        require_same(dask.compute(*(dask.delayed(function)(x) for x in XS), scheduler=scheduler, num_workers=1), name)


def test_dask_arrays() -> None:
    da = pytest.importorskip("dask.array")

    def scaled(block: Any) -> Any:
        return np.exp(-(block**2)) * 2

    fast, blocks = jitml.jit(scaled), da.from_array(np.linspace(0.0, 1.0, 60).reshape(6, 10), chunks=(2, 10))
    got = blocks.map_blocks(fast, dtype=float).compute(scheduler="threads", num_workers=2)
    np.testing.assert_allclose(got, scaled(np.linspace(0.0, 1.0, 60).reshape(6, 10)), rtol=1e-12)
    whole, plain = fast(blocks), scaled(blocks)  # dask's own operations, put off as ever
    assert type(whole) is type(plain)
    np.testing.assert_allclose(whole.compute(scheduler="sync"), plain.compute(scheduler="sync"), rtol=1e-12)


def test_dask_distributed() -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        local = jitml.jit(lambda x: x.sum() * 2)  # travels by value
        for name, function in (*FUNCTIONS.items(), ("local", local)):
            results = client.gather(client.map(function, XS, pure=False))
            require_same(results, name) if name in FUNCTIONS else np.testing.assert_allclose(results, [local(x) for x in XS])


def test_ray() -> None:
    ray = pytest.importorskip("ray")
    paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}  # else workers do not find this file
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env=paths)
    try:
        for name, function in FUNCTIONS.items():
            remote = ray.remote(lambda x, function=function: function(x))
            require_same(ray.get([remote.remote(x) for x in XS]), name)
        local = jitml.jit(lambda x: x.sum() * 2)
        remote = ray.remote(lambda x: local(x) + 0)
        assert ray.get([remote.remote(x) for x in XS]) == [local(x) + 0 for x in XS]
    finally:
        ray.shutdown()


def test_estimators_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import Ridge
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=60)

    def log_scaled(x: Any) -> Any:
        return np.sign(x) * np.log1p(np.abs(x))

    def scores(transform: Any, metric: Any) -> Any:
        model = make_pipeline(FunctionTransformer(transform), Ridge())
        return cross_val_score(model, x, y, scoring=make_scorer(metric, greater_is_better=False), cv=3)

    np.testing.assert_allclose(scores(jitml.jit(log_scaled), jitml.jit(relative)), scores(log_scaled, relative), rtol=1e-10)


def rosenbrock(x: Any, a: float = 1.0) -> Any:
    return ((a - x[:-1]) ** 2 + 100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum()


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG"])
def test_optimisers_of_scipy(method: str) -> None:
    from scipy.optimize import minimize

    f, slope = jitml.jit(rosenbrock), jitml.jit(jitml.grad(rosenbrock))
    found = minimize(f, np.zeros(4), jac=slope, method=method, args=(1.0,))
    assert found.success
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-3)
    both = minimize(jitml.jit(jitml.value_and_grad(rosenbrock)), np.zeros(4), jac=True, method=method)
    np.testing.assert_allclose(both.x, np.ones(4), atol=1e-3)


def test_curve_fit_and_solve_ivp() -> None:
    from scipy.integrate import solve_ivp
    from scipy.optimize import curve_fit

    def decay(t: Any, a: Any, b: Any) -> Any:
        return a * np.exp(-b * t)

    t = np.linspace(0, 2, 30)
    found, _ = curve_fit(jitml.jit(decay), t, decay(t, 2.0, 1.5), p0=(1.0, 1.0))
    np.testing.assert_allclose(found, [2.0, 1.5], rtol=1e-6)

    def spring(t: float, y: Any) -> Any:
        return np.array([y[1], -y[0] + np.sin(t)])

    fast, plain = (solve_ivp(f, (0, 3), [1.0, 0.0], rtol=1e-8) for f in (jitml.jit(spring), spring))
    np.testing.assert_allclose(fast.y[:, -1], plain.y[:, -1], rtol=1e-10)
