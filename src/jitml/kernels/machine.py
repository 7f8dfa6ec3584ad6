"""Machine model: which machine are loops shaped for?  A few numbers that the cost model and the schedules read.

The defaults describe a small server core with AVX-512; the runtime passes what it detects. Code depends on these
numbers for speed only, with two exceptions: `reduction_block` and `chunk` fix how a sum associates, so they are the
same on every machine; and without a library's sorts, equal elements keep their order whatever the kind of sort.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

DENSE_STRIDE = 4  # up to this stride, whole vectors and shuffles are faster than an access for each lane
SET_BYTES = 4096  # lines so far apart, or a multiple of it, take each other's place in the first cache


@dataclass(frozen=True, slots=True)
class Machine:
    """
    Args:
        cores: threads that a parallel loop may use.
        vector_bytes: width of one vector register.
        l1, l2, l3: bytes of data cache, the first two per core.
        memory_bandwidth, cache_bandwidth: bytes a nanosecond of one core, beyond and within L2.
        flops: simple vector operations (f64) a nanosecond of one core.
        matrix_flops: operations a nanosecond of one core inside BLAS, a multiply-add counting two.
        parallel_ns: the least serial work, in ns, for which waking a second thread pays.
        grain_ns: the least work, in ns, to hand to a thread at once.
        has_sorts: whether a library sorts rows (the calls `sort` and `argsort`).
        draws: what random numbers are drawn natively (`ir.ops.random.routine`; None: all that there are), not by Python.
        rolls: whether loops over single elements become one kernel (tests compare with regions of kernels).
    """

    cores: int = 2
    vector_bytes: int = 64
    l1: int = 48 << 10
    l2: int = 1 << 20
    l3: int = 32 << 20
    memory_bandwidth: float = 15.0
    cache_bandwidth: float = 60.0
    flops: float = 8.0
    matrix_flops: float = 50.0
    parallel_ns: float = 50_000.0
    grain_ns: float = 20_000.0
    has_sorts: bool = True
    draws: Container[str] | None = None
    rolls: bool = True

    @property
    def reduction_block(self) -> int:
        """Elements summed straight before their sum joins a longer one."""
        return 1024

    @property
    def chunk(self) -> int:
        """Elements of one parallel step through a flat array."""
        return 16384
