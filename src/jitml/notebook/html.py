"""HTML of outlines: a line with lines below it is a `<details>` that opens and closes, a number of bytes is a bar.

A page stands alone: no script, no file from elsewhere, and no colour that is wrong on a light or a dark background.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from html import escape
from itertools import groupby

from jitml.errors import Source
from jitml.memory.report import bytes_text
from jitml.outline import OutlineEntry, file_name

# Text takes the notebook's colour; what is ours is half transparent.
STYLE = """
.jitml { font-family: ui-monospace, monospace; font-size: 12px; line-height: 1.5; overflow-x: auto; }
.jitml div, .jitml summary { white-space: pre-wrap; }
.jitml summary { cursor: pointer; }
.jitml details > :not(summary) { margin-left: 1.5em; }
.jitml pre { font: inherit; color: inherit; background: rgba(128, 128, 128, 0.12); padding: 0.5em; overflow-x: auto; }
.jitml .head { font-weight: bold; }
.jitml .bars { display: grid; grid-template-columns: max-content minmax(4em, 20em); column-gap: 0.8em; }
.jitml .bars { align-items: center; margin-left: 1em; }
.jitml .bar { height: 0.7em; min-width: 1px; background: rgba(60, 130, 220, 0.75); }
"""


def page(parts: Iterable[str]) -> str:
    """The HTML of an output."""
    return f'<div class="jitml"><style>{STYLE}</style>{"".join(parts)}</div>'


def head(text: str) -> str:
    return f'<div class="head">{escape(text)}</div>'


def code(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def folded(title: str, inside: Iterable[str], *, is_open: bool = False, beside: str = "") -> str:
    """What opens and closes; `beside` is HTML that is always seen."""
    return f"<details{' open' if is_open else ''}><summary>{escape(title)}{beside}</summary>{''.join(inside)}</details>"


def outline(entries: Collection[OutlineEntry], *, is_open: bool = False) -> Iterator[str]:
    """Lines, and what is below each; bars of neighbours have one scale."""
    longest = max((n for entry in entries for _, n in entry.bars), default=0)
    for entry in entries:
        bars = _bars(entry, longest)
        lines = [code(text) for text in (source_lines(entry.sources), entry.code) if text]
        inside = [*lines, *outline(entry.inner, is_open=is_open)]
        yield folded(entry.text, inside, is_open=is_open and not lines, beside=bars) if inside else _line(entry.text, bars)


def _line(text: str, bars: str) -> str:
    return f"<div>{escape(text)}{bars}</div>"


def _bars(entry: OutlineEntry, longest: int) -> str:
    if not entry.bars or not longest:
        return ""
    rows = "".join(f"<span>{escape(_scale(*bar))}</span>{_bar(100 * bar[1] / longest)}" for bar in entry.bars)
    return f'<span class="bars">{rows}</span>'


def _scale(what: str, n: int) -> str:
    return f"{what} {bytes_text(n)}" if what else ""


def _bar(percent: float) -> str:
    return f'<span class="bar" style="width: {percent:.1f}%"></span>'


def source_lines(sources: Iterable[Source]) -> str:
    """The user's lines with their numbers, file by file."""
    places = sorted({(source.file, source.line): source for source in sources}.items())
    texts: list[str] = []
    for file, found in groupby(places, key=lambda place: place[0][0]):
        texts.append(file_name(file))
        texts += [f"{line:>5}  {source.text}" for (_, line), source in found]
    return "\n".join(texts)


__all__ = ["code", "folded", "head", "outline", "page", "source_lines"]
