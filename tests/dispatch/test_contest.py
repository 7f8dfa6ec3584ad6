"""Contests: which of two is used?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.dispatch.contest import FAILED, FAILED_AT_FIRST, TURNS, Contest
from jitml.dispatch.renting import PlainTurn
from jitml.dispatch.timing import Rest, Timed
from jitml.errors import FailedCheck
from sections.forced_breaks import trials


def fought(compiled: float, plain: float, contest: Contest | None = None) -> Contest:
    contest = contest or Contest()
    for _ in range(TURNS):
        if contest.is_won is None:
            contest.compiled_took(compiled)
        if contest.is_won is None:
            assert contest.is_plains_turn
            contest.plain_took(plain)
    return contest


def test_the_faster_one_wins() -> None:
    assert fought(1e-5, 2e-5).is_won is True
    assert fought(2e-5, 1e-5).is_won is False


def test_one_turn_is_enough_where_it_is_clear() -> None:
    contest = Contest()
    contest.compiled_took(1e-3)
    contest.plain_took(1e-2)
    assert contest.is_won is True


def test_what_is_slower_by_a_fifth_is_dropped_after_two_turns_of_each() -> None:
    contest = Contest()
    for _ in range(2):
        contest.compiled_took(1.3e-3)
        assert contest.is_won is None
        contest.plain_took(1e-3)
    assert contest.is_won is False
    assert fought(1.1e-3, 1e-3)._compiled.count == TURNS


def test_a_noisy_minute_decides_nothing() -> None:
    contest = fought(1e-5, 2e-5)
    for won in (True, True, False):
        contest.again()
        assert fought(2e-5, 1e-5, contest).is_won is won


def test_what_cannot_answer_loses_if_it_never_can() -> None:
    contest = Contest()
    for _ in range(FAILED_AT_FIRST - 1):
        contest.compiled_failed()
    contest.compiled_answered()
    contest.compiled_failed()
    assert contest.is_won is None
    for _ in range(FAILED - 1):
        contest.compiled_failed()
    assert contest.is_won is False
    assert str(contest) == f"plain Python had to answer {FAILED} calls in a row"


@pytest.fixture(name="trials")
def with_trials() -> Iterator[None]:
    with trials():
        yield


@pytest.mark.usefixtures("trials")
def test_what_is_slower_is_not_used() -> None:
    asked = []

    @jitml.jit(verify="never")
    def same(x: object) -> object:
        return x

    x = np.ones(3)
    assert same(x) is x
    (variant,) = same.variants
    timed = variant.enter
    assert isinstance(timed, Timed)
    for _ in range(2):
        timed.contest.compiled_took(1.0)
        timed.contest.plain_took(1e-6)
    timed._decide()
    assert variant.timed == "not used: 1.0 us plain, 1,000,000 us compiled"
    same.function = same.engine.function = lambda x: asked.append(1) or x
    for _ in range(5):
        assert same(x) is x
    assert len(asked) == 5


def test_code_that_cannot_answer_rests_as_long_as_makes_its_failures_a_small_share() -> None:
    def fail(leaves: Sequence[Any]) -> Any:
        sleep(1e-3)
        raise FailedCheck("an overflow")

    variant = SimpleNamespace(enter=None, timed="", saves=1.0, is_made_better=False)
    timed = Timed(variant, fail, lambda leaves: True, lambda: 0.0)
    for failures in (1, 2):
        with pytest.raises(FailedCheck):
            timed(())
        timed.failed()
        assert timed.rest is not None
        assert variant.saves == 0.0
        assert timed.contest.is_won is None
        assert type(timed(())) is PlainTurn
        assert not timed.plain_answered(5e-3, 3)
        assert timed.plain_answered(100.0), failures
    with pytest.raises(FailedCheck):
        timed(())
    timed.failed()
    assert timed.contest.is_won is False
    assert variant.timed == "not used: plain Python had to answer 3 calls in a row"


@pytest.mark.usefixtures("trials")
@pytest.mark.parametrize(("runs", "told"), [((4e-4, 1e-5), 1e-5), ((1e-5, 4e-4), 1e-5), ((6e-3,), 6e-3)])
def test_what_is_short_is_timed_twice(monkeypatch: pytest.MonkeyPatch, runs: tuple[float, ...], told: float) -> None:
    """A first run takes many times as long as others, of plain Python as of its program."""
    steps = iter([step for seconds in runs for step in (0.0, 0.0, seconds, 0.0)])
    now, seen = [0.0], []

    def clock() -> float:
        now[0] += next(steps)
        return now[0]

    took = Timed.took
    monkeypatch.setattr("jitml.verification.trial.perf_counter", clock)
    monkeypatch.setattr(Timed, "took", lambda timed, compiled, plain: (seen.append(plain), took(timed, compiled, plain)))

    @jitml.jit(verify="first")
    def total(x: np.ndarray) -> np.ndarray:
        x[0] += 1.0
        return x * 2.0

    x = np.ones(3)
    np.testing.assert_array_equal(total(x), [4.0, 2.0, 2.0])
    np.testing.assert_array_equal(x, [2.0, 1.0, 1.0])
    assert seen == [pytest.approx(told)]
    assert next(steps, None) is None


@pytest.mark.parametrize(("compiled", "plain", "is_asked"), [(4e-6, 45e-6, True), (3e-5, 45e-6, False), (2e-5, 9e-5, True)])
def test_what_is_small_rests_unless_it_is_much_faster(compiled: float, plain: float, is_asked: bool) -> None:
    """A call whose arguments are looked at takes some time more, but not that much."""
    variant = SimpleNamespace(enter=None, timed="", saves=1.0, is_made_better=False)
    timed = Timed(variant, lambda leaves: 1, lambda leaves: True, lambda: 0.0)
    assert timed(()) == 1
    timed.took(compiled, plain)
    assert (timed.rest is None) == is_asked
    assert timed.contest.is_won is (True if is_asked else None)  # where it is not near, two turns of each are enough
    assert (timed(()) == 1) == is_asked


def test_a_rest_is_over_after_calls_or_seconds_or_where_the_work_is_another() -> None:
    assert [Rest(1e-3, 1.0, 3).is_over(1e-3) for _ in range(2)] == [False, False]
    rest = Rest(1e-3, 1.0, 3)
    assert [rest.is_over(1e-3) for _ in range(3)] == [False, False, True]
    rest = Rest(1e-3, 5e-3, 100)
    assert [rest.is_over(3e-3) for _ in range(2)] == [False, True]
    assert Rest(1e-3, 1.0, 100).is_over(0.1)
    rest = Rest(1e-5, 1.0, 100)
    assert [rest.is_over(1e-3) for _ in range(3)] == [False, False, True]  # one long call may be the machine's
    assert Rest(1e-3, 1.0, 32).is_over(1e-3, 32)


@pytest.mark.usefixtures("trials")
def test_what_has_won_answers_while_its_answers_are_checked() -> None:
    calls = []

    @jitml.jit(verify="first")
    def waves(x: np.ndarray) -> np.ndarray:
        y = x
        for _ in range(12):
            y = np.sin(y) * np.cos(y) + np.exp(-y * y)
        return y

    plain = waves.function
    x = np.linspace(0, 1, 200_000)
    for _ in range(4):
        waves(x)
    waves.function = lambda x: calls.append(1) or plain(x)
    for _ in range(8):
        waves(x)
    assert not calls


def nats(p: np.ndarray) -> float:
    total = 0.0
    for i in range(len(p)):
        total -= np.log(p[i])
    return total


@pytest.mark.usefixtures("trials")
@pytest.mark.parametrize("is_won", [False, True])
def test_plain_python_is_asked_alone_where_it_has_to_answer_each_call(is_won: bool) -> None:
    jitted = jitml.jit(nats)
    zero, one = np.zeros(400), np.ones(400)
    if is_won:
        for _ in range(2 * TURNS + 2):
            jitted(one)
        assert not isinstance(jitted.variants[0].enter, Timed)
    calls = 0
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        while calls < FAILED + 2 or (not jitted.variants[0].timed and calls < 100_000):  # it rests for long on a busy machine
            assert np.isinf(jitted(zero))
            calls += 1
    assert "had to answer" in jitted.variants[0].timed
    assert sum(jitted.variants[0].replays.values()) == (FAILED if is_won else FAILED_AT_FIRST)


@pytest.mark.usefixtures("trials")
def test_what_answers_now_and_then_stays() -> None:
    jitted = jitml.jit(nats)
    zero, one = np.zeros(400), np.ones(400)
    for _ in range(2 * TURNS + 2):
        jitted(one)
    for _ in range(3 * FAILED):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            jitted(zero)
        jitted(one)
    assert jitted.variants[0].timed.startswith("used")


def test_quick_code_loses_no_contest() -> None:
    """As long as better code is being made, the compiled one answers, and its time is not taken; then both take turns."""
    variant = SimpleNamespace(enter=None, timed="", saves=1.0, is_made_better=True)
    timed = Timed(variant, lambda leaves: sleep(2e-3) or 1, lambda leaves: True, lambda: 0.0)
    assert timed(()) == 1
    timed.took(2e-3, 1.9e-3)  # plain Python is as fast: no rest for that
    assert timed.rest is None
    for _ in range(20):
        assert timed(()) == 1
    assert timed.contest.seconds == 0.0 and timed.contest.is_won is None
    variant.is_made_better = False
    assert timed(()) == 1
    assert timed.contest.seconds > 1e-3 and type(timed(())) is PlainTurn


def test_quick_code_may_win() -> None:
    variant = SimpleNamespace(enter=None, timed="", saves=1.0, is_made_better=True)
    timed = Timed(variant, lambda leaves: 1, lambda leaves: True, lambda: 0.0)
    timed(())
    timed.took(1e-3, 1e-2)
    assert timed.contest.is_won is True
