"""Attributes, items and global names that loops and branches set: every object becomes what Python makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.trace.carried import attribute_programs
from tests.trace.carried.attribute_programs import ANY, WHOLE

import jitml
from jitml.ir import ops
from jitml.trace.trace import trace


def state(x: Any, seen: dict[int, int] | None = None) -> Any:
    """All that an object is made of, with the places of what stands in it more than once."""
    seen = {} if seen is None else seen
    if isinstance(x, (int, float, np.generic, str, type(None))):
        return type(x), round(x, 9) if isinstance(x, float) else x
    if id(x) in seen:
        return "again", seen[id(x)]
    seen[id(x)] = len(seen)
    if isinstance(x, np.ndarray):
        return x.dtype, x.shape, np.round(x, 9).tolist()
    if isinstance(x, dict):
        return dict, [(key, state(item, seen)) for key, item in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x), [state(item, seen) for item in x]
    slots = {name: getattr(x, name) for name in getattr(x, "__slots__", ()) if hasattr(x, name)}
    return type(x), state({**slots, **getattr(x, "__dict__", {})}, seen)


def outcome(f: Any, args: Any) -> Any:
    """What a call gives or raises, and what has become of its arguments and of what is global."""
    attribute_programs.COUNT = 0.0
    try:
        result = f(*args)
    except (ValueError, IndexError) as error:
        result = type(error), str(error)
    return state((args, result, attribute_programs.COUNT, attribute_programs.Model.total))


# In parts.
AS_PYTHON = {
    "copies", "fills_a_list_that_is_held", "changes_lists_that_it_has_filled", "a_global_name", "of_a_class", "deletes_in_one",
    "handles", "layers_made_inside", "inside", "fills_a_list_of_its_own",
}  # fmt: skip


@pytest.mark.parametrize("f, arguments", [*WHOLE, *ANY], ids=[f"{n}-{f.__name__}" for n, (f, _) in enumerate([*WHOLE, *ANY])])
@pytest.mark.loose
def test_objects_are_as_python_leaves_them(f: Any, arguments: Any) -> None:
    expected = outcome(f, arguments())
    jitted = jitml.jit(f)
    assert [outcome(jitted, arguments()) for _ in range(2)] == [expected] * 2
    assert jitted.variants or f.__name__ in AS_PYTHON


@pytest.mark.parametrize("f, arguments", WHOLE, ids=[f"{n}-{f.__name__}" for n, (f, _) in enumerate(WHOLE)])
def test_what_stores_is_captured_whole(f: Any, arguments: Any) -> None:
    nodes = trace(f, arguments(), {}, rooted=True).graph.nodes
    assert any(node.bodies or node.op is ops.select for node in nodes) and len(nodes) < 90


def test_a_derivative_goes_through_attributes() -> None:
    def loss(w: Any) -> Any:
        m = attribute_programs.Model(w=w, s=0.0)
        for _ in range(9):
            m.w = m.w * 0.9 - 0.3 if m.w[0] > 0 else m.w + 0.5
            m.s = m.s + (m.w**2).sum()
        return m.s

    x = attribute_programs.X[0]
    slope = [(loss(x + d) - loss(x - d)) / 2e-6 for d in np.eye(3) * 1e-6]
    np.testing.assert_allclose(jitml.jit(jitml.grad(loss))(x), slope, rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 200])
def test_what_the_first_iteration_writes_is_the_callers(count: int) -> None:
    """The array that an attribute holds before the loop is written once, and then the attribute has another one."""

    def halve(model: attribute_programs.Model, count: int) -> None:
        for _ in range(count):
            model.w *= 0.5
            model.w = model.w + 1

    mine, plain = np.ones(3), np.ones(3)
    made, expected = attribute_programs.Model(w=mine), attribute_programs.Model(w=plain)
    jitml.jit(halve)(made, count)
    halve(expected, count)
    np.testing.assert_array_equal(mine, plain)
    np.testing.assert_array_equal(made.w, expected.w)
