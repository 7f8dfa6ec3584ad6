"""Variants by key: most recent first; wrong guesses are replaced, what runs out of room is forgotten, failures are tried once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from jitml.dispatch.entry import MISS
from jitml.dispatch.variants import MOST_VARIANTS, Specialization, Tries, Variants
from jitml.errors import FailedCheck, MoreIterations, UnsupportedError, WrongPath
from jitml.trace.traced import Traced

Enter = Callable[[Sequence[Any]], Any]
NO_PROGRAM = cast(Traced, None)  # nobody looks at it here


def answers(kind: type, result: str = "", entered: list[str] | None = None) -> Specialization:
    """For leaves of one type."""
    log = entered if entered is not None else []
    return Specialization(lambda leaves: log.append(result) or (result if type(leaves[0]) is kind else MISS), NO_PROGRAM)


def raises(error: Exception) -> Specialization:
    def enter(leaves: Sequence[Any]) -> Any:
        raise error

    return Specialization(enter, NO_PROGRAM)


def made(variants: Variants[Specialization], *in_turn: Specialization, leaf: Any = 1) -> Any:
    """What a call answers for which these are made."""
    remaining = iter(in_turn)
    return variants.make("key", [leaf], lambda *_: next(remaining), Tries())


def test_the_one_that_answers_comes_first() -> None:
    variants, entered = Variants[Specialization](), list[str]()
    first, second = answers(int, "int", entered), answers(str, "str", entered)
    assert made(variants, first) == "int" and made(variants, second, leaf="") == "str"
    assert [*variants] == [second, first]
    assert variants.call("key", [1]) == "int"
    assert [*variants] == [first, second]
    entered.clear()
    assert variants.call("key", [1]) == "int" and entered == ["int"]
    assert variants.call("key", [1.0]) is MISS and variants.call("another key", [1]) is MISS


def test_a_wrong_guess_gives_its_place_to_the_next() -> None:
    variants = Variants[Specialization]()
    old, guess, better = answers(str), raises(WrongPath("0: another way")), answers(int, "better")
    made(variants, old, leaf="")
    seen: list[tuple[tuple[Specialization, ...], list[Specialization]]] = []
    in_turn = iter((guess, better))

    def make(others: tuple[Specialization, ...], tries: Tries[Specialization]) -> Specialization:
        seen.append((others, [*tries.failed]))
        return next(in_turn)

    assert variants.make("key", [1], make, Tries()) == "better"
    assert seen == [((old,), []), ((old,), [guess])]
    assert [*variants] == [better, old]


def test_a_variant_that_has_failed_a_call_is_not_entered_again() -> None:
    variants, entered = Variants[Specialization](), list[str]()

    def fails(leaves: Sequence[Any]) -> Any:
        entered.append("failed")
        if type(leaves[0]) is str:
            return "of text"
        raise WrongPath("0: another way")

    failing = Specialization(fails, NO_PROGRAM)
    assert made(variants, failing, leaf="") == "of text"
    entered.clear()
    tries = Tries[Specialization]()
    assert variants.call("key", [1], tries) is MISS and [*tries.failed] == [failing]
    assert variants.make("key", [1], lambda *_: answers(int, "new"), tries) == "new"
    assert entered == ["failed"]


def test_what_runs_out_of_room_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[MoreIterations] = []
    monkeypatch.setattr("jitml.dispatch.variants.learn", learned.append)
    variants, short = Variants[Specialization](), MoreIterations("room")
    assert made(variants, raises(short), raises(short), answers(int, "longer")) == "longer"
    assert learned == [short, short] and len([*variants]) == 1


def test_a_call_that_nothing_made_for_it_answers_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="the function changed, while it was traced"):
        made(Variants(), answers(str))


def test_others_may_forget_what_has_just_been_made() -> None:
    """Another thread clears the cache between."""
    variants = Variants[Specialization]()
    clearing = Specialization(lambda leaves: variants.clear() or MISS, NO_PROGRAM)
    assert made(variants, clearing, answers(int, "again")) == "again"


def test_failures_are_counted_by_the_variant_they_belong_to() -> None:
    class Counting(Specialization):
        def replayed(self, failure: FailedCheck) -> None:
            counted.append(failure.message)

    counted: list[str] = []
    branch = WrongPath("0: a branch")

    def enter(leaves: Sequence[Any]) -> Any:
        raise branch if type(leaves[0]) is int else FailedCheck("an index")

    def make(_: object, tries: Tries[Counting]) -> Counting:
        if tries.failed:
            raise branch
        return Counting(enter, NO_PROGRAM)

    variants = Variants[Counting]()
    with pytest.raises(WrongPath):
        variants.make("key", [1], make, Tries())
    with pytest.raises(FailedCheck, match="an index"):
        variants.call("key", [""])
    assert counted == ["0: a branch", "an index"]


def test_the_oldest_is_forgotten() -> None:
    variants = Variants[Specialization]()
    for n in range(MOST_VARIANTS + 3):
        variants.make(n, [1], lambda *_: answers(int, "one"), Tries())
    assert len([*variants]) == MOST_VARIANTS
    assert variants.call(0, [1]) is MISS and variants.call(3, [1]) == "one"


def test_threads_wait_for_what_is_being_made() -> None:
    variants, count = Variants[Specialization](threading.RLock()), []
    begun = threading.Event()

    def make(*_: object) -> Specialization:
        count.append(1)
        begun.wait(0.2)
        return answers(int, "one")

    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(variants.make("key", [1], make, Tries()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["one"] * 3 and count == [1]
