"""Renting of parts of a split function: which turns are timed, and which sections and callees are compiled?"""

from __future__ import annotations

import os
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch.contest import FIRST_LOOK, TURNS
from jitml.dispatch.entry import MISS
from jitml.dispatch.renting import (
    FEW,
    IN_NONE,
    PURSE,
    RUNNING,
    USUAL,
    PlainTurn,
)
from jitml.sections.section import Section
from sections.forced_breaks import trials


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_a_driver_that_runs_for_long_is_compiled_while_it_runs() -> None:
    shown: list[float] = []

    def main() -> list[float]:
        x = np.linspace(0, 1, 30_000)
        for n in range(200):
            shown.append(n)
            x = np.sin(x) * np.cos(x) + np.exp(-x * x) + np.tanh(x) * np.sqrt(np.abs(x))
        return [float(x.sum())]

    jitted = jitml.jit(main)
    script: dict[str, Any] = {"__name__": "__main__", "main": jitted}
    exec("answer = main()", script)
    np.testing.assert_allclose(script["answer"], main(), rtol=1e-9)
    assert len(shown) == 400
    (split,) = jitted.splits
    assert any(section.compiled is not None for section in split.sections)


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_what_cannot_be_compiled_whole_stays_split_when_its_rent_was_due() -> None:
    shown: list[int] = []

    def main() -> int:
        for n in range(40):
            shown.append(id(shown) and n)
        return len(shown)

    jitted = jitml.jit(main)
    jitted()
    jitted._rent.spent = 2 * USUAL
    for calls in range(2, 6):
        assert jitted() == 40 * calls
    assert shown == [*range(40)] * 5


def total_of(x: float) -> float:
    found = 0.0
    for n in range(30):
        found += x * n % 7
    return found


@pytest.mark.loose
def test_few_of_many_short_turns_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a section, and of what plain statements call: to time one takes longer than it does."""

    def main(n: int) -> float:
        total = 0.0
        for k in range(n):
            y = total_of(float(k)) + 1.0
            with open(os.devnull, "w") as file:
                file.write(str(y))
            total += y * 2.0
        return total

    began = []
    begin = PlainTurn.begin
    monkeypatch.setattr(PlainTurn, "begin", lambda turn: (began.append(turn), begin(turn)))
    monkeypatch.setattr("jitml.dispatch.renting.SMALL", 0.0)  # none is left out
    with trials():
        jitted = jitml.jit(main)
        jitted(1)
        (split,) = jitted.splits
        PURSE.spent = 1e6
        began.clear()
        assert split.frame(300) == main(300)
        assert 0 < len(began) < 200  # of 900
        sampled = [(section.rent.turns, section._sampling) for section in split.sections]
        assert max(turns + sampling._stride - sampling.untimed for turns, sampling in sampled) == 301


@pytest.mark.loose
def test_what_calls_compiled_functions_is_not_left_alone() -> None:
    def main() -> float:
        with open(os.devnull, "w") as file:
            file.write(str(total_of(2.0)))
        return 1.0

    with trials():
        jitted = jitml.jit(main)
        jitted()
        (split,) = jitted.splits
        PURSE.spent = 1e6
        assert split.is_plain
        split._callee(total_of)(2.0)
        callee = split._callee._known[total_of]
        callee._rent.spent = 2 * USUAL
        callee._sampling.at_once()
        PURSE.spent = -1e6
        split._callee(total_of)(2.0)
        PURSE.spent = 1e6
        assert jitted.alone is not None
        jitted.go_on()
        for _ in range(3):
            assert jitted() == 1.0
        assert not split.is_plain
        assert jitted.alone is None


def slow_total(n: int) -> float:
    total = 0.0
    for k in range(n):
        total += k % 7
    return total


def noted(x: np.ndarray) -> float:
    random.random()
    total = 0.0
    for v in x:
        total += v * v
    return total


@pytest.mark.loose
def test_what_a_first_call_runs_once_is_compiled_before_it_has_run() -> None:
    """There will be no second turn in it: a loop behind what breaks, and a function that a plain statement calls."""

    def main(x: np.ndarray) -> float:
        noted(x)
        total = 0.0
        for v in x:
            total += v
        return total

    x = np.arange(20.0)
    with trials():
        jitted = jitml.jit(main)
        assert jitted(x) == main(x)
        (split,) = jitted.splits
        assert [bool(section.compiled and section.compiled.variants) for section in split.sections] == [True]
        assert split._frame is not None  # that for what has turned up in the call
        called: Any = split._callee.settled[noted]
        (inner,) = called.splits
        assert inner.has_compiled


@pytest.mark.loose
@pytest.mark.parametrize("part", ["section", "callee"])
def test_what_is_left_alone_pays_for_its_parts(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A split function of which nothing is compiled yet runs as it was written, and its parts come to be due by their shares."""
    monkeypatch.setattr("jitml.sections.section.is_worth_an_early_call", lambda *_: False)

    def main(n: int) -> float:
        total = slow_total(2) if n < 0 else 0.0
        for k in range(n):
            total += (k * k) % 5
        with open(os.devnull, "w") as file:
            file.write(str(total))
        return total

    with trials():
        jitted = jitml.jit(main)
        jitted(2000)
        (split,) = jitted.splits
        split._callee(slow_total)(2000)
        section = max((s for s in split.sections if s.cell.cell_contents), key=lambda section: section.rent.spent)
        rent = section.rent if part == "section" else split._callee._known[slow_total]._rent
        while jitted.alone is None:
            jitted(2000)
        share = rent.spent / split.seconds
        assert share > 0
        PURSE.spent = 1e6
        assert not jitted.splits.paid(0.5 * USUAL)
        assert jitted.splits.paid(0.6 * USUAL)  # to see what takes its time
        assert abs(rent.spent / split.seconds / share - 1) < 0.01
        PURSE.spent, rent.spent = -1e6, 2 * USUAL
        assert jitted.splits.paid(0.01 * USUAL)
        jitted.go_on()
        jitted(2000)
        split._callee(slow_total)(2000)
        assert split._callee.are_compiled({"slow_total"}) == (part == "callee")
        assert (section.compiled is not None) == (part == "section")


class OneVariant:
    """A section's program that is for 1 alone, and has no native entry."""

    is_made_better = False
    enter = times = None
    traced = SimpleNamespace(host=SimpleNamespace(steps=()))

    def entries(self, *_: Any) -> Any:
        return SimpleNamespace(called=None, tried=lambda *_: MISS, hits=0, answer=lambda calls: None)

    def __init__(self) -> None:
        self.variants: tuple[Any, ...] = ()
        self.asked = 0

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.variants = (self,)
        return args

    def known_answer(self, args: tuple[Any, ...]) -> Any:
        self.asked += 1
        return args if args == (1,) else MISS


def turns_of(section: Section, value: int, count: int, seconds: float) -> None:
    """Call a section, as its frame does."""
    for _ in range(count):
        answer = section.cell.cell_contents(value)
        if type(answer) is PlainTurn:
            answer._told(seconds)


@pytest.mark.usefixtures("full_purse")
def test_a_section_whose_programs_are_for_other_calls_is_left_alone_for_a_while() -> None:
    program = OneVariant()
    section = Section(
        SimpleNamespace(takes=("x",), is_inside=True), lambda *_: program, lambda *_: None, lambda _: None, lambda _: len
    )
    section.rent.spent = USUAL
    turns_of(section, 1, 3, 1e-3)
    assert program.variants
    section.rent.bought(USUAL, is_made=True)
    before, PURSE.spent = program.asked, 1e6  # else another program is bought, since misses follow each other
    turns_of(section, 2, 100, 1e-4)
    assert program.asked - before <= 10
    assert section.rent.spent <= 100 * 1e-4 * 1.01  # each turn counts once
    before, PURSE.spent = program.asked, -1e6
    turns_of(section, 1, 1000, 1e-4)  # the pause ends, and it is asked again
    assert program.asked - before >= 50


@pytest.mark.usefixtures("full_purse")
@pytest.mark.parametrize(("steps", "is_entered"), [(10, True), (1000, False)])
def test_a_section_that_takes_less_than_its_guards_has_no_machine_code_for_them(steps: int, is_entered: bool) -> None:
    program = OneVariant()
    program.traced = SimpleNamespace(host=SimpleNamespace(steps=range(steps)))
    program.entries = lambda *_: made.append(OneVariant.entries(program)) or made[-1]  # type: ignore[method-assign]
    made: list[Any] = []
    section = Section(
        SimpleNamespace(takes=("x",), is_inside=True), lambda *_: program, lambda *_: None, lambda _: None, lambda _: len
    )
    section.rent.spent = USUAL
    turns_of(section, 1, 10, 2e-5)
    assert bool(made) == is_entered


class Checked(OneVariant):
    """Looks at its first calls, which takes longer than they do."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks, self.now = looks, 0.0

    def clock(self) -> float:
        self.now += 1e-6
        return self.now

    def known_answer(self, args: tuple[Any, ...]) -> Any:
        self.asked += 1
        if self.asked <= self.looks:
            began = PURSE.began()
            self.now += 5e-3
            PURSE.ended(began)
        return args


@pytest.mark.usefixtures("full_purse")
def test_a_section_loses_no_contest_by_what_checks_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Checked(4)
    monkeypatch.setattr("jitml.dispatch.renting.perf_counter", program.clock)
    section = Section(
        SimpleNamespace(takes=("x",), is_inside=True), lambda *_: program, lambda *_: None, lambda _: None, lambda _: len
    )
    section.rent.spent = USUAL
    while program.asked < program.looks:
        turns_of(section, 1, 1, 1e-3)
    assert section.contest.seconds == 0.0  # in such turns caches are cold
    turns_of(section, 1, 20, 1e-3)
    assert section.state.startswith("compiled: 1,000 us plain")


@pytest.mark.usefixtures("full_purse")
def test_a_section_that_has_lost_after_it_had_won_is_soon_looked_at_again() -> None:
    program = OneVariant()
    section = Section(
        SimpleNamespace(takes=("x",), is_inside=True), lambda *_: program, lambda *_: None, lambda _: None, lambda _: len
    )
    section.rent.spent = USUAL
    turns_of(section, 1, 30, 1e-3)
    assert section.contest.is_won
    calls = 0
    while section.cell.cell_contents is not None:
        calls += 1
        turns_of(section, 1, 1, 1e-9)
    assert section.state.startswith("not compiled: ")
    assert calls < FIRST_LOOK + 3 * (FEW + 2 * TURNS)


SHOWN: list[int] = []


def shown_while_computed(x: np.ndarray, count: int, *, raises: bool = False) -> np.ndarray:
    for n in range(count):
        SHOWN.append(id(SHOWN) and n)
        x = np.sin(x) * np.cos(x) + np.exp(-x * x) + np.tanh(x) * np.sqrt(np.abs(x))
        if raises and n == 3:
            raise KeyError(n)
    return x


@pytest.mark.loose
@pytest.mark.parametrize(("seconds", "count", "is_bought"), [(0.9, 40, True), (0.9, 1, False), (0.0, 40, False)])
def test_the_purse_buys_what_has_run_for_long_in_a_first_call(seconds: float, count: int, is_bought: bool) -> None:
    """The call has waited for the whole to be refused; a compilation that is paid for takes a hundred times as long."""
    x = np.linspace(0, 1, 10_000)
    jitted = jitml.jit(shown_while_computed)
    with trials():
        jitted.splits.refused(RuntimeError(), (x, count), {})  # the whole has been tried
        jitted.engine._is_special = True
        jitted.go_on()
        PURSE.spent += PURSE.left - seconds
        np.testing.assert_allclose(jitted(x, count), shown_while_computed(x, count), rtol=1e-9)
        (split,) = jitted.splits
        assert any(section.compiled is not None for section in split.sections) == is_bought
    assert RUNNING.level == IN_NONE


@pytest.mark.loose
def test_a_first_call_that_raises_has_ended_too() -> None:
    x = np.ones(10)
    jitted = jitml.jit(shown_while_computed)
    with trials():
        jitted.splits.refused(RuntimeError(), (x, 9), {})
        jitted.engine._is_special = True
        jitted.go_on()
        with pytest.raises(KeyError):
            jitted(x, 9, raises=True)
    assert RUNNING.level == IN_NONE
