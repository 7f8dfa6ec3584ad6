"""Programs under `jit` on a device: NumPy's answers, arguments that change, memory that comes back, and what is refused."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.runtime.device import DeviceArgument
from jitml.config import CONFIG
from jitml.errors import DeviceFault, DeviceMemoryError
from programs.comparing import difference, within
from programs.corpus import load
from support.cuda_emulation import ORDERS, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDevice]:
    """What programs run on; all its memory has come back when the test's functions are gone."""
    for module in ("codegen.backend", "options"):
        monkeypatch.setattr(f"jitml.{module}.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated() as device:
        yield device
        gc.collect()
        assert device.used == 0


@needs_compiler
@pytest.mark.parametrize(
    "name",
    [
        *("attention", "bellman_ford", "bubble_sort", "cavity_flow", "conjugate_gradient", "fft_in_place", "ising", "k_means"),
        *("lu_pivoted", "mandelbrot_shrinking", "monte_carlo_pi", "n_body", "random_walk", "viterbi", "upwind_advection"),
    ],
)
def test_programs_agree_with_numpy(name: str, device: EmulatedDevice) -> None:
    program = load(name)
    jitted = jitml.jit(program.function, verify="never", host_calls="error")
    for seed, device.order in enumerate(ORDERS):
        mine, eager = program.arguments("small", seed), program.arguments("small", seed)
        expected = program.function(*eager)
        assert difference(jitted(*mine), expected, within(1e-9)) is None
        assert difference(mine, eager, within(1e-9), "arguments") is None
    (variant,) = jitted.variants
    assert not variant.replays and device.launches


@needs_compiler
def test_kernels_of_other_elements_give_numpys_answers(device: EmulatedDevice) -> None:
    def joints(a: Any, x: Any) -> Any:
        for k in (0, 1, 2, 3):
            x = np.linalg.solve(np.array([[np.cos(a[k, 0]), -np.sin(a[k, 1])], [np.sin(a[k, 1]), np.cos(a[k, 0])]]), x)
        return x

    rng = np.random.default_rng(0)
    jitted = jitml.jit(joints, verify="never")
    for given in (
        (rng.normal(size=(4, 2)), rng.normal(size=(2, 3))),
        (rng.normal(size=(8, 4))[::2, ::-2], rng.normal(size=(2, 3))),
    ):
        for _ in range(3):  # the second one is recorded
            assert difference(jitted(*given), joints(*given), within(1e-12)) is None


OPEN: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "two axes": (lambda x: (np.exp(x) @ x.T, x.cumsum(axis=0)), [(4, 5), (6, 7), (30, 3), (2, 200)]),
    "three axes": (lambda x: np.sort(x + x.max(axis=1, keepdims=True), axis=1), [(4, 5, 6), (5, 7, 6), (8, 8, 8), (1, 9, 12)]),
    "what is positive": (lambda x: (x[x > 0] * 2, np.nonzero(x < 0)), [(40, 3), (50, 4), (0, 3), (200, 1), (3, 3)]),
    "all pairs": (lambda x: (x[:, None] * x[None, :]).T * x, [(40,), (50,), (90,), (7,)]),
    "distinct": (lambda x: np.unique(np.round(x * 3)), [(4, 40), (50, 6), (70, 10), (0, 3)]),
}


@needs_compiler
@pytest.mark.parametrize("name", OPEN)
def test_open_sizes_take_little_memory(name: str, device: EmulatedDevice) -> None:
    """On a device, what is set aside for the largest sizes is taken: on the CPU it may be gigabytes."""
    function, shapes = OPEN[name]
    device.capacity = 1 << 26
    jitted, rng = jitml.jit(function, verify="never", host_calls="error"), np.random.default_rng(0)
    for shape in shapes:
        x = rng.normal(size=shape)
        assert difference(jitted(x), function(x), within(1e-12)) is None
    assert len(jitted.variants) <= 3


@needs_compiler
def test_what_happens_around_a_run(device: EmulatedDevice, capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: Any, k: int, rng: Any) -> Any:
        print("drawing")
        x += rng.random(size=3)
        return x[k], np.linalg.inv(np.diag(x))

    rng, twin = np.random.default_rng(1), np.random.default_rng(1)
    jitted = jitml.jit(program, verify="never")
    x, y = np.ones(3), np.ones(3)
    for k in (1, 2):
        got, expected = jitted(x, k, rng), program(y, k, twin)
        np.testing.assert_allclose(got[1], expected[1])
        assert got[0] == expected[0]
    np.testing.assert_array_equal(x, y)
    with pytest.raises(IndexError):
        jitted(x, 3, rng)
    with pytest.raises(IndexError):
        program(y, 3, twin)
    np.testing.assert_array_equal(x, y)  # nothing was drawn or written twice
    assert capsys.readouterr().out == 6 * "drawing\n"
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        jitml.jit(lambda x: 1.0 / x)(np.zeros(2))


@needs_compiler
def test_lengths_that_only_the_run_knows(device: EmulatedDevice) -> None:
    def opened(x: Any) -> Any:
        return x * 2, x[1:] - x[:-1], x.sum()

    jitted = jitml.jit(opened, dynamic=True, verify="never")
    for length in (4, 7, 1, 300):
        x = np.linspace(0, 1, length)
        for mine, theirs in zip(jitted(x), opened(x), strict=True):
            np.testing.assert_allclose(mine, theirs)

    def counted(x: Any) -> Any:
        return x[x > 0], np.flatnonzero(x > 1), np.unique(x.round())

    jitted = jitml.jit(counted, verify="never")
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=50)
        for mine, theirs in zip(jitted(x), counted(x), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert device.launches


@needs_compiler
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_arrays_in_any_order_of_memory(kind: Any, device: EmulatedDevice) -> None:
    def program(x: Any, y: Any) -> Any:
        x *= 2
        return x + y, y.T.copy(), np.asarray(y.sum())

    base = np.arange(240).reshape(12, 20).astype(kind)
    jitted = jitml.jit(program, verify="never")
    for view in (lambda a: a, lambda a: a[::-1, ::2], lambda a: a[2:7, 3:].T, lambda a: a[::3, ::-4], lambda a: a[:0]):
        mine, eager = base.copy(), base.copy()
        got, expected = jitted(view(mine), view(mine) + 1), program(view(eager), view(eager) + 1)
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(mine, eager)  # what lies between is as it was


@needs_compiler
def test_launches_are_recorded_when_memory_comes_again(device: EmulatedDevice) -> None:
    def program(x: Any) -> Any:
        for _ in range(4):
            x = np.cumsum(x)[::-1] / 2
        return x

    jitted = jitml.jit(program, verify="never")
    x = np.linspace(0, 1, 300)
    for n in range(4):
        np.testing.assert_allclose(jitted(x + n), program(x + n))
    (graph,) = device.graphs
    assert graph.replays == 3
    copied = device.copied_in
    jitted(x)
    assert device.copied_in - copied < 2 * x.nbytes


@needs_compiler
def test_too_little_memory_is_said_before_anything_changes(device: EmulatedDevice) -> None:
    device.capacity = 100_000
    jitted = jitml.jit(_doubled, verify="never")
    small, large = np.ones(100), np.ones(20_000)
    assert jitted(small)[0] == 3
    with pytest.raises(DeviceMemoryError, match=r"emulated GPU has not \d+,\d+ bytes.* The call needs \d+,\d+ bytes for"):
        jitted(large)
    assert large[0] == 1
    assert jitted(small)[0] == 5


@needs_compiler
def test_memory_that_is_kept_is_given_up_for_a_larger_call(device: EmulatedDevice) -> None:
    device.capacity = 600_000
    jitted = jitml.jit(lambda x: x * 2 + 1, dynamic=True, verify="never")
    for length in (10_000, 15_000, 30_000, 100):
        np.testing.assert_array_equal(jitted(np.ones(length)), np.full(length, 3.0))
    # So is what other programs keep.
    other = jitml.jit(lambda x: x * 3 + 1, dynamic=True, verify="never")
    np.testing.assert_array_equal(other(np.ones(30_000)), np.full(30_000, 4.0))


@needs_compiler
def test_results_that_find_no_room_are_said_with_all_that_the_call_needs(device: EmulatedDevice) -> None:
    jitted = jitml.jit(lambda x: (x + 1, x * 2), verify="never")
    x = jitml.asarray(np.ones(20_000), device="cuda")
    device.capacity = device.used + 170_000  # one of the results
    used = device.used
    with pytest.raises(
        DeviceMemoryError, match=r"emulated GPU has not 160,000 bytes.* needs \d+ bytes .* and 320,000 for results"
    ):
        jitted(x)
    assert device.used <= used + 10_000 and float(x[0]) == 1


def _doubled(x: Any) -> Any:
    x *= 2
    return x + 1


@needs_compiler
def test_a_fault_is_told_and_the_cpu_goes_on(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = jitml.jit(_doubled, verify="never")
    x = np.ones(100)
    jitted(x)
    monkeypatch.setattr(device, "_launch", lambda *_: device._fail("an access outside of memory"))
    for message in ("code has failed", "does nothing more"):
        with pytest.raises(DeviceFault, match=message):
            jitted(x)
    assert x[0] == 2
    assert _doubled(x)[0] == 5


@needs_compiler
def test_arrays_of_the_device_stay_there(device: EmulatedDevice) -> None:
    def program(x: Any, y: Any, n: int) -> Any:
        x += n
        return x @ y, x[x > 2]

    jitted = jitml.jit(program, verify="never")
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    jitted(x.copy(), y, 1)
    executable = jitted.variants[0].executable
    there = []
    for array in (x, y):
        there.append(device.allocate(array.nbytes))
        device.copy_in(there[-1], array)
    copied = device.copied_out
    given = [DeviceArgument(at, a.shape, a.dtype) for at, a in zip(there, (x, y))]
    for n in (1, 2, -5):
        outputs = executable.on_device(*given, n)
        expected = [x, *program(x, y, n)]
        for out in outputs:
            shape = out.shape
            (want,) = [a for a in expected if a.shape == shape][:1]
            got = np.empty(shape)
            if got.size:
                device.copy_out((got, out.address))
            np.testing.assert_allclose(got, want)
            assert out.owned == (0 if out is given[0] else out.address)
            device.free(out.owned)
    assert device.copied_out - copied < 1000
    for at in there:
        device.free(at)


def test_without_a_gpu_code_is_written_and_loading_says_what_is_missing() -> None:
    code = """
import jitml, numpy as np
f = jitml.jit(lambda x: np.exp(x).sum())
print('extern "C" __global__' in f.lower(np.ones(5)).cuda)
for _ in range(2):
    try:
        f(np.ones(5))
    except jitml.NoDeviceError as error:
        print(str(error).partition(":")[0])
"""
    environment = os.environ | {"JITML_BACKEND": "cuda", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    first, *others = done.stdout.splitlines()
    assert first == "True" and len(others) == 2 and others[0] == others[1]


def test_a_program_whose_only_check_never_runs_has_an_error_record_if_functions_look_at_it(
    device: EmulatedDevice,
) -> None:
    def program(x: Any, y: Any, z: Any) -> Any:
        z *= 2
        return x[y % 1], z

    given = np.ones(0), np.ones(0, np.uint8), np.ones(40)
    x, z = jitml.jit(program, device="cuda")(*given)
    assert x.size == 0 and z.tolist() == [2.0] * 40
