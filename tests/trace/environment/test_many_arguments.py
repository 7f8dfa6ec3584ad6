"""Arguments of hundreds of parts: what tells them apart is compared in linear time, and no less of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree
import pytest

import jitml
from jitml.autograd.api import transform_driver
from support.effort import pairs

Array = np.ndarray[Any, Any]


class Particle:
    def __init__(self, x: float) -> None:
        self.x = x


def same_as_first(particles: list[Particle], x: Array) -> Array:
    count = 0
    for particle in particles:
        count += particle is particles[0]
    return x * count


def doubled(rows: list[list[float]]) -> float:
    for row in rows:
        row[0] = row[0] * 2.0
    return rows[0][0]


def some_doubled(rows: list[list[float]]) -> float:
    for row in rows[:20]:
        row[0] = row[0] * 2.0
    return rows[-1][0]


def last_of_written(arrays: list[Array]) -> float:
    arrays[0][:] = 7.0
    return arrays[-1].sum()


@pytest.mark.parametrize("n", [3, 40])
def test_an_object_that_comes_twice(n: int) -> None:
    particles, x = [Particle(float(i)) for i in range(n)], np.arange(3.0)
    compiled = jitml.jit(same_as_first, verify="never")
    for twice in (0, n - 1, n // 2):
        given = [*particles]
        given[twice] = particles[0]
        assert np.array_equal(compiled(given, x), same_as_first(given, x))
    given = [*particles[:-1], particles[1]]  # two others are one
    assert np.array_equal(compiled(given, x), same_as_first(given, x))


@pytest.mark.parametrize("function", [doubled, some_doubled])
@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 39), (0, 39), (30, 31)])
def test_a_changed_row_that_comes_twice(function: Any, first: int, second: int) -> None:
    def table(is_shared: bool) -> list[list[float]]:
        rows = [[float(i), 1.0] for i in range(40)]
        if is_shared:
            rows[second] = rows[first]
        return rows

    compiled = jitml.jit(function, verify="never")
    for is_shared in (False, True):
        got, expected = table(is_shared), table(is_shared)
        try:
            result = compiled(got)
        except jitml.errors.UnsupportedError as error:
            assert is_shared and "is the same list" in str(error)
            continue
        assert result == function(expected)
        assert got == expected


@pytest.mark.loose
@pytest.mark.parametrize("n", [2, 50])
def test_views_among_many_arrays(n: int) -> None:
    def arrays(last: int) -> list[Array]:
        memory = np.arange(12.0)
        apart = [np.full(3, float(i)) for i in range(n)]
        return [memory[2:6], *apart, [memory[4:9], memory[2:6], memory[7:9]][last]]

    for last in range(3):
        got, expected = arrays(last), arrays(last)
        assert jitml.jit(last_of_written, verify="never")(got) == last_of_written(expected)
        assert all(map(np.array_equal, got, expected))
    compiled = jitml.jit(last_of_written, verify="never")
    for last in (2, 1, 0, 2):
        assert compiled(arrays(last)) == last_of_written(arrays(last))


def test_rows_of_many_lengths_one_behind_the_other() -> None:
    pieces = [np.arange(float(i % 5)) + i for i in range(60)]

    def joined(x: list[Array]) -> Array:
        return np.concatenate([*x, x[0] * 2, x[3] + 1])[3:-1] * 2.0

    assert np.array_equal(jitml.jit(joined, verify="never")(pieces), joined(pieces))


@pytest.mark.parametrize(
    "many",
    [
        [[1.0] * 400] * 400,
        [[None] * 10**6] * 10**6,
        {f"k{i}": 1.0 * i for i in range(130_000)},
        [(float(i), i) for i in range(20_000)],
        [np.ones(2)] * 9_000,
        [str(i) for i in range(21_000)],
    ],
)
def test_what_holds_too_much_is_refused_at_once(many: Any) -> None:
    def length(x: Array, many: Any) -> Array:
        return x * len(many)

    for compiled in (jitml.jit(length), jitml.grad(lambda x, many: length(x, many).sum())):
        with pytest.raises(
            jitml.errors.UnsupportedError, match=r"argument many holds (more than )?\d+ items, too many to be checked"
        ) as refusal:
            compiled(np.ones(3), many)
        assert refusal.value.remedy == "Make it an array: np.asarray(many)."
        assert refusal.value.source is not None
        assert refusal.value.source.file == __file__


@dataclass
class Model:
    name: str
    rows: list[list[float]]


def test_too_much_is_counted_before_anything_is_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [[float(i)] * 500 for i in range(500)]
    monkeypatch.setattr(optree, "tree_flatten", None)
    for many in (table, {"a": (1, table)}, Model("a", table)):
        with pytest.raises(jitml.errors.UnsupportedError, match="argument m holds more than 120000 items"):
            jitml.jit(lambda x, m: x)(1.0, many)


def test_too_much_is_refused_at_once_by_a_derivative_after_another_call_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [[float(i)] * 500 for i in range(500)]
    monkeypatch.setitem(transform_driver._refused, "another call", jitml.errors.UnsupportedError("not captured"))
    monkeypatch.setattr(optree, "tree_flatten", None)
    with pytest.raises(jitml.errors.UnsupportedError, match="argument m holds more than 120000 items"):
        jitml.grad(lambda x, m: x * len(m))(1.0, table)


def test_too_many_arguments_are_refused() -> None:
    with pytest.raises(jitml.errors.UnsupportedError, match="there are 130001 arguments"):
        jitml.jit(lambda x, *more: x * len(more))(np.ones(3), *[1.0] * 130_000)


def made_an_array(t: Any) -> Array:
    return np.asarray(t)


@jitml.jit(verify="never")
def mixed(table: Any, x: Array) -> Any:
    return np.asarray(table).sum(axis=0), np.dot(table, x), table[1]


def test_an_array_of_a_table_of_numbers() -> None:
    x = np.arange(9.0)
    floats = [[float(i * j) for j in range(9)] for i in range(8)]
    for table in (
        floats,
        [[float("nan"), -0.0, *row[2:]] for row in floats],
        [tuple(row) for row in floats],
        [[i * j for j in range(9)] for i in range(8)],
        floats[:6],
        [[i * j * (1 if i % 2 else 1.0) for j in range(9)] for i in range(8)],
        [[i % 2 == j % 3 for j in range(9)] for i in range(8)],
        [[complex(i, j) for j in range(9)] for i in range(8)],
    ):
        result, expected = mixed(table, x), (np.asarray(table).sum(axis=0), np.dot(table, x), table[1])
        assert all(map(np.array_equal, result, expected)) or np.isnan(expected[0][0])
        assert [a.dtype for a in result[:2]] == [a.dtype for a in expected[:2]]


def test_integers_of_a_list_that_are_indices_and_sizes() -> None:
    def at(x: Array, where: list[int]) -> Any:
        return x[where], x[np.asarray(where)[3] :], np.zeros(int(np.max(where)))

    x, compiled = np.arange(50.0), jitml.jit(at, verify="never")
    for seed in range(3):
        where = [int(i) for i in np.random.default_rng(seed).integers(0, 50, 40)]
        assert all(map(np.array_equal, compiled(x, where), at(x, where)))
    with pytest.raises(IndexError):
        compiled(x, [*where[:-1], 50])


def test_a_number_of_another_type_among_many() -> None:
    compiled = jitml.jit(made_an_array, verify="never")
    for last in (2.0, 3, True, 2.5, np.float32(2)):
        given = [*map(float, range(40)), last]
        result = compiled(given)
        assert result.dtype == np.asarray(given).dtype
        assert np.array_equal(result, np.asarray(given))


def test_derivatives_by_a_list_of_many() -> None:
    def f(t: list[float], x: Array) -> Any:
        return (np.asarray(t) ** 2 * x).sum()

    t, x = [float(i) for i in range(40)], np.arange(40.0)
    assert np.allclose(jitml.jit(jitml.grad(f))(t, x), 2 * np.array(t) * x)
    assert np.allclose(jitml.jit(jitml.grad(f, argnums=1))(t, x), np.array(t) ** 2)


MAKES: dict[str, Any] = {
    "array": np.array,
    "float": lambda xs: np.array(xs, float),
    "int": lambda xs: np.array(xs, int),
    "float32": lambda xs: np.asarray(xs, np.float32),
    "complex": lambda xs: np.array(xs, complex),
    "bool": lambda xs: np.array(xs, bool),
    "two rows": lambda xs: np.array([xs, xs[::-1]]),
    "dot": lambda xs: np.dot(xs, xs),
    "times": lambda xs: np.ones(len(xs)) * xs,
    "twice": lambda xs: (np.array(xs), np.array(xs, float), np.array([*xs, 1.5])),
    "beside": lambda xs: np.array([*xs[1:], np.array(xs).sum()]),
    "sorted": lambda xs: np.sort(xs)[::-1],
    "a way taken": lambda xs: np.array(xs) * (2 if np.array(xs)[0] > 2 else 3),
}


@pytest.mark.parametrize(("name", "n"), pairs(MAKES, [3, 32, 70, 33], each=2))
def test_arrays_of_lists_of_numbers(n: int, name: str) -> None:
    compiled = jitml.jit(MAKES[name], verify="never")
    for first in (0, 5, 2.5, True, -3, 0):
        given = [first, *range(1, n)]
        for kind in (None, float):
            xs = given if kind is None else [float(x) for x in given]
            found, expected = compiled(xs), MAKES[name](xs)
            for a, b in zip(found if isinstance(found, tuple) else [found], expected if isinstance(found, tuple) else [expected]):
                np.testing.assert_array_equal(a, b, strict=True)


TABLE = [[float(i + j) for j in range(3)] for i in range(600)]


def test_a_long_list_that_only_is_read_is_not_taken_as_changed() -> None:
    def first_and_second(a: list[float], b: list[float]) -> float:
        return a[0] + b[1]

    numbers = [float(i) for i in range(300)]
    compiled = jitml.jit(first_and_second, verify="never")
    assert compiled(numbers, numbers) == 1.0
    assert not compiled.variants[0].traced.changes


def test_of_a_long_global_list_what_is_used_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x: Array) -> Array:
        return x * TABLE[3][1] + len(TABLE)

    compiled, x = jitml.jit(scaled, verify="never"), np.ones(3)
    assert np.array_equal(compiled(x), scaled(x))
    assert len(compiled.variants[0].checks) < 50
    monkeypatch.setattr(sys.modules[__name__], "TABLE", [*TABLE[:3], [0.0, 77.0], *TABLE[4:]])
    assert np.array_equal(compiled(x), scaled(x))
    TABLE.append([0.0])
    try:
        assert np.array_equal(compiled(x), scaled(x))
    finally:
        TABLE.pop()


NAMED = {f"k{n}": {f"k{m}": float(m) for m in range(200)} for n in range(200)}


def test_what_holds_too_much_outside_is_refused_at_once() -> None:
    with pytest.raises(jitml.errors.UnsupportedError, match="among more than 30000 items of containers from outside") as refusal:
        jitml.jit(lambda x: x * NAMED["k3"]["k5"])(np.ones(3))
    assert refusal.value.source is not None
    assert refusal.value.source.file == __file__


TABLE = [[float(i * j) for j in range(300)] for i in range(300)]


def test_a_long_table_outside_is_closed_at_once() -> None:
    def summed(x: float) -> Any:
        return np.asarray(TABLE).sum() + x

    def some(x: float) -> Any:
        return np.asarray(TABLE[3]).sum() + TABLE[5][7] + x

    with pytest.raises(jitml.errors.UnsupportedError, match="too many to be checked at each call"):
        jitml.jit(summed, verify="never")(1.0)
    assert jitml.jit(some, verify="never")(1.0) == some(1.0)
