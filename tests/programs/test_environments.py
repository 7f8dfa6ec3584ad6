"""Where people write code: functions of a notebook, a console, `python -c`, standard input and other texts are compiled."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from programs.environments import IN_ONE, PROGRAM
from tools.jupyter import in_kernel

TOLD = f"{PROGRAM}\nprint(outcome)\n"


def ran(*arguments: str, **given: Any) -> tuple[str, str]:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120, **given)
    return done.stdout, done.stderr


def test_within_a_process() -> None:
    assert ran(str(Path(__file__).with_name("environments.py"))) == ("", "")


def test_a_command() -> None:
    assert ran("-W", "ignore", "-Bc", TOLD.replace("\\d", ""), "an argument") == ("True\n", "")


def test_standard_input_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(TOLD + "import sys\nprint(repr(sys.stdin.read()))\n")
    with file.open() as program:
        assert ran("-W", "ignore", stdin=program) == ("True\n''\n", "")


def test_standard_input_that_is_a_pipe_runs_as_python() -> None:
    """Python keeps nothing of what it reads there."""
    out, errors = ran("-W", "ignore::SyntaxWarning", "-W", "ignore::DeprecationWarning", "-", input="""
import numpy as np, jitml
f = jitml.jit(lambda n: np.random.rand(n) * 2)
print((f(3) != f(3)).all())
g = jitml.jit(lambda x: np.exp(x) * 2)
print(g(0.0), len(g.variants))
""")  # fmt: skip
    assert out.splitlines() == ["True", "2.0 0"]
    told = (
        "<lambda> runs as plain Python from now on: the source of <lambda> was not found, so that it cannot be traced: "
        "it was typed, or piped, into Python, which does not keep it"
    )
    assert re.findall(r"UncompiledWarning: (.*)", errors) == [told, told]


def test_a_terminal() -> None:
    """The console of Python, with its history."""
    lines: list[str] = []
    for line in IN_ONE.replace("\\d", "").splitlines():
        if not line.startswith((" ", "def decorated(")) and lines and lines[-1].startswith((" ", "def ")):
            lines.append("")
        lines.append(line)
    said = typed([*lines, "print(100 * outcome + len(decorated.variants))", "exit()"])
    assert "101" in said.split() and "Warning" not in said, said


def typed(lines: list[str]) -> str:
    """What an interactive Python says to lines that are typed, each after its prompt."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHON_BASIC_REPL": "1", "TERM": "dumb"}
    process = subprocess.Popen([sys.executable, "-q"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said, limit = b"", time.monotonic() + 60
    for line in lines:
        while not said.endswith((b">>> ", b"... ")) and time.monotonic() < limit:
            if select.select([ours], [], [], 1)[0]:
                said += os.read(ours, 4096)
        os.write(ours, line.encode() + b"\n")
        said += b"\n"
    process.wait(timeout=60)
    said += os.read(ours, 4096)
    os.close(ours)
    return said.decode()


CELLS = {
    "the first cell": PROGRAM + "\nprint(outcome)",
    "timed": "%%time\n" + PROGRAM + "\nprint(outcome)",
    "what a timed cell has defined": "print((jitml.jit(helper)(3) != jitml.jit(helper)(3)))",
    "timed in a function": "%%timeit -n1 -r1\n" + PROGRAM + "\nprint(outcome)",
    "waiting": "import asyncio\nawait asyncio.sleep(0)\n" + PROGRAM + "\nawait asyncio.sleep(0)\nprint(outcome)",
    "a shell's lines": "!true\n%pwd\nlisted = !echo\n" + PROGRAM + "\nprint(outcome)",
    "captured": "%%capture said\n" + PROGRAM + "\nprint(outcome)",
    "what was captured": "print(said.stdout)",
    "a file": "%run program.py",
    "profiled": "%prun -q -s time f = jitml.jit(lambda n: np.random.rand(n) * 2)",
    "what was profiled": "print((f(3) != f(3)).all())",
    "the last expression": "jitml.jit(lambda x: x * np.random.rand())(1.0) != 0\nprint(outcome)",
    "private names": "class A:\n    __k = 2.0\n    @jitml.jit\n    def f(self, x): return self.__k * x\nprint(A().f(1.0) == 2.0)",
}


def test_a_notebook(tmp_path: Path) -> None:
    """Each cell, in a kernel of Jupyter's, prints True, and nothing is warned of."""
    pytest.importorskip("ipykernel")
    (tmp_path / "program.py").write_text(TOLD.replace("\\d", ""))  # of which Python 3.12 itself warns
    cells = {name: cell.replace("\\d", "") for name, cell in CELLS.items()}
    outputs = in_kernel(list(cells.values()), str(tmp_path))
    wrong = {name: said for name, said in zip(cells, outputs) if "Warning" in said or "Error" in said}
    silent = [name for name, said in zip(cells, outputs) if "True" not in said and name not in ("captured", "profiled")]
    assert not wrong and not silent
