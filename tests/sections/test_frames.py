"""Does a function in sections do what Python does?  Results, arguments, exceptions with their lines, wherever it breaks."""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
import random
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.sections.requirements import MOST_VARIANTS
from programs.likeness import Likeness
from sections import exceptional, functions
from sections.forced_breaks import drawn_breaks, in_sections, no_trials, split_of, trials
from sections.functions import CALLS as USUAL

CALLS = [*USUAL, *exceptional.CALLS]
FILES = {functions.__file__, exceptional.__file__}
pytestmark = pytest.mark.loose
TIMES = 3


def _close(got: Any, expected: Any) -> bool:
    return bool(np.allclose(got, expected, rtol=1e-9, atol=1e-12, equal_nan=True))


NAMES = [f"{f.__qualname__}-{n}" for n, (f, _) in enumerate(CALLS)]


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gives, or where it raises what; and what it draws from Python's generator."""
    random.seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            result = function(*args)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            elif hasattr(result, "send"):
                result = list(driven(result))
    except Exception as error:
        return type(error).__name__, str(error), _places(error), _contexts(error), random.random()
    return "returned", result, random.random()


def _places(error: BaseException) -> list[tuple[str, int]]:
    """Where the functions were when it was raised. Bridges show as frames inside of its own."""
    steps = [(s.name, s.lineno or 0) for s in traceback.extract_tb(error.__traceback__) if s.filename in FILES]
    return [step for step, inner in zip(steps, [*steps[1:], ("", 0)]) if step[0] != inner[0] or step[0] == "recurs"]


def _contexts(error: BaseException) -> list[str]:
    """What was handled when it was raised: nothing of ours."""
    found: list[str] = []
    while error.__context__ is not None:
        error = error.__context__
        found.append(type(error).__name__)
    return found


def driven(generator: Any) -> Any:
    yield next(generator)
    try:
        while True:
            yield generator.send(1.0)
    except StopIteration as end:
        yield end.value


def require_same(jitted: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    like = Likeness(_close)
    for _ in range(TIMES):
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        got, expected = outcome(jitted, mine), outcome(function, theirs)
        assert like.difference(got, expected) is None
        assert like.difference(mine, theirs) is None


@pytest.mark.parametrize(("function", "args"), CALLS, ids=NAMES)
def test_what_breaks_by_itself(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with no_trials():
        jitted = jitml.jit(function)
        require_same(jitted, function, args)


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize(("function", "args"), CALLS, ids=NAMES)
def test_breaks_anywhere(function: Callable[..., Any], args: tuple[Any, ...], share: float) -> None:
    with no_trials():
        jitted = in_sections(function, drawn_breaks(len(function.__name__), share))
        require_same(jitted, function, args)


def test_what_is_compiled_and_what_is_not() -> None:
    with no_trials():
        jitted = jitml.jit(functions.leaves_early)
        jitted(functions.X, 5)
        (split,) = jitted.splits
        assert [b.text for b in split.breaks.values()] == ["stop()"]
        assert all(section.state == "compiled" for section in split.sections)
        assert len(split.sections) == 2


def test_explain_shows_breaks_and_sections() -> None:
    with no_trials():
        jitted = jitml.jit(functions.leaves_early)
        jitted(functions.X, 5)
        told = jitml.explain(jitted, functions.X, 5).splitlines()
    assert told[0] == "<jit leaves_early, 0 variants>: 2 sections, 1 break"
    first = functions.leaves_early.__code__.co_firstlineno
    assert told[1] == f"  line {first + 2}: compiled"
    assert told[2] == f"  line {first + 3} runs as Python: stop()"
    assert "random() would run only once" in told[3]
    assert told[-1] == f"  lines {first + 4} to {first + 6}: compiled" or told[-1] == f"  line {first + 6}: compiled"


def test_what_is_another_in_each_call_breaks() -> None:
    """A program for each of many texts is of no use: the statement that reads it runs as Python, and the others in sections."""

    def f(x: Any, name: str) -> Any:
        y = np.exp(-x) + x
        z = {name: y.sum()}
        return np.sin(y) + len(z) + sum(z.values())

    with trials():
        jitted = jitml.jit(f)
        for n in range(20):
            jitted._rent.spent = 1e9
            got = jitted(functions.X, f"name {n}")
            np.testing.assert_allclose(got, f(functions.X, f"name {n}"))
        assert len(jitted.variants) == MOST_VARIANTS
        (split,) = jitted.splits
        assert [b.text for b in split.breaks.values()] == ["z = {name: y.sum()}"]
        assert "name is 'name 7'" in next(iter(split.breaks.values())).why


def test_a_loop_that_is_entered_once_has_a_compiled_body_after_a_while() -> None:
    def f(x: Any, n: int) -> Any:
        for _ in range(n):
            stop()
            x = np.sin(x) * np.cos(x) + np.exp(-x * x) + np.tanh(x) * np.sqrt(np.abs(x))
        return x

    stop = functions.stop
    x = np.linspace(0, 1, 30_000)
    with trials():
        jitted = jitml.jit(f)
        np.testing.assert_allclose(jitted(x, 200), f(x, 200), rtol=1e-9)
        (split,) = jitted.splits
        assert any(section.compiled is not None for section in split.sections)


def test_a_section_that_cannot_answer_is_left_out() -> None:
    def f(p: Any, n: int) -> Any:
        total = 0.0
        for _ in range(n):
            stop()
            for i in range(len(p)):
                total -= np.log(p[i]) * p[i]
        return total

    stop = functions.stop
    with trials(), warnings.catch_warnings(record=True) as heard:  # `pytest.warns` would hand on 40,000 that it does not ask for
        warnings.simplefilter("always")
        jitted = jitml.jit(f)
        for _ in range(3):
            assert np.isnan(jitted(np.zeros(2000), 20))
        (split,) = jitted.splits
        assert any("had to answer" in section.state for section in split._made.values())
    assert any(w.category is RuntimeWarning and "divide by zero" in str(w.message) for w in heard)


LOG: list[int] = []


class Noting(type):
    """Tells of each object that is made."""

    def __call__(cls) -> Any:
        LOG.append(1)
        return type.__call__(cls)


class Noted(metaclass=Noting):
    pass


def test_what_tracing_would_change_is_changed_once() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x)
        Noted()
        return y * 2

    with no_trials():
        jitted = jitml.jit(f)
        LOG.clear()
        for n in range(3):
            np.testing.assert_allclose(jitted(functions.X), f(functions.X))
            assert len(LOG) == 2 * (n + 1)


class Ending:
    def __del__(self) -> None:
        LOG.append(-1)


def test_what_is_made_ends_with_the_function() -> None:
    """Also in the call that compiles its sections and compares their first answers."""

    def f(x: Any) -> Any:
        ending = Ending()
        y = np.sin(x) + len(LOG)
        return y * 2 if ending is not None else x

    LOG.clear()
    with no_trials():
        jitted = jitml.jit(f, verify="first")
        for n in range(3):
            np.testing.assert_allclose(jitted(functions.X), (np.sin(functions.X) + n) * 2)
            assert [-1] * (n + 1) == LOG


def test_a_check_that_fails_after_the_function_was_split_is_not_heard_of() -> None:
    def f(x: Any, i: Any) -> Any:
        if x.shape[0] > 5:
            stop()
        return np.sin(x)[i] * 2 + 1

    stop = functions.stop
    with no_trials():
        jitted = jitml.jit(f)
        for size, i in ((4, 1), (9, 1), (4, 7)):  # compiled whole, split, an index that there is not
            got, expected = (outcome(g, (np.ones(size), np.int64(i))) for g in (jitted, f))
            assert got[:2] == expected[:2]


def _warns(x: Any) -> Any:
    warnings.warn("careful", UserWarning, stacklevel=2)
    return x * 2


def test_what_asks_who_calls_it_is_called_by_the_function() -> None:
    def f(x: Any) -> Any:
        stop()
        return np.sin(_warns(x)) + stop()

    stop = functions.stop
    with no_trials():
        jitted = jitml.jit(f)
        for _ in range(TIMES):
            with pytest.warns(UserWarning, match="careful") as told:
                jitted(functions.X)
            assert told[0].filename == __file__


def test_many_threads_that_are_refused_at_once_break_one_statement() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x) * 2 + 1
        stop()
        return np.cos(y) * 3 + y

    stop = functions.stop
    with no_trials():
        jitted = jitml.jit(f)
        refusals = [ValueError("one"), ValueError("the same")]  # of two threads, neither of which knows of the other
        splits = {id(jitted.splits.refused(error, (functions.X,), {})) for error in refusals}
        (split,) = jitted.splits
        assert splits == {id(split)}
        assert len(split.breaks) == 1


def test_a_split_function_recurs_deep() -> None:
    def falls(x: Any, n: int) -> Any:
        functions.stop()
        return x * 2 if n == 0 else fast(x, n - 1)

    fast = jitml.jit(falls)
    assert fast(1.0, 300) == 2.0


def test_stack_of_numpy_asks_for_no_frame() -> None:
    def f(x: Any) -> Any:
        y = np.stack([x, np.sin(x)])
        functions.stop()
        return y * 2

    with no_trials():
        jitted = jitml.jit(f)
        np.testing.assert_allclose(jitted(functions.X), f(functions.X))
        (split,) = jitted.splits
        assert split.is_possible


class Told:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("gone")


def test_what_is_let_go_ends_when_it_does_in_python() -> None:
    def none_is_bound(x: Any, log: list[str]) -> Any:
        told = Told(log)
        log.append("made")
        told = None  # noqa: F841
        log.append("on")
        return np.sin(x) + np.cos(x)

    def another_is_bound(x: Any, log: list[str]) -> Any:
        y: Any = Told(log)
        log.append("made")
        y = np.sin(x) + np.cos(x)
        functions.stop()
        log.append("on")
        return y * 2

    def another_is_bound_in_vain(x: Any, log: list[str]) -> Any:
        y: Any = Told(log)
        log.append("made")
        y = np.sin(x) + np.cos(x)
        z = y * 2
        functions.stop()
        log.append("on")
        return z

    for function in (none_is_bound, another_is_bound, another_is_bound_in_vain):
        with no_trials():
            jitted = jitml.jit(function)
            for _ in range(3):
                mine, pythons = list[str](), list[str]()
                np.testing.assert_allclose(jitted(functions.X, mine), function(functions.X, pythons))
                assert mine == pythons


factor = 100.0


def test_a_local_that_is_not_bound_is_no_global() -> None:
    def before_it_is_bound(x: Any) -> Any:
        functions.stop()
        if x[0] > 0:
            factor = 2.0
        else:
            x = np.sin(x) * factor + np.cos(x)
        return np.sin(x) * factor

    def in_a_loop(x: Any) -> Any:
        for n in range(2):  # noqa: B007
            functions.stop()
            x = np.sin(x) * factor + np.cos(x)  # noqa: F823
        if n > 3:
            factor = 2.0  # noqa: F841
        return x

    for function in (before_it_is_bound, in_a_loop):
        with no_trials():
            jitted = jitml.jit(function)
            for x in (functions.X, -functions.X - 1):
                assert str(outcome(jitted, (x,))) == str(outcome(function, (x,)))


def test_a_frame_in_the_place_of_a_refused_section_is_plain_as_long_as_its_sections_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who runs it for nothing may as well run the function as written."""
    jitted = in_sections(functions.branches, lambda statement: isinstance(statement, ast.For))
    split = split_of(jitted)
    monkeypatch.setattr(split._callee, "settled", {})  # what other tests have had compiled
    split.prepare()
    assert split.sections
    with trials():
        for section in split.sections:
            section.cell.cell_contents = section._run_for_rent
        assert split.is_plain
        section.cell.cell_contents = lambda *taken: None  # what stands in for a refused one
        assert split.is_plain
        for entry in (section._compile_first, section._try, section._run_compiled):
            section.cell.cell_contents = entry
            assert not split.is_plain
        section.cell.cell_contents = None
        assert split.is_plain
