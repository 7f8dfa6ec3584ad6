"""The user's code: which of the user's functions run while something is traced, where is each of them, and what does it call?

A refusal takes the stack of them where it is made (`JitmlError.stack`): attempts to trace begin anew, and tracebacks do not
outlive them. What is refused before the function begins is in no frame: it has the name of an argument (`about`). A warning that
a compiled program gives comes from the user's line, by which filters and registries go.
"""

from __future__ import annotations

import enum
import functools
import opcode
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any

from jitml.diagnostics.code_owners import is_converted, is_machinery, is_users
from jitml.diagnostics.tracebacks import SHIM, is_shim
from jitml.errors import JitmlError, UserFrame
from jitml.trace.record.recording import current_trace, home_of, user_source
from jitml.trace.rewrite.code_names import codes_inside

Instruction = tuple[CodeType, int]  # and its position
Call = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Any]
_NOWHERE = "<string>"
_MAKE_CLASSES = {"collections", "dataclasses", "typing"}
_BINARY = opcode.opmap["BINARY_OP"]
_roots: dict[int, CodeType] = {}  # of what begins to trace a function, by id: the hash of code is made of all of it
_REMAINDERS = [n for n, (_, symbol) in enumerate(opcode._nb_ops) if symbol in ("%", "%=")]  # type: ignore[attr-defined]  # it has


def namespace() -> dict[str, Any]:
    """The globals of the user's function that runs now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_converted(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_globals


def asking() -> str:
    """How the function is written, of C or a library, that asks here for what only the running program knows.

    The user's own code has no such name. It is the function that the user's line calls: hooks keep it in `function`, and a
    library's own frames name themselves.
    """
    frame, found = sys._getframe(1), ""
    while frame is not None and not is_converted(frame.f_code.co_filename):
        code = frame.f_code
        if is_machinery(code.co_filename):
            found = _name_as_written(frame.f_locals.get("function", frame.f_locals.get("cls"))) or found
        elif not code.co_filename.startswith("<"):
            found = f"{frame.f_globals.get('__name__')}.{code.co_qualname}"
        frame = frame.f_back  # type: ignore[assignment]  # None at the outermost frame ends the loop
    return found


def makes_text(frame: FrameType) -> bool:
    """Whether code that asks for a float is at a `%`, which does so only of a text: "%.3f" % x."""
    instruction, code = frame.f_lasti, frame.f_code.co_code
    return code[instruction] == _BINARY and code[instruction + 1] in _REMAINDERS


def _name_as_written(function: Any) -> str:
    while type(function) is functools.partial:  # a hook is bound to what it stands for
        is_hook = home_of(function.func).startswith("jitml") and len(function.args) > 0
        function = function.args[0] if is_hook else function.func
    if not callable(function) or is_users(getattr(getattr(function, "__code__", None), "co_filename", _NOWHERE)):
        return ""
    module = getattr(function, "__module__", None) or home_of(type(getattr(function, "__self__", None)))
    if module.partition(".")[0] in ("jitml", "_operator"):
        return ""
    module = ".".join(part for part in module.split(".") if not part.startswith("_")) or module.lstrip("_")
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return name if module == "builtins" else f"{'np' if module == 'numpy' else module}.{name}"


def caller() -> Call:
    """A function that calls another one as the user's line does: what that warns of or logs comes from there."""
    place = user_source()
    if place is None:
        return lambda function, args, kwargs: function(*args, **kwargs)
    call: Call = eval(_calling(place.file, place.line, place.function), namespace())  # of our own text, in the user's module
    return call


def as_written(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function that Python runs; one that makes a class takes the module of its caller for that of the class."""
    return caller()(function, args, kwargs) if _makes_class(function) else function(*args, **kwargs)


def _makes_class(function: Callable[..., Any]) -> bool:
    while type(function) is functools.partial:
        function = function.func
    kind = function if isinstance(function, type) else getattr(function, "__self__", None)
    is_metaclass = isinstance(kind, type) and (issubclass(kind, type) or isinstance(kind, enum.EnumMeta))
    return is_metaclass or getattr(function, "__module__", None) in _MAKE_CLASSES


@functools.lru_cache(maxsize=1024)
def _calling(file: str, line: int, name: str) -> CodeType:
    made = compile("\n" * (line - 1) + f"lambda {', '.join(SHIM)}: function(*args, **kwargs)", file, "eval")
    consts = (x.replace(co_name=name, co_qualname=name) if isinstance(x, CodeType) else x for x in made.co_consts)
    return made.replace(co_consts=tuple(consts))


def begins_traces(code: CodeType) -> None:
    """Take the functions that this code calls for what is traced, and those around it for what is not."""
    _roots[id(code)] = code


def user_stack() -> tuple[UserFrame, ...]:
    """The user's functions that are being traced, outermost first; none outside of traces."""
    return tuple(frame_of(*place) for place in instructions())


def instructions() -> tuple[Instruction, ...]:
    """The same, with less work."""
    found: list[Instruction] = []
    if current_trace() is None:
        return ()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and id(frame.f_code) not in _roots:
        code = frame.f_code
        if is_users(code.co_filename) and not is_shim(code):
            found.append((code, frame.f_lasti))
        frame = frame.f_back
    return tuple(reversed(found))


def stack_of(error: BaseException) -> tuple[UserFrame, ...]:
    """The same as it was when an exception of any kind was raised, which has a traceback from where it was traced."""
    found: list[UserFrame] = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if id(code) in _roots:
            found.clear()
        elif is_users(code.co_filename) and not is_shim(code):
            found.append(frame_of(code, step.tb_lasti))
        step = step.tb_next
    return tuple(found)


_KEPT = 64  # codes whose positions are kept
_Position = tuple[int | None, int | None, int | None, int | None]  # lines, from and to, and columns
_positions: dict[int, tuple[CodeType, list[_Position]]] = {}  # by the id of the code, whose hash would be made of all of it


def _positions_of(code: CodeType) -> list[_Position]:
    """Those of its instructions: Python decodes them from the first one on, and a long function is asked for each operation."""
    known = _positions.get(id(code))
    if known is None:
        if len(_positions) >= _KEPT:
            _positions.clear()
        known = _positions[id(code)] = (code, [*code.co_positions()])
    return known[1]


def frame_of(code: CodeType, instruction: int) -> UserFrame:
    """Where a function is that runs the instruction at this position."""
    places, n = _positions_of(code), max(0, instruction // 2)
    line, end_line, column, end_column = places[n] if n < len(places) else (None, None, None, None)
    line = line or code.co_firstlineno
    own = (code.co_filename, code.co_qualname, code.co_firstlineno)
    # Python may have been told to keep no columns.
    return UserFrame(*own, line, end_line or line, -1 if column is None else column, -1 if end_column is None else end_column)


@contextmanager
def about(name: str) -> Iterator[None]:
    """What is refused inside the block is refused for what a name holds: `x` of `x[0].bias`."""
    try:
        yield
    except JitmlError as error:
        if not error.stack:
            error.argument = error.argument or base_name(name)
        raise


def base_name(name: str) -> str:
    """The name with which an expression begins, as the host program writes it; nothing if it does not."""
    found = re.match(r"[^\W\d]\w*(?=$|[.\[])", name)
    return found[0] if found is not None else ""


_inner: set[int] = set()  # ids of all code of functions that converted ones make


def note_inner(converted: CodeType) -> None:
    """Note the code inside a converted function, which lives as long as it does."""
    _inner.update(map(id, codes_inside(converted)))


def is_converted_inside(x: Any) -> bool:
    """Whether this is a function that a converted one has made."""
    return type(x) is FunctionType and id(x.__code__) in _inner


__all__ = [
    "Call", "Instruction", "about", "as_written", "asking", "base_name", "begins_traces", "caller", "frame_of", "instructions",
    "is_converted_inside", "makes_text", "namespace", "note_inner", "stack_of", "user_stack",
]  # fmt: skip
