"""Places of refusals that come up once a function has returned: where does it return, and which name holds what is refused?

No frame of the function is left then. Its last `return` stands for all.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import optree

from jitml.errors import JitmlError, UserFrame
from jitml.functions import FunctionLike
from jitml.imports.late import late
from jitml.trace.effects.write_back import Change, stack_of_change
from jitml.trace.environment.arguments import Callee
from jitml.trace.record.recording import Trace
from jitml.trace.record.user_code import base_name

if TYPE_CHECKING:
    from jitml.trace.rewrite import source, syntax
else:
    source, syntax = late("jitml.trace.rewrite.source"), late("jitml.trace.rewrite.syntax")


class ReturnStatement:
    """What a function has returned, from where.

    Args:
        function: what is traced, which may be a transform of a function among `args`.
    """

    def __init__(self, function: Any, args: Sequence[Any]) -> None:
        self._function = _plain(function, args)

    @contextmanager
    def part(self, *path: Any) -> Iterator[None]:
        """What is refused inside the block is in this part of what is returned, or in nobody knows which."""
        try:
            yield
        except JitmlError as error:
            self._blame_return(error, path or None)
            raise

    @contextmanager
    def leaf(self, trace: Trace, specs: Sequence[optree.PyTreeSpec], changes: Sequence[Change], position: int) -> Iterator[None]:
        """The same of a leaf.

        Args:
            specs: of all that is handed out, first what stands in several places of the last.
            changes: what is kept outside; if there is any, the last is a pair of what is returned and that.
        """
        try:
            yield
        except JitmlError as error:
            start = sum(spec.num_leaves for spec in specs[:-1])
            path = specs[-1].paths()[position - start] if position >= start else None
            if not changes or path is None or path[0] == 0:
                self._blame_return(error, path[1:] if changes and path is not None else path)
            elif not error.stack:
                change = changes[path[1]]
                error.stack = stack_of_change(trace, change, path[2])
                error.argument = "" if error.stack else base_name(trace.host.name(change.slot))
            raise

    def _blame_return(self, error: JitmlError, path: Sequence[Any] | None) -> None:
        is_placed = bool(error.stack or error.argument)
        found = source.find(self._function) if self._function is not None and not is_placed else None
        if self._function is None or found is None or isinstance(found, source.Missing):
            return
        at, code = _end(found.node), self._function.__code__
        own = (code.co_filename, code.co_qualname, code.co_firstlineno)
        error.stack = (UserFrame(*own, at.lineno, at.end_lineno or at.lineno, at.col_offset, at.end_col_offset or -1),)
        value = None if path is None else at.value if isinstance(at, ast.Return) else at
        for key in path or ():
            if isinstance(value, (ast.Tuple, ast.List)) and isinstance(key, int) and key < len(value.elts):
                value = value.elts[key]
        error.result = value.id if isinstance(value, ast.Name) else ""


def _plain(function: Any, args: Sequence[Any]) -> FunctionType | None:
    """The user's function."""
    if type(function) is FunctionType:
        given = next((x.function for x in args if type(x) is Callee), None)
        return function if given is None else _plain(given, ())
    if type(function) is MethodType:
        return _plain(function.__func__, args)
    if type(function) is functools.partial:
        return _plain(function.func, args)
    if isinstance(function, FunctionLike) and function.traced_as is not None:
        return _plain(function.traced_as, args)
    return None


def _end(node: source.FunctionNode) -> ast.stmt | ast.expr:
    """The last `return` of a function, or its last statement; the value of a lambda."""
    if isinstance(node, ast.Lambda):
        return node.body
    found = [x for x in syntax.within(node.body) if isinstance(x, ast.Return)]
    return max(found, key=lambda x: (x.lineno, x.col_offset), default=node.body[-1])


__all__ = ["ReturnStatement"]
