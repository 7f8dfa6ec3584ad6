"""Type checkers of users: mypy and pyright accept the right calls in this folder, report the wrong ones, and know all names.

What they are told is true: the files that they accept are run, and each `assert_type` is looked at.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import subprocess
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.typing import JitOptions
from tools.pages import DOCS, blocks

HERE = Path(__file__).parent
PAGE = DOCS / "typing.md"
SOURCE = Path(jitml.__file__).parent.parent
RIGHT = ("jitted", "methods", "transforms", "untyped")
CHECKERS = ("mypy", "pyright")
_ERROR = re.compile(r"# error: ([\w-]+), ([\w-]+)$")


@dataclass(frozen=True)
class Report:
    """An error that a checker has found."""

    file: str
    line: int
    code: str
    message: str


def _mypy(files: list[Path], folder: Path) -> list[Report]:
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\n[mypy-jitml.*]\nfollow_imports = silent\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini"), "--output", "json", "--cache-dir"]
    environment = {**os.environ, "MYPYPATH": str(SOURCE)}
    done = subprocess.run(
        [*command, str(folder / "cache"), *map(str, files)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode in (0, 1) and not done.stderr, done.stderr + done.stdout
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [Report(Path(e["file"]).name, e["line"], e["code"], e["message"]) for e in found if e["severity"] == "error"]


def _pyright(files: list[Path], folder: Path) -> list[Report]:
    settings = {"include": list(map(str, files)), "extraPaths": [str(SOURCE)], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["basedpyright", "--pythonpath", sys.executable, "--outputjson", "--project", str(folder)]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    found = [e for e in json.loads(done.stdout)["generalDiagnostics"] if e["severity"] == "error"]
    return [Report(Path(e["file"]).name, e["range"]["start"]["line"] + 1, e["rule"], e["message"]) for e in found]


def _code_of_page() -> str:
    return "\n".join(line for block in blocks(PAGE.read_text()) if block.is_python for line in (*block.lines, ""))


def _public_names() -> list[str]:
    return [name for name in dir(np) if not name.startswith("_")]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Report]]:
    """What each checker says of all files: they are slow to start."""
    folder = tmp_path_factory.mktemp("typed")
    for module in ("numpy", "jitml.numpy"):
        lines = [f"import {module} as np", *(f"np.{name}" for name in _public_names()), ""]
        (folder / f"names_of_{module.replace('.', '_')}.py").write_text("\n".join(lines))
    (folder / "page.py").write_text(_code_of_page())
    files = [folder / "page.py", *(HERE / f"{name}.py" for name in (*RIGHT, "wrong")), *sorted(folder.glob("names_of_*.py"))]
    return {"mypy": _mypy(files, folder), "pyright": _pyright(files, folder)}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_right_calls_are_accepted(checker: str, reports: dict[str, list[Report]]) -> None:
    assert not [r for r in reports[checker] if r.file.removesuffix(".py") in RIGHT]


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_calls_are_reported(checker: str, reports: dict[str, list[Report]]) -> None:
    lines = enumerate((HERE / "wrong.py").read_text().splitlines(), 1)
    wanted = {n: found[1 + CHECKERS.index(checker)] for n, line in lines if (found := _ERROR.search(line))}
    wanted = {n: code for n, code in wanted.items() if code != "none"}
    assert len(wanted) > 50
    codes: dict[int, set[str]] = {}
    for report in reports[checker]:
        if report.file == "wrong.py":
            codes.setdefault(report.line, set()).add(report.code)
    assert {n: wanted[n] if wanted.get(n) in found else found for n, found in codes.items()} == wanted


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_page_tells_what_is_reported(checker: str, reports: dict[str, list[Report]]) -> None:
    lines = enumerate(_code_of_page().splitlines(), 1)
    assert {n for n, line in lines if "# error: " in line} == {r.line for r in reports[checker] if r.file == "page.py"}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_all_names_of_numpy_are_known(checker: str, reports: dict[str, list[Report]]) -> None:
    """A name that checkers do not know in NumPy they need not know here: stubs lag behind."""
    unknown: dict[str, set[str]] = {}
    for report in reports[checker]:
        if report.file.startswith("names_of_") and report.code in ("attr-defined", "reportAttributeAccessIssue"):
            unknown.setdefault(report.file, set()).add(_public_names()[report.line - 2])
    assert unknown.get("names_of_jitml_numpy.py", set()) <= unknown.get("names_of_numpy.py", set())


def _uses() -> list[Any]:
    spaces = [runpy.run_path(str(HERE / f"{name}.py")) for name in RIGHT]
    return [pytest.param(use, id=name) for space in spaces for name, use in space.items() if name.startswith("use_")]


@pytest.mark.loose
@pytest.mark.parametrize("use", _uses())
def test_what_checkers_are_told_is_true(use: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    def look(value: Any, kind: Any) -> Any:
        assert _is_one(value, kind), f"{value!r} is no {kind}"
        return value

    monkeypatch.setitem(use.__globals__, "assert_type", look)
    use()


def _is_one(value: Any, kind: Any) -> bool:
    """Whether a value is of a type."""
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if hasattr(origin, "__type_params__") and hasattr(origin, "__value__"):  # a `type` statement, as of NDArray
        return _is_one(value, origin.__value__[of])
    if kind is Any:
        return True
    if origin is tuple and ... not in of:
        return type(value) is tuple and len(value) == len(of) and all(map(_is_one, value, of))
    if origin is np.ndarray:
        (scalar,) = typing.get_args(of[1])
        return isinstance(value, np.ndarray) and (scalar is Any or value.dtype == scalar)
    if origin in (dict, list, tuple):
        items = value.items() if origin is dict else zip(value)
        return isinstance(value, origin) and all(map(_is_one, item, of) for item in items)
    return isinstance(value, dict if typing.is_typeddict(kind) else kind)


def test_a_lie_is_seen() -> None:
    assert _is_one((1.0, np.ones(2)), tuple[float, np.ndarray[Any, np.dtype[np.float64]]])
    assert not _is_one((1.0, np.ones(2)), tuple[float, np.ndarray[Any, np.dtype[np.float32]]])
    assert not _is_one((1.0, 2.0), tuple[float])
    assert not _is_one(np.ones(()), float)


def test_options_are_those_of_jit() -> None:
    parameters = inspect.signature(jitml.jit).parameters.values()
    hints = typing.get_type_hints(jitml.jit)
    assert typing.get_type_hints(JitOptions) == {p.name: hints[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_attributes_are_those_of_jitted_functions() -> None:
    function = jitml.jit(abs)
    for name, said in vars(jitml.typing.Jitted).items():
        if isinstance(said, (types.FunctionType, property)) and not name.startswith("__"):
            assert hasattr(type(function), name) or hasattr(function, name), name


def test_checkers_are_told_that_there_are_types() -> None:
    assert (SOURCE / "jitml" / "py.typed").is_file()
