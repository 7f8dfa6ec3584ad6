"""Whose errors may somebody hear of, and what does a pass owe to values that it does away with?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jitml.ir import ops
from jitml.ir.floating import heard_of, is_heard
from jitml.ir.graph import Node, Value
from jitml.ir.rewrite import Producers
from jitml.ir.types import DType


def may_warn(node: Node, producers: Producers) -> bool:
    """Whether NumPy may warn of some element of a node's result, or of an index."""
    return is_heard(node) and (not heard_of(node) or not _is_harmless(node, producers))


def let_go(x: Value, producers: Producers) -> None:
    """Say that a pass does without a value that was needed: errors that come up on the way to it are observed."""
    seen: set[Value] = set()
    left = [x]
    while left:
        value = left.pop()
        node = producers.get(value)
        if node is None or value in seen:
            continue
        seen.add(value)
        if may_warn(node, producers):
            ops.observe(value)
        else:
            left += node.inputs


def _is_harmless(node: Node, producers: Producers) -> bool:
    """Whether a float result can only underflow, since one operand is a number of moderate size."""
    numbers = [_number(v, producers) for v in node.inputs]
    y = numbers[-1] if numbers else None
    match node.op:
        case ops.add:
            return any(n is not None and _is_lost_in_most(n, node.output.dtype) for n in numbers)
        case ops.sub:
            return y is not None and _is_lost_in_most(y, node.output.dtype)
        case ops.mul:
            return any(n is not None and abs(n) <= 1 and n != 0 for n in numbers)
        case ops.div:
            return y is not None and 1 <= abs(y) < math.inf
    return False


def _is_lost_in_most(n: float, dtype: DType) -> bool:
    """Whether the greatest number of a dtype stays what it is if that is added: of float16 it does not for 16."""
    info: Any = np.finfo(dtype)
    return abs(n) < float(info.max) * float(info.eps) / 4


def _number(value: Value, producers: Producers) -> float | None:
    """The number that is all of a float value, if it is known."""
    maker = producers.get(value)
    while maker is not None and maker.op is ops.broadcast:
        maker = producers.get(maker.inputs[0])
    return float(maker.params["value"]) if maker is not None and maker.op is ops.full and value.dtype.kind == "f" else None
