"""Derivatives through regions and through places that are values: refused, clearly, where a float depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitml.autograd.jvp import Tangent, jvp
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.ir.op import Op


def _refused(op: Op) -> None:
    @jvp.rule(op)
    def refuse(out: Value, primals: Sequence[Value], tangents: Sequence[Tangent], **params: Any) -> Tangent:
        raise DerivativeError(
            f"derivatives through {op} are not supported yet",
            remedy="Outside of what is differentiated, loops and sizes that depend on data are compiled.",
        )


for _op in (
    ops.dynamic_slice, ops.dynamic_update_slice, ops.compress, ops.resize, ops.loop, ops.while_, ops.cond, ops.bind, ops.check,
):  # fmt: skip
    _refused(_op)
