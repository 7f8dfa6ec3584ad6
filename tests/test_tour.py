"""The examples of docs/tour.md, which pass through every stage by hand, show what is so."""

from __future__ import annotations

import doctest
from pathlib import Path

TOUR = Path(__file__).parents[1] / "docs" / "tour.md"


def test_every_example_of_the_tour() -> None:
    text = "\n".join("" if line.startswith("```") else line for line in TOUR.read_text().splitlines())
    ran = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, {}, "tour", str(TOUR), 0))
    assert ran.attempted > 30
    assert not ran.failed
