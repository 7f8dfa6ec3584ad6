"""Object code is kept on disk by all that it depends on, and a later process makes none of what an earlier one has made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jitml
from jitml.codegen.llvm.runtime import jit
from jitml.codegen.llvm.runtime.cpu import host_cpu, llvm_binding
from jitml.config import Config
from jitml.disk_cache import DiskCache

TEXT = "define i64 @one() { ret i64 1 }\n"
PROGRAM = """
import sys
import numpy as np
import jitml
from jitml.codegen.llvm.runtime import jit
made = []
real = jit.generate
jit.generate = lambda *args, **options: made.append(1) or real(*args, **options)
@jitml.jit
def f(x, y):
    x[1:] += np.sqrt(y[1:]) * x[:-1]
    return np.sort(x), x @ y, x.sum()
x, y = np.arange(50.0), np.arange(50.0)
results = f(x, y)
print(len(made), [r.tobytes().hex() for r in (*results, x)])
"""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    """A folder of its own."""
    cache = DiskCache(tmp_path, 1 << 20)
    monkeypatch.setattr(jit, "disk_cache", lambda: cache)
    return cache


@pytest.fixture
def kept(empty: DiskCache, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    """The same, for a process that does not check each stage."""
    monkeypatch.setattr(jit, "CONFIG", Config())
    return empty


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The levels at which code has been generated."""
    levels: list[int] = []
    generate = jit.generate

    def counted(module: object, cpu: object, *, level: int) -> bytes:
        levels.append(level)
        return generate(module, cpu, level=level)  # type: ignore[arg-type]

    monkeypatch.setattr(jit, "generate", counted)
    return levels


def test_code_is_made_once(kept: DiskCache, made: list[int]) -> None:
    first = jit.object_code(TEXT, host_cpu())
    assert jit.object_code(TEXT, host_cpu()) == first and made == [1]
    (path,) = Path(str(kept.folder)).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert jit.object_code(TEXT, host_cpu()) == first and made == [1, 1]


OTHERS: list[Callable[[], object]] = [
    lambda: jit.object_code(TEXT + " ", host_cpu()),
    lambda: jit.object_code(TEXT, host_cpu(), level=0),
    lambda: jit.object_code(TEXT, host_cpu(), effort="optimizer"),
    lambda: jit.object_code(TEXT, replace(host_cpu(), features="+sse2" if host_cpu().is_x86 else "+neon")),
    lambda: jit.object_code(TEXT, replace(host_cpu(), cpu="generic")),
]


@pytest.mark.parametrize("other", OTHERS)
def test_other_code_is_made_for_another_text_effort_or_processor(
    other: Callable[[], object], kept: DiskCache, made: list[int]
) -> None:
    jit.object_code(TEXT, host_cpu())
    other()
    assert len(made) == 2


@pytest.mark.parametrize("what", ["version of LLVM", "way to ask it"])
def test_other_code_is_made_by_another(what: str, kept: DiskCache, made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    jit.compiler_version.cache_clear()
    jit.object_code(TEXT, host_cpu())
    if what == "version of LLVM":
        monkeypatch.setattr(llvm_binding(), "llvm_version_info", (99, 0, 0))
    else:
        monkeypatch.setattr(jit, "optimize", lambda module, cpu, **_: module)
    jit.compiler_version.cache_clear()
    jit.object_code(TEXT, host_cpu())
    assert len(made) == 2
    monkeypatch.undo()
    jit.compiler_version.cache_clear()


def test_code_is_made_again_where_each_stage_is_checked(
    kept: DiskCache, made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: what is kept of a text counts if LLVM's verifier has seen it."""
    verified: list[object] = []
    module = type(jit.parse(TEXT))
    monkeypatch.setattr(module, "verify", lambda self, verify=module.verify: verified.append(self) or verify(self))
    jit.object_code(TEXT, host_cpu())
    assert made == [1] and not verified
    monkeypatch.setattr(jit, "CONFIG", Config(check=True))
    jit.object_code(TEXT, host_cpu())
    jit.object_code(TEXT, host_cpu())
    assert made == [1, 1] and len(verified) == 1
    wrong = TEXT.replace("ret i64 1", "%x = add i64 %y, 1 %y = add i64 1, 1 ret i64 %x")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="dominate"):
            jit.object_code(wrong, host_cpu())


def test_a_second_process_makes_no_code(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def run() -> tuple[int, str]:
        environment = os.environ | {"JITML_CACHE_DIR": str(tmp_path / "cache"), "JITML_CHECK": "", "JITML_VERIFY": "never"}
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
        made, results = done.stdout.split(" ", 1)
        return int(made), results

    first, results = run()
    assert first > 4
    assert run() == (0, results)
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:-8])
    assert run() == (first, results)


def test_cold_paths_are_made_once_for_all_programs(empty: DiskCache, made: list[int]) -> None:
    """Large arguments of a sine are the C library's: that is a function which programs share, whatever else they do."""

    def parts(function: Callable[..., object]) -> tuple[set[str], set[str]]:
        """The texts of those that are shared, and of the others."""
        lowered = jitml.jit(function).lower(np.full(37, 1e300))
        assert np.allclose(lowered.compile()(np.full(37, 1e300))[0], function(np.full(37, 1e300)), rtol=1e-14)
        shared = {part.text for part in lowered.module.parts if part.effort == "shared"}
        return shared, {part.text for part in lowered.module.parts} - shared

    first, _ = parts(np.sin)
    begun = len(made)
    second, others = parts(lambda x: 1 - np.sin(x))
    assert first and first == second and len(made) - begun == len(others)
