"""Magics of IPython: `%load_ext jitml` brings `%jit_explain` and `%%jit_explain`.

A cell runs as it stands; calls of jitted functions in it, outside of functions, are noted, and what the compiler does with each
is shown below the cell's output.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from IPython.core.error import UsageError
from IPython.display import display

from jitml.api import explain
from jitml.errors import JitmlError
from jitml.jitted import Jit
from jitml.outline import Explanation

_NOTING = "__jitml_noting__"  # a name in the cell's code
_USAGE = "write %jit_explain f(x), where f is a function, or %%jit_explain above a cell that calls jitted functions"


class NotedCall(NamedTuple):
    """A call that a cell has made."""

    function: Jit
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _NoteCalls(ast.NodeTransformer):
    """Have each call outside of functions ask for what it is to call: `f(x)` becomes `noting(f)(x)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        asked = ast.Call(ast.Name(_NOTING, ast.Load()), [node.func], [])
        return ast.copy_location(
            ast.fix_missing_locations(ast.Call(ast.copy_location(asked, node), node.args, node.keywords)), node
        )

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node  # its source stays what it is

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def _noting(calls: dict[int, NotedCall]) -> Callable[[Any], Any]:
    """What the code of a cell asks; the last call of each function is kept."""

    def noting(function: Any) -> Any:
        jitted = getattr(function, "__func__", function)  # of a method
        if not isinstance(jitted, Jit):
            return function

        @wraps(function)
        def noted(*args: Any, **kwargs: Any) -> Any:
            given = args if jitted is function else (function.__self__, *args)
            calls.pop(id(jitted), None)  # in the order of last calls
            calls[id(jitted)] = NotedCall(jitted, given, kwargs)
            return function(*args, **kwargs)

        return noted

    return noting


def load_ipython_extension(shell: Any) -> None:
    """Add `%jit_explain` and `%%jit_explain` to IPython: what `%load_ext jitml` calls.

    `%jit_explain f(x)` shows what the compiler does with a call, and runs nothing; `f` may be jitted or plain. `%%jit_explain`
    runs a cell and shows it for each jitted function that the cell calls.

    Args:
        shell: IPython's `InteractiveShell`.
    """

    def jit_explain(line: str, cell: str | None = None) -> Explanation | None:
        """What jitml's compiler does with calls.

        `%jit_explain f(x)` shows what it does with a call, and runs nothing; `f` may be jitted or plain. `%%jit_explain` runs a
        cell and shows it for each jitted function that the cell calls, with the arguments of the last call.
        """
        if cell is None:
            return _of_line(shell, line)
        _of_cell(shell, cell)
        return None

    shell.register_magic_function(jit_explain, magic_kind="line_cell", magic_name="jit_explain")


def _of_line(shell: Any, line: str) -> Explanation | None:
    text = line.strip()
    name = shell.compile.cache(text)  # functions in it are read again
    code = compile(_taken_apart(text), name, "eval")
    function, args, kwargs = eval(code, shell.user_ns | {_NOTING: lambda f, *args, **kwargs: (f, args, kwargs)})
    return _explained(function, args, kwargs)


def _taken_apart(text: str) -> ast.Expression:
    """The code of a call that gives the function and the arguments, and does not call it."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UsageError(f"{_USAGE}: {error}") from None
    if not isinstance(call, ast.Call):
        raise UsageError(_USAGE)
    asked = ast.Call(ast.Name(_NOTING, ast.Load()), [call.func, *call.args], call.keywords)
    return ast.fix_missing_locations(ast.Expression(ast.copy_location(asked, call)))


def _explained(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation | None:
    try:
        return explain(function, *args, **kwargs)
    except JitmlError as error:
        print(f"{function!r} runs as Python: {error}")
        return None


def _of_cell(shell: Any, cell: str) -> None:
    calls: dict[int, NotedCall] = {}
    transformer = _NoteCalls()
    shell.ast_transformers.append(transformer)
    shell.user_ns[_NOTING] = _noting(calls)
    try:
        outcome = shell.run_cell(cell)
    finally:
        shell.ast_transformers.remove(transformer)
        del shell.user_ns[_NOTING]
    if not outcome.success:
        return  # IPython has shown the error
    if not calls:
        print("%%jit_explain: the cell calls no jitted function")
    for call in calls.values():
        if (told := _explained(*call)) is not None:
            display(told)  # type: ignore[no-untyped-call]  # IPython's


__all__ = ["load_ipython_extension"]
