"""Hooks of the site's build: links to files outside of docs/, and folders of pages in the navigation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_LINK = re.compile(r"(\]\(|src=\"|href=\")((?:\.\./)+[^)\"#\s]+)")


def on_config(config: Any) -> Any:
    """Write out `folder/*` in the navigation. Pages of a folder that is not there are none."""
    config.nav = _written_out(config.nav)
    return config


def _written_out(nav: list[Any]) -> list[Any]:
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            pages = sorted((DOCS / entry.removesuffix("/*")).glob("*.md"))
            if pages:
                entries.append({entry.removesuffix("/*").capitalize(): [page.relative_to(DOCS).as_posix() for page in pages]})
        elif isinstance(entry, dict):
            entries.append({title: _written_out(inner) if isinstance(inner, list) else inner for title, inner in entry.items()})
        elif not isinstance(entry, str) or (DOCS / entry).exists():
            entries.append(entry)
    return entries


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Have links to files of the repository lead there: the site has docs/ only."""
    folder = (DOCS / page.file.src_uri).parent

    def replaced(match: re.Match[str]) -> str:
        target = (folder / match[2]).resolve()
        if target.is_relative_to(DOCS) or not target.exists():
            return match[0]  # the build looks for it, and says what is missing
        return f"{match[1]}{config.repo_url.rstrip('/')}/blob/main/{target.relative_to(ROOT).as_posix()}"

    return _LINK.sub(replaced, markdown)
