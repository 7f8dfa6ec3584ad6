"""Parts of a trace: who shares them, and what they hear of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from jitml.errors import UnsupportedError
from jitml.ir import ops
from jitml.ir.graph import Node
from jitml.trace.record.parts import CallPart, LocalPart
from jitml.trace.record.recording import Attempt, Trace, activate, unsupported


@dataclass
class Heard(CallPart):
    refusals: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)

    def refused(self, error: Exception) -> None:
        self.refusals.append(str(error).partition("\n")[0])

    def cut(self, nodes: Sequence[Node]) -> None:
        self.cuts += [node.op.name for node in nodes]


class Names(set[str], LocalPart):
    """Of one trace."""


def test_a_call_has_one_part_of_a_kind_and_each_trace_its_own() -> None:
    outer = Trace()
    inner = Trace(outer)
    assert outer.call[Heard] is inner.call[Heard] is not Trace().call[Heard]
    assert outer.local[Names] is outer.local[Names] is not inner.local[Names]


def test_all_that_is_shared_is_the_calls() -> None:
    outer = Trace()
    inner = Trace(outer)
    own = {name for name in vars(outer) if getattr(outer, name) is not getattr(inner, name)}
    assert own == {"parent", "builder", "local"}


def test_parts_hear_of_refusals() -> None:
    with pytest.raises(UnsupportedError), activate(Trace()) as trace:
        trace.call[Heard]
        unsupported("this is not supported")
    assert trace.call[Heard].refusals == ["this is not supported"]


def test_parts_hear_of_what_was_recorded_in_vain() -> None:
    with activate(Trace()) as trace:
        before = ops.full(value=1.0, shape=(), dtype=np.dtype(float))
        attempt, heard = Attempt(), trace.call[Heard]
        ops.neg(before)
        ops.exp(before)
        assert attempt.undo()
        assert heard.cuts == ["neg", "exp"]
        assert attempt.undo()
        assert heard.cuts == ["neg", "exp"]
