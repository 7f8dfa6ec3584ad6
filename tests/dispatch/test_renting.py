"""Renting: when is a program compiled, and what runs until then?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch.entry import MISS
from jitml.dispatch.renting import (
    ADVANCE,
    FEW,
    IN_NONE,
    MOST,
    PURSE,
    RUNNING,
    SHARE,
    STARTUP,
    USUAL,
    Misses,
    PlainTurn,
    Purse,
    Rent,
)
from jitml.dispatch.work import is_driver, is_likely_long
from jitml.sections.section import Section
from jitml.trace.speculation.compile_cost import ProgramSize
from sections.forced_breaks import trials


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="full_purse")
def with_full_purse() -> Iterator[None]:
    with trials():
        yield


def test_a_purse_is_a_share_of_the_time_that_has_passed() -> None:
    clock = Clock()
    purse = Purse(clock)
    assert purse.affords(ADVANCE - STARTUP)
    assert not purse.has_earned(0.1)
    clock.now = (STARTUP + 0.1) / SHARE + 1e-6
    assert purse.has_earned(0.1)
    assert purse.affords(ADVANCE + 0.1)
    purse.spent = 0.05
    assert not purse.has_earned(0.1)
    assert not purse.affords(ADVANCE + 0.1)


def test_the_dear_clock_is_read_only_where_it_decides() -> None:
    """A process asks at each call that is timed, and processor time is a call of the system."""
    dear, cheap = Clock(), Clock()
    read: list[float] = []

    def clock() -> float:
        read.append(dear())
        return read[-1]

    purse = Purse(clock, most=cheap)
    assert purse.affords(ADVANCE - STARTUP)
    assert not purse.affords(ADVANCE)
    assert not read
    cheap.now = 1.1 * STARTUP / SHARE
    assert not purse.affords(ADVANCE)
    assert read == [0.0]
    dear.now = cheap.now
    assert purse.affords(ADVANCE)


def test_a_purse_is_rich_when_a_long_compilation_would_be_a_small_share() -> None:
    clock = Clock()
    purse = Purse(clock)
    clock.now = (STARTUP + MOST) / SHARE - 1e-6
    assert not purse.is_rich
    clock.now += 1e-3
    assert purse.is_rich
    purse.brought(0.2)
    assert purse.startup == pytest.approx(STARTUP - 0.2)
    assert purse.is_rich
    purse.spent += 1.0
    assert not purse.is_rich


@pytest.mark.usefixtures("full_purse")
def test_rent_is_due_when_as_much_has_been_paid_as_a_compilation_takes() -> None:
    rent = Rent()
    assert not rent.is_due()
    rent.paid(USUAL)
    assert rent.is_due()
    assert not rent.is_due(2.0)
    rent.bought(0.3, is_made=True)
    rent.paid(0.2)
    assert not rent.is_due()
    rent.paid(0.2)
    assert rent.is_due()


def test_what_is_small_is_known_after_a_few_turns() -> None:
    rent = Rent()
    for _ in range(FEW - 1):
        rent.paid(1e-6)
        assert not rent.is_small
    rent.paid(1e-6)
    assert rent.is_small


@pytest.mark.usefixtures("full_purse")
def test_all_compilations_are_paid_for_out_of_the_purse() -> None:
    before, PURSE.startup = PURSE.spent, STARTUP
    Rent().bought(1.0, is_made=False)
    assert PURSE.spent == before + 1.0
    assert PURSE.startup == STARTUP
    Rent().bought(1.0, is_made=True)
    assert PURSE.spent == before + 2.0
    assert PURSE.startup == 0.0


def test_compilations_inside_a_turn_are_not_its_own_time() -> None:
    told: list[float] = []
    before = PURSE.spent
    turn = PlainTurn(told.append)
    PURSE.spent += 100.0
    turn.seen()
    PURSE.spent = before
    assert told[0] < 0


class Model:
    def __init__(self, weights: object) -> None:
        self.parts = {"weights": weights}


def loops() -> int:
    return sum(n for n in range(3))


def test_drivers_have_no_numbers() -> None:
    assert is_driver(loops, (), {})
    assert is_driver(loops, ("name", None), {"other": Model("text")})
    assert not is_driver(loops, (), {"n": 3})
    assert not is_driver(loops, (Model([np.ones(3)]),), {})
    assert not is_driver(len, (), {})


def squared(x: np.ndarray) -> np.ndarray:
    return x * x


def squared_by_another(model: Model) -> np.ndarray:
    return squared(model.parts["weights"])


class Looping:
    def __init__(self) -> None:
        self.w = np.ones(2)

    def once(self) -> object:
        return self.w

    def often(self) -> list[object]:
        return [self.once() for _ in range(3)]

    def fit(self) -> object:
        return self.often()


def test_what_is_likely_long_has_numbers_and_loops_or_large_arrays() -> None:
    small, large = np.ones(1000), np.ones(1_000_000)
    assert [is_likely_long(squared, (x,), {}) for x in (2.0, small, large)] == [False, False, True]
    assert [is_likely_long(squared_by_another, (Model(x),), {}) for x in (small, large)] == [False, True]
    assert [is_likely_long(f, (Looping(),), {}) for f in (Looping.once, Looping.often, Looping.fit)] == [False, True, True]
    assert not is_likely_long(loops, (), {})
    assert not is_likely_long(len, ([1],), {})


def test_variants_are_asked_again_after_a_while_and_later_each_time() -> None:
    misses = Misses(Rent())
    for pause in (0.01, 0.02, 0.04):
        assert [misses.are_many() for _ in range(8)] == [False] * 7 + [True]
        assert not misses.paid(0.9 * pause)
        assert misses.paid(0.2 * pause)


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_calls_that_no_variant_is_for_are_left_alone() -> None:
    asked = []

    def total(x: object, y: object) -> object:
        return x + y  # type: ignore[operator]

    jitted = jitml.jit(total)
    x = np.ones(3)
    np.testing.assert_array_equal(jitted(x, x), x + x)
    slowly = jitted.engine._call_slowly
    jitted.engine._call_slowly = lambda *call: asked.append(call) or slowly(*call)  # type: ignore[method-assign,func-returns-value]
    for _ in range(100):
        assert jitted(1, 2) == 3
    assert len(asked) == 8
    assert jitted(x, 1.0)[0] == 2.0


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_few_misses_among_many_hits_leave_compiled_code_in_use(is_nested: bool) -> None:
    def total(x: list[float], y: float) -> float:
        found = 0.0
        for n in range(2000):
            found = found + x[0] * n + y
        return found

    jitted = jitml.jit(total if is_nested else lambda x, y: total([x], y))
    hit, miss = (([1.0], 2.0), ([1], 2.0)) if is_nested else ((1.0, 2.0), (1, 2.0))
    jitted(*hit)
    (variant,) = jitted.variants
    variant.enter = getattr(variant.enter, "enter", variant.enter)  # it has won
    for _ in range(20):
        assert jitted(*miss) == total([1], 2.0)
        assert jitted(*hit) == total([1.0], 2.0)
        assert jitted.alone is None
    for _ in range(8):
        jitted(*miss)
    assert jitted.alone is not None


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_a_driver_is_compiled_when_its_rent_is_due() -> None:
    def main() -> float:
        total = 0.0
        for n in range(40):
            total += np.sqrt(n)
        return total

    expected = main()
    jitted = jitml.jit(main)
    for _ in range(3):
        assert jitted() == expected
    assert not jitted.variants
    jitted._rent.spent = 2 * USUAL
    jitted.go_on()  # as a call that is timed does, which sees that it is due
    assert jitted() == expected
    assert jitted.variants


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
    np.testing.assert_allclose(jitted(), main(), rtol=1e-9)
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


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_a_guess_may_cost_no_more_than_plain_python_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its price is known only when it has been traced."""
    monkeypatch.setattr(ProgramSize, "compile_seconds", lambda self: 3 * USUAL)

    def main() -> float:
        total = 0.0
        for n in range(40):
            total += np.sqrt(n)
        return total

    expected = main()
    jitted = jitml.jit(main)
    jitted()
    jitted._rent.spent = USUAL
    jitted.go_on()
    assert jitted() == expected  # may cost twice as much as was paid
    assert not jitted.variants
    assert 4 * USUAL <= jitted._rent.price < 5 * USUAL
    jitted._rent.spent = jitted._rent.price
    jitted.go_on()
    assert jitted() == expected
    assert jitted.variants


@pytest.mark.loose
@pytest.mark.parametrize("is_named", [False, True])
def test_what_has_static_arguments_is_rented(is_named: bool) -> None:
    def total(x: np.ndarray, count: int) -> float:
        found = 0.0
        for n in range(count):
            found += np.sum(x) * n
        return found

    x = np.ones(20_000)
    with trials():
        jitted = jitml.jit(total, static_argnames=("count",))
        PURSE.spent = 1e6
        for count in (3, 4, 3, 4):
            assert (jitted(x, count=count) if is_named else jitted(x, count)) == total(x, count)
        assert not jitted.variants


@pytest.mark.loose
def test_what_is_rented_for_one_kind_of_arguments_is_not_for_another_that_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def total(names: Sequence[str]) -> float:
        found = 0.0
        for name in names:
            found += len(name)
        return found

    many, few = ["a"] * 100_000, ("b", "cd")
    with trials():
        jitted = jitml.jit(total)
        monkeypatch.setattr(PURSE, "clock", lambda: 0.0)
        PURSE.spent += PURSE.left - ADVANCE - USUAL / 2  # frames are written for it
        for names in (many, tuple(many)):
            jitted(names)
            jitted.go_on()
        assert len([*jitted.splits]) == 2
        PURSE.spent, jitted._rent.spent = -1e6, 2 * USUAL
        jitted(["a"])
        assert len(jitted.variants) == 1
        jitted.go_on()
        jitted(few)
        jitted._rent.spent = 0.0
        assert jitted(few) == 3.0
        assert jitted.alone is None
        assert jitted(["a"]) == 1.0


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
        assert max(section.rent.turns + section._stride - section._untimed for section in split.sections) == 301


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
        callee._rent.spent, callee._untimed = 2 * USUAL, 0
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


@pytest.mark.loose
@pytest.mark.parametrize("part", ["section", "callee"])
def test_what_is_left_alone_pays_for_its_parts(part: str) -> None:
    """A split function of which nothing is compiled yet runs as it was written, and its parts come to be due by their shares."""

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
        assert ("slow_total" in split._callee.compiled) == (part == "callee")
        assert (section.compiled is not None) == (part == "section")


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_what_a_function_calls_that_is_left_alone_is_no_first_call_to_compile_at() -> None:
    @jitml.jit
    def inner(x: float) -> float:
        return x + 1

    @jitml.jit
    def outer(x: float) -> float:
        return inner(x) * 2

    def middle(x: float) -> float:
        return outer(x)

    for n in range(100):
        assert middle(n + 0.5) == (n + 1.5) * 2
    assert outer.variants
    assert not inner.variants


class OneVariant:
    """A section's program that is for 1 alone."""

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
    section = Section(SimpleNamespace(takes=("x",)), lambda *_: program, lambda *_: None, lambda _: None)
    section.rent.spent = USUAL
    turns_of(section, 1, 3, 1e-3)
    assert program.variants
    section.rent.bought(USUAL, is_made=True)
    before = program.asked
    turns_of(section, 2, 100, 1e-4)
    assert program.asked - before <= 10
    assert section.rent.spent <= 100 * 1e-4 * 1.01  # each turn counts once
    before = program.asked
    turns_of(section, 1, 1000, 1e-4)  # the pause ends, and it is asked again
    assert program.asked - before >= 50


class Fit:
    def fit(self, x: np.ndarray) -> float:
        total = 0.0
        for v in x:
            total += v
        return total


class OwnFit(Fit):
    def __init__(self, is_whole: bool) -> None:
        self.is_whole = is_whole

    def fit(self, x: np.ndarray) -> float:
        return float(x.sum()) if self.is_whole else super().fit(x)


class Alone:
    def fit(self, x: np.ndarray) -> float:
        return float(x.sum())


@pytest.mark.parametrize("is_inherited", [False, True])
def test_the_loop_of_a_method_that_is_overridden_counts(is_inherited: bool) -> None:
    """`super().fit` is what the work is in."""
    x = np.ones(5)
    assert is_likely_long(Fit.fit, (Fit(), x), {})
    assert not is_likely_long(Alone.fit, (Alone(), x), {})
    kind = type("Kind", (OwnFit,), {}) if is_inherited else OwnFit
    assert is_likely_long(OwnFit.fit, (kind(False), x), {})


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
