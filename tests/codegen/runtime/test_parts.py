"""Long programs are handed to LLVM part by part, while the rest is still being written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.ir.conventions import EFFORTS, ModulePart
from jitml.codegen.llvm.module import emit_program
from jitml.codegen.llvm.runtime import executable, jit
from jitml.codegen.llvm.runtime.cpu import host_cpu


def long(x: np.ndarray[Any, Any], order: np.ndarray[Any, Any]) -> Any:
    """Kernels that differ, with calls between them: of BLAS, of sorts that run in threads, of a check, of Python."""
    for k in range(12):
        x = np.sort(np.sin(x / (k + 1.5)) + np.tanh(x.T @ x / 120.0)[:, ::-1] * (k + 2.0), axis=k % 2)
        x = x[order] - np.nanmean(x)
    return x


@pytest.fixture
def arguments() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((120, 120)), rng.permutation(120)


def test_a_program_of_several_parts_runs(arguments: Any) -> None:
    lowered = jitml.jit(long).lower(*arguments)
    assert len(lowered.module.parts) > len(EFFORTS)
    np.testing.assert_allclose(jitml.jit(long)(*arguments), long(*arguments), rtol=1e-8)


def test_parts_are_handed_on_before_the_last_one_is_written(arguments: Any) -> None:
    handed: list[ModulePart] = []
    module = emit_program(jitml.jit(long).lower(*arguments).program, cpu=host_cpu(), finished=handed.append)
    assert 0 < len(handed) < len(module.parts)
    assert handed == list(module.parts[: len(handed)])


@pytest.mark.parametrize("has_scipy", [True, False])
def test_programs_compile_while_the_interpreter_ends(has_scipy: bool) -> None:
    """It starts no threads any more, and SciPy 1.18 can no more be imported: then plain Python answers, and that is said."""
    program = "import scipy.linalg.cython_blas; " * has_scipy
    program += "import atexit, test_parts as t, numpy as np; atexit.register(lambda: print(jitml.jit(t.long)(x, o).shape)); "
    program += "import jitml; x, o = np.ones((120, 120)), np.arange(120)"
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=Path(__file__).parent)
    assert ran.stdout == "(120, 120)\n", ran.stderr
    assert not ran.stderr or (not has_scipy and "while Python ends" in ran.stderr)


def test_an_error_in_a_part_is_the_compilers(arguments: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread's error arrives where the program is compiled, and no thread stays behind."""
    threads: list[Any] = []

    class Spoilt(jit.Generation):
        def begin(self, part: ModulePart) -> None:
            threads.append(self._thread)
            super().begin(part._replace(text=part.text.replace("ret ", "return ")))

    monkeypatch.setattr(executable.jit, "Generation", Spoilt)
    lowered = jitml.jit(long).lower(*arguments)
    with pytest.raises(Exception, match="expected instruction opcode"):
        lowered.compile()
    assert threads and not any(thread.is_alive() for thread in threads)
