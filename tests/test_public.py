"""The measurement of public programs: entries that can be read, and differences that are found (bench/public)."""

from __future__ import annotations

import ast
import gc
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.public.checkouts import decorate, definitions
from bench.public.outcomes import difference, leaves_of, nudge, spread_of
from bench.public.programs import all_programs, how_to_get
from bench.public.report import Outcome, report, without_paths
from bench.public.scripts import Decorated, all_scripts


def test_entries_can_be_read() -> None:
    programs = all_programs()
    assert len({p.name for p in programs}) == len(programs)
    for program in programs:
        assert len(program.commit) == 40 and program.jit, program.name
        for text in (program.make, program.call, program.setup):
            ast.parse(text)
    assert how_to_get(programs).count("git clone") == len({p.repository for p in programs})


def test_scripts_can_be_read_and_all_functions_in_them_are_decorated() -> None:
    assert len({script.name for script in all_scripts()}) == len(all_scripts()) >= 20
    tree = ast.parse(
        "def f():\n    def g(): return 1\n    return g()\nclass A:\n    @staticmethod\n    def h(): return f() + 1\n"
    )
    called: list[str] = []

    def noted(function: Any) -> Any:
        def call(*args: Any) -> Any:
            called.append(function.__name__)
            return function(*args)

        return call

    space: dict[str, Any] = {"_decorated_by": noted}
    exec(compile(ast.fix_missing_locations(Decorated().visit(tree)), "script", "exec"), space)
    assert space["A"].h() == 2 and called == ["h", "f", "g"]


class _Model:
    def __init__(self, w: Any) -> None:
        self.w, self.log = w, [w]


@pytest.mark.parametrize(
    "mine, plain",
    [
        (np.ones(3), np.ones(4)),
        (np.ones(3), np.ones(3, np.float32)),
        (np.ones(3), np.ones(3) + 1e-8),
        (1.0, np.float64(1.0)),
        (_Model(1), _Model(2)),
        ([1, [2]], [1, [3]]),
        ("a 1.50\n", "a 1.60\n"),
        ({1: 2}, {1: 2, 2: 3}),
        (np.array([np.nan, 1]), np.array([1, np.nan])),
        ([shared := [1], shared], [[1], [1]]),
    ],
)
def test_what_differs_is_found(mine: Any, plain: Any) -> None:
    assert difference(leaves_of({"x": mine}), leaves_of({"x": plain}))
    assert not difference(leaves_of({"x": plain}), leaves_of({"x": plain}))


@pytest.mark.parametrize("mine, plain", [(1.0, 1.0 + 1e-12), ("loss 0.12345", "loss 0.12346"), (np.zeros(2), -np.zeros(2))])
def test_rounding_is_no_difference(mine: Any, plain: Any) -> None:
    assert not difference(leaves_of({"x": mine}), leaves_of({"x": plain}))


def test_what_rounding_of_the_arguments_explains_is_no_difference() -> None:
    def outcome(x: Any) -> Any:
        return leaves_of({"y": (x - 1.0) * 1e8})

    x = {"x": np.array([1.0 + 1e-9])}
    moved = {"x": x["x"].copy()}
    nudge(moved, np.random.default_rng(0))
    assert not np.array_equal(moved["x"], x["x"])
    expected, got = outcome(x["x"]), outcome(x["x"] + 3e-16)
    assert difference(got, expected)
    assert not difference(got, expected, spread_of(expected, [outcome(moved["x"])]))


def test_printed_numbers_that_rounding_moves_are_no_difference() -> None:
    expected, got, moved = (leaves_of({"printed": f"after 3: {x}"}) for x in (1e-13, 2e-13, 5e-13))
    assert difference(got, expected)
    assert not difference(got, expected, spread_of(expected, [moved]))
    assert difference(leaves_of({"printed": "before 3: 2e-13"}), expected, spread_of(expected, [moved]))
    assert difference(got, expected, spread_of(expected, [expected]))


def test_methods_and_functions_are_decorated_where_they_are_named() -> None:
    module = types.ModuleType("drawn_public")
    exec("def f(x): return x\nclass A:\n    @staticmethod\n    def g(x): return x\n    def h(self, x): return x\n", vars(module))
    module.__file__ = "/nowhere/drawn_public.py"

    def doubled(function: Any) -> Any:
        return lambda *args: 2 * function(*args)

    jitted, refusals = decorate(module, ["f", "A.g", "A.h"], [], doubled)
    assert (module.f(1), module.A.g(1), module.A().h(1)) == (2, 2, 2)
    assert len(jitted) == 3 and not refusals


def test_definitions_keep_their_lines() -> None:
    text = "import os\nx = print('no')\n\n@staticmethod\ndef f():\n    return 1\nN = 3\n"
    assert definitions(text) == "import os\n\n\n@staticmethod\ndef f():\n    return 1\nN = 3\n"


def test_a_report_counts_and_has_no_paths() -> None:
    lines = [{"plain": 0.01}, {"jitted": 0.5, "call": 0}, {"plain": 0.01}, {"jitted": 0.001, "call": 1}]
    outcomes = [
        Outcome.of("a/right", lines, 0, "", 1.0),
        Outcome.of("a/wrong", [*lines, {"wrong": "x: 1, plain 2", "call": 1}], 0, "", 1.0),
        Outcome.of("a/refused", [{"plain": 0.01}, {"refused": "no /home/me/x.py:3", "call": 0}], 0, "", 1.0),
        Outcome.of("a/hang", lines[:1], None, "", 60.0),
    ]
    assert [o.kind for o in outcomes] == ["right", "wrong", "refused", "hang"]
    assert outcomes[0].gain == pytest.approx(10)
    text = report(outcomes)
    assert "1 right" in text and "10.00" in text and "/home" not in text
    assert without_paths("see /a/b c/d.py:3") == "see d.py:3"


def test_what_is_looked_at_is_let_go_of_without_a_garbage_collection() -> None:
    """Else the side that runs second has no memory to use again."""

    class Held:
        pass

    held = Held()
    known = weakref.ref(held)
    gc.disable()
    try:
        leaves = leaves_of({"held": held, "inside": [held]})
        del held
        assert known() is None
    finally:
        gc.enable()
    assert leaves["inside[0]"] == "held"
