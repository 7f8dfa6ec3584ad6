"""What a function does to things outside happens at every call, as in Python, or is refused: never silently once."""

from __future__ import annotations

import abc
import itertools
import operator
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.trace.effects.outside.table import ROWS

import jitml
from jitml.trace.environment.snapshot import Snapshot
from support.effort import named, pairs

Array = np.ndarray[Any, Any]
XS = [np.array([1.0, 2.0, 3.0]), np.array([-1.0, -2.0, -3.0]), np.array([4.0, 5.0, 6.0]), np.array([1.0, 0.5, 3.0])]


def straight(act: Callable[..., Any]) -> Callable[[Array], Array]:
    def f(x):
        r = act(x[0])
        return x * 2 if r is None else x + r

    return f


def branch(act: Callable[..., Any]) -> Callable[[Array], Array]:
    def f(x):
        if x.sum() > 0:
            r = act(x[0])
            x = x * 2 if r is None else x + r
        return x

    return f


def loop(act: Callable[..., Any]) -> Callable[[Array], Array]:
    def f(x):
        x = x + 0.0
        for i in range(x.shape[0]):
            r = act(x[i])
            x[i] = x[i] * 2 if r is None else r
        return x

    return f


CASES = pairs(ROWS, [straight, loop, branch])


@pytest.mark.filterwarnings("ignore::jitml.errors.UncompiledWarning")
@pytest.mark.parametrize(("make", "shape"), CASES, ids=named(CASES))
def test_as_in_python_or_refused(make: Callable[[], Any], shape: Callable[..., Any]) -> None:
    outcome(make, shape)


class Sized:
    """C code asks it for an item; that is how Python calls a method out of sight."""

    def __init__(self, act: Callable[[Sized], None]) -> None:
        self.act, self.found = act, []  # type: ignore[var-annotated]
        self.length = 0

    def __getitem__(self, index: int) -> int:
        self.act(self)
        return index


SECOND: Any = operator.itemgetter(2)


def length(obj: Sized) -> int:
    return SECOND(obj) + 1


def from_another_thread(obj: Sized) -> None:
    other = threading.Thread(target=lambda: obj.found.append(len(obj.found)))
    other.start()
    other.join()


def from_a_handler(obj: Sized) -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: obj.found.append(len(obj.found)))
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.loose
@pytest.mark.parametrize("act", [from_another_thread, from_a_handler], ids=lambda f: f.__name__)
def test_what_others_do_meanwhile_is_done_once(act: Callable[[Sized], None]) -> None:
    obj = Sized(act)

    def f(x: Array) -> Array:
        x = x + 1.0 * length(obj)
        return x + 1.0 if obj.found is None else x

    compiled = jitml.jit(f)
    for n in range(3):
        np.testing.assert_array_equal(compiled(XS[0]), XS[0] + 3)
        assert obj.found == list(range(n + 1))


def test_what_another_thread_does_all_the_time_is_not_lost() -> None:
    found, stop = [0], threading.Event()

    def work() -> None:
        while not stop.wait(1e-4):
            found.append(len(found))

    other = threading.Thread(target=work)
    other.start()
    try:
        told = [refused_for(found, n) for n in range(1, 100)]
    finally:
        stop.set()
        other.join()
    assert found == list(range(len(found)))
    assert any("found is changed by" in text for text in told)
    assert all("What has changed stays so" in text for text in told if "found is changed by" in text)


def refused_for(found: list[int], n: int) -> str:
    try:
        jitml.jit(lambda x: x + n if found is None else x * n)(XS[0])
    except jitml.UnsupportedError as error:
        return str(error)
    return ""


class Noted:
    """Made inside, it is nobody's business; what its class holds is."""

    found: list[int] = []  # noqa: RUF012  # shared
    table: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, index: int) -> int:
        self.found.append(self.n)
        self.table["last"] = self.n
        return index


def noting(x: Array) -> Array:
    y = x * 2
    y = y + SECOND(Noted(3))
    return y + len(Noted.found)


def test_what_is_changed_out_of_sight_is_refused_and_as_it_was() -> None:
    Noted.found[:] = [1]
    with pytest.raises(jitml.UnsupportedError, match=r"Noted.* is changed by code that runs only once") as caught:
        jitml.jit(noting)(XS[0])
    assert caught.value.source is not None and caught.value.source.function == "__getitem__"
    assert "stays so" not in str(caught.value)
    assert (Noted.found, Noted.table) == ([1], {})


@pytest.mark.loose
def test_what_is_changed_out_of_sight_is_changed_once_by_python() -> None:
    Noted.found[:] = []
    compiled = jitml.jit(noting)
    for n in range(3):
        np.testing.assert_array_equal(compiled(XS[0]), XS[0] * 2 + 3 + n)
        assert (Noted.found, Noted.table) == ([3] * (n + 1), {"last": 3})
    Noted.table.clear()


def test_what_is_iterated_over_while_another_thread_changes_it() -> None:
    obj, stop = Sized(lambda _: None), threading.Event()
    others = {n: n for n in range(900)}

    def f(x: Array) -> Array:
        return x + others.get(3, 0) + length(obj)

    def work() -> None:
        for n in itertools.count():
            if stop.is_set():
                return
            others[n % 7 + 900] = n
            del others[n % 7 + 900]

    before, other = sys.getswitchinterval(), threading.Thread(target=work)
    sys.setswitchinterval(1e-6)
    other.start()
    try:
        for _ in range(200):
            Snapshot([(f, "f")]).changed()
    finally:
        stop.set()
        other.join()
        sys.setswitchinterval(before)


def test_what_is_another_object_each_time_has_not_changed() -> None:
    class Point(complex):
        weight = 2.0

    point = Point(1.5, 2.5)
    agree = jitml.jit(lambda x: x * point.weight + point.real + point.imag)
    np.testing.assert_array_equal(agree(XS[0]), XS[0] * 2.0 + 4.0)


KEPT: list[Any] = []


def test_what_only_seems_to_be_a_new_deque() -> None:
    def deque() -> list[Any]:
        return KEPT

    def f(x: Array) -> Any:
        queue = deque()
        for v in x:
            queue.append(v)
            if v > 1.5:
                queue.pop(0)
        return len(queue), len(KEPT)

    KEPT.clear()
    wanted, kept = [f(XS[0]), f(XS[0])], list(KEPT)
    KEPT.clear()
    compiled = jitml.jit(f)
    assert [compiled(XS[0]), compiled(XS[0])] == wanted
    assert kept == KEPT


def test_what_changes_only_once_stays_and_is_seen() -> None:
    class Once:
        turns, found = iter([1, 2]), list[int]()

        def __getitem__(self, index: int) -> int:
            for turn in self.turns:
                self.found.append(turn)
            return index

    compiled = jitml.jit(lambda x: x + SECOND(Once()) + len(Once.found))
    for _ in range(2):
        np.testing.assert_array_equal(compiled(XS[0]), XS[0] + 4)
        assert Once.found == [1, 2]


@pytest.mark.loose
def test_a_cache_is_filled_once() -> None:
    def fill(obj: Sized) -> None:
        obj.length = obj.length or 3

    obj = Sized(fill)
    f = jitml.jit(lambda x: x + (length(obj) + obj.length))
    for _ in range(2):
        np.testing.assert_array_equal(f(XS[0]), XS[0] + 6)


@pytest.mark.loose
@pytest.mark.filterwarnings("error")
def test_what_has_changed_before_an_exception_does_not_change_twice() -> None:
    obj = Sized(lambda obj: obj.found.append(1))

    def f(x: Array) -> Array:
        length(obj)
        raise ValueError(len(obj.found))

    compiled = jitml.jit(f)
    for n in range(3):
        with pytest.raises(ValueError, match=str(n + 1)):
            compiled(XS[0])


def outcome(make: Callable[[], Any], shape: Callable[..., Any]) -> str:
    """`same`, or the refusal, which says so if something has changed before; a difference raises AssertionError."""
    _, wanted = outcomes(*make(), shape, lambda f: f)
    compiled, got = outcomes(*make(), shape, jitml.jit)
    for number, ((result, state), (want, kept)) in enumerate(zip(got, wanted)):
        if isinstance(result, jitml.errors.JitmlError):
            before = got[number - 1][1] if number else compiled
            is_told = "What has changed stays so" in str(result)
            assert state == before or is_told, f"refused in call {number}, after the change {before} -> {state}: {result}"
            return str(result)
        assert repr(result) == repr(want), f"call {number} gives {result}, not {want}"
        assert state == kept, f"call {number} leaves {state}, not {kept}"
    return "same"


def outcomes(act: Callable[..., Any], state: Callable[[], Any], shape: Any, compile: Any) -> tuple[str, list[tuple[Any, str]]]:
    """What is there before, and what each call returns or raises and leaves."""
    before, found = told(state()), []
    function = compile(shape(act))
    for x in XS:
        try:
            result = told(function(x.copy()))
        except Exception as raised:
            result = raised
        found.append((result, told(state())))
    return before, found


def told(x: Any) -> str:
    if type(x).__module__.startswith("tests.trace.effects.outside.") and hasattr(x, "__dict__"):
        return type(x).__name__ + told(vars(x))
    if isinstance(x, dict):
        return f"{type(x).__name__}{{{', '.join(f'{told(k)}: {told(v)}' for k, v in x.items())}}}"
    if isinstance(x, (list, tuple, set)):
        return f"{type(x).__name__}[{', '.join(map(told, x))}]"
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{x.tolist()}{x.flags.writeable}"
    return repr(x)


class Hooked(abc.ABC):  # noqa: B024  # it asks
    asked: list[type] = []  # noqa: RUF012  # shared

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        cls.asked.append(other)
        return True


class Listed(list[int]):
    """Tells whenever it is gone through."""

    told: list[int] = []  # noqa: RUF012

    def __iter__(self) -> Any:
        self.told.append(1)
        return list.__iter__(self)


LISTED = Listed([1, 2])


UNDER_A_CONDITION: dict[str, Callable[[Array], Any]] = {
    "isinstance": lambda x: x * (2 if isinstance(3, Hooked) else 1),
    "a list of one's own": lambda x: x * sum(LISTED) + max(v for v in LISTED),
}


@pytest.mark.loose
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", UNDER_A_CONDITION)
def test_what_does_not_run_changes_nothing(name: str) -> None:
    act = UNDER_A_CONDITION[name]

    def f(x: Array) -> Any:
        return act(x) if x.sum() > 7 else x

    Hooked.asked.clear()
    Listed.told.clear()
    compiled = jitml.jit(f, verify="first")
    for x in (XS[0], XS[1]):
        np.testing.assert_array_equal(compiled(x), x)
        assert not Hooked.asked + Listed.told
    for n in (2, 4):
        compiled(XS[2])
        assert (Hooked.asked, Listed.told) in (([int], []), ([], [1] * n))
