"""The check of a GPU (`bench/gpu`), without one: its supervision, its reports, and its cases with the processor's back end."""

from __future__ import annotations

import importlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.config import CONFIG
from jitml.kernels.metrics import USUAL_TRIPS

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))
from gpu import account, plot
from gpu.cases import Setting
from gpu.failures import Mismatch, around, describe, named_line, require_same, with_texts
from gpu.memory_bound import KERNELS
from gpu.parts import PARTS
from gpu.roofline import H100, H200, HOST_TRIP, LAUNCH, Estimate, estimate, launches_of
from gpu.supervision import Part, PartResult, missing, run_part
from workloads import WORKLOADS

TROUBLED = Part("troubled", "What goes wrong?", "support.troubled_cases", 4.0, patience=1.0)


def test_a_part_goes_on_behind_what_hangs_or_crashes() -> None:
    told: list[PartResult] = []
    result = run_part(TROUBLED, "llvm", "none", time.time() + 60, told.append)
    status = {row["case"]: row["status"] for row in result.rows}
    wanted = {"a figure": "passed", "wrong": "failed", "killed": "crashed", "not here": "skipped", "for ever": "hung"}
    assert wanted.items() <= status.items()
    assert status["an exit"] == "crashed" and status["well"] == "passed"
    assert result.left > 900 and result.seconds < 12 and not result.broken
    rows = {row["case"]: row for row in result.rows}
    assert rows["killed"]["message"] == "SIGKILL" and "exit status 3" in rows["an exit"]["message"]
    assert "troubled_cases.py" in rows["wrong"]["places"][-3] or "troubled" in str(rows["wrong"]["places"])
    assert "sleep" in rows["for ever"]["stderr"] or "Timeout" in rows["for ever"]["stderr"]  # its stack


def test_a_part_that_cannot_begin_says_why() -> None:
    result = run_part(replace(TROUBLED, module="support.no_such_cases"), "llvm", "none", time.time() + 60, lambda result: None)
    assert not result.rows and "no_such_cases" in result.broken[0]


def test_what_is_missing() -> None:
    part = Part("p", "?", "m", 1.0, needs=frozenset(("device", "torch")), emulated=True)
    absent = {"device": "no GPU", "torch": "no Python package torch", "jax": "no Python package jax"}
    assert missing(part, absent, "none") == "no GPU; no Python package torch"
    assert missing(part, absent, "emulated") == "no Python package torch"
    assert missing(part, {}, "real") == ""


@pytest.mark.parametrize(
    ("got", "expected", "ulps", "says"),
    [
        (
            np.arange(6.0).reshape(2, 3),
            np.array([[0.0, 1, 2], [3, 9, 5]]),
            None,
            r"element \[1, 1\] is .*4\.0.*NumPy gives .*9\.0",
        ),
        (np.array([0.0]), np.array([-0.0]), 0, r"1 of 1 differ"),
        (np.array([1.0]), np.array([1.0 + 3 * np.spacing(1.0)]), 2, r"element \[0\]"),
        (np.array([1], np.int32), np.array([1]), None, r"int32\[1\], NumPy gives int64\[1\]"),
        (np.array([np.nan, np.inf]), np.array([np.nan, -np.inf]), None, r"element \[1\]"),
        (np.array([1 + 1j]), np.array([1 + 2j]), None, r"element \[0\]"),
    ],
)
def test_the_first_wrong_element_is_named(got: object, expected: object, ulps: float | None, says: str) -> None:
    with pytest.raises(Mismatch, match=says):
        require_same([got], [expected], ulps)
    require_same([expected], [expected], ulps)


def test_near_enough() -> None:
    require_same([np.array([1.0, np.nan])], [np.array([1.0 + 3 * np.spacing(1.0), np.nan])], 4)
    require_same([np.float32([1e6, 0.5])], [np.float32([1e6, 0.501])])  # as a sum over both would have it


SOURCE = "\n".join(["// prelude"] * 30 + ['extern "C" __global__ void k(float* x) {', "  x[0] = y;", "}"])


def test_a_failure_shows_the_line_that_the_compiler_names() -> None:
    error = RuntimeError('check.cu(32): error: identifier "y" is undefined')
    assert named_line(str(error)) == 32
    with_texts(error, {"kernels": "kernel k", "cuda": SOURCE}.__getitem__)
    row = describe(error)
    assert "   32   x[0] = y;" in row["texts"]["cuda"] and row["texts"]["kernels"] == "kernel k"
    assert around(SOURCE, None).splitlines()[2].startswith('extern "C" __global__')
    with_texts(error, {}.__getitem__)
    assert "no cuda: KeyError" in error.texts["cuda"]  # type: ignore[attr-defined]  # put there


def test_summaries_fit_and_pages_are_whole(tmp_path: Path) -> None:
    rows = [
        {
            "case": f"op{n} f32",
            "status": "failed",
            "error": f"Error{n % 40}",
            "message": f"wrong {n} " * 200,
            "texts": {"cuda": SOURCE * 9},
        }
        for n in range(400)
    ]
    rows.append({"case": "fine", "status": "passed", "figures": {"GB/s": 2950.123}})
    results = [PartResult("ops", "?", rows, 3, 12.5), PartResult("leads", "?", skipped="no GPU")]
    said = account.summary("title", {"date": "today"}, results, tables=True)
    assert len(said) <= 12_000 and "ops: 400 failed, 1 passed in 12.5 s, 3 not reached" in said
    assert "leads: skipped: no GPU" in said and "[ops] 10x Error7: wrong #" in said and "[ops] GB/s\nfine: 2.95e+03" in said
    account.write("gpu-check", "title", {"date": "today"}, results, tmp_path)
    data = json.loads((tmp_path / "gpu-check.json").read_text())
    kept = [row for row in data["results"][0]["rows"] if "texts" in row]
    assert len(kept) == 120  # three of each kind
    assert "| fine | 2950 |" in (tmp_path / "gpu-check.md").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpu-check.json", "gpu-check.md"]


@pytest.mark.parametrize("name", ["ops", "sizes", "programs", "gradients", "edges", "drawn"])
def test_each_part_runs_with_another_back_end(name: str) -> None:
    (part,) = (part for part in PARTS["check"] if part.name == name)
    found = importlib.import_module(part.module).cases(Setting("llvm", "none"))
    case, run = next(found)
    outcome = run()
    assert case and (outcome is None or "status" not in outcome)


def test_the_parts_can_be_imported() -> None:
    pytest.importorskip("cuda.bindings")
    for parts in PARTS.values():
        assert len({part.name for part in parts}) == len(parts)
        for part in parts:
            assert callable(importlib.import_module(part.module).cases)


def test_what_the_driver_is_asked_compiles() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from gpu.correctness import leads
    from gpu.raw import DriverError, cubin

    for arch in ("sm_90", "sm_90a"):
        assert cubin(leads.SOURCE, arch)[:4] == b"\x7fELF" and cubin(leads.WHILE, arch)[:4] == b"\x7fELF"
    with pytest.raises(DriverError, match='identifier "y" is undefined'):
        cubin(SOURCE, "sm_90")


@pytest.mark.parametrize("name", KERNELS)
def test_memory_bound_kernels_move_what_they_say(name: str) -> None:
    kernel = KERNELS[name]
    for dtype in kernel.dtypes:
        args = kernel.arguments(20_000, dtype)
        results = kernel.function(*args)
        results = results if isinstance(results, tuple) else (results,)
        written = [(np.shape(r), np.asarray(r).itemsize) for r in results]
        least = kernel.least_bytes(20_000, dtype, written)
        assert least == sum(a.nbytes for a in args) + sum(np.asarray(r).nbytes for r in results)
        assert 15_000 < sum(np.size(a) for a in args) <= 80_000


def test_the_plot_shows_what_was_measured(tmp_path: Path) -> None:
    programs = [{"case": "a", "status": "passed", "figures": {"jitml us": 4.0, "jax / ours": 2.0, plot.MODEL: 2.0}}]
    kernels = [{"case": n, "status": "passed", "figures": {plot.SHARE: x}} for n, x in (("sum", 95.5), ("scan", 40.0))]
    results = [PartResult("kernels", "?", kernels), PartResult("everyday", "?", programs)]
    account.write("gpu-measure", "title", {}, results, tmp_path, "gpu-measure.svg")
    assert "](gpu-measure.svg)" in (tmp_path / "gpu-measure.md").read_text()
    data = json.loads((tmp_path / "gpu-measure.json").read_text())
    assert plot.bars_of(data) == ([("scan", 40.0), ("sum", 95.5)], [("a", {"jax": 2.0, "model": 0.5})])
    pytest.importorskip("matplotlib")
    plot.draw(data, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()


def test_geometric_means_are_of_what_both_run() -> None:
    rows = [
        {"case": "a", "status": "passed", "figures": {"jax / ours": 2.0, "cupy / ours": 0.5}},
        {"case": "b", "status": "passed", "figures": {"jax / ours": 8.0}},
    ]
    jax, cupy = account.means(PartResult("everyday", "?", rows))
    assert jax.startswith("jax takes 4.00 times") and "2 of 2 cases; ours ahead in 2" in jax
    assert cupy.startswith("cupy takes 0.50 times") and "1 of 2 cases; ours ahead in 0" in cupy


ROOFLINE = {  # everyday program -> launches on a GPU, and the bytes that it must move at the least
    "polynomial": (1, 16_000_000),
    "leaky_blend": (1, 48_000_000),
    "gelu": (1, 2 * 4096 * 256 * 4),
    "softmax_rows": (1, 2 * 4096 * 256 * 4),
    "log_sum_exp": (1, 2000 * 512 * 8 + 2000 * 8),
    "layer_norm": (1, 2 * 4096 * 384 * 8 + 2 * 384 * 8),
    "adam_update": (1, 7 * 1_000_000 * 8),
    "black_scholes": (1, 20_000_016),
    "huber_loss": (2, 16_000_008),  # the second one adds the sums of blocks
}


@pytest.mark.parametrize("name", ROOFLINE)
def test_the_model_of_a_program_that_memory_bounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = WORKLOADS[name]
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    lowered = jitml.jit(workload.function).lower(*workload.make_inputs())
    launches, least = ROOFLINE[name]
    one = estimate(lowered.program, H100, launches_of(lowered.module))
    assert one.launches == launches and least <= one.moved <= least + 4096  # sums of blocks
    assert one.seconds == max(LAUNCH * launches, one.moved / H100.bandwidth) and one.bounded_by == "memory"
    assert estimate(lowered.program, H200, launches_of(lowered.module)).seconds < one.seconds


def test_the_model_of_loops_and_products() -> None:
    def loop(x: Any, n: int) -> Any:
        while x[0] < n:
            x = np.sort(x) + 1
        return x

    def model(f: Any, *args: Any) -> Estimate:
        return estimate(jitml.jit(f).lower(*args).program)

    open_ended = model(loop, np.ones(1000), 7)
    assert open_ended.launches >= 3 * USUAL_TRIPS and open_ended.bound["host"] == pytest.approx(USUAL_TRIPS * HOST_TRIP)
    x = np.ones((2048, 2048))
    product = model(lambda x: x @ x, x)
    assert product.bounded_by == "matrix" and product.seconds == pytest.approx(2 * 2048**3 / H100.matrix[8])
    assert model(lambda x: x + 1, np.ones(10)).bounded_by == "launch"
    many = model(lambda x: np.tan(np.exp(np.sin(x)) + np.cos(x)) ** 1.5 + np.tan(np.log(x)) ** 2.5, np.ones(10_000_000))
    assert many.bounded_by == "arithmetic" and many.operations[8] > 500_000_000


def test_calls_run_on_a_device_that_does_nothing() -> None:
    pytest.importorskip("cuda.bindings.driver")
    from gpu.host_overhead import CASES, calls_of, null_gpu, timings  # which needs the bindings

    with null_gpu() as device:
        calls = calls_of(*CASES["three launches"])
        found = timings(calls, rounds=1)
        result: Any = calls["us"]()
        assert isinstance(result, jitml.Array) and result._device.memory is device
    assert set(found) == set(calls) and min(found.values()) > 0
