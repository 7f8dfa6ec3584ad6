"""Host machine model: what is this machine to fusion's cost model?"""

from __future__ import annotations

from functools import cache

from jitml.codegen.llvm.runtime.random import NativeDraws
from jitml.codegen.llvm.runtime.sorting import has_sorts
from jitml.codegen.llvm.runtime.target import host_caches, host_target
from jitml.kernels.machine import Machine

CUT_FOR = 8  # cores


@cache
def host_machine() -> Machine:
    """The host as fusion's cost model sees it.

    Loops are cut for `CUT_FOR` cores whatever their number is: how a sum is cut shows in its last bits, and these must not
    depend on JITML_NUM_THREADS or on where the scheduler lets the process run.
    """
    caches, target = host_caches(), host_target()
    draws = NativeDraws()
    return Machine(CUT_FOR, target.vector_bytes, caches.l1, caches.l2, caches.l3, has_sorts=has_sorts(), draws=draws)
