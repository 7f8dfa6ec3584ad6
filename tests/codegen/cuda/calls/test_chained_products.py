"""Attention and its kin: passes over squares that are never stored give NumPy's answers, forward and backward."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitml
from codegen.cuda.attention import (
    KIN,
    Array,
    Function,
    by_columns,
    by_einsum,
    causal,
    division_last,
    flat,
    heads,
    in_doubles,
    kernel_sums,
    lowered,
    masked,
    masked_in_place,
    no_maximum,
    numbers,
    one_projection,
    plain,
    second_derivative,
    shared_keys,
    squared,
)
from jitml.codegen.interpreter import run
from jitml.config import CONFIG
from jitml.fusion.prepare.chains import Tiles
from support.cuda_emulation import ORDERS, KernelFault, build, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated
from support.effort import FULL

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
SPECIAL = heads(40, 70, 5, 6)
SPECIAL[0][3, 1], SPECIAL[0][4, 2], SPECIAL[0][5, 0], SPECIAL[0][6] = np.nan, np.inf, -np.inf, -0.0
SPECIAL[2][7, 2], SPECIAL[2][9, 3], SPECIAL[2][8, 0] = np.nan, np.inf, -np.inf
HUGE = heads(20, 90, 4, 3)
HUGE[2][:] = np.float32(3e38)
EMPTY_ROWS = numbers(1, 45, 80) > 0.5
EMPTY_ROWS[0, 7], EMPTY_ROWS[0, 9, :70], EMPTY_ROWS[0, 11, 1:] = False, False, False

PROGRAMS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "plain": (plain, heads(70, 130, 33, 20, 2)),
    "aligned": (plain, heads(64, 64, 16, 32, 2)),
    "one of each": (plain, heads(1, 1, 1, 1)),
    "one row": (plain, heads(1, 65, 3, 2, 2)),
    "one matrix": (plain, heads(40, 65, 3, 2, 1, 1)),
    "one column": (plain, heads(65, 1, 2, 3)),
    "wide": (plain, heads(17, 33, 128, 128)),
    "wide doubles": (plain, heads(17, 33, 128, 100, dtype="f8")),
    "a scale of doubles": (in_doubles, heads(33, 70, 9, 10, 2)),
    "causal": (causal, heads(70, 70, 8, 16, 2)),
    "causal by a write": (masked_in_place, heads(66, 66, 4, 4, 1)),
    "masks and biases": (masked, (*heads(45, 80, 6, 5, 3), EMPTY_ROWS, numbers(3, 45, 80))),
    "division last": (division_last, heads(50, 66, 7, 8)),
    "no maximum": (no_maximum, heads(40, 66, 7, 8)),
    "by columns": (by_columns, heads(40, 66, 7, 8)),
    "by einsum": (by_einsum, tuple(numbers(n, 3, 8) for n in (40, 66, 66))),
    "one projection": (one_projection, (numbers(2, 40, 72),)),
    "shared keys": (shared_keys, (numbers(2, 3, 40, 8), numbers(2, 50, 8), numbers(2, 50, 9))),
    "kernel sums": (kernel_sums, (numbers(70, 3), numbers(80, 3), numbers(80, 2))),
    "special values": (plain, SPECIAL),
    "huge values": (plain, HUGE),
    "arguments with strides": (plain, tuple(x.T for x in (numbers(6, 40), numbers(6, 70), numbers(5, 70)))),
    "every other one": (plain, tuple(numbers(*shape)[::-2, ::3] for shape in ((80, 18), (140, 18), (140, 15)))),
    "big-endian": (plain, tuple(x.astype(">f4") for x in heads(20, 40, 5, 6))),
}


QUICK = (
    "plain",
    "one matrix",
    "a scale of doubles",
    "masks and biases",
    "special values",
    "one projection",
)  # g++ takes seconds for each


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones, too."""
    monkeypatch.setattr("jitml.fusion.prepare.chained_products.pays", lambda *a: True)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDevice]:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated() as device:
        yield device


def compare(name: str, found: Sequence[Array], wanted: Sequence[Array], exact: Sequence[Array]) -> None:
    """NaN and infinities are NumPy's; all else is as near to what is exact as NumPy's, or some units of its dtype."""
    for x, y, z in zip(found, wanted, exact, strict=True):
        assert x.dtype == y.dtype.newbyteorder("=") and x.shape == y.shape
        np.testing.assert_array_equal(np.isfinite(x), np.isfinite(y), err_msg=name)
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y), err_msg=name)
        here = np.isfinite(y)
        if here.any():
            largest, unit = abs(z[here]).max(), np.finfo(x.dtype).eps
            own = abs(y[here] - z[here]).max()
            assert abs(x[here] - z[here]).max() <= 2 * own + 8 * unit * largest, name


def exact_of(arguments: Sequence[Any]) -> list[Any]:
    return [a.astype(np.longdouble) if a.dtype.kind == "f" else a for a in arguments]


# ------------------------------------------------------------------------------------------------------- answers


@needs_compiler
def test_attention_is_what_numpy_makes(always: None, device: EmulatedDevice) -> None:
    """All programs as one, which g++ compiles at once."""
    found = called_as_one({name: PROGRAMS[name] for name in (PROGRAMS if FULL else QUICK)}, device)
    for name, result in found.items():
        function, given = PROGRAMS[name]
        with np.errstate(all="ignore"):
            wanted, exact = (flat(function(*x)) for x in (given, exact_of(given)))
        compare(name, result, wanted, exact)


def called_as_one(
    programs: Mapping[str, tuple[Function, tuple[Any, ...]]], device: EmulatedDevice, **options: Any
) -> dict[str, list[Array]]:
    """What each gives on the device, the same bits in every order of threads."""
    functions = [function for function, _ in programs.values()]
    options |= {"verify": "never", "host_calls": "error"}
    jitted = jitml.jit(lambda *given: [f(*own) for f, own in zip(functions, given)], **options)
    found = []
    for device.order in ORDERS:
        with np.errstate(all="ignore"):
            found.append([flat(results) for results in jitted(*(given for _, given in programs.values()))])
    assert device.launches
    for name, first, *others in zip(programs, *found, strict=True):
        assert all(x.tobytes() == y.tobytes() for other in others for x, y in zip(first, other, strict=True)), name
    return dict(zip(programs, found[0]))


@needs_compiler
def test_so_are_its_derivatives(always: None, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("causal", "plain", "a scale of doubles", "division last", "by einsum", "special values", "no maximum")
    programs = {name: (squared(PROGRAMS[name][0]), PROGRAMS[name][1]) for name in (names if FULL else names[:1])}
    found = called_as_one(programs, device)
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", CONFIG)
    for name, (_, given) in programs.items():
        with np.errstate(all="ignore"):
            wanted, exact = (
                flat(squared(PROGRAMS[name][0])(*(a.astype(dtype) for a in given))) for dtype in (given[0].dtype, np.float64)
            )
        compare(name, found[name], wanted, exact)


@needs_compiler
@pytest.mark.skipif(not FULL, reason="g++ compiles some forty kernels")
def test_these_passes_give_numpys_answers(always: None, device: EmulatedDevice) -> None:
    programs = {function.__name__: (function, heads(40, 50, 12, 12)) for function in KIN if function is not second_derivative}
    for name, result in called_as_one(programs, device).items():
        function, given = programs[name]
        compare(name, result, flat(function(*given)), flat(function(*exact_of(given))))


TILES = ((64, 64), (32, 32), (64, 32), (32, 64), (16, 32))


@needs_compiler
@pytest.mark.parametrize("fastmath", [False, "tf32"])
def test_tiles_of_all_sizes(fastmath: Any, always: None, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {depth: Tiles(*extents) for depth, extents in enumerate(TILES if FULL else TILES[:1], 9)}
    monkeypatch.setattr(
        "jitml.fusion.prepare.chained_products.tiles_for", lambda chain, limits: sizes[chain.ends[0].width if chain.ends else 9]
    )
    programs = {str(tiles): (squared(causal), heads(140, 140, n, n, dtype="f4")) for n, tiles in sizes.items()}
    found = called_as_one(programs, device, **({"fastmath": fastmath} if fastmath else {}))
    for name, (function, given) in programs.items():
        exact = tuple(x.astype("f8") for x in given)
        for x, y in zip(found[name], run(lowered(function, *exact).program, exact), strict=True):
            assert abs(x - y).max() < (2.0**-8 if fastmath else 2e-6) * abs(y).max(), name


@needs_compiler
def test_what_may_be_rounded_to_bfloat16_is_rounded_to_tf32(always: None) -> None:
    given = heads(140, 140, 9, 9, dtype="f4")
    coarse, finer = (lowered(plain, *given, fastmath=flag).text("cuda") for flag in ("bf16", "tf32"))
    assert "ji_square_tf32" in coarse and coarse == finer


@needs_compiler
def test_factors_are_rounded_to_tf32_if_that_is_allowed(always: None, device: EmulatedDevice) -> None:
    programs = {
        "uneven": (plain, heads(70, 130, 33, 20, 2)),
        "few columns": (plain, heads(40, 70, 4, 3)),
        "slopes": (squared(causal), heads(70, 70, 9, 21)),
    }
    found = called_as_one(programs, device, fastmath="tf32")
    for name, (function, given) in programs.items():
        if name == "slopes":
            continue
        for x, y in zip(found[name], flat(function(*given)), strict=True):
            error = abs(x - y).max() / abs(y).max()
            assert 1e-6 < error < 2.0**-9, name
    q, k, v = (x.astype("f8") for x in programs["slopes"][1])
    for x, y in zip(found["slopes"], run(lowered(squared(causal), q, k, v).program, (q, k, v)), strict=True):
        assert 1e-6 < abs(x - y).max() / abs(y).max() < 2.0**-8


INFINITE = heads(40, 70, 9, 6, dtype="f2")
INFINITE[0][3], INFINITE[0][4, 2], INFINITE[0][5] = 60000, np.nan, -60000
HALVES: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "uneven": (plain, heads(70, 130, 33, 20, 2, dtype="f2")),
    "aligned": (causal, heads(64, 64, 16, 32, 2, dtype="f2")),
    "by einsum": (by_einsum, tuple(numbers(n, 3, 8, dtype="f2") for n in (40, 66, 66))),
    "masks and biases": (masked, (*heads(45, 80, 6, 5, 3, dtype="f2"), EMPTY_ROWS, numbers(3, 45, 80, dtype="f2"))),
    "special values": (plain, INFINITE),
    "no maximum": (no_maximum, heads(40, 66, 7, 8, dtype="f2")),
}


@needs_compiler
def test_tensor_cores_multiply_halves(always: None, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = HALVES | {"slopes": (squared(causal), heads(70, 70, 9, 21, dtype="f2"))}
    for function, given in programs.values():
        text = lowered(function, *given).text("cuda")
        assert "ji_square_f16<" in text and "ji_end_f16<" in text
    found = called_as_one(programs, device)
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", CONFIG)
    for name, (function, given) in programs.items():
        with np.errstate(all="ignore"):
            wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in given]
            wanted, exact = flat(function(*given)), flat(function(*wide))
        for x, y, z in zip(found[name], wanted, exact, strict=True):
            assert x.dtype == y.dtype == np.float16
            np.testing.assert_array_equal(np.isnan(x), np.isnan(y), err_msg=name)
            here = np.isfinite(y) & np.isfinite(z)
            largest = abs(z[here]).max()
            assert abs(x[here] - z[here]).max() <= abs(y[here] - z[here]).max() + 2.0**-10 * largest, name


# ----------------------------------------------------------------------------------------------- planted faults


@needs_compiler
@pytest.mark.skipif(not FULL, reason="g++ compiles six kernels")
def test_a_missing_barrier_is_found(always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.fusion.prepare.chained_products.tiles_for", lambda *a: Tiles(32, 64))
    arguments = heads(70, 130, 9, 8, 1)
    source = lowered(plain, *arguments).text("cuda")
    places = [m.span() for m in re.finditer(r"__syncthreads\(\);", source) if m.start() > source.rindex("__global__")]
    assert len(places) == 5
    for module in build([source[:start] + source[end:] for start, end in places]):
        with pytest.raises(KernelFault, match="race"):
            for order in ORDERS:
                module.launch("call_0_fused", 3, 256, *arguments, np.zeros((1, 70, 8), "f4"), shared=64 << 10, order=order)


# -------------------------------------------------------------------------------------------------- the compiler


@pytest.mark.parametrize(
    ("function", "argument", "fastmath"),
    [
        (squared(causal), np.ones((16, 2048, 64), "f4"), False),
        (squared(plain), np.ones((16, 2048, 128), "f4"), False),
        (squared(plain), np.ones((16, 2048, 64), "f8"), False),
        (squared(plain), np.ones((16, 2048, 64), "f4"), "tf32"),
        (squared(plain), np.ones((16, 2048, 128), "f4"), "tf32"),
        (squared(causal), np.ones((16, 2048, 64), "f2"), False),
        (squared(plain), np.ones((16, 2048, 128), "f2"), False),
    ],
)
def test_nothing_is_spilled(function: Function, argument: Array, fastmath: Any) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from support.emitted_cuda.compiled import ARCHS, reports

    made = lowered(function, argument, argument.copy(), argument.copy(), fastmath=fastmath)
    assert ("ji_square_tf32<64, 64>" in made.text("cuda")) == bool(fastmath)
    assert ("ji_square_f16<64, 64>" in made.text("cuda")) == (argument.dtype == np.float16)
    assert made.kernels.count("tiles=") >= 3  # more if scores are made again in any case, so that little is kept
    for arch in ARCHS if FULL else ("sm_90",):
        found = reports(made.text("cuda"), arch)
        assert not {kernel: report.excess for kernel, report in found.items() if report.excess}, arch
