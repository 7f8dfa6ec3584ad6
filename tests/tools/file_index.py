"""Writes `docs/files.md`, a line for each file, from what the files say of themselves: `make docs`."""

from __future__ import annotations

import ast
from functools import cache
from itertools import groupby
from pathlib import Path

from tools.pages import DOCS, ROOT

SOURCE = ROOT / "src" / "jitml"
PAGE = DOCS / "files.md"
HEAD = """\
# Every file

Written by `make docs` from the first lines of the files; not by hand.
"""


@cache
def says(path: Path) -> str:
    """What a file says of itself first, as a cell of a table."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def page() -> str:
    """A table for each package."""
    files = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    parts = [HEAD]
    for package, found in groupby(sorted(files, key=_order), key=lambda path: _order(path)[:1]):
        name = f"`{package[0]}/`" if package[0] else "Files beside the packages"
        rows = [f"| `{path.relative_to(SOURCE).as_posix()}` | {says(path)} |" for path in found]
        parts.append("\n".join([f"## {name}", "", "| file | holds |", "| --- | --- |", *rows, ""]))
    return "\n".join(parts)


def _order(path: Path) -> tuple[str, str, str]:
    folder = path.relative_to(SOURCE).parent.as_posix()
    package, _, room = ("" if folder == "." else folder).partition("/")
    return package, room, path.name


if __name__ == "__main__":
    PAGE.write_text(page())
