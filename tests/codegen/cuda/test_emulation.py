"""The emulation of CUDA finds the faults that it is there for; each is planted here."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from support.cuda_emulation import ORDERS, BuildError, EmulatedModule, GuardedMemory, KernelFault, build, guarded, has_compiler

pytestmark = pytest.mark.skipif(not has_compiler(), reason="needs g++")

_BODIES = {
    "reverse": """(float* x) {
        __shared__ float s[64];
        s[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = s[63 - threadIdx.x]; }""",
    "reverse_without_barrier": """(float* x) {
        __shared__ float s[64];
        s[threadIdx.x] = x[threadIdx.x];
        x[threadIdx.x] = s[63 - threadIdx.x]; }""",
    "race": "(int* x) { x[0] = x[0] * 3 + threadIdx.x; }",
    "race_of_blocks": "(int* x) { x[0] = x[0] * 3 + blockIdx.x; }",
    "same_value": "(float* x) { x[0] = 1; }",
    "neighbour_of_block": "(float* x) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = x[i + 1] + 1; }",
    "part_of_a_vector": "(float* x) { if (threadIdx.x) x[threadIdx.x] = 1; else *(float4*)x = make_float4(1, 2, 3, 4); }",
    "lanes_without_barrier": "(float* x) { __shared__ float s[32]; s[threadIdx.x] = 1; x[threadIdx.x] = s[threadIdx.x ^ 1]; }",
    "lanes_of_two_warps": """(float* x) {
        __shared__ float s[64]; s[threadIdx.x] = 1;
        __syncwarp();
        x[threadIdx.x] = s[threadIdx.x ^ 32]; }""",
    "atomic_beside_plain": "(float* x) { if (threadIdx.x) atomicAdd(x, 1); else x[0] = 1; }",
    "read_then_written": """(float* x) {
        __shared__ float s[64]; s[threadIdx.x] = 1;
        __syncthreads();
        float first = s[0];
        s[threadIdx.x] = first; }""",
    "bytes_apart": "(unsigned char* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }",
    "lanes_with_barrier": """(float* x) {
        __shared__ float s[64]; s[threadIdx.x] = 1;
        __syncwarp();
        float other = s[threadIdx.x ^ 1];
        __syncwarp();
        s[threadIdx.x] = other;
        __syncwarp();
        x[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x ^ 3]; }""",
    "atomics": "(float* x) { atomicAdd(x, 1); atomicAdd(x + blockIdx.x, 1); }",
    "all_read": """(float* x) {
        __shared__ float s; if (threadIdx.x == 5) s = x[255];
        __syncthreads();
        if (threadIdx.x < 60) x[blockIdx.x * 60 + threadIdx.x] += s; }""",
    "written_again": """(float* x) {
        for (int i = 0; i < 3; i++) {
            if (threadIdx.x == i) x[0] += x[1];
            __syncthreads();
            if (threadIdx.x == 40) x[1] = x[0];
            __syncthreads(); } }""",
    "past_the_end": "(float* x) { x[threadIdx.x + 1] = 1; }",
    "before_the_start": "(float* x) { x[(int)threadIdx.x - 1] = 1; }",
    "far_before_the_start": "(float* x) { x[(int)threadIdx.x - 2000] = 1; }",
    "shared_bounds": "(float* x) { __shared__ float s[32]; s[threadIdx.x] = x[threadIdx.x]; x[threadIdx.x] = s[threadIdx.x]; }",
    "misaligned": "(float* x) { ((float4*)(x + 1))[threadIdx.x] = make_float4(1, 2, 3, 4); }",
    "misaligned_atomic": "(char* x) { atomicAdd((int*)(x + 2), 1); }",
    "null": "(float* x) { float* p = threadIdx.x == 5 ? nullptr : x + threadIdx.x; *p = 1; }",
    "shift": "(int* x) { x[0] <<= x[1]; }",
    "barriers_apart": """(float* x) {
        if (threadIdx.x < 32)
            __syncthreads();
        else
            __syncthreads(); }""",
    "barrier_of_some": "(float* x) { if (threadIdx.x < 7) return; __syncthreads(); }",
    "lanes_gone": "(float* x) { if (threadIdx.x & 1) return; x[0] = __shfl_xor_sync(~0u, x[1], 2); }",
    "lane_outside_mask": "(float* x) { if (threadIdx.x < 16) x[0] = __shfl_sync(0xffffu, x[1], 20); }",
    "mask_without_caller": "(float* x) { x[0] = __shfl_sync(0xffffu, x[1], 2); }",
    "different_operations": "(int* x) { if (threadIdx.x & 1) __syncwarp(); else x[0] = __ballot_sync(~0u, 1); }",
    "copy_not_waited_for": """(float* x) {
        __shared__ __align__(16) float s[256];
        ji_cp_async16(s + 4 * threadIdx.x, x + 4 * threadIdx.x);
        ji_cp_async_commit(); }""",
    "large_frame": "(float* x) { volatile char local[1 << 18]; local[threadIdx.x] = 1; x[0] = local[0]; }",
}


@cache
def _modules() -> dict[str, EmulatedModule]:
    sources = [f'extern "C" __global__ void {name}{body}' for name, body in _BODIES.items()]
    return dict(zip(_BODIES, build(sources)))


def _launch(
    name: str, x: np.ndarray[Any, Any], threads: int = 64, blocks: int = 1, order: int = 0, races: bool = True
) -> np.ndarray[Any, Any]:
    x = guarded(x)
    _modules()[name].launch(name, blocks, threads, x, order=order, races=races)
    return x


@pytest.mark.parametrize("order", ORDERS)
def test_a_kernel_that_is_right_gives_the_same_in_all_orders(order: int) -> None:
    x = np.arange(64, dtype=np.float32)
    assert np.array_equal(_launch("reverse", x, order=order), x[::-1])


def test_a_missing_barrier_gives_nan_and_other_results_in_other_orders() -> None:
    results = [_launch("reverse_without_barrier", np.ones(64, np.float32), order=order, races=False) for order in ORDERS]
    assert np.isnan(results[0]).sum() == 32
    assert not np.array_equal(np.isnan(results[0]), np.isnan(results[1]))
    assert not np.array_equal(np.isnan(results[0]), np.isnan(results[2]))


@pytest.mark.parametrize(("name", "threads", "blocks"), [("race", 64, 1), ("race_of_blocks", 1, 7)])
def test_orders_disagree_about_a_race(name: str, threads: int, blocks: int) -> None:
    results = {int(_launch(name, np.zeros(1, np.int32), threads, blocks, order, races=False)[0]) for order in ORDERS[:2]}
    assert len(results) == 2


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("name", "threads", "blocks"),
    [
        *(("race", 64, 1), ("race_of_blocks", 1, 7), ("reverse_without_barrier", 64, 1), ("same_value", 2, 1)),
        *(("neighbour_of_block", 32, 2), ("part_of_a_vector", 4, 1), ("lanes_without_barrier", 32, 1)),
        *(("lanes_of_two_warps", 64, 1), ("atomic_beside_plain", 2, 1), ("read_then_written", 64, 1)),
    ],
)
def test_a_race_raises_in_every_order(name: str, threads: int, blocks: int, order: int) -> None:
    with pytest.raises(KernelFault, match=rf"{name}: race: a thread .* no barrier between.* at source_\d+:\d"):
        _launch(name, np.zeros(256, np.float32), threads, blocks, order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["bytes_apart", "lanes_with_barrier", "atomics", "all_read", "written_again"])
def test_what_is_in_order_is_no_race(name: str, order: int) -> None:
    for _ in range(2):  # launches are in order among each other
        _launch(name, np.zeros(256, np.float32), 64, 1 if name == "written_again" else 4, order)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("past_the_end", r"illegal memory access at address 0x[0-9a-f]+ \(block 0,0,0, thread 63,0,0\)"),
        ("far_before_the_start", r"illegal memory access .*thread 0,0,0"),
        ("shared_bounds", r"misaligned access, or an index outside its array .*thread 32,0,0"),
        ("misaligned", "misaligned access"),
        ("misaligned_atomic", "misaligned atomic operation"),
        ("null", r"thread 5,0,0"),
        ("barriers_apart", r"threads of a block meet at different barriers \(line 3"),
        ("barrier_of_some", r"a barrier waits for threads that have ended"),
        ("lanes_gone", r"waits for lanes that have ended or never come \(line 1, block 0,0,0, thread 0,0,0\)"),
        ("lane_outside_mask", "a shuffle reads a lane outside its mask"),
        ("mask_without_caller", r"whose mask leaves it out .*thread 16,0,0"),
        ("different_operations", "lanes of a warp meet in different operations"),
        ("copy_not_waited_for", "a thread ended with asynchronous copies not waited for"),
        ("large_frame", "illegal memory access"),
    ],
)
def test_a_fault_raises_with_its_place(name: str, message: str) -> None:
    with pytest.raises(KernelFault, match=f"{name}: .*{message}"):
        _launch(name, np.zeros(64, np.float32))


def test_a_shift_by_more_bits_than_there_are_raises() -> None:
    with pytest.raises(KernelFault):
        _launch("shift", np.array([1, 32], np.int32), threads=1)
    assert _launch("shift", np.array([1, 31], np.int32), threads=1)[0] == -(2**31)


def test_the_process_lives_on_after_a_fault() -> None:
    for _ in range(3):
        with pytest.raises(KernelFault):
            _launch("lanes_gone", np.zeros(64, np.float32))
        assert _launch("reverse", np.arange(64, dtype=np.float32))[0] == 63


def test_bytes_beside_guarded_memory_are_looked_at() -> None:
    memory = GuardedMemory(16, align=256)
    _modules()["before_the_start"].launch("before_the_start", 1, 4, memory.address)
    with pytest.raises(KernelFault, match="bytes beside an array of 16 bytes have been written"):
        memory.check()


def test_a_source_that_the_compiler_refuses_raises_with_its_line() -> None:
    with pytest.raises(BuildError, match=r"source_1:2.*nowhere"):
        build(['extern "C" __global__ void f() {}', 'extern "C" __global__ void g(float* x) {\n *x = nowhere; }'])


_COLLECTIVES = """
template <int N> __device__ float sum_of(float* x) {
    __shared__ float partial[N];
    float value = x[threadIdx.x];
    for (int d = 16; d; d >>= 1) value += __shfl_down_sync(~0u, value, d);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < N; i++) sum += partial[i];
    return sum;
}
extern "C" __global__ void __launch_bounds__(128) sums(float* x, float* y, long long scale) {
    float sum = sum_of<4>(x);
    if (threadIdx.x == 0) y[blockIdx.x] = sum * scale;
}
extern "C" __global__ void votes(int* y) {
    int odd = threadIdx.x & 1;
    int v0 = __ballot_sync(~0u, odd);
    int v1 = __syncthreads_count(odd);
    int v2 = __any_sync(~0u, odd) + 2 * __all_sync(~0u, odd);
    int v3 = __reduce_max_sync(~0u, threadIdx.x);
    int v4 = __match_any_sync(~0u, threadIdx.x / 3);
    atomicAdd(y + 5, 1);
    if (threadIdx.x == 7) y[0] = v0, y[1] = v1, y[2] = v2, y[3] = v3, y[4] = v4;
}
extern "C" __global__ void reverse(float* x) {
    extern __shared__ __align__(16) float dynamic[];
    dynamic[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void matrices(unsigned short* a, unsigned short* b, float* d) {
    __shared__ __align__(16) unsigned short left[16 * 16], right[16 * 8];
    unsigned lane = threadIdx.x, fa[4], fb[4];
    ji_cp_async16(left + lane * 8, a + lane * 8);
    if (lane < 16) ji_cp_async16(right + lane * 8, b + lane * 8);
    ji_cp_async_commit();
    ji_cp_async_wait<0>();
    __syncwarp();
    ji_ldmatrix4<false>(fa, left + lane % 16 * 16 + lane / 16 * 8);
    ji_ldmatrix4<true>(fb, right + lane % 16 * 8);
    float c[4] = {};
    ji_mma_m16n8k16_bf16(c, fa, fb);
    for (int i = 0; i < 4; i++) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];
}
"""


@cache
def _collectives() -> EmulatedModule:
    (module,) = build([_COLLECTIVES])
    return module


@pytest.mark.parametrize("order", ORDERS)
def test_collectives_give_what_a_device_gives(order: int) -> None:
    module = _collectives()
    assert module.kernels == ("sums", "votes", "reverse", "matrices")
    x, y = guarded(np.arange(128, dtype=np.float32)), guarded(np.zeros(3, np.float32))
    module.launch("sums", 3, 128, x, y, np.int64(2), order=order)
    assert np.array_equal(y, [2 * 8128] * 3)
    assert module.counts() == {"threads": 384, "barriers": 3, "exchanges": 60, "switches": module.counts()["switches"]}
    votes = guarded(np.zeros(6, np.int32))
    module.launch("votes", 1, 32, votes, order=order)
    assert list(votes) == [-1431655766, 16, 1, 31, 0b111000000, 32]
    module.launch("reverse", 1, 128, x, shared=512, order=order)
    assert np.array_equal(x, np.arange(128)[::-1])


def test_matrices_are_multiplied_as_by_tensor_cores() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((16, 16), (16, 8)))
    d = guarded(np.zeros((16, 8), np.float32))
    halves = [guarded((x.view(np.uint32) >> 16).astype(np.uint16)) for x in (a, b)]
    _collectives().launch("matrices", 1, 32, *halves, d)
    assert np.array_equal(d, a @ b)
