"""How often are the bodies of nested loops recorded?  Once more for each level, and not twice as often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.ir.graph import Graph
from jitml.trace import trace
from jitml.trace.record import recording
from jitml.trace.regions.loop import TracedLoop
from jitml.trace.rewrite.driver_protocol import Restart
from jitml.trace.speculation.modes import Decisions


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[TracedLoop]:
    """The loops of which a pass is begun, one after the other."""
    begun: list[TracedLoop] = []
    record = TracedLoop._record
    monkeypatch.setattr(TracedLoop, "_record", lambda self: begun.append(self) or record(self))
    return begun


def _nest(x: Any) -> Any:
    """Each level binds the name of the array anew."""
    v = x
    for a in range(2):
        for b in range(2):
            for c in range(2):
                for d in range(2):
                    for e in range(2):
                        v = v + e
                    v = v + d
                v = v + c
            v = v + b
        v = v + a
    return v


def _keeping(order: Sequence[int]) -> Callable[..., Any]:
    """One loop that binds the name anew in some of its recordings, and in others writes what it holds, or reads it."""

    def keeps(x: Any) -> Any:
        y = x
        for kind in [*order]:
            v = x
            for j in range(3):
                if kind == 0:
                    v = v + 1.0
                elif kind == 1:
                    v[0] += j
                else:
                    y = y + v.sum()
        return v, y

    return keeps


def _binding_late(x: Any, depth: int) -> Any:
    """Each of `depth` levels reads what only the iteration before has bound."""
    y = x * 1.0
    for a in range(3):
        for b in range(3 if depth > 1 else 1):
            for c in range(3 if depth > 2 else 1):
                for d in range(3 if depth > 3 else 1):
                    if a + b + c + d > 0:
                        y = y + v.sum()  # noqa: F821  # the iteration before has bound it
                    v = y * 0.5
    return y, v


def _settling_late(x: Any, depth: int) -> Any:
    """The same of a name whose type settles where it is bound first."""
    y, best = x * 1.0, None
    for _ in range(3):
        for _ in range(3 if depth > 1 else 1):
            for _ in range(3 if depth > 2 else 1):
                for _ in range(3 if depth > 3 else 1):
                    y = y + 1.0
                    best = y * 2.0
    return y, best


def test_a_level_adds_one_recording(passes: list[TracedLoop]) -> None:
    x = np.arange(3.0)
    np.testing.assert_array_equal(jitml.jit(_nest)(x), _nest(x))
    # The outermost body twice, as the first pass shows that the name is carried; one inside once more than the one around it.
    assert len(passes) == 2 + 3 + 4 + 5 + 6


@pytest.mark.parametrize("function", [_binding_late, _settling_late])
def test_a_level_adds_one_first_iteration(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    attempt = trace._attempt
    monkeypatch.setattr(trace, "_attempt", lambda *args: traced.append(1) or attempt(*args))
    copies = []
    for depth in (1, 2, 3, 4):
        x = np.arange(3.0)
        jitted = jitml.jit(partial(function, depth=depth))
        for result, plain in zip(jitted(x), function(x, depth)):
            np.testing.assert_allclose(result, plain)
        copies.append(_count(jitted.variants[0].traced.graph, "mul"))
        assert len(traced) <= depth + 1
        traced.clear()
    # One for the first iteration of all levels, and one for the other iterations of each; and y to begin with.
    assert copies == [3, 4, 5, 6]


def _count(graph: Graph, op: str) -> int:
    return sum((node.op.name == op) + sum(_count(body, op) for body in node.bodies.values()) for node in graph.nodes)


@pytest.mark.parametrize("order", [(0, 1), (0, 2), (0, 1, 0, 2), (2, 0, 1)])
def test_what_an_earlier_recording_carried_may_stay_in_another(order: Sequence[int], passes: list[TracedLoop]) -> None:
    keeps = _keeping(order)
    before, x = np.arange(3.0), np.arange(3.0)
    expected, results = keeps(before), jitml.jit(keeps)(x)
    np.testing.assert_array_equal(x, before)
    for result, plain in zip(results, expected):
        np.testing.assert_array_equal(result, plain)
        assert (result is x) == (plain is before)
    assert len(passes) > len(order)


def test_the_line_of_an_instruction_is_looked_up_once(passes: list[TracedLoop], monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[tuple[Any, int]] = []
    plain = recording._line_of
    monkeypatch.setattr(recording, "_line_of", lambda frame: looked_up.append((frame.f_code, frame.f_lasti)) or plain(frame))
    jitml.jit(_nest).lower(np.arange(3.0))
    # `_nest` is traced as one attempt, though its bodies are recorded twenty times.
    inside = [place for place in looked_up if place[0].co_name == "_nest"]
    assert len(passes) == 20
    assert inside
    assert len(inside) == len(set(inside))


def test_a_loop_that_is_peeled_leaves_those_around_it() -> None:
    known, error = Decisions({}, {}), NameError("v")
    around, inside = (SimpleNamespace(site=((1, place),)) for place in (1, 2))
    for loop in (around, inside):
        with pytest.raises(Restart):
            known.peel(loop.site, 0, [around, inside], error)
    assert set(known.peeled) == {(around.site, 0), (inside.site, 0)}
