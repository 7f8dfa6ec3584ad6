"""Room for what loops save for their derivatives: how much there is at first, how it grows, and what is said where it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.autograd.reverse.loops import Array, settled

import jitml
from jitml.autograd.reverse.budget import FIRST_BYTES
from jitml.config import CONFIG
from jitml.errors import MoreIterations
from jitml.ir.capacity import learn


def test_a_while_says_when_there_is_no_room(saved_bytes: Any) -> None:
    saved_bytes(80)

    def slowly(x: Any) -> Any:
        while x < 100:
            x = x * 1.01 + np.sin(x)
        return x

    with pytest.raises(MemoryError, match=r"(?s)10 times.*JITML_SAVED_BYTES.*test_room_for_loops\.py:\d+ in "):
        jitml.grad(slowly)(1.0)
    with pytest.raises(MemoryError, match=r"10 times.*JITML_SAVED_BYTES"):
        jitml.jit(jitml.grad(slowly))(1.0)


def test_room_that_a_while_does_not_need_costs_nothing(saved_bytes: Any) -> None:
    resource = pytest.importorskip("resource")
    saved_bytes(2 << 30)

    def root(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    slope = jitml.jit(jitml.grad(root))
    assert slope.lower(2.0).program.report.arena > 1 << 30  # whoever runs this cannot ask for more
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert abs(slope(2.0) - 0.5 / np.sqrt(2.0)) < 1e-12
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10  # KiB
    assert slope.lower(2.0).program.report.arena <= FIRST_BYTES + 4096


def converging(a: Array) -> Any:
    x = a
    while True:
        y = 0.5 * (x + a / x)
        if np.abs(y - x).max() < 1e-12:
            break
        x = y
    return x.sum()


def shrinking(x: Array) -> Any:
    while x.sum() > 1e-2:
        x = 0.99 * x + 1e-6 * np.sin(x)
    return x.sum()


def counting(x: Array) -> Any:
    n = np.ceil(x.sum() * 100)
    for i in range(int(n)):
        x = x * (1 + np.sin(x) / (i + 1000))
    return x.sum()


def nested(x: Array) -> Any:
    total, i = 0.0, 0
    while True:
        j = 0
        while True:
            k = 0
            while True:
                total = total + np.sin(x).sum() * x[0] + np.tanh(total)
                k += 1
                if k >= 5 + (x[0] > 100):
                    break
            j += 1
            if j >= 4 + (x[1] > 100):
                break
        i += 1
        if i >= 3 + (x[2] > 100):
            break
    return total


@pytest.fixture
def little_at_first(monkeypatch: pytest.MonkeyPatch, saved_bytes: Any) -> list[str]:
    """Rooms are small; the messages of those that were too small."""
    seen: list[str] = []

    def learned(failure: MoreIterations) -> None:
        seen.append(failure.message)
        learn(failure)

    monkeypatch.setattr("jitml.autograd.reverse.budget.FIRST_BYTES", 500)
    monkeypatch.setattr("jitml.ir.capacity._learned", {})
    for module in ("jitml.dispatch.variants", "jitml.trace.trace"):
        monkeypatch.setattr(f"{module}.learn", learned)
    saved_bytes(100_000_000)
    return seen


@pytest.mark.parametrize("finish", [lambda f: f, jitml.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f", [converging, shrinking, counting, nested], ids=lambda f: f.__name__)
def test_room_grows_with_the_iterations(f: Any, finish: Any, little_at_first: list[str]) -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    for transform in (jitml.grad, jitml.hessian, lambda f: lambda x: jitml.vmap(jitml.grad(f))(np.stack([x, x + 1]))):
        got = finish(transform(f))(x)
        object.__setattr__(CONFIG, "saved_bytes", 10_000_000)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jitml.autograd.reverse.budget.FIRST_BYTES", 10_000_000)
            np.testing.assert_allclose(got, transform(f)(x), rtol=1e-10)
    assert little_at_first and len(little_at_first) < 20
    before = len(little_at_first)
    finish(jitml.grad(f))(x)
    assert len(little_at_first) == before  # it is known of the line


def rising(x: Array) -> Any:
    slope = jitml.grad(shrinking)(x)
    way = "up" if slope.sum() > 0 else "down"
    return {"up": 1.0}[way] * (x * slope).sum()


def test_room_runs_out_while_a_function_is_traced(little_at_first: list[str]) -> None:
    """To find the branch that a call takes, the loop before it is run."""
    x = np.array([1.0, 2.0, 3.0])
    wanted = (x * jitml.grad(shrinking)(x)).sum()
    for finish in (jitml.jit, lambda f: lambda x: jitml.value_and_grad(f)(x)[0]):
        little_at_first.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("jitml.ir.capacity._learned", {})
            np.testing.assert_allclose(finish(rising)(x), wanted, rtol=1e-12)


def test_threads_learn_together(little_at_first: list[str]) -> None:
    slope, x = jitml.jit(jitml.grad(shrinking)), np.array([1.0, 2.0, 3.0])
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(slope, [x] * 12))
    np.testing.assert_allclose(found, [jitml.grad(shrinking)(x)] * 12, rtol=1e-12)
    assert len(slope.variants) == 1


def test_what_has_run_out_of_room_draws_once(little_at_first: list[str]) -> None:
    rng = np.random.default_rng()

    def drawing(x: Array) -> Any:
        while x.sum() < 20:
            x = x * (1 + rng.random() * 0.02)
        return (x * x).sum()

    found = []
    for slope in (jitml.grad(drawing), jitml.jit(jitml.grad(drawing))):
        rng.bit_generator.state = np.random.default_rng(3).bit_generator.state
        found.append((slope(np.ones(3)), rng.random()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1] == found[1][1] and little_at_first


@pytest.mark.parametrize(
    "derivative",
    [
        jitml.grad,
        lambda f: jitml.grad(lambda x: jitml.grad(f)(x).sum()),
        lambda f: lambda x: jitml.hvp(f, (x,), (x,)),
        lambda f: lambda x: jitml.vmap(jitml.grad(f))(np.stack([x, x])),
    ],
    ids=["grad", "grad of grad", "hvp", "rows"],
)
def test_a_program_reserves_what_it_may(derivative: Any, saved_bytes: Any) -> None:
    saved_bytes(1 << 24)
    for f in (settled, nested):
        assert jitml.jit(derivative(f)).lower(np.linspace(1, 2, 20)).program.report.arena <= 1.3 * (1 << 24)


def test_nested_loops_share_fairly(saved_bytes: Any) -> None:
    """What the inner ones have room for does not leave the outer ones with a handful of iterations."""
    x = np.random.default_rng(0).normal(size=(64, 5))
    saved_bytes(100_000_000)
    wanted = [jitml.grad(nested)(row) for row in x]
    np.testing.assert_allclose(jitml.vmap(jitml.grad(nested))(x), wanted, rtol=1e-10)
    assert np.isfinite(jitml.hessian(nested)(x[0, :3])).all()


LIMITED = """
import resource
import numpy as np, jitml
def converging(a):
    x = a
    while True:
        y = 0.5 * (x + a / x)
        if np.abs(y - x).max() < 1e-12:
            break
        x = y
    return x.sum()
resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000,) * 2)
a = np.array([1.0, 2, 3, 4])
for finish in (lambda f: f, jitml.jit):
    np.testing.assert_allclose(finish(jitml.grad(converging))(a), 0.5 / np.sqrt(a))
    np.testing.assert_allclose(finish(jitml.hessian(converging))(a), np.diag(-0.25 * a**-1.5), atol=1e-9)
def large(x):
    while x.sum() > 1e-300:
        x = x * x * 0.5 + 0.25
    return x.sum()
try:
    jitml.grad(large)(np.ones(1 << 20))
except MemoryError as error:
    print(error)
"""


def test_little_address_space(tmp_path: Any) -> None:
    """A `while` of four numbers needs little; one that needs too much says so, and where."""
    pytest.importorskip("resource")
    file = tmp_path / "limited.py"
    file.write_text(LIMITED)
    environment = {**os.environ, "JITML_SAVED_BYTES": str(1 << 34), "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True, env=environment)
    first, place, line, last, code = run.stdout.splitlines()
    assert code.startswith("JM")
    assert first == "no memory for 4294967296 bytes that a loop may save for its derivative, f64[512,1048576]"
    assert place.endswith(" in large") and line.strip() == "while x.sum() > 1e-300:"
    assert "JITML_SAVED_BYTES" in last


def test_second_derivatives_outside_jit_touch_no_more_of_that_room(saved_bytes: Any) -> None:
    """Cotangents of what is saved are zeros as long; what is read of them and then cleared is no reason for a copy."""
    resource = pytest.importorskip("resource")
    saved_bytes(2 << 30)

    def shrink(x: Any) -> Any:
        total = 0.0
        while x.size > 1:
            x = x[x > x.mean()]
            total = total + (x * x * x).sum()
        return total

    curvature = jitml.grad(lambda x: jitml.grad(shrink)(x).sum())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.testing.assert_allclose(curvature(np.arange(5.0)), [0, 0, 0, 18, 48])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10  # KiB
