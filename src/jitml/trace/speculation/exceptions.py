"""Exception handlers: what if the function handles an exception?

A graph has no `except`: what its operations raise ends the run, and the plain function answers, under `jit` and on the tape of a
derivative. So it has to be known where handlers stand, and what they see must not depend on how a function is traced.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from operator import contains
from traceback import walk_tb
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from jitml.diagnostics.code_owners import is_users
from jitml.errors import DTypeError, FailedCheck, JitmlError, ShapeError, Source, UnknownSizeError
from jitml.imports.late import late
from jitml.ir.analysis.fp_errors import CATEGORIES
from jitml.records import dataclass, field
from jitml.trace.record.guards import HostConst
from jitml.trace.record.loaded_modules import require_module
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, active_trace, refuse

if TYPE_CHECKING:
    from jitml.trace.rewrite import syntax
    from jitml.trace.rewrite.source import FunctionNode
else:
    syntax = late("jitml.trace.rewrite.syntax")

_NO_FLOATING = {
    *("LinAlgError", "ValueError", "TypeError", "IndexError", "KeyError", "LookupError", "ZeroDivisionError", "OverflowError"),
    *("AssertionError", "AttributeError", "NameError", "RuntimeError", "NotImplementedError", "StopIteration", "RecursionError"),
    *("ImportError", "ModuleNotFoundError", "OSError", "FileNotFoundError", "MemoryError", "UnicodeError", "Warning"),
}
# Managers that let every exception pass.
_TRANSPARENT = {"errstate", "open", "printoptions", "catch_warnings"}
_LEAVING = (ast.Return, ast.Break, ast.Continue)


@dataclass(frozen=True, slots=True)
class Handler:
    """A statement that may end an exception: a `try`, or a `with` whose manager may.

    hears_floating: whether a FloatingPointError may be among them.
    """

    source: Source
    hears_floating: bool


@dataclass
class Handlers(CallPart):
    """Statements that may handle exceptions, in all functions that are called."""

    found: list[Handler] = field(default_factory=list)


def handlers_in(node: FunctionNode) -> tuple[tuple[int, str, bool], ...]:
    """Those of a function, and of functions inside it: the line, the function, and whether it hears of floating-point errors."""
    if syntax.kinds_in([node]).isdisjoint((ast.Try, ast.TryStar, ast.With)):
        return ()
    return tuple(_handlers(node, getattr(node, "name", "<lambda>")))


def handlers_of(code: CodeType) -> tuple[Handler, ...]:
    """The same of a function without source: all of it, if there is one in it."""
    if not getattr(code, "co_exceptiontable", b""):
        return ()
    return (Handler(Source(code.co_filename, code.co_firstlineno, code.co_name), True),)


def _handlers(node: ast.AST, function: str) -> Iterator[tuple[int, str, bool]]:
    for child in syntax.parts(node):
        hears: bool | None = None
        if isinstance(child, (ast.Try, ast.TryStar)):
            if child.handlers:
                hears = any(map(_hears_floating, child.handlers))
            elif any(isinstance(part, _LEAVING) for statement in child.finalbody for part in syntax.inside([statement])):
                hears = True
        elif isinstance(child, ast.With):
            called = [item.context_expr.func for item in child.items if isinstance(item.context_expr, ast.Call)]
            if len(called) < len(child.items) or any(_last_name(name) not in _TRANSPARENT for name in called):
                hears = True
        if hears is not None and isinstance(child, (ast.Try, ast.TryStar, ast.With)):
            yield child.lineno, function, hears
        inner = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        yield from _handlers(child, inner)


def _hears_floating(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or _last_name(kind) not in _NO_FLOATING for kind in kinds)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def raising_now() -> int:
    """The floating-point errors, as bits, that `np.errstate` makes exceptions of here."""
    state: Any = np.geterr()
    return sum(bit for name, bit in CATEGORIES.items() if state[name] == "raise")


def raising(errors: int) -> np.errstate:
    """Inside the block these errors, as bits, are exceptions, and others are nothing."""
    if not errors:
        return np.errstate(all="ignore")
    kinds: Any = {name: "raise" if errors & bit else "ignore" for name, bit in CATEGORIES.items()}
    return np.errstate(**kinds)


def raise_in_this_call(error: Exception) -> NoReturn:
    """Raise what a function raises for the numbers of this call: no handler makes it part of a program for others."""
    root = active_trace().root
    if root.call[Handlers].found and not isinstance(error, JitmlError):
        refuse(FailedCheck(f"{type(error).__name__} is raised in the call that is traced, and may be handled"))
    raise error


def require_known_sizes(error: BaseException) -> None:
    """An exception is handled: if what cannot be traced for sizes left open has raised it, other sizes may raise nothing."""
    if active_trace().inputs.opened and isinstance(error, (ValueError, IndexError)) and error.__traceback__ is not None:
        *_, (frame, _) = walk_tb(error.__traceback__)
        if not is_users(frame.f_code.co_filename):
            refuse(UnknownSizeError(f"an exception is handled that may depend on sizes ({type(error).__name__})"))


def require_missing(error: BaseException) -> None:
    """An exception is handled: what is looked for in vain by name, a global or a module, is not there in other calls, either."""
    root = active_trace().root
    if isinstance(error, ImportError) and error.name:
        _require_not_imported(root, error.name)
    elif type(error) is NameError and error.name and error.__traceback__ is not None:
        *_, (frame, _) = walk_tb(error.__traceback__)
        if error.name not in frame.f_code.co_freevars:
            place = root.host.compute(contains, (HostConst(frame.f_globals), HostConst(error.name)), f"a global {error.name}")
            root.host.require(place, error.name in frame.f_globals)


def require_numpys_own(error: BaseException) -> None:
    """The function looks at an exception: what NumPy says is not what jitml does, so that plain Python runs."""
    if isinstance(error, (ShapeError, DTypeError)):
        refuse(error)


def _require_not_imported(root: Trace, name: str) -> None:
    """A module is not there, or has no other names than now."""
    if require_module(root, name):
        names = tuple(vars(sys.modules[name]))
        root.host.require(root.host.compute(_names_of, (HostConst(sys.modules[name]),), f"names of {name}"), names)


def _names_of(module: ModuleType) -> tuple[str, ...]:
    return tuple(vars(module))
