"""How much is drawn, and how much of a table is gone through: some by default, all with `make test-full`.

Of a product of three lists, such as operation, place and dtype, the default takes every pair of two.
"""

from __future__ import annotations

import os

FULL = os.environ.get("JITML_TEST_FULL") == "1"


def drawn(few: int, many: int) -> int:
    return many if FULL else few


def is_turn(row: int, column: int, depth: int, depths: int) -> bool:
    """Whether the place of a product is one that stands for others: each row and column meet, at one depth."""
    return FULL or (row + column) % depths == depth
