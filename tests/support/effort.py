"""How much is drawn, and how much of a table is gone through: some by default, all with `make test-full`.

Of a product of three lists, such as operation, place and dtype, the default takes every pair of two.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

R, C = TypeVar("R"), TypeVar("C")

FULL = os.environ.get("JITML_TEST_FULL") == "1"


def drawn(few: int, many: int) -> int:
    return many if FULL else few


def is_turn(row: int, column: int, depth: int, depths: int) -> bool:
    """Whether the place of a product is one that stands for others: each row and column meet, at one depth."""
    return FULL or (row + column) % depths == depth


def pairs(rows: Iterable[R], columns: Iterable[C], each: int = 1) -> list[tuple[R, C]]:
    """Each row with so many of the columns, by turns; with all in `make test-full`.

    Each column meets its share of the rows, and of each n-th row, too.
    """
    columns = list(columns)
    return [
        (row, column)
        for n, row in enumerate(rows)
        for k, column in enumerate(columns)
        if FULL or (k - n - n // len(columns)) % len(columns) < each
    ]


def by_samples(samples: Sequence[R], columns: Sequence[C]) -> list[tuple[R, list[C]]]:
    """Each sample with a third of the columns, by turns: all samples, if there are three, together with all of them."""
    apart = 1 if FULL else max(1, min(3, len(samples)))
    return [(sample, [*columns[n % apart :: apart]]) for n, sample in enumerate(samples)]


def named(cases: Iterable[tuple[object, ...]]) -> list[str]:
    """What pytest is to call the members of a product."""
    return ["-".join(str(getattr(x, "__name__", x)) for x in case) for case in cases]


# Ways to run what a row has, of which each is a path of its own: `finish` is eager or jitted, `target` interpreted or compiled.
WAYS = ("finish", "target")


def by_turns(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Tests to be run, and those that are left to `make test-full`: where a test has rows and ways to run them, rows take turns.

    A test that is asked for in one way alone is run.
    """
    rows: dict[object, dict[object, list[pytest.Item]]] = {}
    for item in [] if FULL else items:
        params = dict(getattr(getattr(item, "callspec", None), "params", {}))
        if len(params) > 1 and any(params.pop(way, None) is not None for way in WAYS):
            row = tuple((name, id(value)) for name, value in params.items())
            rows.setdefault((item.path, item.name.partition("[")[0]), {}).setdefault(row, []).append(item)
    left = {
        item
        for row in rows.values()
        for n, ways in enumerate(row.values())
        for k, item in enumerate(ways)
        if k != (n + n // len(ways)) % len(ways)
    }
    return [item for item in items if item not in left], [item for item in items if item in left]
