"""What tests of reverse mode share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from jitml.config import CONFIG


@pytest.fixture
def saved_bytes() -> Iterator[Callable[[int], None]]:
    """Sets JITML_SAVED_BYTES, as far as derivatives taken in the test see it."""
    before = CONFIG.saved_bytes

    def use(n: int) -> None:
        object.__setattr__(CONFIG, "saved_bytes", n)

    yield use
    use(before)
