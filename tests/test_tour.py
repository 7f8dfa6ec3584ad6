"""The examples of docs/tour.md, which pass through every stage by hand, and of docs/schedules.md show what is so."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("page", "least"), [("tour", 31), ("schedules", 8)])
def test_every_example_of_a_page(page: str, least: int) -> None:
    path = DOCS / f"{page}.md"
    text = "\n".join("" if line.startswith("```") else line for line in path.read_text().splitlines())
    ran = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, {}, page, str(path), 0))
    assert ran.attempted >= least
    assert not ran.failed
