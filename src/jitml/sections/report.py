"""Reports of split functions: which lines run as Python and why, which are compiled, and what both take."""

from __future__ import annotations

from collections.abc import Iterator

from jitml.sections.blame import Break
from jitml.sections.section import Section
from jitml.sections.split import SplitFunction

_WIDTH = 60  # characters of a statement that are shown
_WORTH = 5.0  # seconds that a function has taken before anybody is told that most of it runs as Python


def described(title: str, splits: list[SplitFunction]) -> str:
    """The report of a function that has been split."""
    return "\n".join(line for split in splits for line in _lines(title, split))


def _lines(title: str, split: SplitFunction) -> Iterator[str]:
    sections, breaks = split.sections, sorted((b for b in split.breaks.values() if not b.is_part), key=lambda b: b.line)
    yield f"{title}: {_count(sections, 'section')}, {_count(breaks, 'break')}"
    told: list[tuple[int, list[str]]] = [(b.line, [*_of_break(b)]) for b in breaks]
    told += [(section.run.place[0], [*_of_section(section)]) for section in sections]
    for _, lines in sorted(told, key=lambda pair: pair[0]):
        yield from (f"  {line}" for line in lines)


def _count(things: list[Section] | list[Break], what: str) -> str:
    return f"{len(things)} {what}{'' if len(things) == 1 else 's'}"


def _of_break(found: Break) -> Iterator[str]:
    text = found.text if len(found.text) <= _WIDTH else f"{found.text[:_WIDTH]}..."
    yield f"line {found.line} runs as Python: {text}"
    yield f"    {found.why}"
    if found.remedy:
        yield f"    {found.remedy}"


def _of_section(section: Section) -> Iterator[str]:
    first, _, last, _ = section.run.place
    yield f"{f'line {first}' if first == last else f'lines {first} to {last}'}: {section.state}"
    for variant in section.compiled.variants if section.compiled is not None else ():
        if variant.checked:
            yield f"    {variant.checked}"


def complaint(splits: list[SplitFunction], seconds: float) -> str:
    """What to tell the user of a function most of whose time is plain Python's; empty if there is nothing to tell.

    Args:
        seconds: that its calls have taken.
    """
    compiled = sum(section.seconds for split in splits for section in split.sections)
    breaks = [b for split in splits for b in split.breaks.values()]
    if seconds < _WORTH or compiled > seconds / 2 or not breaks:
        return ""
    first = min(breaks, key=lambda b: b.line)
    return f"line {first.line}, {first.text}: {first.why}"


__all__ = ["complaint", "described"]
