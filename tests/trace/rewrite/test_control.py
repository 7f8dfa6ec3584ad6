"""Converted control flow is Python's: results, exceptions, tracebacks to the column, names that are not bound."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from types import CodeType, TracebackType
from typing import Any

import pytest
from tests.trace.rewrite.control.statements import deleted
from tests.trace.rewrite.control.table import PROGRAMS

import jitml
from jitml.trace.hooks.calls import Hooks
from jitml.trace.hooks.control_flow import Steering
from jitml.trace.hooks.convert import convert
from jitml.trace.record.recording import Trace, activate
from jitml.trace.rewrite.driver_protocol import UNDEF, Names, Values
from jitml.trace.speculation.modes import Decisions
from jitml.trace.values.registry import REGISTRY

XS = [3, 1, 4, 1, 5, 9, 2, 6]
INPUTS = [([*XS], n) for n in range(7)] + [([], 2), ([7], 4), ([0, 2], 0)]


class AllPlain(Decisions):
    """Plain Python runs every construct."""

    def is_plain(self, site: Any) -> bool:
        return True


def converted(function: Any, *args: Any) -> Any:
    REGISTRY.register_imported()
    with activate(Trace()) as trace:
        trace.call[Decisions] = AllPlain()
        return convert(function)(*args)


def columns(code: CodeType, at: int) -> Any:
    return next(islice(code.co_positions(), at // 2, None))


def places(traceback: TracebackType | None, file: str) -> list[Any]:
    """Function, line and columns of each of the user's frames."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == file:
            found.append((code.co_qualname, traceback.tb_lineno, columns(code, traceback.tb_lasti)))
        traceback = traceback.tb_next
    return found


def outcome(call: Any, function: Any, *args: Any) -> Any:
    try:
        return "returned", call(function, *args)
    except Exception as error:
        file = function.__code__.co_filename
        causes = [type(e) for e in (error.__cause__, error.__context__)]
        found = places(error.__traceback__, file)
        if isinstance(error, UnboundLocalError):  # CPython fuses loads of names, and then gives the columns of the first
            found = [(name, line) for name, line, _ in found]
        return type(error), str(error), causes, found


def plain(function: Any, *args: Any) -> Any:
    return function(*args)


def is_left(function: Any) -> bool:
    """Whether it has a statement that is refused where it stands."""
    text = inspect.getsource(function)
    return any(f"    {word}" in text for word in ("try:", "match ", "with "))


DRIVEN, LEFT = [f for f in PROGRAMS if not is_left(f)], [f for f in PROGRAMS if is_left(f)]


@pytest.mark.parametrize("function", DRIVEN, ids=lambda f: f.__name__)
def test_concrete_control_flow_is_pythons(function: Any) -> None:
    for xs, n in INPUTS:
        assert outcome(converted, function, xs, n) == outcome(plain, function, xs, n)


@pytest.mark.parametrize("function", LEFT, ids=lambda f: f.__name__)
def test_what_only_python_runs_is_refused(function: Any) -> None:
    with pytest.raises(jitml.UnsupportedError, match=r"exceptions may be handled|patterns are matched|`with` enters a"):
        converted(function, XS, 3)


@pytest.mark.loose
@pytest.mark.parametrize("function", LEFT, ids=lambda f: f.__name__)
def test_what_only_python_runs_is_pythons(function: Any) -> None:
    jitted = jitml.jit(function)
    for xs, n in INPUTS:
        assert outcome(plain, jitted, xs, n)[:2] == outcome(plain, function, xs, n)[:2]


def asks_for_locals(xs: Any, n: int) -> Any:
    for x in xs:
        y = x
        if x == n:
            break
    return sorted(locals())


def asks_for_names(xs: Any, n: int) -> Any:
    for x in xs:
        y = x  # noqa: F841  # what `dir()` shows
        if x == n:
            break
    return dir(), sorted(vars().items())


def asks_inside(xs: Any, n: int) -> Any:
    def inner(y: int) -> Any:
        return dir(), vars()

    return inner(n)


@pytest.mark.loose
@pytest.mark.parametrize("function", [asks_for_locals, asks_for_names, asks_inside])
def test_who_asks_for_names_is_left_to_python(function: Any) -> None:
    for xs, n in INPUTS:
        assert repr(jitml.jit(function)(xs, n)) == repr(function(xs, n))
    with pytest.raises(jitml.UnsupportedError, match="shows names that conversion has added"):
        jitml.jit(function, strict=True)(*INPUTS[0])


class Once:
    """Drives an `if`, but leaves the choice to Python. What a pass finds in the names comes from `load` alone."""

    drives = True

    def __init__(self, items: Any) -> None:
        self.items = items

    def enter(self, names: Names, values: Values, targets: Names = (), counters: Any = (), grows: Names = ()) -> None:
        self.names, self.targets = names, targets
        self.now: dict[str, Any] = dict(values)

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            start = self.now
            yield item
            first, self.now = self.now, start
            yield item  # once more, from the same state
            if not ended_alike(first, self.now, self.names):
                raise AssertionError("a pass depends on something besides its names")
            if self.stop:
                break

    def load(self) -> tuple[Any, ...]:
        return tuple(self.now.get(name, UNDEF) for name in self.names)

    def step(self, values: Mapping[str, Any], stop: Any = False) -> None:
        self.now = dict(values)
        self.stop = stop

    def result(self) -> tuple[Any, ...]:
        return tuple(self.now.get(name, UNDEF) for name in (*self.names, *self.targets))


class OnceWhile(Once):
    """Drives a `while`."""

    def __init__(self, names: Names, values: Values) -> None:
        super().__init__(())
        self.enter(names, values)

    def __iter__(self) -> Iterator[Any]:
        self.stop = False
        while not self.stop:
            yield None

    def test(self, value: Any) -> bool:
        self.stop = not value
        return bool(value)

    def ends(self, names: Names, values: Values) -> bool:
        self.now = dict(values)
        return True


def ended_alike(first: Mapping[str, Any], second: Mapping[str, Any], names: Names) -> bool:
    texts = [[re.sub(" at 0x[0-9a-f]+", "", repr(values.get(name, UNDEF))) for name in names] for values in (first, second)]
    return texts[0] == texts[1]


@pytest.mark.parametrize("function", DRIVEN, ids=lambda f: f.__name__)
def test_what_drivers_are_told_is_enough(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if function.__name__ in ("nonlocal_in_helper", "target_in_container", "augmented"):
        pytest.skip("its bodies have effects, so they cannot run twice")
    if function.__name__ in ("long_elif", "deeper_than_python_allows"):
        pytest.skip("each of many bodies would run twice in each run of the one around it")
    monkeypatch.setattr(Hooks, "push", lambda self, items, item: [*items, item])  # a pass may run twice
    monkeypatch.setattr(Steering, "if_", lambda self, test: Once([bool(test)]))
    monkeypatch.setattr(Steering, "for_", lambda self, iterable: Once(iterable))
    monkeypatch.setattr(Steering, "while_", lambda self, names, values, counters, grows: OnceWhile(names, values))
    for xs, n in INPUTS:
        assert outcome(converted, function, xs, n) == outcome(plain, function, xs, n)


def test_a_name_that_is_not_bound_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnboundLocalError, match="cannot access local variable 'y'"):
        converted(deleted, XS, 5)


def test_concrete_loops_stay_cheap() -> None:
    """An iteration costs one call of the loop's hook, the branch's and the comparison's: no look at `locals()`, nothing else."""

    def total(xs: list[int], n: int) -> int:
        result = 0
        for x in xs:
            if x > n:
                result += x
        return result

    calls: Counter[str] = Counter()

    def note(frame: Any, event: str, argument: Any) -> None:
        calls[argument.__name__ if event == "c_call" else frame.f_code.co_name] += event in ("call", "c_call")

    xs = list(range(20000))
    with activate(Trace()) as trace:
        trace.call[Decisions] = AllPlain()
        function = convert(total)
        sys.setprofile(note)
        try:
            function(xs, 100)
        finally:
            sys.setprofile(None)
    expected = {"counted": 1, "step": 2, "require_end": 1, "if_": 1, "len": 1, "compare": 1, "gt": 1}
    assert {name: n // len(xs) for name, n in calls.items() if n >= len(xs)} == expected
