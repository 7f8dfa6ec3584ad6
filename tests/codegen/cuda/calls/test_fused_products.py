"""Products with what is made of them: what is fused, by whom it is done, and whether that is what NumPy makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.calls.text import template
from jitml.codegen.cuda.libraries import cublaslt
from jitml.codegen.cuda.libraries.cublaslt import CublasLt
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.codegen.interpreter import run
from jitml.config import CONFIG
from jitml.kernels.text.printer import show_program
from jitml.kernels.text.program_parser import parse_program
from jitml.pipeline import Lowered, lower
from support.cuda_emulation import ORDERS, KernelFault, build, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated
from support.cuda_emulation.host_library import shared_library
from support.effort import FULL

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def numbers(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def lowered(function: Callable[..., Any], *arguments: Any, **options: Any) -> Lowered:
    found = jitml.jit(function, **options).lower(*arguments)
    return lower(found.traced, BACKEND, fastmath=found.options.fastmath)


def steps(made: Lowered) -> list[str]:
    return [step.name for step in made.program.kernels.steps]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDevice]:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated() as device:
        yield device


@pytest.fixture
def library(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A stand-in for cuBLASLt; the epilogues that it has been asked for."""
    source = Path(__file__).parents[3] / "support" / "fake_cublaslt.cpp"
    found, asked = CublasLt(str(shared_library(source, "-O2"))), list[int]()
    found.open()
    monkeypatch.setattr(cublaslt, "cublaslt", lambda: found)
    space = np.zeros(256, np.uint8)
    monkeypatch.setattr(device, "has_libraries", True)
    monkeypatch.setattr(device, "workspace", lambda nbytes: space.ctypes.data)
    multiply = cublaslt.LibraryProduct.__call__
    monkeypatch.setattr(
        cublaslt.LibraryProduct, "__call__", lambda self, *a: (asked.append(self.epilogue), multiply(self, *a))[1]
    )
    yield asked


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3)))


def residual(x: Any, w: Any) -> Any:
    y = np.tanh(x)
    return y @ w + y


X, W, B = numbers(100, 70), numbers(70, 90), numbers(90)
HALVES = tuple(a.astype(np.float16) for a in (X, W, B))
SPECIAL = X.copy()
SPECIAL[3, 5], SPECIAL[4, 6], SPECIAL[7, 7], SPECIAL[8] = np.nan, np.inf, -np.inf, -0.0

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "bias": (lambda x, w, b: x @ w + b, (X, W, B), {}),
    "relu": (lambda x, w, b: np.maximum(x @ w + b, 0), (X, W, B), {}),
    "special values": (lambda x, w, b: np.maximum(x @ w, b), (SPECIAL, W, B), {}),
    "gelu": (lambda x, w, b: gelu(x @ w + b), (X, W, B), {}),
    "another array": (lambda x, w, y: y - (x @ w) * np.tanh(y), (X, W, numbers(100, 90)), {}),
    "a factor beside": (lambda x: x + x @ x, (numbers(40, 40),), {}),
    "comparison": (lambda x, w, b: x @ w > b, (X, W, B), {}),
    "integers": (lambda x, w, k: (x @ w).astype(np.int32) + k, (X, W, np.arange(90, dtype=np.int32)), {}),
    "doubles": (lambda x, w, b: 1 / (1 + np.exp(x @ w - b)), (X.astype("f8"), W.astype("f8"), B.astype("f8")), {}),
    "a bias of doubles": (lambda x, w, b: x @ w + b, (X.astype("f8"), W.astype("f8"), B.astype("f8")), {}),
    "arguments with strides": (
        lambda x, w, b, m: np.where(m, x @ w + b, 1),
        (numbers(90, 140).T[::2], numbers(180, 90)[::-2].T, numbers(180)[::2], (numbers(90, 70) > 0).T),
        {},
    ),
    "a number": (lambda x, w, s, t: s * (x @ w) + t, (X, W, np.float32(3), np.array(2, "f4")), {}),
    "by columns": (lambda x, w, b: (x.T @ w.T) * b, (numbers(70, 100), numbers(90, 70), B), {}),
    "strided": (lambda x, w, b: np.tanh(x[::2, 5:60:2] @ w[5:60:2, ::3] + b[::3]), (X, W, B), {}),
    "big-endian": (lambda x, w: np.sqrt(abs(x @ w)), (X.astype(">f4"), W), {}),
    "a row for each matrix": (lambda x, w, b: np.tanh(x @ w + b), (numbers(3, 40, 20), numbers(20, 40), numbers(40)), {}),
    "a stack": (lambda x, w, b: np.tanh(x @ w) - b, (numbers(2, 70, 60), numbers(2, 60, 80), numbers(2, 70, 80)), {}),
    "positions": (lambda x, w: np.tril(x @ w) + np.arange(90, dtype="f4"), (X, W), {}),
    "a long sum": (lambda x, w, b: (x @ w) * b, (numbers(30, 5000), numbers(5000, 40), numbers(40)), {}),
    "one column more": (lambda x, w, b: np.maximum(x @ w, b), (numbers(65, 33), numbers(33, 129), numbers(129)), {}),
    "small": (lambda x, w, b: np.maximum(x @ w, b), (numbers(9, 3), numbers(3, 2), numbers(2)), {}),
    "halves": (lambda x, w, b: np.maximum(x @ w + b, 0), HALVES, {}),
    "halves alone": (lambda x, w, b: x @ w, HALVES, {}),
    "halves by columns": (
        lambda x, w, b: (x.T @ w.T) / b,
        (numbers(70, 100, dtype="f2"), numbers(90, 70, dtype="f2"), HALVES[2]),
        {},
    ),
    "halves, aligned": (lambda x, w: (x @ w) * 2, (numbers(128, 64, dtype="f2"), numbers(64, 128, dtype="f2")), {}),
    "halves, a long sum": (lambda x, w: x @ w + 1, (numbers(30, 5000, dtype="f2"), numbers(5000, 40, dtype="f2")), {}),
    "tf32": (lambda x, w, b: np.maximum(x @ w + b, 0), (X, W, B), {"fastmath": "tf32"}),
    "tf32 by columns": (lambda x, w: x.T @ w.T, (numbers(72, 100), numbers(88, 72)), {"fastmath": "tf32"}),
    "tf32, aligned": (lambda x, w: (x @ w) * 2, (numbers(128, 64), numbers(64, 192)), {"fastmath": "tf32"}),
    "tf32, a long sum": (lambda x, w: x @ w, (numbers(30, 5000), numbers(5000, 40)), {"fastmath": "tf32"}),
    "bf16": (lambda x, w, b: np.maximum(x @ w + b, 0), (X, W, B), {"fastmath": "bf16"}),
    "bf16 by columns": (lambda x, w: x.T @ w.T, (numbers(72, 100), numbers(88, 72)), {"fastmath": "bf16"}),
    "bf16, aligned": (lambda x, w: (x @ w) * 2, (numbers(128, 64), numbers(64, 192)), {"fastmath": "bf16"}),
    "bf16, a long sum": (lambda x, w: x @ w, (numbers(30, 5000), numbers(5000, 40)), {"fastmath": ["bf16", "tf32"]}),
    "what a factor is made of, beside": (residual, (numbers(20, 30), numbers(30, 30)), {}),
}
PLAIN = ("tf32 by columns", "tf32, a long sum", "bf16 by columns", "bf16, a long sum")


def tolerance(arguments: tuple[Any, ...], options: dict[str, Any], dtype: Any) -> float:
    """Of a result, relative to its largest element."""
    depth = max(n for a in arguments for n in a.shape)
    if np.float16 in [a.dtype for a in arguments]:
        return 2e-3
    if dtype == np.float64:
        return 1e-14
    if options:
        return 2.0**-7 if "bf16" in options["fastmath"] else 2.0**-10
    return 2e-7 * depth**0.5


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_fused_is_what_numpy_makes(name: str, device: EmulatedDevice) -> None:
    function, arguments, options = PROGRAMS[name]
    with np.errstate(all="ignore"):
        expected = function(*arguments)
    calls = [step for step in steps(lowered(function, *arguments, **options)) if not step.startswith("k")]
    found = []
    for device.order in ORDERS:
        jitted = jitml.jit(function, verify="never", host_calls="error", **options)
        with np.errstate(all="ignore"):
            found.append(jitted(*arguments))
        assert device.launches
    assert all(x.tobytes() == found[0].tobytes() for x in found)
    assert found[0].dtype == expected.dtype and calls == (["gemm"] if name in PLAIN else ["fused"])
    if expected.dtype == bool or expected.dtype.kind == "i":
        assert np.mean(found[0] != expected) < 0.001
    else:
        largest = abs(expected[np.isfinite(expected)]).max()
        np.testing.assert_allclose(
            found[0],
            expected,
            rtol=1e-3 if found[0].dtype == np.float16 else 1e-5,
            atol=tolerance(arguments, options, expected.dtype) * largest,
        )


@pytest.mark.parametrize("name", [name for name, (_, _, options) in PROGRAMS.items() if not options])
def test_the_interpreter_knows_what_is_fused(name: str) -> None:
    function, arguments, _ = PROGRAMS[name]
    arguments = tuple(np.ascontiguousarray(a, a.dtype.newbyteorder("=")) for a in arguments)
    made = lowered(function, *arguments)
    with np.errstate(all="ignore"):
        expected = function(*arguments)
        (found,) = run(made.program, arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-3 if expected.dtype == np.float16 else 1e-4, atol=1e-4)


def test_programs_with_fused_products_are_read_back() -> None:
    made = lowered(PROGRAMS["relu"][0], X, W, B)
    text = show_program(made.program.kernels)
    assert show_program(parse_program(text)) == text
    assert "fused(" in text and "maximum" in text


# ------------------------------------------------------------------------------------------------- what is fused


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, w, b: np.maximum(x @ w + b, 0), ["fused"]),
        (lambda x, w, b: np.maximum(x @ w + b, 0) @ w.T, ["fused", "gemm"]),
        # Loops make it themselves, where they are all that wants it.
        (lambda x, w, b: (x @ w + b).sum(axis=1), ["gemm", "k0_reduce_sum"]),
        (lambda x, w, b: np.cumsum(x @ w + b, axis=1), ["fused", "scan"]),
        # The product itself is wanted, too.
        (lambda x, w, b: ((z := x @ w), z + b), ["gemm", "k0_add"]),
        (lambda x, w, b: ((z := x @ w), np.tanh(z + b) * z), ["gemm", "k0_mul"]),
        (lambda x, w, b: (np.tanh(z := x @ w + b) * z) @ w.T, ["fused", "gemm"]),
        (lambda x, w, b: gelu(x @ w + b) @ w.T, ["fused", "gemm"]),
        (lambda x, w, b: np.tanh(x[::2, 3:] @ w.T[:, 3:].T + b), ["fused"]),
        # An array that would be stored for this alone.
        (lambda x, w, b: (x @ w) * (y := np.tanh(x[:, :1] + b)) + np.exp(y), ["gemm", "k0_add"]),
    ],
)
def test_what_lies_in_memory_anyway_is_made_with_the_product(function: Callable[..., Any], expected: list[str]) -> None:
    assert steps(lowered(function, X, W, B)) == expected


def test_the_cpu_has_no_such_step() -> None:
    assert "fused" not in jitml.jit(PROGRAMS["relu"][0]).lower(X, W, B).kernels


# --------------------------------------------------------------------------------------------------- the library


@pytest.mark.parametrize(
    ("name", "fastmath", "epilogue", "launches"),
    [
        ("bias", False, 4, 0),
        ("relu", False, 1, 1),
        ("relu", True, 6, 0),
        ("relu", ["nnan"], 6, 0),
        ("relu", ["afn"], 1, 1),
        ("gelu", True, 36, 0),
        ("gelu", ["nnan"], 1, 1),
        ("another array", True, 1, 1),
        ("integers", False, 1, 1),
        ("a stack", False, 1, 1),
        ("halves alone", False, 1, 0),
        ("halves", False, 1, 1),
        ("halves", True, 6, 0),
        ("doubles", False, 1, 1),
        ("a bias of doubles", True, 1, 1),
    ],
)
def test_the_library_does_what_its_epilogues_are(
    name: str, fastmath: Any, epilogue: int, launches: int, library: list[int], device: EmulatedDevice
) -> None:
    function, arguments, _ = PROGRAMS[name]
    options = {"fastmath": fastmath} if fastmath else {}
    expected = function(*arguments)
    before = device.launches
    found = jitml.jit(function, verify="never", host_calls="error", **options)(*arguments)
    assert library == [epilogue] and device.launches - before == launches
    if expected.dtype.kind == "i":
        assert np.mean(found != expected) < 0.001
    else:
        np.testing.assert_allclose(
            found,
            expected,
            rtol=2e-3 if expected.dtype == np.float16 else 1e-4,
            atol=4e-2 if expected.dtype == np.float16 else 1e-4,
        )


@pytest.mark.parametrize(
    ("function", "is_gelu"),
    [
        (gelu, True),
        (lambda x: x * (0.5 + 0.5 * np.tanh(np.float32(0.7978845608) * x * (1 + np.float32(0.044715) * x * x))), True),
        (lambda x: x / (1 + np.exp(-2 * np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x))), True),
        (lambda x: 0.5 * x * (1 + np.tanh(np.float32(0.79) * (x + np.float32(0.044715) * x**3))), False),
        (lambda x: np.clip(gelu(x), -100, 100), False),
        (lambda x: gelu(x) * B, False),
        (lambda x: 2 * gelu(x), False),
    ],
)
def test_gelu_is_known_however_it_is_written(function: Callable[..., Any], is_gelu: bool) -> None:
    made = lowered(lambda x, w: function(x @ w), X, W, fastmath=True)
    assert ("gelu" in made.launches) == is_gelu, made.launches


# ------------------------------------------------------------------------------------------------ planted faults


@pytest.mark.parametrize("which", range(5))
def test_a_missing_barrier_is_found(which: int) -> None:
    x, w, out = numbers(160, 96, dtype="f2"), numbers(96, 128, dtype="f2"), np.zeros((160, 128), "f2")
    source = lowered(lambda x, w: (x @ w) * 2, x, w).text("cuda")
    text = template("mma")
    places = [m.span() for m in re.finditer(r"__sync(threads|warp)\(\);", text)]
    assert len(places) == 5
    start, end = places[which]
    (module,) = build([source.replace(text, text[:start] + text[end:])])
    with pytest.raises(KernelFault, match="race"):
        for order in ORDERS:
            module.launch("call_0_fused", 1, 256, out, x, w, order=order)


def test_factors_are_rounded_to_tf32() -> None:
    source = lowered(lambda x, w: (x @ w) * 2, X, W, fastmath="tf32").text("cuda")
    (module,) = build([source.replace("ji_tf32(x[2])", "__float_as_uint(x[2])")])
    with pytest.raises(KernelFault, match="not rounded"):
        module.launch("call_0_fused", 4, 256, np.zeros((100, 90), "f4"), X, W)


def bfloat16(x: Array) -> Array:
    """float32 rounded to bfloat16, ties to even."""
    bits = x.view(np.uint32).astype(np.uint64)
    return np.asarray((bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).astype(np.uint32).view(np.float32))


def test_factors_are_rounded_to_bfloat16_and_sums_are_not(device: EmulatedDevice) -> None:
    x, w = numbers(100, 72), numbers(72, 96)
    x[0, :4] = 1 + 2.0**-8 * np.array((1, 3, 1.001, 2), "f4")  # two ties
    found = jitml.jit(lambda x, w: (x @ w) * 2, fastmath="bf16", verify="never")(x, w)
    exact = (bfloat16(x).astype(np.float64) @ bfloat16(w)) * 2
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
    assert abs(found - (x @ w) * 2).max() > 1e-2


def test_infinities_and_nan_pass_through_bfloat16(device: EmulatedDevice) -> None:
    x = np.eye(64, dtype=np.float32)
    x[3, 3], x[5, 5], x[7, 7] = np.inf, np.nan, 3.4e38  # of which the last one is beyond bfloat16's largest
    with np.errstate(invalid="ignore"):
        found = np.diag(jitml.jit(lambda x, w: x @ w, fastmath="bf16", verify="never")(x, np.ones((64, 64), np.float32)))
    assert found[3] == np.inf and np.isnan(found[5]) and found[7] == np.inf and (np.delete(found, (3, 5, 7)) == 1).all()


# -------------------------------------------------------------------------------------------------- the compiler


LARGE = [np.ones(shape, np.float32) for shape in ((2048, 512), (512, 4096), (4096,))]


@pytest.mark.parametrize(
    ("function", "dtype", "options", "instruction"),
    [
        (PROGRAMS["gelu"][0], "f2", {}, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (lambda x, w, b: (w.T @ x.T) * b[:, None], "f2", {}, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (PROGRAMS["gelu"][0], "f4", {"fastmath": "tf32"}, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        (PROGRAMS["gelu"][0], "f4", {"fastmath": "bf16"}, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        (lambda x, w, b: (w.T @ x.T) * b[:, None], "f4", {"fastmath": "bf16"}, "mma.sync.aligned.m16n8k16.row.col.f32.bf16"),
        (PROGRAMS["gelu"][0], "f4", {}, "fma.rn.f32"),
    ],
)
def test_tensor_cores_are_used_and_nothing_is_spilled(
    function: Callable[..., Any], dtype: str, options: dict[str, Any], instruction: str
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from jitml.codegen.cuda.compiler import compile_cubin, compile_ptx, disassemble
    from jitml.errors import NoDeviceError
    from support.emitted_cuda.compiled import ARCHS, reports

    source = lowered(function, *(a.astype(dtype) for a in LARGE), **options).text("cuda")
    for arch in ARCHS if FULL else ("sm_90",):
        found = reports(source, arch)
        assert not {kernel: report.excess for kernel, report in found.items() if report.excess}, arch
        assert found["call_0_fused"].resources.registers <= 128
    assert instruction in compile_ptx(source, "sm_90")
    try:
        sass = disassemble(compile_cubin(source, "sm_90"))
    except NoDeviceError:  # no disassembler
        return
    assert ("HMMA" in sass) == instruction.startswith("mma") and "LDG.E.128" in sass
