"""Source lookup: the text that a function came from, and no other."""

from __future__ import annotations

import ast
import importlib
import os
import sys
import time
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from jitml.trace.rewrite import source
from jitml.trace.rewrite.source import Found, Missing, find
from jitml.trace.rewrite.source_texts import keep_texts


def asserting(x: int) -> int:
    assert x > 0, f"{x}"
    return x + 1


def test_asserts_that_pytest_has_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_unchanged", lambda code: False)
    found = find(asserting)  # type: ignore[arg-type]  # a function
    assert isinstance(found, Found) and found.node.lineno == asserting.__code__.co_firstlineno


def test_a_module_that_has_been_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old functions keep their text, the new ones have the new one; until it is imported anew, the old text is known."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "edited_module.py"
    file.write_text("def f(x): return x + 1\ndef g(x): return x + 2\ndef unread(x): return x + 3\n")
    module: Any = importlib.import_module("edited_module")
    f, g, unread = module.f, module.g, module.unread
    assert isinstance(find(f), Found)
    file.write_text("# edited\n\ndef f(x): return x + 5\n")
    os.utime(file, (later := time.time() + 10, later))
    assert isinstance(find(g), Found)
    importlib.reload(module)
    new = find(module.f)
    assert isinstance(new, Found) and "x + 5" in new.text
    assert isinstance(find(g), Found) and isinstance(find(unread), Found)


def test_texts_that_do_not_compile_to_the_function() -> None:
    space: dict[str, Any] = {}
    exec("\n\ndef f(x): return x + 1", space)
    function: FunctionType = space["f"]
    keep_texts(["def f(x): return x + 1", "\n\ndef f(x): return x + 2"])
    keep_texts(["\n\ndef f(x): return x + 1 1", "\n\ndef f(y): return y + 1"])
    assert find(function) == Missing("it was made by exec from a text, <string>, that nobody keeps")
    keep_texts(["import os\n\ndef f(x): return x + 1\n"])
    assert isinstance(find(function), Found)


def test_lambdas_of_constants() -> None:
    some: list[Any] = [lambda: 8.0, lambda: -0.0, lambda: 0.0, lambda x: (1, 2), lambda x: 2 * 3, lambda x: None, lambda: "a"]
    values = [8.0, -0.0, 0.0, (1, 2), 6, None, "a"]
    for function, value in zip(some, values):
        found = find(function)
        assert isinstance(found, Found)
        assert repr(eval(compile(ast.Expression(found.node.body), "<body>", "eval"))) == repr(value)  # type: ignore[arg-type]
