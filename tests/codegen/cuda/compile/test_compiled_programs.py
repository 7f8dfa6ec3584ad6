"""What NVRTC makes of programs: no registers are spilled, for any architecture, and accesses are wide where that is claimed.

A sample; `make gpu-compile` goes through all programs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.compiler import nvdisasm
from jitml.errors import UnsupportedError

pytest.importorskip("cuda.bindings.nvrtc")
from support.emitted_cuda.compiled import ARCHS, KernelReport, accesses, cuda_text, reports

sys.path.insert(0, str(Path(__file__).parents[4] / "bench"))
from workloads import WORKLOADS

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    "name",
    ["gelu", "softmax_rows", "gaussian_blur", "adam_update", "black_scholes", "smoothing_gradient", "normalized_laplacian"],
)
def test_kernels_keep_the_limits_of_every_architecture(name: str) -> None:
    w = WORKLOADS[name]
    source = cuda_text(w.function if w.loss is None else jitml.grad(w.loss, argnums=w.argnums), *w.make_inputs())
    for arch in ARCHS:
        found = reports(source, arch)
        assert found
        assert not {kernel: report.excess for kernel, report in found.items() if report.excess}, arch


def test_loops_that_the_device_ends_compile_for_every_architecture() -> None:
    def halved(x: Array, m: Array) -> tuple[Array, int]:
        rounds = 0
        while np.abs(x).max() > 1e-3:
            x = np.cumsum(m @ x)
            rounds += 1
        return x, rounds

    source = cuda_text(halved, np.ones(64), np.eye(64) / 999)
    for arch in ARCHS:
        found = reports(source, arch)
        assert {"ji_set_index", "ji_move", "ji_decide", "ji_count"} <= found.keys()
        assert not {kernel: report.excess for kernel, report in found.items() if report.excess}, arch


def test_all_calls_behind_a_check_look_whether_it_has_failed() -> None:
    def called(x: Array, places: Array, counts: Array) -> tuple[Array, ...]:
        y = x[places]
        np.add.at(counts, places, y[:, 0])
        products = y @ y.T, np.stack([y, y]) @ x
        return np.fft.fft(y).real, np.fft.rfft(y, axis=0).imag, np.cumsum(y, axis=0), np.sort(y), y.argsort(), *products

    source = cuda_text(called, np.ones((64, 64)), np.zeros(64, np.int64), np.zeros(64))
    functions = re.findall(r"__global__ .*? (call_\w+)\(([^)]*)\)", source)
    assert len(functions) > 9
    assert [name for name, parameters in functions if parameters.count(" error") != 1] == []
    assert reports(source, "sm_90")


def test_spills_are_told_apart_from_arrays_of_a_thread() -> None:
    array = "volatile float a[64]; for (int i = 0; i < 64; i++) a[i] = x[i]; x[which] = a[(which + threadIdx.x) % 64];"
    sums = "".join(f"float s{n} = x[{n}];" for n in range(90))
    loop = "for (int k = 0; k < 99; k++) {" + "".join(f"s{n} = s{n} * x[k] + x[{n} + k];" for n in range(90)) + "}"
    full = sums + loop + "".join(f"x[{n}] = s{n};" for n in range(90))
    source = f"""
extern "C" __global__ void array(float* x, int which) {{ {array} }}
extern "C" __global__ void __launch_bounds__(1024) full(float* x) {{ {full} }}
"""
    found = reports(source, "sm_90")
    assert found["array"].resources.frame == 256 and not found["array"].excess
    assert "bytes of registers are spilled" in found["full"].excess
    assert reports(source, "sm_90") == found


def test_limits_are_told() -> None:
    (report,) = reports('extern "C" __global__ void f(float* x) { x[0] = 1; }', "sm_80").values()
    r = report.resources
    assert not report.excess
    for registers, shared, parameters, says in (
        *((255, 0, (8,), ""), (257, 0, (8,), "257 registers are too many for 256 threads")),
        *((32, 50000, (8,), "50000 bytes of shared memory"), (32, 0, (8,) * 600, "4800 bytes of parameters")),
    ):
        assert KernelReport(type(r)(registers, 0, shared, parameters), 0).excess == says


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x, y: x * y + 1, id="pointwise"),
        pytest.param(lambda x, y: np.exp(x - x.max(axis=1, keepdims=True)), id="rows"),
        pytest.param(lambda x, y: (x * y).sum(), id="a sum"),
    ],
)
def test_accesses_are_wide(function: Callable[..., Any]) -> None:
    try:
        nvdisasm()
    except UnsupportedError as error:
        pytest.skip(str(error))
    x = np.ones((256, 1024), np.float32)
    found = [name for kernel in accesses(cuda_text(function, x, x), "sm_90").values() for name in kernel]
    assert any(name.startswith("LDG.E") and ".128" in name for name in found), found
    assert not any(name.startswith(("LDL", "STL")) for name in found), found
