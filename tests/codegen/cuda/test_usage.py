"""What a program asks of a GPU, as text: launches with their registers and occupancy, and what the host does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.cubin import Resources
from jitml.codegen.cuda.occupancy import resident_blocks
from jitml.codegen.cuda.runtime import usage
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.errors import NoDeviceError
from jitml.pipeline import Lowered, lower
from jitml.report import program_entries


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks"),
    [
        # As NVIDIA's occupancy calculator has them.
        *(("sm_80", 256, 32, 0, 8), ("sm_80", 256, 40, 0, 6), ("sm_80", 256, 65, 0, 3), ("sm_80", 1024, 64, 0, 1)),
        *(("sm_80", 1024, 65, 0, 0), ("sm_80", 32, 16, 0, 32), ("sm_90", 256, 255, 0, 1), ("sm_90", 128, 128, 0, 4)),
        *(("sm_80", 128, 32, 48 << 10, 3), ("sm_90", 128, 32, 48 << 10, 4), ("sm_90", 256, 32, 227 << 10, 1)),
        *(("sm_86", 256, 32, 0, 6), ("sm_89", 64, 16, 0, 24), ("sm_86", 64, 16, 0, 16), ("sm_1", 32, 32, 0, None)),
    ],
)
def test_resident_blocks_are_nvidias(arch: str, threads: int, registers: int, shared: int, blocks: int | None) -> None:
    assert resident_blocks(arch, threads, registers, shared) == blocks


def _lowered(function: Any, *args: Any) -> Lowered:
    return lower(jitml.jit(function).lower(*args).traced, BACKEND)


def _program(x: Any) -> Any:
    for _ in range(3):
        x = np.linalg.svd(x)[0] + np.exp(x)
    return np.linalg.solve(x, x) + x.sum(axis=0)


def test_launches_are_told_in_order_with_what_they_take() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    lowered = _lowered(_program, np.eye(100) + 1)
    lines = lowered.launches.splitlines()
    on_host = [n for n, line in enumerate(lines) if line.startswith("np.linalg.svd") and "on the host" in line]
    (solved,) = (n for n, line in enumerate(lines) if "_host " in line)
    assert on_host and max(on_host) < solved
    assert "KB are copied" in lines[on_host[0]] or "KiB are copied" in lines[on_host[0]]
    launches = [line for line in lines if " threads; " in line]
    by_library = [n for n, line in enumerate(lines) if line.startswith("  where cusolver is installed, it does this, with call_")]
    assert by_library == [n + 1 for n in on_host]
    assert len(launches) == len(lines) - 2 * len(on_host)
    assert all(" registers" in line and "% of its threads" in line for line in launches)
    assert not any("local memory" in line for line in launches)
    (told,) = (entry for entry in program_entries(lowered) if entry.text == "launches")
    assert [entry.text for entry in told.inner] == lines


def test_local_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    lowered = _lowered(lambda x: np.exp(x) + 1, np.ones(1000, np.float32))
    (launch,) = (launch for launches in lowered.module.module.launches.values() for launch in launches)
    assert "local memory" not in lowered.launches
    spilled = Resources(40, 16, 2048, (8, 8))
    monkeypatch.setattr(usage, "compile_cubin", lambda *_: SimpleNamespace(resources={launch.entry: spilled}))
    assert "; 40 registers, 16 bytes of local memory, 2" in lowered.launches
    assert "6 blocks at once on a multiprocessor: 75 % of its threads" in lowered.launches


def test_without_a_compiler_launches_are_told_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise NoDeviceError("NVRTC is not there")

    monkeypatch.setattr(usage, "compile_cubin", missing)
    first, *lines = _lowered(lambda x: np.exp(x) + 1, np.ones(1000)).launches.splitlines()
    assert first == "registers are not known: NVRTC is not there"
    assert len(lines) == 1 and "threads" in lines[0] and "registers" not in lines[0]
