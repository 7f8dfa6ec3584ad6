"""Our dataclasses are the standard library's, but that methods are written when they are first called."""

from __future__ import annotations

import copy
import dataclasses
import weakref
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from jitml import records

Classes = dict[str, Any]


def classes(dataclass: Any) -> Classes:
    """One of each kind that we have, by either decorator."""
    return classes_with_written_methods(dataclass) | classes_with_own_methods(dataclass)


def classes_with_written_methods(dataclass: Any) -> Classes:

    @dataclass
    class Plain:
        x: int
        y: list[int] = field(default_factory=list)
        WORDS: ClassVar[str] = "no field"

    @dataclass(frozen=True)
    class Frozen:
        x: int
        y: float = 1.5
        note: str = field(default="", compare=False)
        hidden: Any = field(default=None, repr=False)

        @cached_property
        def twice(self) -> int:
            return 2 * self.x

    @dataclass(frozen=True, slots=True)
    class Slotted:
        x: int
        y: tuple[int, ...] = ()
        made: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @dataclass(frozen=True, slots=True)
    class Derived(Slotted):
        x: int = 7
        z: int = field(default=3, kw_only=True)

    @dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
    class Itself:
        x: Any = None

    @dataclass(slots=True)
    class Counter:
        x: int
        total: int = field(init=False, default=0)
        log: list[int] = field(init=False, default_factory=list)
        late: int = field(init=False)

        def __post_init__(self) -> None:
            self.late = self.x + self.total

    class Child(Frozen):
        """Not a dataclass itself."""

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


def classes_with_own_methods(dataclass: Any) -> Classes:
    """Which the decorator leaves as they are; and one with nothing in it."""

    @dataclass(frozen=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return f"<{self.x}>"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    @dataclass
    class Hashable:
        x: int

        def __hash__(self) -> int:
            return self.x

    @dataclass
    class Given:
        x: int

        def __init__(self) -> None:
            self.x = 4

    @dataclass(frozen=True)
    class Nothing:
        pass

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


OURS, THEIRS = classes(records.dataclass), classes(dataclasses.dataclass)


def outcome(run: Callable[[], object]) -> str:
    try:
        return repr(run()).replace("test_records.classes", "")
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("_set, _missing, ", "")


def _loop(c: Classes) -> Any:
    one = c["Plain"](1)
    one.y.append(one)
    return one


def _set(x: Any, name: str, value: object) -> Any:
    setattr(x, name, value)
    return getattr(x, name)


MATCH = """
match given:
    case Slotted(x, y):
        found = x, y
"""


def _match(c: Classes) -> Any:
    scope = {"given": c["Derived"](5, (6,)), **c}
    exec(MATCH, scope)
    return scope["found"]


CASES: list[Callable[[Classes], Any]] = [
    lambda c: [c["Plain"](1), c["Plain"](1, [2]), c["Plain"](x=3, y=[])],
    lambda c: c["Plain"](1).y is c["Plain"](1).y,
    lambda c: c["Plain"](),
    lambda c: c["Plain"](1, 2, 3),
    lambda c: c["Plain"](1, z=3),
    lambda c: (c["Plain"](1) == c["Plain"](1), c["Plain"](1) != c["Plain"](2), c["Plain"](1) == 1),
    lambda c: hash(c["Plain"](1)),
    _loop,
    lambda c: (c["Frozen"](1, hidden=3), c["Frozen"](1, note="a") == c["Frozen"](1, note="b")),
    lambda c: (hash(c["Frozen"](1, note="a")), hash(c["Slotted"](1, (2,))), hash(c["Nothing"]()), hash(c["Derived"]())),
    lambda c: len({c["Frozen"](1), c["Frozen"](1.0), c["Frozen"](2)}),
    lambda c: (c["Frozen"](2).twice, vars(c["Frozen"](2))),
    lambda c: _set(c["Frozen"](2), "x", 1),
    lambda c: _set(c["Frozen"](2), "other", 1),
    lambda c: _set(c["Child"](2), "other", 1),
    lambda c: _set(c["Child"](2), "x", 1),
    lambda c: _set(c["Plain"](2), "x", 1),
    lambda c: delattr(c["Frozen"](2), "x"),
    lambda c: _set(c["Counter"](2), "other", 1),
    lambda c: (c["Derived"](), c["Derived"](1, (2,), z=4), c["Derived"].__slots__, c["Slotted"].__slots__),
    lambda c: c["Derived"](1, (2,), {}, 4),
    lambda c: (c["Derived"](1) == c["Slotted"](1), c["Slotted"](1) == c["Derived"](1), c["Derived"](1) == c["Derived"](1)),
    lambda c: (c["Itself"]() == c["Itself"](), weakref.ref(c["Itself"]()) is not None, c["Itself"].__slots__),
    lambda c: weakref.ref(c["Slotted"](1)),
    lambda c: (c["Counter"](2), c["Counter"](2).log is c["Counter"](2).log),
    lambda c: c["Counter"](2, 3),
    lambda c: (c["Own"](1), c["Own"](1) == 3, hash(c["Own"](1)), hash(c["Hashable"](9)), c["Given"](), c["Nothing"]()),
    lambda c: [(n, k.__match_args__, k.__qualname__.split(".")[-1], k.__module__) for n, k in c.items()],
    lambda c: [(f.name, f.type, f.init, f.compare) for kind in c.values() for f in dataclasses.fields(kind)],
    lambda c: (dataclasses.replace(c["Derived"](1), y=(3,), z=1), dataclasses.replace(c["Frozen"](1), x=2)),
    lambda c: dataclasses.replace(c["Counter"](1), total=2),
    lambda c: (dataclasses.asdict(c["Derived"](1)), dataclasses.is_dataclass(c["Child"])),
    lambda c: [copy.copy(x) for x in (c["Plain"](1), c["Frozen"](1), c["Derived"](1), c["Counter"](1))],
    lambda c: [copy.deepcopy(x) == x for x in (c["Plain"](1, [3]), c["Frozen"](1), c["Derived"](1), c["Counter"](1))],
    lambda c: (c["Plain"].WORDS, c["Frozen"].y, hasattr(c["Plain"], "y"), c["Counter"].__dict__.get("total") is None),
    lambda c: (c["Plain"].__init__.__name__, c["Plain"].__eq__.__qualname__.split(".")[-1]),
    _match,
]


@pytest.mark.parametrize("run", CASES)
def test_as_the_standard_library_has_it(run: Callable[[Classes], Any]) -> None:
    assert outcome(lambda: run(OURS)) == outcome(lambda: run(THEIRS))
    assert outcome(lambda: run(classes(records.dataclass))) == outcome(lambda: run(THEIRS)), "of classes that are new"


def test_a_method_is_written_when_it_is_called() -> None:
    kind = classes(records.dataclass)["Derived"]
    before = kind.__init__
    one = kind(1)
    written = kind.__init__
    assert written is not before and kind(2).x == 2 and kind.__init__ is written
    before(one, 5)  # somebody has held it since
    assert one.x == 5 and kind.__init__ is written


def test_a_mutable_default_is_refused() -> None:
    namespace = {"__annotations__": {"x": "list[int]"}, "x": []}
    with pytest.raises(ValueError, match=r"Bad.x is mutable"):
        records.dataclass(type("Bad", (), namespace))
