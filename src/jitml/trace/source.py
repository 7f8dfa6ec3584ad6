"""Where is the source of this function, and is it really its own?  `find` gives the syntax tree that a code object came from.

A file may have been edited since it was imported, two lambdas may share a line: so the whole file is compiled again,
unmodified, and the function's code object must be equal to one of the outcome (bytecode, constants, line table, columns).
`inspect.getsource` does not ask, and is never used.
"""

from __future__ import annotations

import ast
import linecache
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_STARTED = time.time()
_FUTURE = 0x1FF0000  # the __future__ bits of co_flags


@dataclass(frozen=True, slots=True)
class Found:
    """A function's syntax tree (of the file's: to be copied, not changed) and the class that encloses it, for mangling."""

    node: FunctionNode
    class_name: str


@dataclass(frozen=True, slots=True)
class _File:
    tree: ast.Module
    codes: frozenset[CodeType]
    functions: tuple[Found, ...]


def find(function: FunctionType) -> Found | None:
    """The function's own source; None if there is none (built by exec, a C function) or if the file has changed."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return None
    file = _read("".join(lines), code.co_filename, code.co_flags & _FUTURE)
    if file is None:
        return None
    candidates = [found for found in file.functions if _could_be(found.node, code)]
    if not candidates or (code not in file.codes and not _unchanged(code)):
        return None
    return min(candidates, key=lambda found: _extent(found.node))


@lru_cache(maxsize=256)
def _read(text: str, filename: str, flags: int) -> _File | None:
    try:
        tree = ast.parse(text, filename)
        module = compile(text, filename, "single" if filename.startswith("<doctest") else "exec", flags=flags, dont_inherit=True)
    except SyntaxError:  # a notebook's magic
        return None
    return _File(tree, frozenset(_nested(module)), tuple(_functions(tree, "")))


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _functions(node: ast.AST, class_name: str) -> Iterator[Found]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield Found(child, class_name)
        yield from _functions(child, child.name if isinstance(child, ast.ClassDef) else class_name)


def _could_be(node: FunctionNode, code: CodeType) -> bool:
    """Whether the node has the code's name, place and parameters."""
    if [a.arg for a in (*node.args.posonlyargs, *node.args.args)] != list(code.co_varnames[: code.co_argcount]):
        return False
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and _covers(node.body, code)
    first = min((d.lineno for d in node.decorator_list), default=node.lineno)
    return node.name == code.co_name and first == code.co_firstlineno


def _covers(body: ast.expr, code: CodeType) -> bool:
    """Whether all instructions of a lambda come from within this expression."""
    begin, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    spans: list[tuple[tuple[int, int], tuple[int, int]]] = []
    for line, end_line, column, end_column in code.co_positions():
        if None not in (line, end_line, column, end_column) and (line, column) != (end_line, end_column):
            spans.append(((line, column), (end_line, end_column)))  # type: ignore[arg-type]  # none is None, as just asked
    return bool(spans) and begin <= min(s[0] for s in spans) and max(s[1] for s in spans) <= end


def _extent(node: FunctionNode) -> tuple[int, int]:
    """Lines and columns that a node spans: of nested lambdas that could be meant, it is the innermost."""
    return (node.end_lineno or 0) - node.lineno, (node.end_col_offset or 0) - node.col_offset


def _unchanged(code: CodeType) -> bool:
    """Whether the file is older than this process: then other bytecode only means that an import hook rewrote it (pytest)."""
    try:
        return os.stat(code.co_filename).st_mtime < _STARTED
    except OSError:
        return False
