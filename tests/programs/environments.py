"""Where people write code: each way to run a text inside one process, with a program that says whether its functions compile.

`python environments.py` runs them all and prints those in which they do not.
"""

from __future__ import annotations

import code
import doctest
import importlib
import linecache
import os
import pdb
import runpy
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

# Each statement stands alone, as a console wants it. The last name says whether all was compiled.
PROGRAM = '''
import numpy as np, jitml, random

def helper(n):
    s = 0.0
    for i in range(n):
        s = s + np.random.rand()
    return s

@jitml.jit
def decorated(x, n=50):
    """Read \\d times."""
    return x * helper(n) + np.random.rand()

class Model:
    def __init__(self, w):
        self.__w = w
    @jitml.jit
    def fit(self, x):
        for i in range(50):
            x = x + self.__w * np.random.rand()
        return x

late = jitml.jit(lambda x: np.exp(x) * np.random.rand())

def named(x): return jitml.grad(lambda y: y * y)(x)

def verdict():
    model = Model(2.0)
    results = [(f(1.0), f(1.0)) for f in (decorated, late, model.fit)]
    compiled = [len(f.lower(*given).graph.nodes) < 30 for f, given in ((decorated, (1.0,)), (Model.fit, (model, 1.0)))]
    return bool(all(a != b for a, b in results) and all(compiled) and named(2.0) == 4.0)

outcome = verdict()
'''
IN_ONE = "\n".join(line for line in PROGRAM.splitlines() if line.strip())


def exec_with_lines() -> Any:
    """Text that is registered, as pdb, attrs and notebooks do."""
    linecache.cache["<cell>"] = (len(PROGRAM), None, PROGRAM.splitlines(True), "<cell>")
    space: dict[str, Any] = {"__name__": "cell"}
    exec(compile(PROGRAM, "<cell>", "exec"), space)
    return space["outcome"]


def exec_of_a_text() -> Any:
    """Text that only the frame around has, while it runs."""
    space: dict[str, Any] = {"__name__": "text"}
    exec(PROGRAM, space)
    return space["outcome"]


def a_console() -> Any:
    """A console is given whole statements: the helper's text is gone when its caller is run, so all is one statement."""
    console = code.InteractiveConsole({"__name__": "console"})
    for line in ("if True:", *(f"    {line}" for line in IN_ONE.splitlines()), ""):
        console.push(line)
    return console.locals["outcome"]  # type: ignore[index]  # a dict


def a_console_at_once() -> Any:
    interpreter = code.InteractiveInterpreter({"__name__": "console"})
    interpreter.runsource(PROGRAM, "<input>", "exec")
    return interpreter.locals["outcome"]  # type: ignore[index]  # a dict


def a_zipped_package() -> Any:
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", "")
        archive.writestr("zipped/inside.py", PROGRAM)
    sys.path.insert(0, "all.zip")
    return importlib.import_module("zipped.inside").outcome


def a_zipped_application() -> Any:
    with zipfile.ZipFile("app.pyz", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    return runpy.run_path("app.pyz", run_name="__main__")["outcome"]


def run_by_path() -> Any:
    Path("script.py").write_text(PROGRAM)
    return runpy.run_path("script.py")["outcome"]


def a_module_that_is_run() -> Any:
    Path("runnable.py").write_text(PROGRAM)
    sys.path.insert(0, os.getcwd())
    return runpy.run_module("runnable", run_name="__main__")["outcome"]


def a_doctest() -> Any:
    examples = [("... " if line.startswith((" ", "def decorated(")) else ">>> ") + line for line in IN_ONE.splitlines()]
    text = "\n".join(examples)
    test = doctest.DocTestParser().get_doctest(text + "\n>>> outcome\nTrue\n", {}, "told", None, 0)
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=lambda said: print(said, file=sys.stderr), clear_globs=False)
    return not failed and test.globs["outcome"]


def traced_by_a_tool() -> Any:
    """Coverage and debuggers trace by `sys.settrace`."""
    Path("covered.py").write_text(PROGRAM)
    lines: set[int] = set()

    def tool(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename.endswith("covered.py"):
            lines.add(frame.f_lineno)
        return tool

    sys.settrace(tool)
    try:
        return runpy.run_path("covered.py")["outcome"] and len(lines) > 20
    finally:
        sys.settrace(None)


def profiled() -> Any:
    sys.setprofile(lambda frame, event, arg: None)
    try:
        return exec_with_lines()
    finally:
        sys.setprofile(None)


def in_a_debugger() -> Any:
    Path("debugged.py").write_text(PROGRAM + "\nassert outcome\n")
    debugger = pdb.Pdb(stdin=StringIO("continue\n" * 3), stdout=StringIO(), nosigint=True, readrc=False)
    space: dict[str, Any] = {"__name__": "debugged"}
    debugger.run(compile(PROGRAM, os.path.abspath("debugged.py"), "exec"), space)
    return space["outcome"]


def warnings_are_errors() -> Any:
    """What Python says of `\\d` it has said; here nobody hears it again."""
    Path("escaping.py").write_text(PROGRAM)
    code = compile(PROGRAM, os.path.abspath("escaping.py"), "exec")
    before = warnings.filters
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        space: dict[str, Any] = {"__name__": "escaping"}
        exec(code, space)
    return space["outcome"] and warnings.filters is before


WAYS: tuple[Callable[[], Any], ...] = (
    exec_with_lines, exec_of_a_text, a_console, a_console_at_once, a_zipped_package, a_zipped_application, run_by_path,
    a_module_that_is_run, a_doctest, traced_by_a_tool, profiled, in_a_debugger, warnings_are_errors,
)  # fmt: skip


def main() -> None:
    os.chdir(tempfile.mkdtemp())
    for way in WAYS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", message=".*plain Python.*")
            try:
                outcome = way()
            except Exception as error:
                outcome = repr(error)
        if outcome is not True or caught:
            print(way.__name__, outcome, *(str(w.message) for w in caught))


if __name__ == "__main__":
    main()
