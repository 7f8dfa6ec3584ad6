"""Limits of the device in this run: copies, products of matrices by its own library, and what launches cost."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from cuda.bindings import driver

from gpu.cases import Cases, Outcome, Setting
from gpu.raw import Packed, Raw, ask
from gpu.speed.timing import turn

COPY = r"""
extern "C" __global__ void copy(const float4* __restrict__ x, float4* __restrict__ y, long long n) {
  long long step = (long long)gridDim.x * blockDim.x, i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    float4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
    y[i] = a; y[i + step] = b; y[i + 2 * step] = c; y[i + 3 * step] = d;
  }
  for (; i < n; i += step) y[i] = x[i];
}
extern "C" __global__ void fill(float4* __restrict__ y, long long n) {
  long long step = (long long)gridDim.x * blockDim.x, i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  for (; i < n; i += step) y[i] = make_float4(i, 1.5f * i, -i, 0.25f * i);
}
extern "C" __global__ void read(const float4* __restrict__ x, float* y, long long n) {
  long long step = (long long)gridDim.x * blockDim.x, i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (; i + 3 * step < n; i += 4 * step) {
    float4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
    sum += a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w + c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
  }
  for (; i < n; i += step) sum += x[i].x;
  if (sum == 12345.678f) *y = sum;
}
"""
_BYTES = 1 << 30


def cases(setting: Setting) -> Cases:
    for nbytes in (1 << 26, 1 << 28, _BYTES):
        yield f"copies of {nbytes >> 20} MiB", partial(copies, nbytes)
    yield "reading", reading


@cache
def raw() -> Raw:
    return Raw()


def copies(nbytes: int) -> Outcome:
    """Gigabytes a second, read and written: the best of a kernel of ours, on several grids, and the driver's own copy."""
    with turn(alone=True):
        return {"figures": copy_rates(raw(), nbytes)}


def copy_rates(device: Raw, nbytes: int, rounds: int = 5) -> dict[str, float]:
    found: dict[str, float] = {}
    x, y, n = device.room(nbytes), device.room(nbytes), nbytes // 16
    device.launch(device.function(COPY, "fill"), 1320, 256, (x, n))
    function, sms = device.function(COPY, "copy"), device.attribute("MULTIPROCESSOR_COUNT")
    for blocks in (4, 8, 16):
        packed = Packed((x, y, n))
        launch = partial(_launch, device, function, sms * blocks, packed)
        launch()
        best = min(device.seconds(launch, 5) for _ in range(rounds))
        found[f"{blocks} blocks each, GB/s"] = 2 * nbytes / best / 1e9
    own = partial(ask, driver.cuMemcpyDtoDAsync, y, x, nbytes, device.stream)
    own()
    found["the driver's GB/s"] = 2 * nbytes / min(device.seconds(own, 5) for _ in range(rounds)) / 1e9
    found["best GB/s"] = max(found.values())
    for pointer in (x, y):
        ask(driver.cuMemFree, pointer)
    return found


def reading() -> Outcome:
    """Gigabytes a second of a kernel that only reads."""
    with turn(alone=True):
        device = raw()
        x, y, n = device.room(_BYTES), device.room(16), _BYTES // 16
        device.launch(device.function(COPY, "fill"), 1320, 256, (x, n))
        launch = partial(_launch, device, device.function(COPY, "read"), 1056, Packed((x, y, n)))
        launch()
        return {"figures": {"GB/s": _BYTES / min(device.seconds(launch, 5) for _ in range(5)) / 1e9}}


def _launch(device: Raw, function: Any, blocks: int, packed: Packed) -> None:
    ask(driver.cuLaunchKernel, function, blocks, 1, 1, 256, 1, 1, 0, device.stream, packed.address, 0)


def random(shape: tuple[int, ...], dtype: str) -> Any:
    """Never zeros, with which a device is faster."""
    return np.resize(np.random.default_rng(0).standard_normal(1_000_003).astype(dtype), shape)
