"""Reproducers: a call that was answered wrongly, as a folder with a script that shows it anew.

What a call was given is kept, pickled, from the moment when its answer was found wrong; `reproduce` writes the latest one. The
script runs the function both ways. Functions are written by value, their code and what it loads, since those that are made in
functions have no name; classes are found in the files that they come from, which the script runs first.
"""

from __future__ import annotations

import builtins
import inspect
import io
import linecache
import marshal
import pickle
import platform
import runpy
import sys
from collections import deque
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CellType, FunctionType, ModuleType
from typing import Any

from jitml.diagnostics.code_owners import is_users
from jitml.diagnostics.tracebacks import entry
from jitml.records import dataclass
from jitml.trace.record.libraries import is_library
from jitml.trace.rewrite.code_names import names_and_texts
from jitml.trace.values.reachable import contents_of_cell

_MOST_KEPT = 4
_MOST_BYTES = 64 << 20  # of one call


@dataclass(frozen=True, slots=True)
class Wrong:
    """A call whose answer was wrong.

    Args:
        data: the pickled function and arguments; None where they cannot be pickled, and `why` says so.
        source: the function's text, for people.
    """

    name: str
    said: str
    data: bytes | None
    why: str
    source: str


_wrong: deque[Wrong] = deque(maxlen=_MOST_KEPT)


def remember(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], said: str) -> None:
    """Keep a call that was answered wrongly, with all as it was before it."""
    stream = io.BytesIO()
    pickler = _ByValue(stream)
    data, why = None, ""
    try:
        pickler.dump((function, args, kwargs))
        if stream.tell() <= _MOST_BYTES:
            data = pickle.dumps((stream.getvalue(), pickler.files, pickler.texts))
        else:
            why = f"they take more than {_MOST_BYTES >> 20} MiB"
    except Exception as error:  # whatever classes of the user's raise
        why = f"{type(error).__name__}: {error}"
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = ""
    _wrong.append(Wrong(name, said, data, why, source))


@entry
def reproduce(folder: str | Path = "jitml_reproducer") -> Path:
    """Write a script, for a bug report, that shows the latest wrong answer of this process again. Returns its path.

    Args:
        folder: gets `reproduce.py`, and `call.pickle` with the function and its arguments, which the script loads.

    Raises:
        LookupError: no answer was wrong.

    >>> reproduce("wrong_answer")  # doctest: +SKIP
    PosixPath('wrong_answer/reproduce.py')
    """
    if not _wrong:
        raise LookupError("no answer was wrong in this process")
    wrong, folder = _wrong[-1], Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if wrong.data is not None:
        (folder / "call.pickle").write_bytes(wrong.data)
    path = folder / "reproduce.py"
    path.write_text(_script(wrong))
    return path


def _script(wrong: Wrong) -> str:
    from importlib.metadata import version  # takes as long as half of jitml's own import

    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "llvmlite", "optree"))
    versions = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {packages}"
    heading = "\n".join(f"# {line}".rstrip() for line in (wrong.said, "", versions, "", *wrong.source.rstrip().splitlines()))
    if wrong.data is None:
        return f"{heading}\n#\n# The arguments could not be written: {wrong.why}\n"
    return f"{heading}\n{_RUN}"


_RUN = """
import pickle
import warnings
from pathlib import Path

import jitml
from jitml.verification.reproduce import load
from jitml.errors import WrongResultWarning

call = Path(__file__).with_name("call.pickle")
for verify in ("never", "always"):
    function, args, kwargs = load(*pickle.loads(call.read_bytes()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = jitml.jit(function, verify=verify)(*args, **kwargs)
    told = [str(w.message) for w in caught if w.category is WrongResultWarning]
    print("compiled:" if verify == "never" else "NumPy:   ", result, "arguments afterwards:", args, kwargs)
print("\\n".join(told) or "The answers agree.")
"""


class _ByValue(pickle.Pickler):
    """Writes the user's functions by value, and modules by name; notes the modules of the user's that have to be there."""

    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.files: dict[str, str] = {}  # of modules, by name
        self.texts: dict[str, list[str]] = {}  # of what was written in no file

    def reducer_override(self, x: Any) -> Any:
        if type(x) is ModuleType:
            return import_module, (x.__name__,)
        if type(x) is CellType:
            return empty_cell, (), contents_of_cell(x), None, None, fill_cell
        if type(x) is FunctionType and not is_library(x):
            self._note(x.__module__)
            file = x.__code__.co_filename
            if not Path(file).exists():
                self.texts[file] = linecache.getlines(file)
            return _parts_of(x)
        if isinstance(x, type) or type(x).__module__.startswith("jitml."):
            self._note(x.__module__)
        return NotImplemented

    def _note(self, name: str) -> None:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and is_users(file):
            self.files[name] = file


def _parts_of(x: FunctionType) -> Any:
    code = x.__code__
    space = {name: x.__globals__[name] for name in sorted(names_and_texts(code) & x.__globals__.keys())}
    rest = {key: value for key, value in vars(x).items() if key != "__wrapped__"}
    state = (space, x.__defaults__, x.__kwdefaults__, rest)
    return (
        make_function,
        (marshal.dumps(code), x.__name__, x.__qualname__, x.__module__, x.__closure__),
        state,
        None,
        None,
        fill_function,
    )


def make_function(code: bytes, name: str, qualname: str, module: str, closure: Any) -> FunctionType:
    """A function of this code, which has no globals yet: they may hold it."""
    function = FunctionType(marshal.loads(code), {"__name__": module, "__builtins__": builtins}, name, None, closure)
    function.__qualname__ = qualname
    return function


def fill_function(function: FunctionType, state: tuple[dict[str, Any], Any, Any, dict[str, Any]]) -> None:
    """Give a function its globals, defaults and attributes."""
    space, function.__defaults__, function.__kwdefaults__, rest = state
    function.__globals__.update(space)
    vars(function).update(rest)


def empty_cell() -> CellType:
    return CellType()


def fill_cell(cell: CellType, content: tuple[Any, ...]) -> None:
    if content:
        cell.cell_contents = content[0]


def load(
    data: bytes, files: dict[str, str], texts: dict[str, list[str]]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function and the arguments of a call, with the modules that they come from.

    What was the program itself is run under another name, so that what it guards by `__name__ == "__main__"` is not done.
    """
    for file, lines in texts.items():
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    for name, file in files.items():
        if name == "__main__":
            vars(sys.modules["__main__"]).update(runpy.run_path(file, run_name="__reproduced__"))
        elif name not in sys.modules:
            specification = spec_from_file_location(name, file)
            assert specification is not None and specification.loader is not None
            sys.modules[name] = module_from_spec(specification)
            specification.loader.exec_module(sys.modules[name])
    function, args, kwargs = pickle.loads(data)
    return function, args, kwargs


__all__ = ["remember", "reproduce"]
