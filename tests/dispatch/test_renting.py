"""Renting: when is a program compiled, and what runs until then?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter, sleep

import numpy as np
import pytest

import jitml
from jitml.dispatch.renting import (
    ADVANCE,
    FEW,
    MOST,
    PURSE,
    SHARE,
    STARTUP,
    USUAL,
    Misses,
    PlainTurn,
    Purse,
    Rent,
    Sampling,
)
from jitml.trace.speculation.compile_cost import ProgramSize
from sections.forced_breaks import trials


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


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


def test_what_is_away_is_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check in which something is compiled, say."""
    clock = Clock()
    monkeypatch.setattr("jitml.dispatch.renting.perf_counter", clock)
    purse = Purse(Clock())
    purse.away = 1.0
    outer, inner = purse.began(), purse.began()
    clock.now = 2.0
    purse.ended(inner)
    assert purse.away == 3.0
    clock.now = 5.0
    purse.ended(outer, answer=0.5)
    assert purse.away == 5.5


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


@pytest.mark.usefixtures("full_purse")
def test_what_the_first_compilation_brings_is_no_part_of_the_next_ones_price() -> None:
    PURSE.startup = STARTUP
    rent = Rent()
    rent.bought(STARTUP + 0.2, is_made=True)
    assert rent.price == pytest.approx(0.2)
    rent.bought(STARTUP + 0.2, is_made=True)
    assert rent.price == pytest.approx(STARTUP + 0.2)


def test_compilations_inside_a_turn_are_not_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock that turns are timed with: the purse's stands still where other processes have the processor."""
    told: list[float] = []
    purse = Purse(Clock())
    monkeypatch.setattr("jitml.dispatch.renting.PURSE", purse)
    turn = PlainTurn(told.append)
    began = purse.began()
    sleep(0.02)
    assert purse.ended(began) == 0.0
    turn.seen()
    assert 0.0 <= told[0] < 0.01


def test_few_turns_are_timed_of_what_has_been_short_for_long() -> None:
    told: list[int] = []
    sampling = Sampling(lambda seconds, turns: told.append(turns) is None and seconds > 1.0)
    for seconds in (1e-3, 1e-7, 1e-7, 1e-7, 1e-7, 1e-7):
        assert not sampling.passes()
        assert not sampling.took(seconds)
        while sampling.passes():
            pass
    assert told == [1, 21, 401, 424, 848, 1696]
    assert sampling.took(2.0)
    assert told[-1] == 2001
    assert not sampling.passes()


def test_a_call_of_which_it_is_known_how_long_it_takes_is_not_timed_at_once() -> None:
    told: list[int] = []
    f = jitml.jit(lambda x: x + 1)
    f.leave_alone(lambda seconds, calls: told.append(calls) is not None, known=1e-4)
    assert [f(n) for n in range(50)] == [*range(1, 51)]
    assert not told
    f(1.0)
    assert told == [51]


def test_rent_grows_by_a_share_where_nobody_looks_at_the_clock() -> None:
    rent = Rent()
    rent.paid(0.01)
    assert not rent.grow(0.5)
    assert rent.spent == pytest.approx(0.015)


def test_misses_may_lose_what_an_answer_saves() -> None:
    misses, long_ago = Misses(Rent()), perf_counter() - 1e-3
    assert [misses.are_many(long_ago, (1e-4, 5e-3)) for _ in range(3)] == [False, False, True]  # 2 ms are lost by each
    misses.in_a_row = 0
    assert not misses.are_many(long_ago, (5e-3,))
    assert misses.are_many(long_ago, (0.0, 1e-3))
    misses.in_a_row = 0
    assert [misses.are_many(long_ago, (1e6,)) for _ in range(8)] == [False] * 7 + [True]


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
    jitted.variants[0].saves = 1.0
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
    variant.enter, variant.saves = getattr(variant.enter, "enter", variant.enter), 1.0  # it has won
    PURSE.spent = 1e6  # else another program is bought, since misses follow each other
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

    jitted, answers = jitml.jit(main), []
    script = {"__name__": "__main__", "main": jitted, "answers": answers}
    exec("answers.append(main())\nanswers.append(main())", script)
    assert not jitted.variants
    jitted._rent.spent = 2 * USUAL
    jitted.go_on()  # as a call that is timed does, which sees that it is due
    exec("answers.append(main())", script)
    assert jitted.variants
    assert answers == [main()] * 3


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
@pytest.mark.parametrize("call", ["def f(): main()\nf()", "for _ in range(2): main()"])
def test_a_driver_that_may_be_called_again_is_compiled_at_once(call: str) -> None:
    def main() -> float:
        total = 0.0
        for n in range(40):
            total += np.sqrt(n)
        return total

    jitted = jitml.jit(main)
    exec(call, {"__name__": "__main__", "main": jitted})
    assert jitted.variants


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
    exec("main()", {"__name__": "__main__", "main": jitted})
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
def test_what_is_too_dear_is_split_though_only_what_it_calls_has_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(x: np.ndarray) -> float:
        return sum(float(str(v)) for v in x)

    def caller(x: np.ndarray) -> float:
        y = np.sqrt(x * 2)
        total = called(y)
        return total + 1

    x = np.ones(1000)
    with trials():
        jitted = jitml.jit(caller)
        monkeypatch.setattr(ProgramSize, "compile_seconds", lambda *_: 1e3)
        jitted._rent.spent = 1.0
        jitted.go_on()
        assert jitted(x) == caller(x)
        assert not jitted.variants
        (split,) = jitted.splits
        assert split.breaks


@pytest.mark.loose
def test_a_program_may_take_half_of_its_price_to_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: np.ndarray) -> np.ndarray:
        return x + 1

    with trials():
        jitted = jitml.jit(f)
        monkeypatch.setattr(PURSE, "clock", lambda: 0.0)
        PURSE.spent += PURSE.left - 0.6
        jitted._rent.spent = 10.0
        jitted.go_on()
        jitted(np.ones(3))
        limits = jitted.engine._specializer.limits
        assert limits.seconds == pytest.approx(0.6, abs=0.05)
        assert limits.tracing == pytest.approx(0.3, abs=0.05)


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


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_what_is_called_by_what_is_left_alone_brings_no_compiler() -> None:
    @jitml.jit
    def inner(x: np.ndarray) -> float:
        total = 0.0
        for n in range(3):
            total += x[0] * n
        return total

    @jitml.jit
    def outer(x: np.ndarray | None) -> float:
        return 0.0 if x is None else inner(x) * 2

    PURSE.spent = 1e6  # nothing may be compiled
    outer(None)
    assert outer.alone is not None
    PURSE.spent = -1e6
    assert outer(np.ones(3)) == 6.0
    assert inner._engine is None
    inner.leave_alone(inner._rent.paid)
    inner._rent.turns = 0
    assert inner(np.ones(3)) == 3.0
    assert inner._engine is not None


@pytest.mark.loose
@pytest.mark.usefixtures("full_purse")
def test_what_runs_while_an_answer_is_checked_is_left_alone_as_before() -> None:
    @jitml.jit
    def inner(x: np.ndarray) -> float:
        total = 0.0
        for n in range(3):
            total += x[0] * n
        return total

    @jitml.jit(verify="first")
    def outer(x: np.ndarray) -> float:
        return inner(x) * 2

    assert outer(np.ones(3)) == 6.0
    assert outer.variants
    assert "first answer is as NumPy" in outer.variants[0].checked
    assert inner.alone is not None


def test_of_brief_turns_the_time_of_the_processor_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, busy, rent = Clock(), Clock(), Rent()
    told: list[float] = []
    rent.is_first_row = False  # else it is asked for after each turn
    monkeypatch.setattr("jitml.dispatch.renting.perf_counter", clock)
    for seconds, is_asked in [(1.0, True), (3e-5, True), (2e-5, False), (1.0, False), (1.0, True), (1.0, True)]:
        monkeypatch.setattr("jitml.dispatch.renting.thread_time", busy if is_asked else partial(pytest.fail, "asked"))
        turn = PlainTurn(lambda seconds: (told.append(seconds), rent.paid(seconds)), rent)
        busy.now += 0.25
        clock.now += seconds
        turn.seen()
    assert told == pytest.approx([0.25, 3e-5, 2e-5, 2e-5, 0.25, 0.25])
