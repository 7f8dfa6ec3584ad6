"""The drawing of people's programs: it is the same each time, plain Python agrees with itself, and a stale answer is seen."""

from __future__ import annotations

import queue
import sys
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from programs.drawn.choices import Choices
from programs.drawn.inputs import CALLS
from programs.drawn.outcomes import Outcome, call, compare, equal, judge, module
from programs.drawn.people import pruned
from programs.drawn.program import Drawn, write_program
from programs.likeness import Likeness


def people(number: int) -> Drawn:
    return write_program(Choices.seeded(f"people:{number}"), shape="people")


def outcomes(text: str) -> list[Outcome]:
    namespace = module(text)
    return [call(namespace["program"], namespace, number) for number in range(CALLS)]


def test_a_program_is_the_same_each_time() -> None:
    assert [people(n).text for n in range(5)] == [people(n).text for n in range(5)]


@pytest.mark.parametrize("batch", range(4))
def test_plain_python_agrees_with_itself(batch: int) -> None:
    for number in range(15 * batch, 15 * batch + 15):
        text = people(number).text
        assert not any(type(o.exception) is NameError for o in outcomes(text)), text
        ours, theirs = module(text), module(text)
        for turn in range(CALLS):
            assert compare(call(ours["program"], ours, turn), call(theirs["program"], theirs, turn), equal) is None, text


def test_numbers_keep_their_numeric_programs() -> None:
    assert write_program(Choices.seeded("0:7")).text == write_program(Choices.seeded("0:7"), shape="numeric").text


class _Stale:
    """What a compiler does that takes the objects of the first call for constants."""

    variants = all_variants = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.known = function, dict[Any, Any]()

    def __call__(self, *args: Any) -> Any:
        kept = self.known.setdefault("objects", args)
        return self.function(*(new if isinstance(new, (np.ndarray, int, float)) else old for new, old in zip(args, kept)))


def test_an_answer_for_the_object_of_an_earlier_call_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [p for p in map(people, range(60)) if "(o0, " in p.text and "globals()" not in p.text]
    monkeypatch.setattr(jitml, "jit", _Stale)
    kinds = Counter(judge(p.text, True).kind for p in programs)
    assert kinds["different"] > len(programs) / 3, kinds


def test_output_is_compared_in_its_order() -> None:
    header = "import numpy as np\ndef arguments(call):\n    return (np.ones(3),)\ndef program(x):\n"
    (first, *_), (other, *_) = (outcomes(header + f"    print({a})\n    print({b})\n") for a, b in ("12", "21"))
    assert compare(first, first, equal) is None
    assert "output" in str(compare(first, other, equal))


class _Own:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


_Own.__module__ = "drawn_own"
_shared = [1]


@pytest.mark.parametrize(
    "got, expected",
    [
        (_Own(a=[1], b=None), _Own(a=[1], b=0)),
        (_Own(a=1), _Own(a=1, b=2)),
        (deque([1, 2]), deque([2, 1])),
        ({(0, np.int64(1)): 1}, {(0, 1): 1}),
        (slice(1, np.int64(2)), slice(1, 2)),
        ([[1], [1]], [_shared, _shared]),
        ([_shared, _shared], [[1], [1]]),
        ({1, 2}, {1, 3}),
        (ValueError("a"), ValueError("b")),
        (np.array([None, 1], object), np.array([None, 2], object)),
        (lambda v, k=_shared: v, len),
        (np.polynomial.Polynomial([1, 2]), np.polynomial.Polynomial([1, 3])),
    ],
)
def test_objects_that_differ(got: Any, expected: Any) -> None:
    assert Likeness(equal).difference(got, expected, "argument") is not None


def test_a_list_of_the_caller_comes_back_itself() -> None:
    like, own, theirs = Likeness(equal), [1], [1]
    assert like.difference([own], [theirs], "argument") is None
    assert [like.difference(own, theirs), like.difference([[2]] * 2, [[2], [2]])] == [None, None]
    assert "is not one" in str(like.difference([1], theirs))


def test_objects_that_are_alike() -> None:
    def made() -> Any:
        waiting: queue.Queue[int] = queue.Queue()
        waiting.put(1)
        own = _Own(a=[1], rows=np.ones(2), queue=waiting)
        own.itself = own  # type: ignore[attr-defined]
        return [own, {"own": own, (1, 2): deque([3])}, {1, 2}, slice(1, 2), made, np.float64]

    assert Likeness(equal).difference(made(), made()) is None


def test_what_nothing_uses_is_left_out() -> None:
    text = "import sys\nimport os\nA = [1]\ndef f(): return A\ndef g(): return os\n"
    text += "def arguments(call): return (f,)\ndef program(f): f()\n"
    assert [word in pruned(text) for word in ("sys", "os", "A = [1]", "def f", "def g")] == [False, False, True, True, False]


def test_modules_of_programs_are_found_by_name() -> None:
    namespace = module("import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass A:\n    k: 'int' = 1\n")
    assert sys.modules[namespace["A"].__module__].__dict__ is namespace
