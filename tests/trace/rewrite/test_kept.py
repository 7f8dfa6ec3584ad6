"""A later process takes rewritten code from the disk: no source is read; what it does is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest

from jitml.config import Config
from jitml.disk_cache import DiskCache
from jitml.trace.rewrite import code_cache

PROGRAM = """
import sys
import numpy as np
import jitml

def helper(z, k): return [z * n for n in range(k)]

class Model:
    __rate = 0.5
    def step(self, x):
        total = 0.0
        for row in helper(x, 3):
            total = total + row.sum() * self.__rate
        return total

def divided(x, n):
    with np.errstate(all="ignore"):
        return x / n

def nested(x):
    scale = 2.0
    def inner(y):
        return y * scale
    return inner(x) + (lambda z: z - scale)(x)

x, found = np.arange(1.0, 50.0), []
model = Model()
for f, more in ((model.step, ()), (divided, (0.0,)), (nested, ())):
    jitted = jitml.jit(f)
    for x in (x, x[::2]):
        with np.errstate(all="raise"):
            found.append(np.asarray(jitted(x, *more)).tobytes().hex())
print([name for name in ("function", "source", "control_flow") if f"jitml.trace.rewrite.{name}" in sys.modules])
print(found)
"""
REWRITTEN = "['function', 'source', 'control_flow']"


def run(script: Path, folder: Path, *options: str, **variables: str) -> tuple[str, str]:
    """What has been imported of what rewrites, and what has been found."""
    usual = {"JITML_CACHE_DIR": str(folder), "JITML_CHECK": "", "JITML_STRICT": "1", "JITML_TRIAL": "0", "JITML_VERIFY": "always"}
    done = subprocess.run(
        [sys.executable, *options, script], capture_output=True, text=True, check=True, env=os.environ | usual | variables
    )
    assert not done.stderr
    imported, found = done.stdout.splitlines()
    return imported, found


def kept_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith("rewritten-"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_a_second_process_rewrites_nothing(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    imported, found = run(script, folder)
    assert imported == REWRITTEN and len(kept_files(folder)) >= 4
    assert run(script, folder) == ("[]", found)
    assert run(script, folder, JITML_CHECK="1")[0] == REWRITTEN
    assert run(script, folder, "-O")[0] == REWRITTEN


def test_damaged_code_is_rewritten(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    _, found = run(script, folder)
    for path in kept_files(folder):
        path.write_bytes(path.read_bytes()[:-9] + b"damaged!!")
    assert run(script, folder) == (REWRITTEN, found)
    assert run(script, folder) == ("[]", found)


def test_a_function_that_has_changed_is_rewritten(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    _, found = run(script, folder)
    script.write_text(PROGRAM.replace("scale = 2.0", "scale = 3.0"))
    imported, other = run(script, folder)
    assert imported == REWRITTEN and other != found
    script.write_text(PROGRAM.replace("x / n", "(x / n)"))  # the same code, at other columns
    assert run(script, folder) == (REWRITTEN, found)


def code_of(text: str, file: str = "/somewhere/a.py") -> CodeType:
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec"), scope)
    function: FunctionType = scope["f"]
    return function.__code__


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = DiskCache(tmp_path, 1 << 20)
    monkeypatch.setattr(code_cache, "CONFIG", Config())
    monkeypatch.setattr(code_cache, "disk_cache", lambda: cache)
    return tmp_path


OTHERS: dict[str, Callable[[], CodeType]] = {
    "a constant": lambda: code_of("def f(x):\n    return x + 2.0\n"),
    "the sign of zero": lambda: code_of("def f(x):\n    return x + -0.0\n"),
    "a line": lambda: code_of("\ndef f(x):\n    return x + 1.0\n"),
    "a column": lambda: code_of("def f(x):\n    return (x + 1.0)\n"),
    "a name": lambda: code_of("def f(y):\n    return y + 1.0\n"),
    "the file": lambda: code_of("def f(x):\n    return x + 1.0\n", "/somewhere/b.py"),
    "the type of a constant": lambda: code_of("def f(x):\n    return x + 1\n"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("what", OTHERS)
def test_all_that_is_in_the_code_counts(what: str) -> None:
    first = code_cache.key_of(code_of("def f(x):\n    return x + 1.0\n"))
    assert first is not None
    assert code_cache.key_of(code_of("def f(x):\n    return x + 1.0\n")) == first != code_cache.key_of(OTHERS[what]())


@pytest.mark.usefixtures("folder")
def test_what_stands_in_no_file_is_not_kept() -> None:
    for file in ("<string>", "<stdin>", "a.py"):
        assert code_cache.key_of(code_of("def f(x):\n    return x + 1.0\n", file)) is None


@pytest.mark.usefixtures("folder")
def test_nothing_is_kept_by_files_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    code_cache._made_by.cache_clear()
    monkeypatch.setattr(code_cache, "IMPORTED", 0)
    assert code_cache.key_of(code_of("def f(x):\n    return x + 1.0\n")) is None
    code_cache._made_by.cache_clear()


def test_what_is_kept_comes_back(folder: Path) -> None:
    code = code_of("def f(x):\n    return {1, 2}, x + np.pi\n")
    key = code_cache.key_of(code)
    assert code_cache.load(key) is None and not kept_files(folder)
    code_cache.keep(key, code)
    assert code_cache.load(key) == code and len(kept_files(folder)) == 1
    code_cache.keep(None, code)
    assert code_cache.load(None) is None
    assert FunctionType(code_cache.load(key), {"np": np})(1.0)[1] == 1.0 + np.pi  # type: ignore[arg-type]  # as before
