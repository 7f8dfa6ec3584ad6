"""How much is drawn, and how much of a table is gone through: some by default, all with `make test-full`.

Of a product of three lists, such as operation, place and dtype, the default takes every pair of two. Under `make test` the rows
of wide tables take turns, too: which of them run is drawn by the commit, so that a few commits see all.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar
from zlib import crc32

import pytest

R, C = TypeVar("R"), TypeVar("C")

FULL = os.environ.get("TEST_FULL") == "1"
# Whose turn it is, in hexadecimal: `make test` gives the commit's. Without one all rows run, as when a file is tested by hand.
TURN = os.environ.get("TEST_TURN")


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
_FEW = 4  # rows of a table that run at least
_TURNS = 5
# Where a row takes most of a second, by compilers of C++ or of Numba or by many derivatives, fewer do.
_COSTLY, _FEW_COSTLY = ("tests/codegen/cuda/", "tests/scalar_functions/", "tests/autograd/rules/"), 2


def by_turns(items: Sequence[pytest.Item], turn: str | None = TURN) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Tests to be run, and those that are left to others' turns and to `make test-full`."""
    left = set() if FULL else _other_ways(items)
    if turn is not None and not FULL:
        left |= _other_rows([item for item in items if item not in left], int(turn, 16))
    return [item for item in items if item not in left], [item for item in items if item in left]


def _other_ways(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Where a test has rows and ways to run them, each row runs in one; if it is asked for in one way alone, in that."""
    rows: dict[object, dict[object, list[pytest.Item]]] = defaultdict(dict)
    for item in items:
        params = dict(getattr(getattr(item, "callspec", None), "params", {}))
        if len(params) > 1 and any(params.pop(way, None) is not None for way in WAYS):
            row = tuple((name, id(value)) for name, value in params.items())
            rows[_function(item)].setdefault(row, []).append(item)
    return {
        item
        for row in rows.values()
        for n, ways in enumerate(row.values())
        for k, item in enumerate(ways)
        if k != (n + n // len(ways)) % len(ways)
    }


def _other_rows(items: Iterable[pytest.Item], turn: int) -> set[pytest.Item]:
    """Rows of wide tables whose turn it is not: names draw lots, so that a new row moves no other."""
    tables: dict[object, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("every_row") is None:
            tables[_function(item)].append(item)
    left = set()
    for table in tables.values():
        turns = min(_TURNS, len(table) // (_FEW_COSTLY if table[0].nodeid.startswith(_COSTLY) else _FEW))
        left |= {item for item in table if turns > 1 and crc32(item.name.encode()) % turns != turn % turns}
    return left


def _function(item: pytest.Item) -> object:
    return item.nodeid.partition("[")[0]
