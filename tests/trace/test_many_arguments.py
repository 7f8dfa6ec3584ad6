"""Arguments of hundreds of parts: what tells them apart is compared in linear time, and no less of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitml

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
