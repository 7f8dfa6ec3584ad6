"""What is called in a loop: bought early, for sizes that change, and dropped where plain Python is faster."""

from __future__ import annotations

import ast
import linecache
import os
from time import perf_counter, sleep

import numpy as np
import pytest

import jitml
from jitml.dispatch.renting import COLD, IN_FIRST_CALL, PURSE, RUNNING, SMALL, USUAL, Rent
from jitml.sections.kinds import kind_of
from jitml.sections.split import Race
from sections.forced_breaks import in_sections, trials


class Clock:
    """Of the process and of its only thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1.0
        for name in ("perf_counter", "thread_time"):
            monkeypatch.setattr(f"jitml.dispatch.renting.{name}", lambda: self.now)


@pytest.mark.usefixtures("full_purse")
def test_turns_that_follow_each_other_are_due_at_the_third(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rent = Clock(monkeypatch), Rent()
    for is_due in (False, False, True):
        clock.now += 1e-4
        rent.comes()
        assert not rent.is_due(may_be_soon=True)  # a loop of ten calls outside would not get back what it costs
        with monkeypatch.context() as patch:
            patch.setattr(RUNNING, "level", IN_FIRST_CALL)
            assert rent.is_due(may_be_soon=True) == is_due
        assert not rent.is_due()
        rent.paid(2 * SMALL)
    assert rent.is_often
    PURSE.spent = 1e6
    assert not rent.is_due(may_be_soon=True)


@pytest.mark.usefixtures("full_purse")
@pytest.mark.parametrize("pause", [1e-4, 0.1])
def test_a_first_loop_outside_of_jitted_functions_is_due_when_it_has_run_for_half_a_millisecond(
    monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    """A later one is not: a function whose first loop was short is likely to have more such loops."""
    clock, rent, due = Clock(monkeypatch), Rent(), []
    for turn in range(16):
        clock.now += pause if turn == 3 else 1e-4
        rent.comes()
        due.append(rent.is_due(may_be_soon=True))
        rent.paid(8 * SMALL)
    assert due.count(True) == (9 if pause < 0.01 else 0)
    assert due == sorted(due)


@pytest.mark.usefixtures("full_purse")
def test_what_is_compiled_between_two_turns_is_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, rent = Clock(monkeypatch), Rent()
    for _ in range(2):
        rent.comes()
        rent.paid(8 * SMALL)
        monkeypatch.setattr(PURSE, "away", PURSE.away + 0.3)
        clock.now += 0.4  # there is something to be done around it
    rent.comes()
    assert rent.is_first_row
    assert rent.in_a_row == 2


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_a_loop_outside_has_its_function_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(x: np.ndarray) -> np.ndarray:
        return np.sqrt(x * x + 1.0) - np.abs(x - 0.5) * np.exp(-x) + np.tanh(x) * 0.1

    jitted, x = jitml.jit(step), np.linspace(0.0, 1.0, 3000)
    expected = step(x)
    monkeypatch.setattr("jitml.jitted.is_worth_a_first_call", lambda *_: False)
    for _ in range(3):
        jitted(x)
    sleep(0.05)
    for _ in range(40):
        jitted(x)
    assert not jitted.variants  # it is no first loop any more
    again = jitml.jit(step)
    answers = [again(x) for _ in range(40)]
    assert again.variants
    for answer in answers:
        np.testing.assert_array_max_ulp(answer, expected, 4)


@pytest.mark.usefixtures("full_purse")
def test_so_they_are_if_some_have_not_been_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first turn, with all that is in no cache yet, must have been longer."""
    monkeypatch.setattr(RUNNING, "level", IN_FIRST_CALL)
    for seconds in (2 * SMALL, 2 * COLD):
        clock, rent = Clock(monkeypatch), Rent()
        rent.comes()
        rent.paid(seconds)
        clock.now += 7e-4
        rent.comes(skipped=3)
        assert rent.is_due(may_be_soon=True) == (seconds > COLD)


@pytest.mark.usefixtures("full_purse")
def test_neither_small_turns_nor_seldom_ones_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, small, seldom = Clock(monkeypatch), Rent(), Rent()
    for _ in range(5):
        small.comes()
        small.paid(SMALL / 2)
        assert not small.is_due(may_be_soon=True)
    for _ in range(5):
        clock.now += 1e-3
        seldom.comes()
        seldom.paid(2 * SMALL)
        assert not seldom.is_due(may_be_soon=True)


def test_what_has_run_is_counted_since_it_was_bought() -> None:
    rent = Rent()
    rent.paid(1e-4, 1000)
    rent.bought(0.1, is_made=True)
    rent.paid(1e-4)
    assert rent.turns == 1
    assert not rent.is_small


def smooth(x: np.ndarray, n: int) -> np.ndarray:
    return np.sqrt(x[:n] * x[:n] + 1.0).cumsum() / (np.abs(x[:n]).sum() + np.exp(-x[:n]).max() + 1.0)


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_what_has_changed_between_plain_calls_is_left_open_in_a_first_program() -> None:
    jitted, x, PURSE.spent = jitml.jit(smooth), np.linspace(0.0, 1.0, 300), 1e6
    jitted(x[:299], 200)
    assert not jitted.variants
    PURSE.spent, jitted._rent.spent = -1e6, 2 * USUAL
    jitted.go_on()
    for n in range(201, 230):
        np.testing.assert_allclose(jitted(x[: 300 - n % 7], n), smooth(x, n), rtol=1e-12)
    (variant,) = jitted.variants
    assert {position for position, _ in variant.traced.key.opened} == {0, 1}


def labels_of(x: np.ndarray, centers: np.ndarray) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in centers]
    for n, sample in enumerate(x):
        nearest = int(np.argmin([np.sqrt(np.sum((sample - c) ** 2)) for c in centers]))
        groups[nearest].append(n)
    return groups


def is_loop(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.For)


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_a_list_of_lists_that_grows_is_in_no_section() -> None:
    """Taken in, it would be another one in each turn: the section would answer no other."""
    x = np.random.default_rng(0).normal(size=(100, 3))
    jitted = in_sections(labels_of, is_loop)
    centers = x[:4].copy()
    for _ in range(3):
        assert jitted(x, centers) == labels_of(x, centers)
    (split,) = jitted.splits
    (compiled,) = [section for section in split.sections if section.has_variants]
    assert "groups" not in compiled.run.takes
    assert len(compiled.compiled.variants) == 1  # type: ignore[union-attr]  # it has some


def test_until_it_is_due_what_breaks_for_one_kind_is_taken_to_break_for_another() -> None:
    jitted = in_sections(labels_of, is_loop)
    x = np.ones((3, 3))
    one = jitted.splits.refused(RuntimeError(), (x, [x]), {})
    assert one is not None
    one.breaks.update(next(iter(in_sections(labels_of, is_loop).splits)).breaks)
    jitted.splits._splits = {kind_of((x, [x]), {}): one}
    assert jitted.splits.rented(Rent(), (x, x), {})
    other = jitted.splits.known((x, x), {})
    assert other is not None
    assert other is not one
    assert other.breaks == one.breaks != {}
    assert [s for s in other.sections if other.frame] == [s for s in one.sections if one.frame]  # those that there are


def step(x: np.ndarray, shift: np.ndarray | None) -> np.ndarray:
    for n in range(40):
        with open(os.devnull, "w") as file:
            file.write(str(n))
        x = np.sqrt(x * x + 1.0) if shift is None else np.sqrt(x * x + 1.0) + shift
        x = x / np.abs(x).sum() + np.exp(-x) * np.tanh(x)
    return x


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_sections_that_are_given_none_answer() -> None:
    x = np.linspace(0.0, 1.0, 5000)
    jitted = in_sections(step, lambda statement: is_loop(statement) or isinstance(statement, ast.With))
    for _ in range(3):
        np.testing.assert_allclose(jitted(x, None), step(x, None), rtol=1e-12)
    (split,) = jitted.splits
    (section,) = [section for section in split.sections if "shift" in section.run.takes]
    assert section.contest.has_answered
    assert section.rent.turns < 10
    np.testing.assert_allclose(jitted(x, x), step(x, x), rtol=1e-12)


@pytest.mark.usefixtures("full_purse")
@pytest.mark.parametrize(("sections", "is_lost"), [(2.0, True), (1.2, True), (1.0, False), (0.5, False)])
def test_sections_that_are_no_faster_lose(sections: float, *, is_lost: bool) -> None:
    race, plain = Race(), 0
    for _ in range(20):
        race.begin()
        race.begin()  # a call inside goes the same way, and is not counted
        race.ended(100.0, lambda: 0.0)
        plain += race.is_plain
        race.ended(1.0 if race.is_plain else sections, lambda: 0.0)
    assert race.is_over
    assert race.is_lost == is_lost
    assert plain == {2.0: 2, 0.5: 1}.get(sections, 3)


def test_sections_that_save_enough_are_in_no_race() -> None:
    race = Race()
    for _ in range(5):
        race.begin()
        assert not race.is_plain
        race.ended(1.0, lambda: 0.5)


def scaled(x: np.ndarray) -> np.ndarray:
    for _ in range(3):
        with open(os.devnull, "w") as file:
            x = x + len(file.name)
    return x


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_a_function_whose_sections_lose_runs_as_it_was_written() -> None:
    jitted, x = jitml.jit(scaled), np.ones(3)
    jitted(x)
    (split,) = jitted.splits
    split.race.is_lost = split.race.is_over = True
    jitted.go_on()
    np.testing.assert_array_equal(jitted(x), scaled(x))
    assert jitted.alone is not None
    assert not split.race.is_over  # it is seen again, after some time


def applied(f: object, x: np.ndarray) -> np.ndarray:
    return f(x) + 1.0  # type: ignore[operator,no-any-return]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_lambda_that_a_line_makes_again_needs_no_other_program(is_held: bool) -> None:
    class Model:
        def __init__(self, f: object) -> None:
            self.f = f

        def run(self, x: np.ndarray) -> np.ndarray:
            return applied(self.f, x)

    jitted = jitml.jit(Model.run if is_held else applied)
    names, x = {"np": np, "scale": np.ones(3)}, np.arange(3.0)
    text, file = "made = lambda x: np.sin(x) * scale", f"{__file__}.line"
    linecache.cache[file] = (len(text), None, [text], file)
    line = compile(text, file, "exec")
    for n in range(5):
        exec(line, names)
        names["scale"] = np.full(3, n + 1.0)  # which it reads
        made = Model(names["made"]) if is_held else names["made"]
        np.testing.assert_allclose(jitted(made, x), np.sin(x) * (n + 1.0) + 1.0)
    assert len(jitted.variants) == 1


def test_where_calls_are_looked_at_is_cheap() -> None:
    """Three calls of what is short take no longer than the clock's: microseconds."""
    with trials():
        PURSE.spent = 1e6
        jitted = jitml.jit(lambda x: x)
        least = 1.0
        for _ in range(5):
            jitted.leave_alone(jitted._rent.paid)
            began = perf_counter()
            for _ in range(3):
                jitted(1)
            least = min(least, perf_counter() - began)
    assert least < 1e-3
