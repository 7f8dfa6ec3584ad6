"""How much is drawn, and how much of a table is gone through: some by default, all with `make test-full`.

Of a product of three lists, such as operation, place and dtype, the default takes every pair of two.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

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


def named(cases: Iterable[tuple[object, ...]]) -> list[str]:
    """What pytest is to call the members of a product."""
    return ["-".join(str(getattr(x, "__name__", x)) for x in case) for case in cases]
