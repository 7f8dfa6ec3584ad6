"""Host target: what does this processor cost, and what has it, to grouping and scheduling?"""

from __future__ import annotations

from functools import cache

from jitml.codegen.llvm.ir.cpu import DENSE_STRIDE
from jitml.codegen.llvm.runtime.cpu import host_caches, host_cpu
from jitml.codegen.llvm.runtime.random import NativeDraws
from jitml.codegen.llvm.runtime.sorting import has_sorts
from jitml.kernels.target import GEMM, Accepts, Cost, Limits, Target

CUT_FOR = 8  # cores


@cache
def host_target() -> Target:
    """The host as a target.

    Loops are cut for `CUT_FOR` cores whatever their number is: how a sum is cut shows in its last bits, and these must not
    depend on JITML_NUM_THREADS or on where the scheduler lets the process run.
    """
    calls = {"gemm": GEMM, "random": Accepts(routines=NativeDraws())}
    if has_sorts():
        calls |= {"sort": Accepts(), "argsort": Accepts()}
    limits = Limits(CUT_FOR, host_cpu().vector_bytes, dense_stride=DENSE_STRIDE)
    return Target(cost=Cost(close_bytes=host_caches().l2), limits=limits, calls=calls)
