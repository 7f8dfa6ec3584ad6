"""What a function asks of the process, as NumPy's error state, it is told as it is at each call."""

from __future__ import annotations

import contextlib
import datetime
import functools
import gc
import itertools
import logging
import os
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import jitml
from jitml.errors import UnsupportedError

X = np.array([1.0, 0.0, 2.0])
STATES: tuple[Callable[[], AbstractContextManager[None]], ...] = (
    nullcontext, lambda: np.errstate(divide="raise"), lambda: np.errstate(all="ignore"), nullcontext,
)  # fmt: skip


def branched(x: Any) -> Any:
    return x * 2 if np.geterr()["divide"] == "warn" else x


def inside(x: Any) -> Any:
    with np.errstate(over="raise"):
        outer = np.geterr()
        with np.errstate(over="ignore", divide="ignore"):
            inner = np.geterr()
        again = np.geterr()
    return outer, inner, again, np.geterr(), x.sum()


def in_a_loop(x: Any) -> Any:
    count = 0
    for v in x:
        with np.errstate(under="raise"):
            count += v if np.geterr()["under"] == "raise" and np.geterr()["over"] == "warn" else 1
    return count


def changed(x: Any) -> Any:
    found = np.geterr()
    found["divide"] = "print"
    return found, np.geterr(), x


def decorated(x: Any) -> Any:
    @np.errstate(divide="raise")
    def asks(v: Any) -> Any:
        return np.geterr()["divide"], v * 2

    return asks(x), np.geterr()["divide"]


def raising(x: Any) -> Any:
    try:
        with np.errstate(all="raise"):
            raise ValueError
    except ValueError:
        return np.geterr(), x


@pytest.mark.loose
@pytest.mark.parametrize("function", [branched, inside, in_a_loop, changed, decorated, raising])
def test_error_state(function: Callable[[Any], Any]) -> None:
    compiled = jitml.jit(function, verify="never")
    for state in STATES:
        with state():
            assert repr(compiled(X)) == repr(function(X))


@pytest.mark.loose
def test_what_is_printed_and_buffered() -> None:
    def asks(x: Any) -> Any:
        return x * np.get_printoptions()["precision"] + np.getbufsize()

    compiled = jitml.jit(asks, verify="never")
    for precision in (8, 3, 8):
        with np.printoptions(precision=precision):
            np.testing.assert_array_equal(compiled(X), asks(X))


DURATION = datetime.timedelta(days=3)


@pytest.mark.loose
@pytest.mark.parametrize(
    "function",
    [
        lambda t, x: (t.days, t.total_seconds(), (t * 2).days, x * t.total_seconds()),
        lambda t, x: (t + DURATION, datetime.timedelta(days=2), abs(t), x),
        lambda t, x: (datetime.date(2020, 1, 2).isoformat(), datetime.datetime(2020, 1, 1) + t),
    ],
)
def test_durations(function: Callable[[Any, Any], Any]) -> None:
    compiled = jitml.jit(function, verify="never")
    for days in (1, 2, 1):
        given = datetime.timedelta(days=days)
        assert repr(compiled(given, X)) == repr(function(given, X))


HERE = __file__
EXISTS = functools.partial(os.path.exists, HERE)
ASK_THE_MACHINE: dict[str, Callable[[Any], Any]] = {
    "a partial": lambda x: x * functools.partial(os.path.exists, HERE)(),
    "a global one": lambda x: x * EXISTS(),
    "a partial of one": lambda x: x * functools.partial(functools.partial(os.path.exists), HERE)(),
    "a mapped one": lambda x: x * sum(map(functools.partial(os.path.exists), [HERE])),
    "starmap": lambda x: x * sum(itertools.starmap(os.path.exists, [(HERE,)])),
    "takewhile": lambda x: x * len([*itertools.takewhile(os.path.exists, [HERE])]),
    "filterfalse": lambda x: x * len([*itertools.filterfalse(EXISTS.func, [HERE])]),
    "a key": lambda x: (x, sorted([HERE, ""], key=os.path.exists)),
    "a partial key": lambda x: (x, min([HERE, ""], key=functools.partial(os.path.exists))),
    "of C": lambda x: x * sum(itertools.starmap(time.time, [()])),
}


@pytest.mark.parametrize("name", ASK_THE_MACHINE)
def test_what_others_call_is_refused(name: str) -> None:
    with pytest.raises(jitml.UnsupportedError, match="would run only once"):
        jitml.jit(ASK_THE_MACHINE[name])(X)


IN_PART: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda x: np.round(functools.partial(scipy.special.logsumexp, axis=0)(x), 12),
    "a mean": lambda x: x * functools.partial(statistics.mean, [1.0, 2.0])(),
    "a path": lambda x: (x, functools.partial(os.path.join, "a")("b")),
    "a transform": lambda x: functools.partial(jitml.vmap(lambda y, k: y * k), x)(x),
    "a key": lambda x: (x, sorted(["c", "a/b"], key=functools.partial(os.path.join, "b"))),
}


@pytest.mark.parametrize("name", IN_PART)
def test_functions_of_libraries_in_part(name: str) -> None:
    np.testing.assert_equal(jitml.jit(IN_PART[name], verify="never")(X), IN_PART[name](X))


def test_the_clock_is_refused() -> None:
    with pytest.raises(jitml.UnsupportedError, match="would run only once"):
        jitml.jit(lambda x: x * datetime.datetime.now().year)(X)
    with pytest.raises(jitml.UnsupportedError, match="would run only once"):
        jitml.jit(lambda x: x * datetime.datetime(2020, 1, 1).timestamp())(X)


LOGGER = logging.getLogger("jitml.tests.asked")


def levels(x: Any) -> Any:
    if LOGGER.isEnabledFor(logging.INFO):
        x = x * 2
    return x + LOGGER.getEffectiveLevel(), LOGGER.hasHandlers()


@pytest.mark.loose
def test_loggers() -> None:
    compiled = jitml.jit(levels, verify="never")
    for level in (logging.INFO, logging.ERROR, logging.DEBUG, logging.INFO):
        LOGGER.setLevel(level)
        assert repr(compiled(X)) == repr(levels(X))


def places(x: Any) -> Any:
    of_environment = os.path.expanduser("~"), os.path.expandvars("$HOME/b"), Path.home().name
    here = os.path.abspath("a"), os.path.realpath("."), os.path.relpath("/"), Path.cwd().name
    return x * len(here[0]), of_environment, here


@pytest.mark.loose
def test_where_the_process_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jitml.jit(places, verify="never")
    for name in ("one", "another", "one"):
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("HOME", str(tmp_path / name))
        assert repr(compiled(X)) == repr(places(X))


KEPT: list[Any] = []


@pytest.mark.loose
def test_the_interpreter() -> None:
    def asks(x: Any) -> Any:
        return x + sys.getsizeof(KEPT) + sys.get_int_max_str_digits(), threading.get_ident(), tracemalloc.is_tracing()

    compiled = jitml.jit(asks, verify="never")
    assert repr(compiled(X)) == repr(asks(X))
    KEPT.extend(range(100))
    assert repr(compiled(X)) == repr(asks(X))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend([compiled(X), asks(X)]))
    thread.start()
    thread.join()
    assert repr(found[0]) == repr(found[1])


def test_what_draws_by_itself_is_refused() -> None:
    with pytest.raises(jitml.UnsupportedError, match="would run only once"):
        jitml.jit(lambda x: x * statistics.NormalDist().samples(1)[0])(X)


@pytest.mark.loose
def test_numbers_that_differ_each_time_and_do_not_matter() -> None:
    def asks(x: Any) -> Any:
        gc.collect()
        sys.getallocatedblocks()
        return x * 2

    compiled = jitml.jit(asks, verify="never")
    for _ in range(3):
        KEPT.append([object()])
        np.testing.assert_array_equal(compiled(X), X * 2)


def entered_alone(x: Any) -> Any:
    np.errstate(all="ignore").__enter__()
    return x * 2


def left_open(x: Any) -> Any:
    stack = contextlib.ExitStack()
    stack.enter_context(np.errstate(over="raise"))
    return x * 2


@pytest.mark.parametrize("f", [entered_alone, left_open])
def test_an_error_state_that_is_not_left_is_refused(f: Callable[[Any], Any]) -> None:
    before = np.geterr()
    with pytest.raises(UnsupportedError, match="entered, and not left"):
        jitml.jit(f)(np.ones(3))
    assert np.geterr() == before
