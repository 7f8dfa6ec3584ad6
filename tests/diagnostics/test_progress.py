"""Progress of long compilations: said on terminals and in notebooks, gone afterwards, and nowhere else."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG
from jitml.diagnostics import progress

pytestmark = pytest.mark.loose


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def long(x: Any) -> Any:
    return np.sin(x) + 1


def slow_to_trace(x: Any) -> Any:
    time.sleep(0.3)
    return x


def test_a_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "DELAY", 0.01)
    with progress.in_sight(long):
        time.sleep(0.2)
    shown = screen.getvalue()
    first = long.__code__.co_firstlineno
    assert shown.startswith(f"\rjitml: compiling long ({__file__}:{first}), 0 s")
    *_, blank, end = shown.split("\r")
    assert blank and not blank.strip() and end == ""  # overwritten, and the cursor is at the beginning
    assert not [t for t in threading.enumerate() if t.name == "jitml-progress"]


def test_nothing_is_said_of_what_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.in_sight(long):
        pass
    assert screen.getvalue() == ""


@pytest.mark.parametrize("setting, value", [("progress", False), ("log", frozenset({"compile"}))])
def test_switched_off(setting: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    assert isinstance(progress.display(), progress.Terminal)
    before = getattr(CONFIG, setting)
    object.__setattr__(CONFIG, setting, value)
    try:
        assert progress.display() is None
    finally:
        object.__setattr__(CONFIG, setting, before)


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_no_terminal(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert progress.display() is None


def test_errors_pass_and_clear_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "DELAY", 0.01)
    with pytest.raises(KeyError), progress.in_sight(long):
        time.sleep(0.1)
        raise KeyError("x")
    assert screen.getvalue().endswith("\r")
    assert progress._showing.acquire(blocking=False)
    progress._showing.release()


def test_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "DELAY", 0.01)
    with progress.in_sight(long):
        time.sleep(0.1)
        with progress.in_sight(slow_to_trace):
            time.sleep(0.1)
    assert "compiling long" in screen.getvalue() and "slow_to_trace" not in screen.getvalue()


class Handle:
    def __init__(self, shown: list[Any]) -> None:
        self._shown = shown

    def update(self, data: Any, raw: bool) -> None:
        self._shown.append(data)


def test_a_bar_in_notebooks() -> None:
    shown: list[Any] = []

    def display(data: Any, *, raw: bool, display_id: bool) -> Handle:
        shown.append(data)
        return Handle(shown)

    bar = progress.NotebookBar(display)
    bar.show("jitml: compiling <lambda>, 1 s")
    bar.show("jitml: compiling <lambda>, 2 s")
    bar.clear()
    assert "<progress>" in shown[0]["text/html"] and "&lt;lambda&gt;, 1 s" in shown[0]["text/html"]
    assert "2 s" in shown[1]["text/plain"] and shown[2] == {"text/html": "", "text/plain": ""}


PROGRAM = """
import numpy as np
import jitml
from jitml.diagnostics import progress
progress.DELAY = 0.0

def f(x):
    for i in range(40):
        x = np.sin(x) * np.cos(x) + 0.5
    return x.sum()

{call}
print("done")
"""


@pytest.mark.parametrize("call", ["jitml.jit(f, strict=True)(np.ones(9))", "jitml.grad(f)(np.ones(9))"])
def test_a_real_terminal(call: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("{call}", call))
    leader, follower = pty.openpty()
    environment = {**os.environ, "JITML_CACHE_BYTES": "0"}
    done = subprocess.run(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=follower, env=environment, check=True, timeout=300
    )
    os.close(follower)
    told = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert done.stdout == b"done\n"
    assert f"jitml: compiling f ({program}:" in told and told.endswith("\r")


def test_a_real_notebook(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    from tools.jupyter import in_kernel

    cells = [
        "import time, numpy as np, jitml\nfrom jitml.diagnostics import progress\nprogress.DELAY = 0.0",
        "with progress.in_sight(np.sin):\n    time.sleep(0.3)",
    ]
    told = in_kernel(cells, str(tmp_path))[1]
    assert "<progress></progress> <code>jitml: compiling sin, 0 s</code>" in told


def test_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    monkeypatch.setattr(progress, "DELAY", 0.0)
    x = np.linspace(0.0, 1.0, 9)
    np.testing.assert_allclose(jitml.jit(long)(x), long(x), rtol=1e-12)
