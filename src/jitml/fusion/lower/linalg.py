"""Factorizations: NumPy's own routines, at that point of the program. (Of complex numbers: `fusion/complex/host.py`.)"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitml.fusion.lower.host import call_python
from jitml.fusion.lower.nests import NestSite, nests
from jitml.ir.op import OPS
from jitml.ir.ops.host import HostFunction, function_of
from jitml.ir.types import I64
from jitml.kernels.ir import Store

Array = np.ndarray[Any, Any]


@nests.rule(*(op for op in OPS.values() if op.family == "linalg"))
def lower_linalg(site: NestSite) -> None:
    function = function_of(site.node)
    if site.node.inputs[0].aval.is_static:
        call_python(site, function)
        return
    count = site.new_buffer(I64, ())
    site.emit((Store(count.name, (), site.extent(0, 0)),), count)
    call_python(site, _of_the_first(function), count)


def _of_the_first(function: HostFunction) -> HostFunction:
    """A function of as many matrices as its last argument says: there is memory for more."""

    def call(*arrays: Array, out: tuple[Array, ...]) -> tuple[Array, ...]:
        *stacks, count = arrays
        for whole, result in zip(out, function.call(*(x[:count] for x in stacks)), strict=True):
            whole[:count] = result
        return out

    return HostFunction(function.name, call, function.results, fills=True)
