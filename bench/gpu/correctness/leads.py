"""What the design takes for granted of a device and its driver, tried by the driver alone: figures, and what does not hold."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from cuda.bindings import driver

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Mismatch, require_same
from gpu.raw import DriverError, Packed, Raw, ask, cubin

_MiB = 1 << 20
SOURCE = r"""
extern "C" __global__ void empty() {}
extern "C" __global__ void add_one(float* x, long long n) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  for (; i < n; i += gridDim.x * (long long)blockDim.x) x[i] += 1.0f;
}
extern "C" __global__ void through_shared(const float* x, float* y, long long n) {  // one block; backwards
  extern __shared__ float tile[];
  for (long long i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (long long i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i];
}
extern "C" __global__ void sums(const double* x, double* y, long long n) {  // a sum of each block's row
  __shared__ double part[8];
  double sum = 0.0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
  for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) { for (int w = 1; w < 8; ++w) sum += part[w]; y[blockIdx.x] = sum; }
}
extern "C" __global__ void arithmetic(const float* a, const float* b, float* y, const double* c, const double* d, double* z,
                                      long long n) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
    y[i] = a[i] * b[i] + a[i]; y[n + i] = a[i] / b[i]; y[2 * n + i] = sqrtf(a[i] < 0.0f ? -a[i] : a[i]);
    z[i] = c[i] * d[i] + c[i]; z[n + i] = c[i] / d[i]; z[2 * n + i] = sqrt(c[i] < 0.0 ? -c[i] : c[i]);
  }
}
extern "C" __global__ void halves(const unsigned short* h, float* f, unsigned short* back, const float* g,
                                  unsigned short* rounded) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f[i]) : "h"(h[i]));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(back[i]) : "f"(f[i]));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded[i]) : "f"(g[i]));
}
"""
WHILE = r"""
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void countdown(long long* left, long long* trips, cudaGraphConditionalHandle handle) {
  *trips += 1;
  *left -= 1;
  cudaGraphSetConditional(handle, *left > 0 ? 1u : 0u);
}
extern "C" __global__ void prime(long long* left, cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, *left > 0 ? 1u : 0u);
}
"""


def cases(setting: Setting) -> Cases:
    for check in (a_cubin_runs, shared_memory, arithmetic, halves, sums, launches, graphs, while_nodes, copies, allocations):
        yield check.__name__.replace("_", " "), check
    yield "host-driven loops", host_loops
    yield "sm_90a", partial(other_architecture, "a")
    yield "errors that stay", sticky_errors
    yield "libraries", libraries


@cache
def raw() -> Raw:
    return Raw()


def kernel(name: str) -> Any:
    return raw().function(SOURCE, name)


def a_cubin_runs() -> Outcome:
    device = raw()
    start = time.perf_counter()
    code = cubin(SOURCE, device.arch)
    compiling = time.perf_counter() - start
    x = np.arange(100_003, dtype=np.float32)
    start = time.perf_counter()
    function = device.function(SOURCE, "add_one")
    p = device.array(x)
    device.launch(function, 132, 256, (p, x.size))
    require_same([device.fetch(p, x)], [x + 1], 0)
    return {
        "figures": {"cubin bytes": len(code), "NVRTC ms": 1e3 * compiling, "first launch ms": 1e3 * (time.perf_counter() - start)}
    }


def other_architecture(suffix: str) -> None:
    device = raw()
    x = np.arange(1000, dtype=np.float32)
    p = device.array(x)
    device.launch(device.function(SOURCE, "add_one", device.arch + suffix), 4, 256, (p, x.size))
    require_same([device.fetch(p, x)], [x + 1], 0)


def shared_memory() -> Outcome:
    """More than 48 KB needs an attribute; as much as the device has, less the block's reserve."""
    device, function = raw(), kernel("through_shared")
    most = device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    x = np.arange(most // 4, dtype=np.float32)
    p, q = device.array(x), device.room(x.nbytes)
    try:
        device.launch(function, 1, 256, (p, q, x.size), shared=most)
        without = "no error"
    except DriverError as error:
        without = str(error)
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    ask(driver.cuFuncSetAttribute, function, attribute, most)
    device.launch(function, 1, 256, (p, q, x.size), shared=most)
    require_same([device.fetch(q, x)], [x[::-1]], 0)
    return {"figures": {"bytes": most, "without the attribute": without}}


def arithmetic() -> None:
    """Products and sums are not contracted, quotients and roots are correctly rounded."""
    device, rng, n = raw(), np.random.default_rng(0), 1 << 20
    a, b = rng.normal(size=(2, n)).astype(np.float32) * np.float32(10.0) ** rng.integers(-30, 30, (2, n)).astype(np.float32)
    c, d = rng.normal(size=(2, n)) * 10.0 ** rng.integers(-200, 200, (2, n))
    y, z = np.empty(3 * n, np.float32), np.empty(3 * n)
    pointers = [device.array(x) for x in (a, b, y, c, d, z)]
    device.launch(kernel("arithmetic"), 132, 256, (*pointers, n))
    with np.errstate(all="ignore"):
        wanted = [np.concatenate([p * q + p, p / q, np.sqrt(np.abs(p))]) for p, q in ((a, b), (c, d))]
    require_same([device.fetch(pointers[2], y), device.fetch(pointers[5], z)], wanted, 0)


def halves() -> None:
    """All halves to floats and back, and floats to halves, as NumPy converts them."""
    device = raw()
    h = np.arange(1 << 16, dtype=np.uint16)
    rng = np.random.default_rng(0)
    g = (rng.normal(size=h.size) * 10.0 ** rng.integers(-9, 6, h.size)).astype(np.float32)
    f, back, rounded = np.empty(h.size, np.float32), np.empty_like(h), np.empty_like(h)
    pointers = [device.array(x) for x in (h, f, back, g, rounded)]
    device.launch(kernel("halves"), h.size // 256, 256, pointers)
    with np.errstate(all="ignore"):
        wide, narrow = h.view(np.float16).astype(np.float32), g.astype(np.float16)
    got = [device.fetch(pointers[1], f), device.fetch(pointers[2], back).view(np.float16)]
    require_same([*got, device.fetch(pointers[4], rounded).view(np.float16)], [wide, h.view(np.float16), narrow], 0)


def sums() -> None:
    device = raw()
    x = np.random.default_rng(0).normal(size=(300, 1037))
    p, q = device.array(x), device.room(8 * 300)
    device.launch(kernel("sums"), 300, 256, (p, q, 1037))
    require_same([device.fetch(q, np.empty(300))], [x.sum(axis=1)])


def launches() -> Outcome:
    """Of an empty kernel: with arguments packed before, and with what `Packed` adds; and until the host knows of its end."""
    device, function, packed = raw(), kernel("empty"), Packed(())
    stream, launch = device.stream, driver.cuLaunchKernel

    def prepared() -> None:
        launch(function, 1, 1, 1, 32, 1, 1, 0, stream, packed.address, 0)

    def waited() -> None:
        prepared()
        device.wait()

    on_the_device = 1e6 * device.seconds(prepared, 2000)
    return {"figures": {"host us": microseconds(prepared), "with wait us": microseconds(waited), "device us": on_the_device}}


def microseconds(work: Callable[[], object], times: int = 1000) -> float:
    return microseconds_of(work, raw().wait, times)


def microseconds_of(work: Callable[[], object], wait: Callable[[], object], times: int = 1000) -> float:
    """Of the host, for one of so many that the device need not have done yet."""
    work()
    wait()
    start = time.perf_counter()
    for _ in range(times):
        work()
    host = time.perf_counter() - start
    wait()
    return 1e6 * host / times


def graphs() -> Outcome:
    """Twenty kernels captured and replayed, beside twenty launches."""
    device, function = raw(), kernel("add_one")
    x = np.zeros(1000, np.float32)
    p = device.array(x)
    packed = Packed((p, x.size))

    def twenty() -> None:
        for _ in range(20):
            ask(driver.cuLaunchKernel, function, 4, 1, 1, 256, 1, 1, 0, device.stream, packed.address, 0)

    ask(driver.cuStreamBeginCapture, device.stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
    twenty()
    graph = ask(driver.cuStreamEndCapture, device.stream)
    start = time.perf_counter()
    replay = ask(driver.cuGraphInstantiate, graph, 0)
    instantiation = time.perf_counter() - start

    def run() -> None:
        ask(driver.cuGraphLaunch, replay, device.stream)

    run()
    require_same([device.fetch(p, x)], [x + 20], 0)

    def replayed() -> None:
        run()
        device.wait()

    def launched() -> None:
        twenty()
        device.wait()

    return {
        "figures": {
            "replay us": microseconds(run, 300),
            "replay and wait us": microseconds(replayed, 300),
            "device us": 1e6 * device.seconds(run, 300),
            "20 launches us": microseconds(twenty, 100),
            "20 launches and wait us": microseconds(launched, 100),
            "instantiate us": 1e6 * instantiation,
        }
    }


def while_nodes() -> Outcome:
    """A graph whose body runs as long as a kernel in it says so."""
    device = raw()
    prime, countdown = (device.function(WHILE, name) for name in ("prime", "countdown"))
    left, trips = device.array(np.array([1000])), device.array(np.array([0]))
    graph = ask(driver.cuGraphCreate, 0)
    handle = ask(driver.cuGraphConditionalHandleCreate, graph, device.context, 0, 0)
    value = ctypes.c_ulonglong(int(handle))
    first = _captured(graph, (), prime, Packed((left, value)))
    node = driver.CUgraphNodeParams()
    node.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    node.conditional.handle = handle
    node.conditional.type = driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
    node.conditional.size = 1
    node.conditional.ctx = device.context
    ask(driver.cuGraphAddNode, graph, first, None, len(first), node)
    body = node.conditional.phGraph_out
    _captured(body[0] if isinstance(body, (list, tuple)) else body, (), countdown, Packed((left, trips, value)))
    replay = ask(driver.cuGraphInstantiate, graph, 0)
    seconds = device.seconds(lambda: ask(driver.cuGraphLaunch, replay, device.stream))
    got = device.fetch(trips, np.empty(1, np.int64))[0]
    if got != 1000:
        raise Mismatch(f"the body ran {got} times, not 1000")
    return {"figures": {"us a trip": 1e6 * seconds / 1000}}


def _captured(graph: Any, after: tuple[Any, ...], function: Any, packed: Packed) -> list[Any]:
    """Put a kernel of one thread into a graph by capture; what comes after it depends on these nodes."""
    stream = raw().stream
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    ask(driver.cuStreamBeginCaptureToGraph, stream, graph, list(after) or None, None, len(after), mode)
    ask(driver.cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, packed.address, 0)
    ask(driver.cuStreamEndCapture, stream)
    nodes, _ = ask(driver.cuGraphGetNodes, graph, 8)
    return list(nodes)[:1]


def copies() -> Outcome:
    """Gigabytes a second of 64 MiB from and to the host: memory of NumPy's, and pinned."""
    device, nbytes = raw(), 64 * _MiB
    p, pageable = device.room(nbytes), np.ones(nbytes, np.uint8)
    pinned = int(ask(driver.cuMemHostAlloc, nbytes, 0))
    ctypes.memset(pinned, 1, nbytes)
    found = {}
    for name, host in (("pageable", pageable.ctypes.data), ("pinned", pinned)):
        there = partial(ask, driver.cuMemcpyHtoDAsync, p, host, nbytes, device.stream)
        back = partial(ask, driver.cuMemcpyDtoHAsync, host, p, nbytes, device.stream)
        for direction, copy in (("in", there), ("out", back)):
            copy()
            found[f"{name} {direction} GB/s"] = nbytes / device.seconds(copy, 5) / 1e9
    return {"figures": found}


def allocations() -> Outcome:
    """Memory from the stream's pool: time to take and give back, and whether freed memory stays with the pool."""
    device = raw()
    pool = ask(driver.cuDeviceGetDefaultMemPool, device.device)
    threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    ask(driver.cuMemPoolSetAttribute, pool, threshold, driver.cuuint64_t(2**63))

    def once() -> None:
        ask(driver.cuMemFreeAsync, ask(driver.cuMemAllocAsync, _MiB, device.stream), device.stream)

    def waited() -> None:
        once()
        device.wait()

    free, total = ask(driver.cuMemGetInfo)
    return {
        "figures": {
            "host us": microseconds(once),
            "with wait us": microseconds(waited, 200),
            "free": int(free),
            "all": int(total),
        }
    }


def host_loops() -> Outcome:
    """A kernel, its flag to pinned memory, and a wait: what a trip of a loop costs that the host drives."""
    device, function = raw(), kernel("add_one")
    p = device.array(np.zeros(32, np.float32))
    pinned, packed = int(ask(driver.cuMemHostAlloc, 64, 0)), Packed((p, 32))

    def trip() -> None:
        ask(driver.cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, device.stream, packed.address, 0)
        ask(driver.cuMemcpyDtoHAsync, pinned, p, 4, device.stream)
        device.wait()

    return {"figures": {"us a trip": microseconds(trip, 300)}}


STICKY = """
from cuda.bindings import driver
from gpu.raw import Raw, ask
r = Raw()
f = r.function('extern "C" __global__ void bad(float* x) { *x = 1.0f; }', "bad")
said = []
for step in (lambda: r.launch(f, 1, 1, (64,)), r.wait, lambda: r.room(8), r.wait, lambda: ask(driver.cuMemGetInfo)):
    try:
        step(); said.append("fine")
    except Exception as error:
        said.append(str(error))
print(" | ".join(said), flush=True)
import os; os._exit(0)
"""


def sticky_errors() -> Outcome:
    """A write to address 64: what that launch says, and each call after it."""
    done = subprocess.run([sys.executable, "-c", STICKY], capture_output=True, text=True, timeout=25, check=False)
    said = done.stdout.strip() or done.stderr[-500:]
    if "ILLEGAL_ADDRESS" not in said:
        raise Mismatch(f"no illegal address: {said}")
    return {"figures": {"launch | wait | allocate | wait | ask": said}}


def libraries() -> Outcome:
    """NVIDIA's libraries that could be called, and where they are."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    found = {}
    for name in ("cublas", "cublasLt", "cusolver", "cufft", "nvJitLink", "curand"):
        try:
            found[name] = str(load_nvidia_dynamic_lib(name).abs_path)
        except Exception as error:  # one that is absent is a fact as well
            found[name] = type(error).__name__
    return {"figures": found}
