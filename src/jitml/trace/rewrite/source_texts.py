"""Source texts: all that a function may have been compiled from, the likeliest first.

`linecache` has files, modules in zip archives, cells of notebooks, doctests and what else registers there. What is typed, piped
or given to `exec` has no file: it is looked for where it may still be. None of these texts is believed: `source.py` compiles it
and compares.
"""

from __future__ import annotations

import ast
import linecache
import os
import stat
import sys
import textwrap
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

from jitml.process import parsed

_MOST_FRAMES = 40
_CALLERS = 6  # from the text's own frame to the one that was given the text: a console has some in between
_LONGEST = 400  # lines of a statement that was typed

_ANY_TEXT = "<string>"  # `exec`, `python -c`, methods of dataclasses

_names: dict[str, str] = {}
_kept: deque[str] = deque(maxlen=1000)  # texts of which the functions may be asked for after their frames have ended


def texts(function: FunctionType) -> Iterator[str]:
    """Texts that the function may come from; each that is no file's mentions its name."""
    code = function.__code__
    if lines := lines_of(function):
        yield "".join(lines)
        linecache.checkcache(code.co_filename)
        if (now := lines_of(function)) != lines:  # it was imported anew; functions of the old text may be there yet
            keep_texts(["".join(lines)])
            yield "".join(now)
    yield from filter(_mentions(code), list(_kept))
    if is_no_file(code):
        yield from filter(_mentions(code), _without_file(code))


def lines_of(function: FunctionType) -> list[str]:
    """What Python itself shows of the function's file."""
    code = function.__code__
    return linecache.getlines(code.co_filename, function.__globals__) or _registered(code)


def is_no_file(code: CodeType) -> bool:
    return code.co_filename.startswith("<")


def is_generated(code: CodeType) -> bool:
    """Whether this is the code of a method that the standard library has written for a dataclass."""
    return code.co_filename == _ANY_TEXT and code.co_qualname.startswith("__create_fn__.<locals>.")


def keep(function: Any) -> None:
    """Remember the text of a function that may be asked for later, if that is found only now, while it is run."""
    if type(function) is FunctionType and is_no_file(function.__code__) and not lines_of(function):
        keep_texts(filter(_mentions(function.__code__), _on_the_stack(function.__code__)))


def keep_texts(found: Iterable[str]) -> None:
    """Remember texts that functions may come from."""
    _kept.extend(text for text in found if text not in _kept)


def file_of(code: CodeType, text: str) -> str:
    """The name of a function's file in messages and tracebacks; a text without one gets it, so that they show its lines."""
    name = code.co_filename
    if not is_no_file(code) or is_generated(code) or (name != _ANY_TEXT and linecache.getlines(name)):
        return name
    name = _names.setdefault(text, f"<text {len(_names) + 1}>")
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return name


def why_none(function: FunctionType) -> str:
    """Why there is no source, where none has been found."""
    file = function.__code__.co_filename
    if file.startswith("<stdin>"):
        return "it was typed, or piped, into Python, which does not keep it"
    if is_no_file(function.__code__):
        return f"it was made by exec from a text, {file}, that nobody keeps"
    if not lines_of(function):
        return f"there is no file {file}"
    return f"{file} has changed since it was imported, or an import hook has rewritten it"


def _registered(code: CodeType) -> list[str]:
    """Python 3.13 and later keep what is typed by the code, not the name."""
    find = getattr(linecache, "_getlines_from_code", None)
    return list(find(code)) if find is not None else []


def _mentions(code: CodeType) -> Any:
    word = "lambda" if code.co_name == "<lambda>" else code.co_name
    return lambda text: word in text


def _without_file(code: CodeType) -> Iterator[str]:
    yield from _on_the_stack(code)
    if code.co_filename == _ANY_TEXT:
        yield from _commands()
    if code.co_filename.startswith("<stdin>"):
        yield from _standard_input()
    yield from _cells()
    if "readline" in sys.modules:
        yield from _typed(code)


def _commands() -> Iterator[str]:
    """The text of `python -c`, among all that the process was started with."""
    for argument in sys.orig_argv[1:]:
        for text in (argument, argument.partition("c")[2]):  # python -Bc"..."
            yield text
            yield textwrap.dedent(text)  # as Python 3.14 does


def _standard_input() -> Iterator[str]:
    """A file that is run as `python < file`: read without moving the place where the program reads on."""
    try:
        state = os.fstat(0)
        if stat.S_ISREG(state.st_mode):
            yield os.pread(0, state.st_size, 0).decode()
    except (OSError, UnicodeDecodeError):
        return


def _on_the_stack(code: CodeType) -> Iterator[str]:
    """Texts in the hands of whoever runs the text now: `exec`, a console, a notebook's `%%time`."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return
        if frame.f_code is not code and is_no_file(frame.f_code) and _holds(frame.f_code, code):
            yield from _texts_around(frame)
        frame = frame.f_back


def _holds(outer: CodeType, code: CodeType) -> bool:
    return any(c == code or _holds(c, code) for c in outer.co_consts if isinstance(c, CodeType))


def _texts_around(inner: FrameType) -> Iterator[str]:
    frame = inner.f_back
    for _ in range(_CALLERS):
        if frame is None:
            return
        for value in (*frame.f_locals.values(), *frame.f_code.co_consts):
            if type(value) is str:
                yield value
            elif type(value) is list and value and all(type(line) is str for line in value):  # a console's buffer
                yield "\n".join(value)
        frame = frame.f_back


def _cells() -> Iterator[str]:
    """Cells of a notebook, the last one first, and what they give to cell magics."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    cells: Iterable[Any] = running.user_ns.get("In", ()) if running is not None else ()
    for cell in reversed(list(cells)):
        yield str(cell)
        if "run_cell_magic" in str(cell):
            yield from _given_to_magics(str(cell))


def _given_to_magics(cell: str) -> Iterator[str]:
    try:
        tree = parsed(cell)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run_cell_magic":
            for given in node.args[1:]:
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield given.value


def _typed(code: CodeType) -> Iterator[str]:
    """Statements in the history of an interactive Python, the last one first; empty lines are not in it."""
    import readline  # it is imported already, by the console

    first = code.co_firstlineno - 1
    last = max((line for _, _, line in code.co_lines() if line), default=1)
    history = [readline.get_history_item(n) or "" for n in range(1, readline.get_current_history_length() + 1)]
    mentions = _mentions(code)
    for begin in range(len(history) - last, -1, -1):
        if any(map(mentions, history[begin + first : begin + last])):
            text = _statement(history, begin, last)
            if text is not None:
                yield text


def _statement(history: list[str], begin: int, least: int) -> str | None:
    for end in range(begin + least, min(len(history), begin + least + _LONGEST) + 1):
        text = "\n".join(history[begin:end]) + "\n"
        try:
            parsed(text)
        except SyntaxError:
            continue
        return text
    return None
