"""A refusal leads to a statement of the function that is traced, whichever callee refused, or to a name that it is about."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.errors import JitmlError, UserFrame

Array = np.ndarray[Any, Any]
LINES = Path(__file__).read_text().splitlines()
SHARED = [1.0]
KEPT: list[Any] = []
MEMORY = np.zeros(10)


class Holder:
    kept: Any = None


def pickled(x: Array) -> Any:
    return x * len(pickle.dumps(x))


def in_a_comprehension(x: Array) -> Any:
    y = x + 1
    return [pickled(y * n) for n in range(2)]  # here


def in_a_callee(x: Array) -> Any:
    y = x + 1
    z = pickled(  # here
        y
    )
    return z + 1


def in_a_loop(x: Array) -> Any:
    total = 0.0
    for n in range(5):
        total += x[n]
        total += pickled(x)  # here
    return total


def in_a_branch(x: Array) -> Any:
    y = x + 1
    if x.sum() > 0:
        y = y * pickled(y)  # here
    return y


def in_a_transform(x: Array) -> Any:
    return jitml.grad(lambda y: pickled(y).sum())(x)  # here


def in_a_generator(x: Array) -> Any:
    def rows() -> Any:
        yield x
        yield pickled(x)

    return sum(row.sum() for row in rows())  # here


def swallowed(x: Array) -> Any:
    try:  # here
        return pickled(x)
    except Exception:
        pass
    return x * 2


def swallowed_in_a_callee(x: Array) -> Any:
    y = swallowed(x)  # here
    return y + 1


def stored(x: Array, holder: Holder) -> Array:
    y = x + 1
    holder.kept = iter([1])  # here
    return y


@pytest.mark.parametrize(
    "function",
    [in_a_comprehension, in_a_callee, in_a_loop, in_a_branch, in_a_transform, in_a_generator, swallowed, swallowed_in_a_callee],
    ids=lambda function: function.__name__,
)
def test_the_outermost_frame_is_at_the_statement(function: Callable[..., Any]) -> None:
    refused = _refusal(function, np.ones(9))
    first = refused.stack[0]
    assert (first.function, first.first_line) == (function.__qualname__, function.__code__.co_firstlineno)
    assert LINES[first.line - 1].endswith("# here")
    assert first.line <= first.end_line
    assert first.column >= 0
    assert (refused.argument, refused.result) == ("", "")
    assert {frame.file for frame in refused.stack} == {__file__}


def test_frames_go_from_the_outermost_to_the_innermost() -> None:
    names = [frame.function for frame in _refusal(in_a_comprehension, np.ones(3)).stack]
    assert names[0] == "in_a_comprehension"
    assert names[-1] == "pickled"


def test_what_runs_around_the_traced_function_is_no_part_of_it() -> None:
    assert [frame.function for frame in _refusal(pickled, np.ones(3)).stack] == ["pickled"]


def test_what_an_attribute_becomes_is_at_the_assignment() -> None:
    (frame,) = _refusal(stored, np.ones(3), Holder()).stack
    assert LINES[frame.line - 1].endswith("# here")


MADE: list[float] = []


class Counting:
    """Made inside: only what its class holds is somebody's."""

    made = MADE

    def __getitem__(self, n: int) -> int:
        self.made.append(1.0)
        return n


def counts(x: Array) -> Array:
    y = x + 1
    operator.itemgetter(0)(Counting())  # here
    return y + len(MADE)


def test_what_changes_the_outside_unseen_is_at_its_line() -> None:
    first, last = _refusal(counts, np.ones(3)).stack
    assert (first.function, last.function) == ("counts", "Counting.__getitem__")
    assert LINES[first.line - 1].endswith("# here")


def takes(x: Array, other: Any) -> Array:
    return x + other[0]


def changes_shared(xs: list[float], ys: list[float]) -> float:
    xs.append(1.0)
    return ys[0]


def keeps_outside(x: Array) -> Array:
    KEPT.append(iter([x]))
    return x


def overlaps_itself(x: Array) -> None:
    x[0] = 1.0


@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (takes, (np.ones(3), bytearray(3)), "other"),
        (takes, (np.ones(3), [bytearray(3)]), "other"),
        (takes, (np.ones(3), np.array([None])), "other"),
        (takes, (np.ones(3), [0.0] * 130_000), "other"),
        (changes_shared, (SHARED, SHARED), "xs"),
        (keeps_outside, (np.ones(3),), "KEPT"),
        (overlaps_itself, (np.lib.stride_tricks.as_strided(MEMORY, (3, 3), (8, 8)),), "x"),
    ],
)
def test_a_refusal_of_an_argument_names_it(function: Callable[..., Any], args: tuple[Any, ...], name: str) -> None:
    refused = _refusal(function, *args)
    assert (refused.argument, refused.result, refused.stack) == (name, "", ())


def gives_an_iterator(x: Array) -> Any:
    made = iter([x])
    return made


def gives_a_tuple(x: Array) -> Any:
    made = [iter([x])]
    return x + 1, (made, 2)


def gives_a_named_part(x: Array) -> Any:
    made = [iter([x])]
    return x + 1, [x], made


def gives_it_made(x: Array) -> Any:
    return [iter([x])]


@pytest.mark.parametrize(
    ("function", "name"),
    [(gives_an_iterator, "made"), (gives_a_tuple, "made"), (gives_a_named_part, "made"), (gives_it_made, "")],
)
def test_a_refusal_of_a_result_names_it_at_the_return(function: Callable[..., Any], name: str) -> None:
    refused = _refusal(function, np.ones(3))
    (frame,) = refused.stack
    assert LINES[frame.line - 1].strip().startswith("return")
    assert (refused.argument, refused.result) == ("", name)


def test_errors_outside_of_traces_have_no_stack() -> None:
    assert JitmlError("no").stack == ()


def test_a_stack_can_be_sent_to_another_process() -> None:
    refused = _refusal(in_a_callee, np.ones(3))
    again = pickle.loads(pickle.dumps(refused))
    assert again.stack == refused.stack
    assert isinstance(again.stack[0], UserFrame)


def _refusal(function: Callable[..., Any], *args: Any) -> JitmlError:
    with pytest.raises(JitmlError) as caught:
        jitml.jit(function)(*args)
    return caught.value
