"""Who watches a function in sections sees what it sees of the plain one: lines, names, what kind of function it is."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import random
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.sections.callees import HotCallees
from jitml.sections.split import SplitFunction
from sections.forced_breaks import no_trials

pytestmark = pytest.mark.loose

x3 = np.arange(3.0)


def stepping(x: Any) -> Any:
    y = x * 2
    y = np.sin(y) + 1
    random.random()
    for i in range(3):
        y = y * i
        if i == 1:
            y = y + x
    z = np.cos(y)
    return helper(z) * 2


def helper(x: Any) -> Any:
    y = x + 1
    return y * np.sqrt(y)


def lines_of(function: Callable[..., Any]) -> set[tuple[str, int]]:
    """The lines that a tracer sees of a call."""
    seen: set[tuple[str, int]] = set()

    def tracer(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            seen.add((frame.f_code.co_name, frame.f_lineno))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        function(x3)
    finally:
        sys.settrace(before)
    return seen


def test_tracers_see_each_line() -> None:
    with no_trials():
        jitted = jitml.jit(stepping)
        for _ in range(3):
            jitted(x3)
        assert any(section.compiled for split in jitted.splits for section in split.sections)
        seen = lines_of(jitted)
    expected = lines_of(stepping)
    assert {line for name, line in seen if name == "stepping"} == {line for name, line in expected if name == "stepping"}
    assert seen >= expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of Python 3.12")
def test_no_section_answers_while_a_tool_watches() -> None:
    from jitml.sections.watchers import is_watched

    assert not is_watched()
    sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "coverage")  # type: ignore[attr-defined,unused-ignore]
    try:
        assert is_watched()
    finally:
        sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)  # type: ignore[attr-defined,unused-ignore]


def names_of_caller() -> list[str]:
    return sorted(sys._getframe(1).f_locals)


class Looks:
    @staticmethod
    def twice() -> list[str]:
        return sorted(inspect.currentframe().f_back.f_locals)  # type: ignore[union-attr]  # there is one


def shows_names(x: Any) -> Any:
    y = np.sin(x) + x
    random.random()
    return names_of_caller(), (y * 2).sum()


def shows_names_of_a_class(x: Any) -> Any:
    y = np.sin(x) + x
    random.random()
    z = y * y + y
    return Looks.twice(), (z * 2).sum()


@pytest.mark.parametrize("f", [shows_names, shows_names_of_a_class])
def test_functions_that_read_their_callers_names_see_none_of_ours(f: Callable[..., Any]) -> None:
    with no_trials():
        jitted = jitml.jit(f)
        for _ in range(3):
            assert jitted(x3)[0] == f(x3)[0]


def generator(x: Any) -> Iterator[Any]:
    yield x * 2


async def coroutine(x: Any) -> Any:
    return x * 2


async def generator_of_coroutines(x: Any) -> AsyncIterator[Any]:
    yield x * 2


KINDS = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


@pytest.mark.parametrize("f", [stepping, generator, coroutine, generator_of_coroutines])
def test_a_jitted_function_is_of_its_functions_kind(f: Callable[..., Any]) -> None:
    jitted = jitml.jit(f)

    class Owner:
        method = jitted

    for kind in KINDS:
        assert kind(jitted) == kind(functools.partial(jitted)) == kind(Owner().method) == kind(f)
    assert asyncio.iscoroutinefunction(jitted) == asyncio.iscoroutinefunction(f)
    assert inspect.getsource(jitted) == inspect.getsource(f)
    assert copy.copy(jitted) is copy.deepcopy([jitted])[0] is jitted


def test_defaults_are_those_of_the_function() -> None:
    def f(x: Any, y: Any = 2.0, *, z: Any = 1.0) -> Any:
        return x * y + z

    jitted = jitml.jit(f)
    assert jitted.__defaults__ == (2.0,) and jitted.__kwdefaults__ == {"z": 1.0}
    jitted.__defaults__, jitted.__kwdefaults__ = (3.0,), {"z": 0.0}
    assert jitted(2.0) == f(2.0) == 6.0
    with pytest.raises(AttributeError, match="'Jit' object has no attribute '__nothing__'"):
        jitted.__nothing__  # noqa: B018


def test_what_is_learned_while_a_frame_is_written_is_in_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    split = SplitFunction(stepping, lambda *given: pytest.fail("nothing is compiled"), HotCallees(lambda callee, rent: callee))
    write, begun, learned = SplitFunction._write, threading.Event(), threading.Event()
    frames = []

    def slowly(self: SplitFunction) -> Any:
        made = write(self)
        frames.append(made)
        if len(frames) == 1:
            begun.set()
            assert learned.wait(10)
        return made

    monkeypatch.setattr(SplitFunction, "_write", slowly)
    thread = threading.Thread(target=lambda: split.frame)
    thread.start()
    assert begun.wait(10)
    split._renew()
    learned.set()
    thread.join()
    assert len(frames) == 2 and split.frame is frames[1]
