"""A wrong answer can be shown again, by a script in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.verification.test_verification import Planted, one_more

import jitml
from jitml.errors import WrongResultWarning

SCALE = 3.0


class Model:
    """Found by the script in this very file."""

    def __init__(self) -> None:
        self.w = np.arange(3.0)


def helper(x: Any, shift: Any) -> Any:
    return x * SCALE + shift


def test_what_is_written_shows_both_answers(tmp_path: Path) -> None:
    shift = np.ones(3)

    def f(model: Model, x: Any) -> Any:
        model.w = helper(model.w, shift)
        return model.w + x

    with pytest.warns(WrongResultWarning, match=r"`jitml.reproduce\(\)`"):
        Planted(f, one_more)(Model(), 2.0)
    script = jitml.reproduce(tmp_path / "wrong")
    text = script.read_text()
    assert "# f: the result[0] is np.float64(4.0), NumPy gives np.float64(3.0)" in text.replace(
        "test_what_is_written_shows_both_answers.<locals>.", ""
    )
    assert "return model.w + x" in text
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    compiled, plain, told = ran.stdout.splitlines()
    assert compiled.startswith("compiled: [3. 6. 9.] arguments afterwards: (<")
    assert plain.startswith("NumPy:    [3. 6. 9.]")
    assert told == "The answers agree."  # for the fault was planted here


def test_arguments_that_cannot_be_written(tmp_path: Path) -> None:
    class Held:
        def __init__(self) -> None:
            self.x = np.ones(2)

        def __reduce__(self) -> Any:
            raise TypeError("not this one")

    with pytest.warns(WrongResultWarning):
        Planted(lambda held: held.x * 2, one_more)(Held())
    assert "# The arguments could not be written: TypeError: not this one" in jitml.reproduce(tmp_path).read_text()
