"""Links of pages: the files and headings that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.pages import DOCS, ROOT, name_of, pages

pytestmark = pytest.mark.every_row

LINKS = re.compile(r"(?<!\!)\[[^\]\[]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"|!\[[^\]]*\]\(([^)\s]+)\)|<a href=\"([^\"]+)\"")
WRITTEN = [
    *pages(),
    *(
        ROOT / name
        for name in (
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "CHANGELOG-history.md",
            "SECURITY.md",
            "CODE_OF_CONDUCT.md",
            "bench/README.md",
        )
    ),
]


def without_code(text: str) -> str:
    text = re.sub(r"^ *(`{3,}).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub and the site make them."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^ *(`{3,}).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page: Path, text: str) -> list[str]:
    found = []
    for link in ("".join(groups) for groups in LINKS.findall(without_code(text))):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists():
            found.append(f"{link}: there is no such file")
        elif anchor and target.suffix == ".md" and DOCS / "reference" not in target.parents and anchor not in anchors(target):
            found.append(f"{link}: there is no such heading")
    return found


@pytest.mark.parametrize("page", [page for page in WRITTEN if page.exists()], ids=name_of)
def test_links(page: Path) -> None:
    assert not broken(page, page.read_text())


def test_a_broken_link_is_found() -> None:
    page = DOCS / "errors.md"
    assert broken(page, "[a](nothing.md) [b](errors.md#nothing) [c](errors.md#results) `[d](x.md)`") == [
        "nothing.md: there is no such file",
        "errors.md#nothing: there is no such heading",
    ]
