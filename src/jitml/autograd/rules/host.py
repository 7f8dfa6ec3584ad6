"""Host calls have no derivative: nothing is known of the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from jitml.autograd.jvp import Tangent, jvp_of_many
from jitml.errors import DerivativeError
from jitml.ir import ops
from jitml.ir.graph import Node


@jvp_of_many.rule(ops.host_call, ops.draw)
def refuse(node: Node, tangents: Sequence[Tangent]) -> NoReturn:
    raise DerivativeError(
        f"{node.params['function'].name} runs in NumPy and has no derivative",
        source=node.source,
        remedy="Write it with functions that are compiled (docs/supported.md), or stop_gradient its arguments.",
    )
