"""What kernels ask of memory: whole sectors, each once, and of shared memory one word of each bank at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG
from programs.comparing import difference, within
from support.cuda_emulation import ORDERS, Traffic, build, counted, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
Array = np.ndarray[Any, Any]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDevice]:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated() as device:
        yield device


def normalized(x: Array) -> Array:
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


# Sectors of the device's memory for those that the arrays have: what is more is partial sums, and ends of rows.
PROGRAMS: dict[str, tuple[Callable[[Array], Any], tuple[int, ...], str, float]] = {
    "points": (lambda x: x * 2 + 1, (96, 128), "f4", 1.02),
    "a transpose": (lambda x: x.T.copy(), (128, 96), "f4", 1.02),
    "a transpose, doubles": (lambda x: x.T.copy(), (128, 96), "f8", 1.02),
    "a transpose, ragged": (lambda x: x.T.copy(), (100, 90), "f8", 1.2),
    "a transposed operand": (lambda x: x.T + x.reshape(x.shape[::-1]), (128, 96), "f4", 1.52),  # x is read twice
    "planes": (lambda x: np.ascontiguousarray(x.transpose(0, 2, 1)), (3, 64, 32), "f4", 1.02),
    "halves": (lambda x: x.T.copy(), (64, 64), "f2", 1.02),
    "rows": (lambda x: x.sum(axis=1), (64, 256), "f4", 1.1),
    "columns": (lambda x: x.sum(axis=0), (512, 64), "f4", 1.3),
    "a normalization": (normalized, (32, 256), "f4", 1.02),
}


def traffic_of(program: Callable[[Array], Any], x: Array, **options: Any) -> Traffic:
    jitted = jitml.jit(program, verify="never", **options)
    with counted() as traffic:
        assert difference(jitted(x.copy()), program(x.copy()), within(1e-2 if x.itemsize == 2 else 1e-4)) is None
        return traffic()


@pytest.mark.usefixtures("device")
def test_what_is_moved_is_what_is_wanted() -> None:
    for name, (program, shape, dtype, most) in PROGRAMS.items():
        x = np.random.default_rng(1).uniform(size=shape).astype(dtype)
        needed = x.nbytes + np.asarray(program(x)).nbytes
        traffic = traffic_of(program, x)
        assert 32 * traffic.sectors < most * needed, (name, traffic)
        assert traffic.rounds <= 1.25 * traffic.least_rounds, (name, traffic)


@pytest.mark.parametrize("order", ORDERS)
def test_a_block_with_a_processor_for_itself_has_more_threads(
    order: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jitml.codegen.cuda.emit.launches.SHARED_OF_PROCESSOR", 16 << 10)
    monkeypatch.setattr("jitml.codegen.cuda.schedule.rows.TRIPS", 1)
    device.order = order
    x = np.random.default_rng(1).uniform(size=(3, 4000)).astype("f4")
    jitted = jitml.jit(normalized, verify="never")
    assert "__launch_bounds__(1024, 1)" in jitted.lower(x).cuda
    assert difference(jitted(x), normalized(x), within(1e-4)) is None


@pytest.mark.usefixtures("device")
def test_what_is_turned_without_a_tile_is_seen() -> None:
    x = np.random.default_rng(1).normal(size=(128, 96)).astype("f4")
    turned = traffic_of(lambda x: x.T.copy(), x, schedules={"k0_transpose": "bind i0 block; bind i1 thread"})
    assert turned.overhead > 4


def test_banks_that_lanes_share_are_seen() -> None:
    source = """extern "C" __global__ void k(float* x) {
      __shared__ float tile[32 * 32];
      tile[threadIdx.x * 32] = x[threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = tile[(31 - threadIdx.x) * 32];
    }"""
    (module,) = build([source])
    x = np.zeros(40, "f4")
    start = -x.ctypes.data // 4 % 8
    with counted() as traffic:
        module.launch("k", 1, 32, x[start : start + 32])
        assert traffic() == Traffic(nbytes=256, sectors=8, least_rounds=2, rounds=64)
