"""Pages: the code of a Markdown file, run as its reader would run it.

A page is a program: its blocks of Python, from top to bottom, each on the lines that it has in the page. A block of text with
the title `prints` is what the block before it prints (`...` stands for anything). A title with one of `NOT_RUN` says why a
block is not run. Blocks of `>>>` are doctests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

from jitml.records import dataclass

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOT_RUN = ("not run", "needs a GPU", "a part of")
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>.*)$")
_MARK = "<<end of block {}>>"


@dataclass(frozen=True)
class Block:
    """A fenced block.

    line: of its first line, from 1.
    info: what stands behind the fence: `python title="..."`.
    """

    line: int
    info: str
    lines: tuple[str, ...]

    @property
    def is_doctest(self) -> bool:
        return self.is_python and any(line.lstrip().startswith(">>>") for line in self.lines)

    @property
    def is_python(self) -> bool:
        return self.info.split(" ")[0] == "python"

    @property
    def is_run(self) -> bool:
        return self.is_python and not self.is_doctest and not any(reason in self.info for reason in NOT_RUN)

    @property
    def is_output(self) -> bool:
        return 'title="prints"' in self.info


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page.

    Raises:
        ValueError: one has no end.

    >>> [block.is_run for block in blocks("```python\\nx = 1\\n```\\n```python title='not run'\\n1/0\\n```")]
    [True, False]
    """
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if (opening := _FENCE.match(line)) is None:
            continue
        inside: list[str] = []
        for _, other in lines:
            if (closing := _FENCE.match(other)) and closing["fence"] == opening["fence"] and not closing["info"]:
                break
            inside.append(other.removeprefix(opening["indent"]))
        else:
            raise ValueError(f"the block of line {number} has no end")
        yield Block(number + 1, opening["info"].strip(), tuple(inside))


def settings(text: str) -> dict[str, str]:
    """The environment variables that a page asks for, in a comment.

    >>> settings("<!-- run with JITML_TRIAL=0 -->")
    {'JITML_TRIAL': '0'}
    """
    return dict(re.findall(r"^<!-- run with (\w+)=(\S+) -->$", text, re.MULTILINE))


def program(text: str) -> str:
    """The page as a program, on the lines of the page; behind each block a mark is printed."""
    lines = [""] * (len(text.splitlines()) + 1)
    for block in blocks(text):
        if block.is_run:
            end = block.line + len(block.lines)
            lines[block.line - 1 : end] = [
                *block.lines,
                f'if __name__ == "__main__": print("{_MARK.format(block.line)}", flush=True)',
            ]
    return "\n".join(lines) + "\n"


def differences(text: str, printed: str) -> list[str]:
    """Where a page does not say what its blocks print."""
    found, before = [], None
    for block in blocks(text):
        if block.is_output:
            if before is None:
                found.append(f"line {block.line}: no block that is run comes before this output")
                continue
            said, got = "\n".join(block.lines) + "\n", _printed_by(before, printed)
            if not OutputChecker().check_output(said, got, ELLIPSIS | NORMALIZE_WHITESPACE):
                found.append(f"line {block.line}: the page says\n{said}and this is printed\n{got}")
        before = block if block.is_run else None
    return found


def _printed_by(block: Block, printed: str) -> str:
    """What was printed between the mark before a block's own and that."""
    text = printed.split(_MARK.format(block.line))[0]
    return text.rsplit(">>\n", 1)[-1] if "<<end of block" in text else text


def pages() -> list[Path]:
    """All pages that readers of the project have."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()
