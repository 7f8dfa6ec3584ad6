"""Truths, known or not: do they join and choose as bools do, and is what is known not computed?"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jitml.ir.interpret import interpret
from jitml.trace.record.recording import Trace, activate
from jitml.trace.symbolic.booleans import TRUTH, Truth, all_of, any_of, as_value, choose, negated

ENDS = ("x", "y", True, False)


def python(test: bool, x: bool, y: bool) -> dict[str, bool]:
    return {"all": x and y, "any": x or y, "choose": x if test else y, "not": not x}


@pytest.mark.parametrize("ends", [*itertools.product(ENDS, repeat=2)], ids=str)
@pytest.mark.parametrize("made_here", [False, True])
def test_as_bools(ends: tuple[str | bool, str | bool], made_here: bool) -> None:
    trace = Trace()
    with activate(trace):
        names: dict[str, Truth] = {name: trace.builder.add_input(TRUTH) for name in ("test", "x", "y")}
        x, y = (names[end] if isinstance(end, str) else as_value(end) if made_here else end for end in ends)
        found = {"all": all_of(x, y), "any": any_of(x, y), "choose": choose(names["test"], x, y), "not": negated(x)}
        graph = trace.builder.build([as_value(truth) for truth in found.values()])
    for values in itertools.product((False, True), repeat=3):
        known = dict(zip(("test", "x", "y"), values))
        bools = [known[end] if isinstance(end, str) else end for end in ends]
        results = interpret(graph, [np.array(value) for value in values])
        assert dict(zip(found, map(bool, results))) == python(known["test"], bools[0], bools[1])


def test_what_is_known_is_not_computed() -> None:
    trace = Trace()
    with activate(trace):
        test, x = (trace.builder.add_input(TRUTH) for _ in range(2))
        assert (all_of(True, x), all_of(x, False), any_of(False, x), any_of(x, True), negated(True)) == (x, False, x, True, False)
        assert (choose(test, x, x), choose(test, True, False), choose(test, as_value(True), True)) == (x, test, True)
        assert [node.op.name for node in trace.builder.nodes] == ["full"]
