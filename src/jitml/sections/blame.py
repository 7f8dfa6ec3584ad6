"""Blame: which statement of a function is a refusal about?

The innermost statement among the user's frames that were there when it was refused; for an argument that cannot be taken in, the
first statement that reads it; for a result that cannot be handed out, the last one that binds it. What is known as a break, or is
around one, is not blamed again, so that each refusal tells something new, and it ends.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from jitml.errors import JitmlError, ManyPrograms
from jitml.records import dataclass
from jitml.sections.expressions import unwrapped
from jitml.sections.frames import Place, place
from jitml.sections.live_names import binds, loads
from jitml.trace.rewrite.syntax import SCOPES

_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Break:
    """A statement that runs as Python.

    line, text: where it is, and how it begins.
    why, remedy: of the refusal.
    cause: a word of a closed list.
    is_part: whether it is an expression in a statement that breaks too.
    """

    line: int
    text: str
    why: str
    remedy: str
    cause: str
    is_part: bool = False


def blame(error: BaseException, body: Sequence[ast.stmt], file: str, known: frozenset[Place]) -> tuple[Place, Break] | None:
    """The statement of a function, or of a section of it, that is to run as Python from now on; None if there is none left."""
    cause = cause_of(error)
    first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
    candidates = _named(cause, body, known)
    candidates += [line for line in _lines(cause, file) if first <= line <= last]
    if isinstance(cause, ManyPrograms):
        candidates += _mentioning(cause.claim, body, known)
    else:
        candidates += [statement.lineno for statement in reversed(body)]
    for line in candidates:
        statement = statement_at(body, line, known)
        if statement is not None:
            return place(statement), _break(statement, cause)
    return None


def cause_of(error: BaseException) -> BaseException:
    """The refusal, or what tracing has raised."""
    return error.__cause__ if not isinstance(error, JitmlError) and error.__cause__ is not None else error


def _break(statement: ast.stmt, error: BaseException) -> Break:
    why = error.message if isinstance(error, JitmlError) else f"tracing it raised {type(error).__name__}: {error}"
    remedy = error.remedy if isinstance(error, JitmlError) else ""
    shown, is_part = statement, False
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("."):
            is_part = True
        case ast.Return(value=ast.expr() as value):
            shown = ast.Return(unwrapped(value))
    text = ast.unparse(shown).partition("\n")[0].removesuffix(":")
    return Break(statement.lineno, text, why, remedy, str(getattr(error, "cause", "") or "other"), is_part)


def statement_at(body: Sequence[ast.stmt], line: int, known: frozenset[Place]) -> ast.stmt | None:
    """The innermost statement at a line that is no break yet."""
    for node in body:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            found = statement_at([*_inside(node)], line, known)
            if found is not None:
                return found
            if place(node) not in known:
                return node
    return None


def _inside(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(node, SCOPES):
        return
    for part in _BLOCKS:
        yield from getattr(node, part, ())
    for part in ("handlers", "cases"):
        for holder in getattr(node, part, ()):
            yield from holder.body


def _named(error: BaseException, body: Sequence[ast.stmt], known: frozenset[Place]) -> list[int]:
    """Lines of what reads an argument, or binds a result, that the error is about."""
    argument, result = getattr(error, "argument", ""), getattr(error, "result", "")
    every = sorted(_statements(body), key=lambda node: (node.lineno, node.col_offset))
    if argument:
        return [node.lineno for node in every if argument in loads(_head(node)) and place(node) not in known][:1]
    if result:
        return [node.lineno for node in every if result in binds(_head(node)) and place(node) not in known][-1:]
    return []


def _mentioning(claim: str, body: Sequence[ast.stmt], known: frozenset[Place]) -> list[int]:
    """Lines of statements that have what a claim is about: of `len(self.layers) is 3`, `self.layers`, or else `layers`."""
    paths = re.findall(r"[A-Za-z_][\w.]*", claim.partition(" is ")[0])
    every = [(node.lineno, " ".join(map(ast.unparse, _head(node)))) for node in _statements(body) if place(node) not in known]
    for words in (paths, [path.rpartition(".")[2] for path in paths]):
        pattern = "|".join(rf"(?<![\w.]){re.escape(word)}(?!\w)" if "." in word else rf"\b{re.escape(word)}\b" for word in words)
        if pattern and (found := [line for line, text in sorted(every) if re.search(pattern, text)]):
            return found
    return []


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        yield from _statements(_inside(node))


def _head(node: ast.stmt) -> list[ast.AST]:
    """A statement without the blocks in it."""
    if not any(True for _ in _inside(node)):
        return [node]
    return [x for x in ast.iter_child_nodes(node) if not isinstance(x, (ast.stmt, ast.ExceptHandler, ast.match_case))]


def _lines(error: BaseException, file: str) -> list[int]:
    """Lines of a file in which an error came up, the likeliest first."""
    found = [frame.line for frame in reversed(getattr(error, "stack", ())) if frame.file == file]
    source = getattr(error, "source", None)
    if source is not None and source.file == file:
        found.append(source.line)
    step = error.__traceback__
    raised: list[int] = []
    while step is not None:
        if step.tb_frame.f_code.co_filename == file:
            raised.append(step.tb_lineno)
        step = step.tb_next
    found += reversed(raised)
    if error.__cause__ is not None:
        found += _lines(error.__cause__, file)
    return found


__all__ = ["Break", "blame"]
