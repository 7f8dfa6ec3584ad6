"""Call sites: what a plain statement calls is asked for as long as something else may be called, and costs nothing after that."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import CellType
from typing import Any

import numpy as np
import pytest

from jitml.dispatch.renting import FEW
from jitml.jitted import Jit
from jitml.sections.call_sites import CalleeCalls
from jitml.sections.callees import CallSite, HotCallees
from sections.forced_breaks import in_sections, split_of, trials

pytestmark = pytest.mark.loose


@pytest.fixture(autouse=True)
def rich() -> Iterator[None]:
    with trials():
        yield


class Model:
    __hash__ = None  # type: ignore[assignment]  # as of a dataclass that is compared

    def __init__(self) -> None:
        self.by = 2

    def __eq__(self, other: object) -> bool:
        raise AssertionError("nobody asks")

    def step(self, x: Any) -> Any:
        return x + self.by

    def itself(self) -> Model:
        return self


def tiny(x: Any) -> Any:
    return x + 1


def work(x: Any) -> Any:
    for _ in range(300):
        x = np.sin(x) + 0.5
    return x


class Heavy(Model):
    def step(self, x: Any) -> Any:
        return work(x) * self.by


def calling(model: Any, called: Any, n: int, log: list[Any]) -> Any:
    x: Any = 0
    for k in range(n):
        x = tiny(model.step(x))
        y = model.itself().itself().step(k)
        z = called(k)
        log.append(x * y + z)
    return x


def sites(f: Any) -> list[Any]:
    made: Any = split_of(f).frame
    cells = dict(zip(made.__code__.co_freevars, made.__closure__))
    return [cell.cell_contents for name, cell in cells.items() if name.startswith(".c")]


class Unhashable:
    __hash__ = None  # type: ignore[assignment]  # as above

    def __call__(self, x: Any) -> Any:
        return x * 3


def test_sites_that_call_small_things_are_asked_no_more() -> None:
    f, model = in_sections(calling, lambda statement: True), Model()
    for called in (tiny, Unhashable(), lambda x: x - 1, float, model.step):
        got, wanted = [], []  # type: ignore[var-annotated]  # of numbers
        made: Any = split_of(f).frame
        for _ in range(3):
            assert made(model, called, 50, got) == calling(model, called, 50, wanted)
        assert got == wanted
    for _ in range(500):  # where the machine is busy, some are taken for longer at first
        if sites(f) == [None] * 4:
            break
        made(model, tiny, 50, [])
    assert sites(f) == [None] * 4


def test_a_site_asks_as_long_as_something_may_be_compiled() -> None:
    compiled: list[str] = []

    def jitted(function: Any, rent: Any) -> Any:
        compiled.append(function.__name__)
        return lambda x: ("compiled", x)

    callees, cell = HotCallees(jitted), CellType()
    cell.cell_contents = site = CallSite(callees, cell, is_inside=True)
    for n in range(50_000):
        assert site(tiny)(n) == n + 1
        if cell.cell_contents is None:
            break
    assert cell.cell_contents is None
    cell.cell_contents = site = CallSite(callees, cell, is_inside=True)
    for _ in range(50_000):  # until it has paid: work of some 100 us, on quick machines
        if site(work) is not work and compiled:
            break
        site(work)(0.5)
    assert compiled == ["work"]
    assert site(work)(1.0) == ("compiled", 1.0)
    for _ in range(FEW - 1):  # others at the same place, in between
        assert site(tiny) is tiny
    assert site(work)(1.0) == ("compiled", 1.0)
    assert cell.cell_contents is site
    sys.settrace(lambda *_: None)
    try:
        assert site(work) is work
    finally:
        sys.settrace(None)
    for _ in range(FEW):
        assert site(len) is len
    assert cell.cell_contents is None


def test_methods_are_bound_to_their_object() -> None:
    site = CallSite(HotCallees(lambda function, rent: lambda self, x: ("compiled", self.by, x)), None, is_inside=True)
    heavy = Heavy()
    for _ in range(50_000):  # until it has paid: work of some 100 us, on quick machines
        found = site(heavy.step)
        if found.__func__ is not Heavy.step and "run_timed" not in repr(found.__func__):
            break
        found(0.5)
    assert site(heavy.step)(1.0) == ("compiled", 2, 1.0)


def test_what_is_called_is_written_twice_where_it_has_no_calls() -> None:
    names: dict[str, bool] = {}
    tree = ast.parse("a.b().c().d(e(x)).f(y)\n[g(z) for z in h]")
    made = ast.unparse(ast.fix_missing_locations(CalleeCalls(lambda function: True, names, is_inside=True).visit(tree)))
    assert [site.may_end for site in names.values()] == [True, False, True, False, False, True]
    assert made.count("a.b") == 2
    assert len(made) < 400


def test_a_callee_that_was_compiled_for_nothing_is_none_that_is_compiled() -> None:
    made: Any = None

    def jitted(function: Any, rent: Any) -> Any:
        nonlocal made
        made = Jit(function, rent=rent)
        return made

    callees = HotCallees(jitted)
    for _ in range(50_000):  # as above
        if callees(work) is not work and made is not None:
            break
        callees(work)(0.5)
    assert callees.are_compiled({"work"})
    assert not callees.are_compiled({"tiny"})
    made.leave_alone(lambda seconds, calls: False)
    assert not callees.are_compiled({"work"})
    made.go_on()
    assert callees.are_compiled({"work"})
