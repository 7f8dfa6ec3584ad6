"""The log: one line for each compilation, recompilation, refusal and look at the disk."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitml
from jitml.disk_cache import DiskCache
from sections.forced_breaks import no_trials

pytestmark = pytest.mark.loose


def twice(x: object, n: int = 2) -> object:
    return np.sin(x) * n


def lines(caplog: pytest.LogCaptureFixture, kind: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == f"jitml.{kind}"]


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "jitml")
    return caplog


def test_a_compilation_says_what_where_for_what_how_long_and_why(heard: pytest.LogCaptureFixture) -> None:
    jitted = jitml.jit(twice)
    with no_trials():
        jitted(np.ones((2, 3)))
        jitted(np.ones((2, 3)))
        jitted(np.ones((2, 3), np.float32), n=3)
        jitted(np.ones((2, 3), np.float32))
    place = re.escape(f"twice ({__file__}:{twice.__code__.co_firstlineno})")
    (first,) = lines(heard, "compile")
    assert re.fullmatch(rf"compiled {place} for \(float64\[2, 3\]\) in \d+\.\d+ s: first call", first)
    second, third = lines(heard, "recompile")
    assert re.fullmatch(
        rf"compiled {place} for \(float32\[2, 3\], n=int\) in .* s, its program 2: arguments of another structure", second
    )
    assert third.endswith("its program 3: not so any more: x is float64[2, 3]")


def test_a_break_says_cause_and_line(heard: pytest.LogCaptureFixture) -> None:
    def run(x: np.ndarray, values: list[float]) -> np.ndarray:
        y = np.sin(x) + np.cos(x)
        values.sort(key=lambda v: -v)
        input_ = open(os.devnull)  # noqa: SIM115  # a statement that breaks
        input_.close()
        return y * 2 + x

    jitted = jitml.jit(run)
    with no_trials():
        jitted(np.ones(3), [1.0])
    found = lines(heard, "refuse")
    opened = run.__code__.co_firstlineno + 3
    assert any(f"{__file__}:" in line and f": line {opened} runs as Python: io.open()" in line for line in found), found
    assert all(re.search(r"\[(JM\d+ )?\w+\]", line) for line in found)


def test_a_strict_refusal_is_told(heard: pytest.LogCaptureFixture) -> None:
    with pytest.raises(jitml.UnsupportedError):
        jitml.jit(lambda x: x + open(os.devnull).fileno(), strict=True)(np.ones(2))  # noqa: SIM115
    (line,) = lines(heard, "refuse")
    assert "not compiled: io.open()" in line


def test_transforms_outside_jit(heard: pytest.LogCaptureFixture) -> None:
    slope = jitml.grad(lambda x: (x * x).sum())
    slope(np.ones(3))
    slope(np.ones(3))
    (line,) = lines(heard, "compile")
    assert line.startswith("traced value_and_grad of ") or line.startswith("traced grad of ")
    jitml.grad(lambda x: x * len(open(os.devnull).read()) + x)(1.0)  # noqa: SIM115
    assert any("runs as Python, on a tape: io.open()" in line for line in lines(heard, "refuse"))


def test_the_disk_cache(heard: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1000)
    key = cache.key("object", ["a"])
    cache.get(key)
    cache.put(key, b"code")
    cache.get(key)
    miss, kept, hit = lines(heard, "cache")
    assert (miss, hit) == (f"miss: {key}", f"hit: {key}, 4 bytes")
    assert kept.startswith(f"kept: {key}, ") and kept.endswith(str(tmp_path))


PROGRAM = """
import logging, numpy as np, jitml
{setup}
f = jitml.jit(lambda x: np.sin(x) + 1, strict=True)
f(np.ones(3))
f(np.ones(3, "f4"))
"""


def stderr(setup: str, **variables: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JITML_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(setup=setup)],
        capture_output=True,
        text=True,
        check=True,
        env={**environment, "JITML_VERIFY": "never", "JITML_TRIAL": "0", **variables},
    )
    return [re.split(r" |: ", line)[0] for line in done.stderr.splitlines()]


def test_nothing_is_told_unless_it_is_asked_for() -> None:
    assert stderr("") == []


def test_the_variable_attaches_a_handler() -> None:
    assert stderr("", JITML_LOG="compile") == ["jitml.compile"]
    assert stderr("", JITML_LOG="compile,recompile") == ["jitml.compile", "jitml.recompile"]


def test_a_programs_own_handlers_get_each_line_once() -> None:
    mine = "logging.basicConfig(format='mine %(message)s')"
    assert stderr(mine) == []
    assert stderr(mine, JITML_LOG="compile,recompile") == ["mine", "mine"]
    assert stderr(f"{mine}; logging.getLogger('jitml.recompile').setLevel('INFO')") == ["mine"]
