"""Offline documentation: the pages of docs/ as they were installed, for `python -m jitml help`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_INSTALLED, _CLONE = _PACKAGE / "pages", _PACKAGE.parents[1] / "docs"


def pages() -> dict[str, Path]:
    """The pages by name: `sections`, `howto/deploy`. A wheel has them beside the code, a clone in docs/."""
    folder = _INSTALLED if _INSTALLED.is_dir() else _CLONE
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}


def page(name: str) -> str:
    """What a page says, or a part of it.

    Args:
        name: a page (`howto/deploy`, or `deploy` alone), an error code (`JM106`), or nothing, for a list of all.

    Raises:
        KeyError: there is no such page and no such code; the message names those that are alike.

    >>> page("JM106").splitlines()[0]
    '## JM106'
    """
    found = pages()
    if not name:
        return _list(found)
    if name.upper().startswith("JM") and name[2:].isdecimal():
        codes = _sections(found["error-codes"].read_text("utf-8")) if "error-codes" in found else {}
        if name.upper() in codes:
            return codes[name.upper()]
        raise KeyError(f"there is no code {name}; the page error-codes has all")
    short = {full.rpartition("/")[2]: full for full in found} | {full: full for full in found}
    wanted = name.removeprefix("docs/").removesuffix(".md")
    if wanted not in short:
        alike = ", ".join(get_close_matches(wanted, short, 3))
        raise KeyError(f"there is no page {name}; {f'did you mean {alike}?' if alike else 'without a name, all are listed'}")
    return found[short[wanted]].read_text("utf-8")


def _list(found: Mapping[str, Path]) -> str:
    width = max(map(len, found), default=0)
    titles = (f"\n{path.read_text('utf-8')}".partition("\n# ")[2].partition("\n")[0] for path in found.values())
    told = "`python -m jitml help PAGE` prints a page, `python -m jitml help JM106` what an error code means."
    return "\n".join([told, "", *(f"{name:<{width}}  {title}" for name, title in zip(found, titles))])


def _sections(text: str) -> dict[str, str]:
    """The parts of a page by their headings of the second level."""
    parts = text.split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.rstrip()}" for part in parts}


__all__ = ["page", "pages"]
