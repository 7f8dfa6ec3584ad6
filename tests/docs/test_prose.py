"""Prose: sentences of pages are short enough for readers whose first language is another one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.pages import name_of, pages

pytestmark = pytest.mark.every_row

MOST = 30  # words of a sentence


def sentences(text: str) -> list[str]:
    """The sentences of a page, without code blocks, tables and headings; what stands between backticks is one word.

    >>> sentences("# A\\n\\nOne two. Three `a b c` four:\\n\\n* five six\\n")
    ['One two.', 'Three x four:', 'five six']
    """
    text = re.sub(r"^ *(`{3,}).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(#|\||<|:::|    ).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "x", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found = []
    for block in re.split(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) |\A\s*(?:[*-]|\d+\.) ", text):
        paragraph = re.sub(r"^(?:[*-]|\d+\.) ", "", " ".join(block.split()))
        found += [part for part in re.split(r"(?<=[.?!])[)*\"]*\s+(?=[A-Z`*x\"(])", paragraph) if part]
    return found


def too_long(text: str, most: int) -> list[str]:
    return [sentence for sentence in sentences(text) if len(sentence.split()) > most]


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_sentences_are_short(page: Path) -> None:
    assert not too_long(page.read_text(), MOST)


def test_a_long_one_is_found() -> None:
    assert too_long(f"Short. Now {'word ' * 50}end. Short.", MOST) == [f"Now {'word ' * 50}end."]
