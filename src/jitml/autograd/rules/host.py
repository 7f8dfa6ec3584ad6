"""Host calls have no derivative: nothing is known of the function."""

from __future__ import annotations

from collections.abc import Sequence

from jitml.autograd.jvp import Tangent, jvp
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.ops.host import HostFunction


@jvp.rule(ops.host_call, ops.draw)
def refuse(out: Value, primals: Sequence[Value], tangents: Sequence[Tangent], *, function: HostFunction) -> Tangent:
    raise DerivativeError(
        f"{function.name} runs in NumPy and has no derivative",
        remedy="Write it with functions that are compiled (docs/supported.md), or stop_gradient its arguments.",
    )
