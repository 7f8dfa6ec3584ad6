"""A smaller program that fails in the same way: statements and blocks taken out, blocks opened, numbers of calls reduced.

Works on text, not on the decisions that led to it, so that it serves crashes and hangs as well: what "fails" means is a function
that may run the text in another process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator


def shrink(text: str, fails: Callable[[str], bool], limit: int = 200) -> str:
    """The smallest text found with at most `limit` questions asked.

    After a step that worked the next one is tried at the same place: what came before it has just been tried.
    """
    asked, since, position = 0, 0, 0
    while asked < limit:
        steps = list(candidates(text))
        if since > len(steps):
            break
        candidate = steps[position % len(steps)]
        if _compiles(candidate):
            asked += 1
            if fails(candidate):
                text, since = candidate, 0
                continue
        position, since = position + 1, since + 1
    return text


def candidates(text: str) -> Iterator[str]:
    """Smaller texts, the boldest steps first."""
    lines = text.splitlines()
    start = lines.index(next(line for line in lines if line.startswith("def program")))
    spans = [(n, _end(lines, n)) for n in range(start + 1, len(lines))]
    for first, last in sorted(spans, key=lambda s: s[0] - s[1]):
        if not lines[first].lstrip().startswith("return") or _indent(lines[first]) > 4:
            yield _joined(lines[:first] + lines[last:])
            if last - first > 1:
                opened = [line[4:] for line in lines[first + 1 : last]]
                yield _joined(lines[:first] + opened + lines[last:])
                yield _joined([*lines[:first], " " * _indent(lines[first]) + "if True:", *lines[first + 1 :]])
    for n in range(start):  # helpers, globals, lines of arguments
        last = _end(lines, n)
        if lines[n].strip() and not lines[n].startswith(("import", "def arguments")) and "return (" not in lines[n]:
            yield _joined(lines[:n] + lines[last:])
    for n in range(start + 1, len(lines)):
        yield from (_joined([*lines[:n], line, *lines[n + 1 :]]) for line in _simpler(lines[n]))


def _simpler(line: str) -> Iterator[str]:
    """The line with a part of an expression in its place."""
    head, equals, value = line.partition(" = ")
    if line.lstrip().startswith("return "):
        head, equals, value = line[: len(line) - len(line.lstrip())] + "return", " ", line.lstrip()[7:]
    if not equals:
        return
    for inner in dict.fromkeys(re.findall(r"\(([^()]*)\)|(\b\w+\b)", value)):
        for part in filter(None, inner):
            for piece in part.split(", "):
                if piece != value:
                    yield f"{head}{equals}{piece}"
    items = value.strip("()[]").split(", ")
    if len(items) > 1 and "return" in head:
        for n in range(len(items)):
            yield f"{head}{equals}{', '.join(items[:n] + items[n + 1 :])}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end(lines: list[str], first: int) -> int:
    """One past the last line of the statement that begins at `first`, its block included."""
    last = first + 1
    while last < len(lines) and (not lines[last].strip() or _indent(lines[last]) > _indent(lines[first])):
        last += 1
    return last


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _compiles(text: str) -> bool:
    try:
        compile(text, "<candidate>", "exec")
    except SyntaxError:
        return False
    return True
