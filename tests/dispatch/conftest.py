"""What tests of renting have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sections.forced_breaks import trials


@pytest.fixture(name="full_purse")
def with_full_purse() -> Iterator[None]:
    with trials():
        yield
