"""Source lookup: `find` gives the syntax tree that a function's code object came from, or says why there is none.

A file may have been edited since it was imported, two lambdas may share a line, a text may be any (`source_texts.py`): so it is
compiled again, unmodified, and the function's code object must be equal to one of the outcome (bytecode, constants, line table,
columns). `inspect.getsource` does not ask, and is never used. What code is depends on what is compiled with it, an import beside
it, say: notebooks and consoles compile each statement by itself, so each way of compiling is tried.
"""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pickle import dumps, loads
from types import CodeType, FunctionType
from typing import Any

from jitml.process import parsed, silent_syntax
from jitml.records import dataclass, replace
from jitml.trace.rewrite.code_names import codes_inside
from jitml.trace.rewrite.source_texts import file_of, lines_of, texts, why_none
from jitml.trace.rewrite.syntax import parts

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_STARTED = time.time()
_FUTURE = 0x1FF0000  # the __future__ bits of co_flags


@dataclass(frozen=True, slots=True)
class Found:
    """A function's syntax tree (of the file's: to be copied, not changed).

    class_name: of the class that encloses it, for mangling. file: where messages say that it stands. text: of all of it.
    """

    node: FunctionNode
    class_name: str
    file: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a function has no source."""

    reason: str


@dataclass(frozen=True)
class _Read:
    """A text, or a statement of one, and the code of all functions in it as it is compiled in one way.

    compiled: what is compiled, if not the tree itself.
    """

    tree: ast.Module
    compiled: ast.Module
    flags: int

    @cached_property
    def codes(self) -> frozenset[CodeType]:
        try:
            with silent_syntax():
                module = compile(self.compiled, "<read>", "exec", flags=self.flags, dont_inherit=True)
        except (SyntaxError, ValueError):  # a `return` outside of a function
            return frozenset()
        return frozenset(codes_inside(module))

    @cached_property
    def functions(self) -> Mapping[int, Sequence[Found]]:
        """By their first lines."""
        found: dict[int, list[Found]] = {}
        for function in _functions(self.tree):
            found.setdefault(_first_line(function.node), []).append(function)
        return found

    def find(self, code: CodeType) -> Found | None:
        """The function of this code; the innermost one of nested lambdas that could be meant."""
        candidates = [found for found in self.functions.get(code.co_firstlineno, ()) if _could_be(found.node, code)]
        return min(candidates, key=lambda found: _extent(found.node), default=None)


_given: dict[tuple[str, CodeType], Found] = {}  # of code that stands in no text, but was compiled from a part of one


def give(code: CodeType, found: Found) -> None:
    """Say what code was compiled from; private names are written there as Python has them."""
    _given[code.co_filename, code] = found


def find(function: FunctionType) -> Found | Missing:
    """The function's own source."""
    code = function.__code__
    if (given := _given.get((code.co_filename, code))) is not None:
        return given
    flags = code.co_flags & _FUTURE | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for text in texts(function):
        for read in (part for way in _WAYS for part in way(text, flags)):
            found = read.find(code)
            if found is not None and code in read.codes:
                return replace(found, file=file_of(code, text), text=text)
    if _unchanged(code):
        text = "".join(lines_of(function))
        for read in _whole(text, flags):
            if (found := read.find(code)) is not None:
                return replace(found, file=code.co_filename, text=text)
    return Missing(why_none(function))


@lru_cache(maxsize=256)
def _parsed(text: str) -> ast.Module | None:
    try:
        return parsed(text)
    except (SyntaxError, ValueError):  # no Python, or with zeros in it
        return None


@lru_cache(maxsize=256)
def _whole(text: str, flags: int) -> Sequence[_Read]:
    """As a file is compiled."""
    tree = _parsed(text)
    return (_Read(tree, tree, flags),) if tree is not None else ()


@lru_cache(maxsize=256)
def _one_by_one(text: str, flags: int) -> Sequence[_Read]:
    """As a notebook does: each statement by itself, at its own lines."""
    tree = _parsed(text)
    return [_Read(part, part, flags) for part in map(_alone, tree.body)] if tree is not None else ()


@lru_cache(maxsize=256)
def _from_line_one(text: str, flags: int) -> Sequence[_Read]:
    """As a console does, which counts lines anew for each statement."""
    tree = _parsed(text)
    parts = [_alone(loads(dumps(node))) for node in tree.body] if tree is not None else ()
    for part in parts:
        ast.increment_lineno(part, 1 - _first_line(part.body[0]))
    return [_Read(part, part, flags) for part in parts]


@lru_cache(maxsize=256)
def _in_a_function(text: str, flags: int) -> Sequence[_Read]:
    """As a notebook's `%%timeit` does: names around a function are those of a function."""
    tree = _parsed(text)
    if tree is None or not tree.body:
        return ()
    function = ast.parse("def inner(_it, _timer): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = tree.body
    return (_Read(tree, _alone(function), flags),)


@lru_cache(maxsize=256)
def _asserting(text: str, flags: int) -> Sequence[_Read]:
    """As pytest does, which writes asserts out to tell of their parts."""
    write_out: Any = getattr(sys.modules.get("_pytest.assertion.rewrite"), "rewrite_asserts", None)
    tree = _parsed(text)
    if write_out is None or tree is None or "assert" not in text:
        return ()
    written = loads(dumps(tree))
    try:
        write_out(written, text.encode(), "<read>", None)
    except TypeError:  # another pytest's takes something else
        return ()
    return (_Read(tree, written, flags),)


_WAYS: tuple[Callable[[str, int], Sequence[_Read]], ...] = (_whole, _asserting, _one_by_one, _from_line_one, _in_a_function)


def _alone(statement: ast.stmt) -> ast.Module:
    return ast.Module([statement], [])


def _functions(tree: ast.AST) -> Iterator[Found]:
    left: list[tuple[list[Any], str]] = [([tree], "")]
    for nodes, class_name in left:
        for node in nodes:  # which grow
            kind = type(node)
            if kind is ast.ClassDef:
                left.append((parts(node), node.name))
                continue
            if kind in _FUNCTIONS:
                yield Found(node, class_name)
            nodes += parts(node)


def _could_be(node: FunctionNode, code: CodeType) -> bool:
    """Whether the node, of the same first line, has the code's name, place and parameters."""
    if [a.arg for a in (*node.args.posonlyargs, *node.args.args)] != list(code.co_varnames[: code.co_argcount]):
        return False
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and (_covers(node.body, code) or _is_constant(node, code))
    return node.name == code.co_name


def _first_line(node: ast.stmt | ast.Lambda) -> int:
    """That of its first decorator, if it has some."""
    return min((d.lineno for d in getattr(node, "decorator_list", ())), default=node.lineno)


def _is_constant(node: ast.Lambda, code: CodeType) -> bool:
    """Whether a lambda has nothing but a constant, the code's: CPython 3.12 does not say where it stands in the line."""
    if code.co_names or code.co_freevars or any(end for *_, end in code.co_positions()):
        return False
    body = compile(ast.Expression(node.body), "<read>", "eval")
    return not body.co_names and repr(body.co_consts[-1:]) == repr(code.co_consts[-1:])


def _covers(body: ast.expr, code: CodeType) -> bool:
    """Whether all instructions of a lambda come from within this expression."""
    begin, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    spans: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for line, end_line, column, end_column in code.co_positions():
        if None not in (line, end_line, column, end_column) and (line, column) != (end_line, end_column):
            spans.append(((line, column), (end_line, end_column)))  # type: ignore[arg-type]  # none is None, as just asked
    return bool(spans) and begin <= min(s[0] for s in spans) and max(s[1] for s in spans) <= end


def _extent(node: FunctionNode) -> tuple[int, int]:
    return (node.end_lineno or 0) - node.lineno, (node.end_col_offset or 0) - node.col_offset


def _unchanged(code: CodeType) -> bool:
    """Whether the file is older than this process: then other bytecode only means that an import hook rewrote it (pytest)."""
    try:
        return os.stat(code.co_filename).st_mtime < _STARTED
    except OSError:
        return False
