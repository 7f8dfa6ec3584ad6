"""Tracebacks: of an error that leaves a call, the frames of the user's code alone.

Where a call enters jitml, what it raises loses the frames of jitml's own (`shorten`). They cost nothing as long as nothing is
raised. While a function is traced, tracebacks stay whole: they tell where a refusal comes from. So do those of jitml's own bugs.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import CodeType, FunctionType, MethodType, TracebackType
from typing import Any, TypeVar

from jitml.diagnostics.code_owners import is_jitmls

F = TypeVar("F", bound=Callable[..., Any])

_BETWEEN = {contextlib.__file__, functools.__file__}  # run our code, and are run by it
_SECTION = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "sections", "section.py")
SHIM = ("function", "args", "kwargs")  # parameters of what calls a function as from the user's line
_is_tracing: Callable[[], object] = type(None)


def is_shim(code: CodeType) -> bool:
    """Whether this is the code of a function that calls another one in place of the user's line, in whose file it stands."""
    return code.co_varnames == SHIM and not code.co_names


def stay_whole_while(is_tracing: Callable[[], object]) -> None:
    """From now on, shorten nothing as long as this gives something: a function is being traced."""
    global _is_tracing
    _is_tracing = is_tracing


def passed_over(function: F) -> F:
    """Have warnings name the user's line beyond a function that calls the user's code: a `stacklevel` does not count its frame.

    Python passes over its own frames that import modules, and knows them by what their file is called.
    """
    file = function.__code__.co_filename
    named = f"{file} (importlib._bootstrap)"
    linecache.cache.setdefault(named, (lambda: "".join(linecache.getlines(file)),))  # read when it is asked for
    function.__code__ = function.__code__.replace(co_filename=named)
    return function


def is_passed_over(code: CodeType) -> bool:
    """Whether a `stacklevel` does not count frames of this code."""
    return "importlib" in code.co_filename and "_bootstrap" in code.co_filename


def shorten(error: BaseException) -> None:
    """Drop jitml's frames from the traceback of an error, and from those of its causes.

    To be called in an `except` block that ends with a bare `raise`: Python then adds no frame for the function with that block.
    """
    if _is_tracing() is not None:
        return
    if type(error) is AttributeError:
        habits: Any = import_module("jitml.diagnostics.foreign_habits")  # few need it
        habits.note_foreign_attribute(error)
    if _all_are_wanted():
        return
    for one in _with_causes(error):
        if getattr(one, "is_bug", False):  # whose frames are what a report needs
            return
        one.__traceback__ = _of_users(one.__traceback__)


def entry(function: F) -> F:
    """A function of jitml's that users call: what it raises has the user's frames alone."""
    explain, finish = _explain_keywords, shorten  # `call` gets other globals

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if kwargs:
                explain(function, args, kwargs, error)
            finish(error)
            raise

    # In the function's own module, for doctest, which passes by what seems to be imported.
    made = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return functools.wraps(function)(made)  # type: ignore[return-value]  # it takes and gives the same


def _explain_keywords(function: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any], error: BaseException) -> None:
    """Have an error that says that a function has no such keyword say what to write in its place."""
    if type(error) is TypeError and error.__traceback__ is not None and error.__traceback__.tb_next is None:  # it has not begun
        habits: Any = import_module("jitml.diagnostics.foreign_habits")  # few need it
        called: Any = function
        if args and getattr(type(args[0]), function.__name__, None) is not None and "." in function.__qualname__:  # a method
            called = type(args[0]) if function.__name__ == "__init__" else MethodType(function, args[0])
        if told := habits.foreign_keyword(called, given):
            error.args = (told,)


def _all_are_wanted() -> bool:
    config = sys.modules.get("jitml.config")  # who sets a variable has it imported
    return config is not None and config.CONFIG.full_traceback


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            behind = (one.__cause__, one.__context__, *getattr(one, "exceptions", ()))
            waiting += [x for x in behind if isinstance(x, BaseException)]


def _of_users(found: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    is_ours = False  # the frame before
    is_in_section = False  # a part of the function that is not compiled runs, in a frame inside the function's own
    while found is not None:
        code = found.tb_frame.f_code
        file = code.co_filename
        if file in _BETWEEN or is_shim(code):
            is_hidden = is_ours
        else:
            is_ours = is_hidden = is_jitmls(file)
        if is_hidden:
            is_in_section |= file.startswith(_SECTION)
        else:
            if is_in_section and kept and _name_of(kept[-1]) == _name_of(found):
                kept.pop()
            kept.append(found)
            is_in_section = False
        found = found.tb_next
    after: TracebackType | None = None
    for step in reversed(kept):
        after = step if step.tb_next is after else TracebackType(after, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return after


def _name_of(step: TracebackType) -> tuple[str, str]:
    return step.tb_frame.f_code.co_filename, step.tb_frame.f_code.co_name


__all__ = ["SHIM", "entry", "is_passed_over", "is_shim", "passed_over", "shorten", "stay_whole_while"]
