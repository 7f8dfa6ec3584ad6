"""Functions of the user's that code which is not converted calls: what they read may change, what they do is not lost."""

from __future__ import annotations

import cProfile
import enum
import functools
import operator
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import UnsupportedError
from jitml.trace.hooks.profiling import Entered
from jitml.trace.record.recording import Trace, activate

STATE = SimpleNamespace(v=1)


class Costs:
    @property
    def doubled(self) -> int:
        return STATE.v * 2

    def scaled(self, a: Any) -> Any:
        return a * STATE.v

    def cost(self, a: Any) -> Any:
        return (a - STATE.v) ** 2


class Meta(type):
    def __call__(cls, *args: Any) -> Any:
        return STATE.v

    def __instancecheck__(cls, x: Any) -> bool:
        return STATE.v > 1

    def __subclasscheck__(cls, kind: Any) -> bool:
        return STATE.v > 2


class Made(metaclass=Meta):
    pass


class Kind(enum.Enum):
    A, B, C = 1, 2, 3

    @classmethod
    def _missing_(cls, value: object) -> Kind:
        return cls(STATE.v)


def closing_over(number: SimpleNamespace) -> Callable[..., Any]:
    def cost(a: Any) -> Any:
        return (a - number.v) ** 2

    return cost


COSTS, CLOSURE = Costs(), closing_over(STATE)
CASES: dict[str, Callable[..., Any]] = {
    "key of sorted": lambda x: np.array(sorted([1, 2, 3, 4], key=COSTS.cost)),
    "key of min": lambda x: x * min([1, 2, 3, 4], key=COSTS.cost),
    "a closure as key": lambda x: x * max([1, 2, 3, 4], key=CLOSURE),
    "key of a sort": lambda x: (lambda items: (items.sort(key=COSTS.cost), x * items[0])[1])([1, 2, 3, 4]),
    "attrgetter": lambda x: x * operator.attrgetter("doubled")(COSTS),
    "methodcaller": lambda x: x * operator.methodcaller("scaled", 2)(COSTS),
    "call of a metaclass": lambda x: x * Made(),
    "isinstance": lambda x: x * (2 if isinstance(3, Made) else 5),
    "isinstance of one of": lambda x: x * (2 if isinstance(3.0, (str, Made)) else 5),
    "issubclass": lambda x: x * (2 if issubclass(int, Made) else 5),
    "missing in an enum": lambda x: x * Kind(99).value,
    "cmp_to_key": lambda x: x * sorted([1, 2, 3], key=functools.cmp_to_key(lambda a, b: COSTS.cost(a) - COSTS.cost(b)))[0],
}


@pytest.mark.loose
@pytest.mark.parametrize("name", CASES)
def test_what_a_function_out_of_sight_reads_may_change(name: str) -> None:
    function = CASES[name]
    compiled = jitml.jit(function, verify="never")
    for STATE.v in (1, 2, 3, 2):
        np.testing.assert_array_equal(compiled(np.arange(3.0)), function(np.arange(3.0)), strict=True)


class Printing(type):
    def __call__(cls, *args: Any) -> Any:
        print("made")
        return 2


class Told(metaclass=Printing):
    pass


def test_what_prints_out_of_sight_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"print\(\) would run only once"):
        jitml.jit(lambda x: x * Told())(np.ones(2))


@pytest.mark.loose
def test_a_profiler_written_in_c_goes_on_afterwards() -> None:
    def late() -> None:
        pass

    profiler = cProfile.Profile()
    profiler.enable()
    try:
        f = CASES["call of a metaclass"]
        np.testing.assert_array_equal(jitml.jit(f)(np.ones(2)), f(np.ones(2)))
        late()
    finally:
        profiler.disable()
    assert "late" in {entry.code.co_name for entry in profiler.getstats() if not isinstance(entry.code, str)}


@pytest.mark.loose
def test_a_profiler_is_there_again_afterwards() -> None:
    events: list[str] = []

    def profile(frame: Any, event: str, arg: Any) -> None:
        events.append(event)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        jitml.jit(CASES["call of a metaclass"])(np.ones(2))
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)
    assert events


class Through:
    """What C code calls by `operator.itemgetter`, out of sight."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __getitem__(self, n: int) -> Any:
        return self.function(n)


def with_default(number: SimpleNamespace) -> Callable[..., Any]:
    def cost(n: int, number: SimpleNamespace = number) -> Any:
        return n * number.v

    return cost


def with_keyword(number: SimpleNamespace) -> Callable[..., Any]:
    def cost(n: int, *, number: SimpleNamespace = number) -> Any:
        return n * number.v

    return cost


class Number:
    def __init__(self) -> None:
        self.v = 1

    def value(self) -> Any:
        return self.v


class Hidden:
    __slots__ = ("__number",)

    def __init__(self, number: Number) -> None:
        self.__number = number

    def value(self) -> Any:
        return self.__number.v


def first_of(numbers: Any) -> Any:
    return numbers[0].v


def second_number() -> Any:
    return SECOND


def limited(n: int) -> Any:
    limit = FIRST.v
    steps = (a * limit for a in (1, 2))

    def cost(a: int) -> int:
        return abs(a - limit) + SECOND.v

    return next(steps) + min((1, 2, 3), key=cost)


FIRST, SECOND = Number(), Number()
CLOSURES, DEFAULTS, KEYWORDS = ([make(x) for x in (FIRST, SECOND)] for make in (closing_over, with_default, with_keyword))
FIRSTS, SECONDS = [FIRST], [SECOND]
HIDDEN = [Hidden(FIRST), Hidden(SECOND)]
OF_TWO: dict[str, Callable[[int], Any]] = {
    "closures": lambda n: CLOSURES[0](n) + 10 * CLOSURES[1](n),
    "defaults": lambda n: DEFAULTS[0](n) + 10 * DEFAULTS[1](n),
    "defaults of keywords": lambda n: KEYWORDS[0](n) + 10 * KEYWORDS[1](n),
    "methods": lambda n: FIRST.value() + 10 * SECOND.value(),
    "private slots": lambda n: HIDDEN[0].value() + 10 * HIDDEN[1].value(),
    "arguments": lambda n: first_of(FIRSTS) + 10 * first_of(SECONDS),
    "what another returns": lambda n: FIRST.v + 10 * second_number().v,
    "functions that are gone": limited,
    "lambdas that are gone": lambda n: (lambda: FIRST.v)() + 10 * (lambda number=SECOND: number.v)(),
}


@pytest.mark.loose
@pytest.mark.parametrize("name", OF_TWO)
def test_each_function_of_one_code_is_seen(name: str) -> None:
    through = Through(OF_TWO[name])
    compiled = jitml.jit(lambda x: x * operator.itemgetter(3)(through), verify="never")
    for FIRST.v, SECOND.v in ((1, 1), (1, 2), (3, 2), (3, 1)):
        np.testing.assert_array_equal(compiled(np.ones(2)), OF_TWO[name](3) * np.ones(2))


def in_a_class(n: int) -> Any:
    class Local:
        v = FIRST.v

    return Local().v


def test_the_body_of_a_class_is_refused() -> None:
    through = Through(in_a_class)
    with pytest.raises(UnsupportedError, match="is called by code that is not converted"):
        jitml.jit(lambda x: x * operator.itemgetter(3)(through))(np.ones(2))


COUNT = SimpleNamespace(n=0)


class Counted(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value: object) -> Counted:
        COUNT.n += 1
        return cls.A


class Counting(type):
    def __call__(cls, *args: Any) -> Any:
        COUNT.n += 1
        return super().__call__(*args)

    def __instancecheck__(cls, x: Any) -> bool:
        COUNT.n += 1
        return True


class Instance(metaclass=Counting):
    pass


class Swallowing:
    """A library that hides what goes wrong."""

    def __enter__(self) -> int:
        COUNT.n += 1
        return 1

    def __exit__(self, *error: object) -> bool:
        COUNT.n += 1
        return True


def counted(v: Any) -> Any:
    COUNT.n += 1
    return v * 2


def in_a_manager(x: Any) -> Any:
    with Swallowing():
        x = x + 1
    return x


class Computed:
    __match_args__ = ("first",)

    @property
    def first(self) -> int:
        COUNT.n += 1
        return 2


class Answering:
    def __getattr__(self, name: str) -> int:
        COUNT.n += 1
        return len(name)


COMPUTED, ANSWERING, BY_PYTHON = Computed(), Answering(), np.frompyfunc(counted, 1, 1)


def matched(x: Any) -> Any:
    match COMPUTED:
        case Computed(2):
            return x * 2
    return x


def matched_by_name(x: Any) -> Any:
    match ANSWERING:
        case Answering(abc=3):
            return x * 2
    return x


def of_each(x: Any) -> Any:
    total = 0.0
    for v in x:
        total += float(BY_PYTHON(v))
    return x * total


ONCE: dict[str, Callable[..., Any]] = {
    "a pattern": matched,
    "a pattern with names": matched_by_name,
    "an attribute": lambda x: x * ANSWERING.abc,
    "frompyfunc": lambda x: BY_PYTHON(x).astype(float),
    "frompyfunc in a loop": of_each,
    "a method of what frompyfunc makes": lambda x: x * np.frompyfunc(lambda a, b: counted(a) + b, 2, 1).reduce(x),
    "missing in an enum": lambda x: x * Counted(99).value,
    "call of a metaclass": lambda x: x if Instance() is None else x * 2,
    "isinstance": lambda x: x * (2 if isinstance(3, Instance) else 5),
    "vectorize": lambda x: np.vectorize(counted)(x) + 1,
    "key of sorted": lambda x: x * sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: counted(a) - counted(b)))[0],
    "a manager": in_a_manager,
    "methodcaller": lambda x: x * operator.methodcaller("get", 3)(SimpleNamespace(get=counted)),
}


@pytest.mark.loose
@pytest.mark.parametrize("name", ONCE)
def test_what_a_function_out_of_sight_changes_is_changed_once(name: str) -> None:
    function, found = ONCE[name], []
    for f in (jitml.jit(function), function):
        COUNT.n = 0
        found.append([(f(np.arange(3.0)).tolist(), COUNT.n) for _ in range(3)])
    assert found[0] == found[1]


def test_what_is_refused_out_of_sight_has_not_begun() -> None:
    COUNT.n = 0
    with pytest.raises(UnsupportedError, match=r"Counted\._missing_ is called by code that is not converted"):
        jitml.jit(ONCE["missing in an enum"])(np.ones(2))
    assert COUNT.n == 0
    assert sys.getprofile() is None


def test_a_finalizer_is_not_prevented() -> None:
    ended: list[int] = []

    class Ending:
        def __del__(self) -> None:
            ended.append(1)

    held = [Ending()]
    with activate(Trace()):
        Entered({}).run(held.clear)
    assert ended == [1]


def test_a_function_that_is_refused_does_not_begin_though_a_library_hides_exceptions() -> None:
    begun: list[int] = []

    class Hiding(dict[str, int]):
        def __getattr__(self, name: str) -> Any:
            begun.append(1)
            raise AttributeError(name)

    with activate(Trace()):
        entered = Entered({})
        assert entered.run(hasattr, Hiding(), "name") is None
    assert begun == []
    assert [code.co_name for code in entered.codes] == ["__getattr__"]
