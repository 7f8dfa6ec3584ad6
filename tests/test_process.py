"""Settings of the whole process that compilation changes: given back, whatever happens inside and in however many threads."""

from __future__ import annotations

import ast
import gc
import pkgutil
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.process import fewer_collections, parsed, room_for_nests


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    own = gc.get_threshold()
    yield own
    gc.set_threshold(*own)


@pytest.mark.parametrize("step", ["jitml.trace.trace.convert", "jitml.pipeline.fuse"])
def test_collections_are_fewer_while_a_function_is_traced_and_compiled(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.set_threshold(700, 10, 10)  # Python's own until 3.12: later ones collect less often by themselves
    own, seen, go_on = gc.get_threshold(), [], pkgutil.resolve_name(step)

    def look(*args: Any, **kwargs: Any) -> Any:
        seen.append(gc.get_threshold())
        return go_on(*args, **kwargs)

    monkeypatch.setattr(step, look)
    jitml.jit(lambda x: x + 1)(np.ones(3))
    assert seen[0][0] > 100 * own[0] and seen[0][1:] == own[1:]
    assert gc.get_threshold() == own


def test_collections_are_as_before_where_compilation_fails() -> None:
    own = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), fewer_collections():
        raise ZeroDivisionError
    assert gc.get_threshold() == own


@pytest.mark.parametrize("own", [(0, 10, 10), (10_000_000, 5, 5)])
def test_a_program_that_collects_less_still_does(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with fewer_collections():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_what_code_inside_has_set_stays() -> None:
    with fewer_collections():
        gc.set_threshold(123, 4, 5)
        with fewer_collections():
            pass
    assert gc.get_threshold() == (123, 4, 5)


def test_the_last_thread_out_gives_the_setting_back() -> None:
    own = gc.get_threshold()
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with fewer_collections():
            inside.set()
            leave.wait()

    other = threading.Thread(target=stay)
    with fewer_collections():
        other.start()
        inside.wait()
    assert gc.get_threshold() != own
    leave.set()
    other.join()
    assert gc.get_threshold() == own


def test_there_is_room_for_nests_and_then_the_limit_of_before() -> None:
    own = sys.getrecursionlimit()
    with room_for_nests(), room_for_nests():
        assert sys.getrecursionlimit() >= 10_000
    assert sys.getrecursionlimit() == own


def test_a_limit_that_another_thread_lowers_does_not_hold_inside_and_is_given_back() -> None:
    own = sys.getrecursionlimit()
    try:
        with room_for_nests():
            sys.setrecursionlimit(1200)
            with room_for_nests():
                assert sys.getrecursionlimit() >= 10_000
        assert sys.getrecursionlimit() == 1200
    finally:
        sys.setrecursionlimit(own)


def test_a_limit_that_is_too_low_for_the_last_thread_out_is_given_back_by_the_next() -> None:
    own = sys.getrecursionlimit()
    setting = room_for_nests()

    def leave_deep(depth: int) -> None:
        if depth:
            leave_deep(depth - 1)
        else:
            setting.__exit__(None, None, None)

    setting.__enter__()
    leave_deep(2 * own)
    try:
        assert sys.getrecursionlimit() >= 10_000
        with room_for_nests():
            pass
        assert sys.getrecursionlimit() == own
    finally:
        sys.setrecursionlimit(own)


def test_a_text_is_parsed_again_where_another_thread_has_disturbed_python(monkeypatch: pytest.MonkeyPatch) -> None:
    own, calls = ast.parse, []

    def disturbed(text: str) -> ast.Module:
        calls.append(text)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=27, after=23)")
        return own(text)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert ast.dump(parsed("x + 1")) == ast.dump(own("x + 1"))
    assert len(calls) == 3


def test_a_text_that_is_no_python_is_said_to_be_none() -> None:
    with pytest.raises(SyntaxError):
        parsed("x +")
