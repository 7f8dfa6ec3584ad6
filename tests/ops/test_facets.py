"""An op is declared once and completed in each layer: a test fails by name for each facet that is missing."""

from __future__ import annotations

import pytest

from jitml.autograd.core.jvp import jvp, jvp_of_many
from jitml.autograd.core.transpose import transpose, transpose_of_many
from jitml.autograd.reverse.split import halving
from jitml.codegen.scalar_math import RULES
from jitml.fusion.complex import splitting
from jitml.fusion.grouping.regions import REGIONS
from jitml.fusion.lower import lowering
from jitml.fusion.lower.nests import nests
from jitml.fusion.lower.points import targets
from jitml.fusion.lower.reductions import REDUCTIONS
from jitml.fusion.prepare.expand import expansion
from jitml.ir import ops
from jitml.ir.op import OPS, Op
from support.op_cases import CASES

pytestmark = pytest.mark.every_row

_LATE = (ops.fused,)  # made when no transform is to come
every_op = pytest.mark.parametrize("op", [op for op in OPS.values() if op not in _LATE], ids=str)
_OWN_TESTS = ("regions", "host", "random", "calls")
every_array_op = pytest.mark.parametrize("op", [op for op in OPS.values() if op.family not in _OWN_TESTS], ids=str)


@every_array_op
def test_every_op_has_a_row(op: Op) -> None:
    assert op.name in CASES, f"give {op} a row in tests/support/op_cases.py"


@every_op
def test_every_op_has_a_derivative(op: Op) -> None:
    assert any(op in table for table in (jvp, jvp_of_many, transpose)), (
        f"give {op} a jvp rule, a transpose rule or not_differentiable({op}) in autograd/rules/{op.family}.py"
    )


@every_array_op
def test_every_op_has_a_lowering(op: Op) -> None:
    lowered = any(op in table for table in (lowering, nests, targets, expansion, REDUCTIONS, splitting))
    assert lowered, f"give {op} a lowering in fusion/lower/{op.family}.py"


def test_every_op_with_bodies_becomes_a_step() -> None:
    assert set(REGIONS) == {ops.loop, ops.while_, ops.cond}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "c" in case.kinds])
def test_every_op_on_complex_numbers_has_a_splitting(name: str) -> None:
    assert CASES[name].op in splitting, f"give {name} a rule that writes it with real numbers, in fusion/parts"


@pytest.mark.parametrize("op", REGIONS, ids=str)
def test_every_op_with_bodies_has_derivatives(op: Op) -> None:
    assert op in jvp_of_many and op in halving
    assert op in transpose_of_many or op is ops.while_  # whose linear half is a loop


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.family == "pointwise" and op is not ops.convert], ids=str)
def test_every_pointwise_op_has_an_emitter(op: Op) -> None:
    assert op.name in RULES, f"give {op} a function of one scalar, decorated with @rule({op.name!r}), in codegen/llvm/math/"
