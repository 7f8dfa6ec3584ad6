"""What a mask keeps, packed on a GPU: in order, along any axis, from one tile or many, and in whole programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import optree
import pytest

import jitml
from jitml.codegen.interpreter import run
from jitml.config import CONFIG
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call
from programs.comparing import difference, within
from support.cuda_calls import Case, check, placed, program_of
from support.cuda_emulation import ORDERS, has_compiler
from support.cuda_emulation.device import emulated

LEFT = 7  # what is in memory that nobody writes


def _compaction(
    shape: tuple[int, ...],
    axis: int = 0,
    dtype: str = "f8",
    share: float = 0.4,
    *,
    strides: tuple[int, ...] | None = None,
    mask_stride: int = 1,
    live: tuple[int, ...] | None = None,
    positions: bool = False,
) -> Case:
    """
    Args:
        share: of what is kept.
        strides: of what is read.
        live: the extents that count; then the result has memory for the most.
        positions: whether it is asked where elements stand.
    """
    rng = np.random.default_rng(sum(shape) + axis)
    x, mask = Buffer("x", np.dtype(dtype), shape, strides), Buffer("mask", np.dtype(bool), (shape[axis],), (mask_stride,))
    memory = {"x": rng.integers(-90, 90, x.reach).astype(dtype), "mask": rng.random(mask.reach) < share}
    extents = live or shape
    truth = placed(memory["mask"], mask, (extents[axis],))
    kept = np.compress(truth, placed(memory["x"], x, extents), axis)
    if positions:
        kept = np.flatnonzero(truth)
    most = shape if live else kept.shape
    memory["y"] = np.full(most, LEFT, kept.dtype)
    wanted = memory["y"].copy()
    wanted[tuple(map(slice, kept.shape))] = kept
    buffers = [mask, x, Buffer("y", kept.dtype, most)]
    reads, shapes = ("mask", "x"), (mask.shape, shape)
    if positions:
        buffers, reads, shapes = [mask, buffers[2]], ("mask",), (mask.shape,)  # type: ignore[assignment]
    if live:
        memory["n"] = np.array((extents[axis], *kept.shape))
        buffers, reads = [*buffers, Buffer("n", np.dtype("i8"), memory["n"].shape)], (*reads, "n")  # type: ignore[assignment]
    call = Call("compact", reads, ("y",), {"axis": axis, "shapes": shapes, "sized": live is not None})
    return Case(program_of(buffers, call), memory, "y", wanted)


def test_one_tile_and_many() -> None:
    check([_compaction((n,), share=share) for n in (1, 2047, 2049, 8193, 30_000) for share in (0, 0.4, 1)])


def test_every_width() -> None:
    check([_compaction((3000,), dtype=dtype) for dtype in ("?", "i1", "u2", "f2", "i4", "f4", "u8")])


def test_rows_columns_and_what_lies_between() -> None:
    check(
        [
            _compaction((90, 70), 0),
            _compaction((90, 70), 1, "i2"),
            _compaction((5, 9000, 3), 1, "f4"),
            _compaction((40, 30), 0, strides=(1, 40)),
            _compaction((3000,), strides=(3,), mask_stride=2),
        ]
    )


def test_positions() -> None:
    check([_compaction((n,), positions=True, mask_stride=step) for n in (5, 9000) for step in (1, 3)])


def test_the_run_may_tell_the_extents() -> None:
    check([_compaction((9000,), live=(n,)) for n in (0, 1, 2048, 9000)])
    check([_compaction((90, 70), axis, live=live) for axis in (0, 1) for live in ((0, 70), (80, 0), (80, 5), (90, 70))])
    check([_compaction((9000,), live=(n,), positions=True) for n in (0, 8999)])


def _unique_counts(x: Any) -> Any:
    values, counts = np.unique(np.round(x * 3), return_counts=True)
    return values, counts


def _sieve(x: Any) -> Any:
    kept = np.arange(x.size)
    for p in range(2, 6):
        kept = kept[(kept % p != 0) | (kept == p)]
    return kept


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "what is positive": lambda x: x[x > 0],
    "rows": lambda x: x.reshape(-1, 2)[x[::2] > 0],
    "columns": lambda x: x.reshape(2, -1)[:, x[: x.size // 2] > 0],
    "backwards": lambda x: x[::-1][x > 0] + x[x > 0],
    "complex": lambda x: (x + 1j * x[::-1])[x > 0],
    "of two axes": lambda x: (x.reshape(2, -1)[x.reshape(2, -1) > 0], np.nonzero(x.reshape(2, -1) > 0)),
    "where": lambda x: (np.where(x > 0.5), np.argwhere(x > 0.5), np.flatnonzero(x > 5)),
    "in place": lambda x: (x[x > 0][:3], np.sort(x[x < 0]), np.cumsum(x[x > 0] > 1)),
    "distinct": _unique_counts,
    "kept of what is kept": lambda x: x[x > 0][x[x > 0] < 1] * 2,
    "sieve": _sieve,
    "nan and zeros": lambda x: np.where(x > 1, np.nan, np.where(x > 0, -0.0, x))[~(x < -1)],
}


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of known lengths, and of open ones."""
    for module in ("codegen.backend", "options"):
        monkeypatch.setattr(f"jitml.{module}.CONFIG", replace(CONFIG, backend="cuda"))
    function, rng = PROGRAMS[name], np.random.default_rng(3)
    with emulated() as device:
        jitted = jitml.jit(function, verify="never", host_calls="error")
        for device.order, n in zip((*ORDERS, 0), (100, 98, 2, 400)):
            x = rng.normal(size=n)
            assert difference(jitted(x), function(x), within(0.0)) is None
        assert not any(variant.replays for variant in jitted.variants) and device.launches


@pytest.mark.parametrize("name", ["what is positive", "rows", "columns", "where"])
def test_the_interpreter_packs_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    x = np.random.default_rng(3).normal(size=200)
    program = jitml.jit(PROGRAMS[name]).lower(x).program
    assert any(isinstance(step, Call) and step.name == "compact" for step in program.kernels.steps)
    wanted = optree.tree_leaves(PROGRAMS[name](x))
    for got, expected in zip(run(program, [x]), wanted):
        np.testing.assert_array_equal(got, expected.T if np.isfortran(expected) else expected)  # as it lies in memory


def test_no_loop_goes_over_long_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    x = np.arange(1000.0)
    text = jitml.jit(lambda x: (x[x > 3], np.nonzero(x > 5))).lower(x).kernels
    assert text.count("compact(") == 2 and "k0_compress" not in text
