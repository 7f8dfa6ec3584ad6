"""CUDA target: what does a GPU cost, and what has it, to grouping, scheduling and memory planning?

The figures are an H100's; a program depends on them for speed only. The device is taken as one core of enormous width: loops
are cut into blocks by the schedules (`schedule/`), and no part of a program is too small to be worth all of it.
"""

from __future__ import annotations

from functools import cache

from jitml.ir.types import DTYPES, F16, F32, F64
from jitml.kernels.target import Accepts, Blocks, Cost, Limits, Target

THREADS = 256  # of a block, at most
WARP = 32  # threads that run in step: a block is made of whole warps
PROCESSORS = 132  # that run blocks side by side
VECTOR_BYTES = 16  # of the widest access of one thread
SHARED_BYTES = 40 << 10  # of scratch for the threads of a block, so that some blocks fit on a processor
# Bytes of scratch that a block may have alone, by what code is compiled for; others have at least LEAST_ROW.
ROW_BYTES = {
    "sm_80": 160 << 10,
    "sm_86": 96 << 10,
    "sm_89": 96 << 10,
    "sm_90": 216 << 10,
    "sm_100": 216 << 10,
    "sm_120": 96 << 10,
}
LEAST_ROW = 44 << 10
# Our own functions take matrices of any strides.
_GEMM = Accepts(dtypes=frozenset((F32, F64)), small=8, epilogues=frozenset(("add",)))
_SCAN = Accepts(dtypes=frozenset(d for d in DTYPES.values() if d.kind in "biuf" and d != F16))
_SCATTER = Accepts(dtypes=_SCAN.dtypes, small=64)
_COMPACT = Accepts(small=64)


@cache
def cuda_target(arch: str = "sm_90") -> Target:
    """A GPU as a target."""
    cost = Cost(
        memory_bandwidth=3000.0,
        cache_bandwidth=5500.0,
        close_bytes=32 << 20,  # of the second cache, which all blocks share
        sharers=256,  # blocks that are resident, each with a row
        flops=17_000.0,
        matrix_flops=50_000.0,
        parallel_ns=0.0,
        grain_ns=0.0,
    )
    limits = Limits(
        cores=PROCESSORS, vector_bytes=VECTOR_BYTES, alignment=256, dense_stride=1, row_bytes=ROW_BYTES.get(arch, LEAST_ROW)
    )
    return Target(
        "cuda",
        "the device",
        cost,
        limits,
        Blocks(reduction=1024, chunk=32768),
        frozenset(("serial", "vector", "unroll", "block", "thread")),
        {
            "gemm": _GEMM,
            "fused": _GEMM,
            "scan": _SCAN,
            "scatter": _SCATTER,
            "compact": _COMPACT,
            **dict.fromkeys(("sort", "argsort", "random"), Accepts()),
        },
    )
