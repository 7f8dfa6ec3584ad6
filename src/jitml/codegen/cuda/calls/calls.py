"""Library calls on a GPU: what is done for a call of each name?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jitml.codegen.cuda.calls.compaction import plan_compaction
from jitml.codegen.cuda.calls.copies import plan_copy, plan_zeros
from jitml.codegen.cuda.calls.fused import plan_fused
from jitml.codegen.cuda.calls.host import plan_host
from jitml.codegen.cuda.calls.plan import CallPlan, Means
from jitml.codegen.cuda.calls.products import plan_gemm
from jitml.codegen.cuda.calls.random import plan_random
from jitml.codegen.cuda.calls.scans import plan_scan
from jitml.codegen.cuda.calls.scatters import plan_scatter
from jitml.codegen.cuda.calls.sorts import plan_sort
from jitml.errors import UnsupportedError
from jitml.kernels.program import Call, KernelProgram


def plan_call(call: Call, program: KernelProgram, name: str, means: Means | None = None) -> CallPlan:
    """
    Args:
        program: whose buffers, sizes and extents those of the call are.
        name: of its functions, and of what belongs to it, in a text where each name stands once.
        means: functions that it may call, and define; they are then to stand in front of it.

    Raises:
        UnsupportedError: there is no such call.
    """
    if call.name in _BY_MEANS:
        return _BY_MEANS[call.name](call, program, name, means or Means())
    if call.name not in _PLANS:
        raise UnsupportedError(f"no function of the GPU's is named {call.name}")
    return _PLANS[call.name](call, program, name)


def _plan_empty(call: Call, program: KernelProgram, name: str) -> CallPlan:
    """Whatever is there will do."""
    return CallPlan()


_BY_MEANS: Mapping[str, Callable[[Call, KernelProgram, str, Means], CallPlan]] = {
    "fused": plan_fused,
    "gemm": plan_gemm,
    "scatter": plan_scatter,
}
_PLANS: Mapping[str, Callable[[Call, KernelProgram, str], CallPlan]] = {
    "argsort": plan_sort,
    "compact": plan_compaction,
    "copy": plan_copy,
    "empty": _plan_empty,
    "host": plan_host,
    "random": plan_random,
    "scan": plan_scan,
    "sort": plan_sort,
    "zeros": plan_zeros,
}
