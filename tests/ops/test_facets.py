"""An op is declared once and completed in each layer: a test fails by name for each facet that is missing."""

from __future__ import annotations

import pytest

from jitml.autograd.jvp import jvp
from jitml.autograd.transpose import transpose
from jitml.ir.op import OPS, Op
from op_cases import CASES


@pytest.mark.parametrize("op", OPS.values(), ids=OPS.keys())
def test_every_op_is_complete(op: Op) -> None:
    assert op.name in CASES, f"give {op} a row in tests/op_cases.py"
    assert op in jvp or op in transpose, (
        f"give {op} a jvp rule, a transpose rule or not_differentiable({op}) in autograd/rules/{op.family}.py"
    )
