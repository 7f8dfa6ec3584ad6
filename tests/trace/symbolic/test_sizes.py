"""Python integers that are sizes: a loop's index, an array's unknown length, and what Python's operators make of them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml.numpy  # fills the table of functions
from jitml.errors import UnknownNumberError
from jitml.ir.analysis.verify import verify
from jitml.ir.interpret import interpret
from jitml.ir.types import I64, Aval
from jitml.trace.record.recording import Trace, activate
from jitml.trace.values.numbers import TracedNumber, combine

LOW, HIGH = -3, 9


def _with_index(expression: Callable[[Any], Any]) -> tuple[Any, Callable[[int], Any]]:
    """What an expression is for a traced i with LOW <= i <= HIGH, and the function that computes it."""
    recording = Trace()
    with activate(recording):
        value = recording.builder.add_input(Aval((), I64))
        index = TracedNumber.of_size(recording, value, recording.bind(value, LOW, HIGH, "i"))
        result = expression(index)
        graph = recording.builder.build([result.as_value()] if type(result) is TracedNumber else [])
    verify(graph)
    return result, lambda i: interpret(graph, [np.int64(i)])[0].item() if graph.outputs else result


EXPRESSIONS: list[Callable[[Any], Any]] = [
    lambda i: i + 1, lambda i: 2 * i - 3, lambda i: 10 - i, lambda i: -i, lambda i: +i, lambda i: (i + 1) * (i - 1),
    lambda i: i - i,
    lambda i: i // 2, lambda i: i % 3, lambda i: i // -2, lambda i: i % -3, lambda i: 7 // (i + 4), lambda i: -7 % (i + 4),
    lambda i: (4 * i + 2) // 2, lambda i: 6 * i % 3, lambda i: i // (i - 10), lambda i: i % (i - 10), lambda i: divmod(i, 4)[1],
    abs, lambda i: abs(i + 3), lambda i: i**2, lambda i: i << 2, lambda i: i >> 1, lambda i: i & 5, lambda i: i ^ 5,
    lambda i: i / 4, lambda i: i * 0.5, lambda i: i + True, lambda i: i * i * i * i * i * i,
    lambda i: i < 5, lambda i: i <= HIGH, lambda i: i > -4, lambda i: i >= 0, lambda i: i == 3, lambda i: i != 20,
    lambda i: i < i + 1, lambda i: i * i == i * i, lambda i: 2 * i == i + i,
    lambda i: combine(builtins.min, i, 5) if type(i) is TracedNumber else min(i, 5),
    lambda i: combine(builtins.max, i, 5, 2 * i) if type(i) is TracedNumber else max(i, 5, 2 * i),
    lambda i: combine(builtins.min, i, 10) if type(i) is TracedNumber else min(i, 10),
    lambda i: combine(float, i) if type(i) is TracedNumber else float(i),
    lambda i: combine(bool, i) if type(i) is TracedNumber else bool(i),
    lambda i: (i + (1 << 62)) - (1 << 62), lambda i: (i + (1 << 40)) * 5,
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_arithmetic_is_pythons(expression: Callable[[Any], Any]) -> None:
    result, run = _with_index(expression)
    for i in range(LOW, HIGH + 1):
        expected = expression(i)
        assert run(i) == expected
        assert type(run(i)) is type(expected)
    if type(result) is TracedNumber:
        assert result.kind is type(expected)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (lambda i: i < HIGH + 1, True), (lambda i: i + 1 > i, True), (lambda i: i == HIGH + 5, False), (lambda i: i - i, 0),
        (lambda i: 2 * i % 2, 0), (lambda i: i - (i - 2), 2), (lambda i: bool(i + 4), True),
    ],
)  # fmt: skip
def test_what_the_limits_decide_is_plain(expression: Callable[[Any], Any], answer: Any) -> None:
    result, _ = _with_index(expression)
    assert result == answer
    assert type(result) is type(answer)


def test_equal_quotients_are_one_size() -> None:
    result, _ = _with_index(lambda i: (i + 3) // 2 - (3 + i) // 2)
    assert result == 0


@pytest.mark.parametrize("use", [lambda i: [0] * i, lambda i: {i: 1}, lambda i: f"{i}", range])
def test_python_cannot_have_the_number(use: Callable[[Any], Any]) -> None:
    with pytest.raises(UnknownNumberError):
        _with_index(use)


@pytest.mark.parametrize(
    ("expression", "error"),
    [(lambda i: 5 // i, ZeroDivisionError), (lambda i: 5 % i, ZeroDivisionError), (lambda i: (1 << 62) * (2 - i), OverflowError)],
)
def test_what_python_would_refuse_ends_the_program(expression: Callable[[Any], Any], error: type[Exception]) -> None:
    _, run = _with_index(expression)
    with pytest.raises(error):
        run(0)
    assert run(2) == expression(2)


@pytest.mark.parametrize("largest", [lambda n: min(n, True), lambda n: max(True, n), lambda n: (min(n, True), max(n, False))])
def test_a_size_and_a_truth_have_the_type_of_the_one_chosen(largest: Callable[[Any], Any]) -> None:
    """The size was taken for the number that both are, so that 1 came out for True (150000:4359)."""

    def program(x: np.ndarray[Any, Any], n: int) -> tuple[Any, Any]:
        return x[n:], largest(n)

    compiled = jitml.jit(program)
    for n in (5, 2, 0, 1, 7, 4):
        x = np.arange(9.0)
        assert repr(compiled(x, n)) == repr(program(x, n))
