"""Every test here runs twice: through the graph interpreter, which judges tracing alone, and through compiled code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import against_numpy


@pytest.fixture(autouse=True, params=["interpreted", "compiled"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(against_numpy, "target", request.param)
    yield request.param
