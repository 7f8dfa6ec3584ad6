"""Convolutions as products over windows: are these read where they lie, and is the answer NumPy's?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import jitml
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.codegen.interpreter import run
from jitml.config import CONFIG
from jitml.pipeline import Lowered, lower
from support.cuda_emulation import ORDERS, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated
from support.effort import FULL

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)


def numbers(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def channels_last(x: Any, w: Any) -> Any:
    windows = sliding_window_view(x, w.shape[:2], axis=(1, 2))
    return np.einsum("nhwcij,ijcf->nhwf", windows, w)


def channels_first(x: Any, w: Any) -> Any:
    windows = sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.maximum(np.einsum("nchwij,fcij->nfhw", windows, w), 0)


def contracted(x: Any, w: Any) -> Any:
    return np.tensordot(sliding_window_view(x, w.shape[:2], axis=(1, 2)), w, axes=((3, 4, 5), (2, 0, 1)))


def padded(x: Any, w: Any) -> Any:
    return channels_last(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), w)


def every_other(x: Any, w: Any) -> Any:
    windows = sliding_window_view(x, w.shape[:2], axis=(1, 2))[:, ::2, ::3]
    return np.tanh(np.einsum("nhwcij,ijcf->nhwf", windows, w))


def dilated(x: Any, w: Any) -> Any:
    windows = sliding_window_view(x, (5, 5), axis=(1, 2))[..., ::2, ::2]
    return np.einsum("nhwcij,ijcf->nhwf", windows, w)


def flipped(x: Any, w: Any) -> Any:
    return channels_last(x, w[::-1, ::-1])


def columns(x: Any, w: Any) -> Any:
    """By index arrays that are spread, then a product of matrices."""
    n, height, width, _ = x.shape
    k, _, _, filters = w.shape
    rows = np.arange(height - k + 1)[:, None] + np.arange(k)
    across = np.arange(width - k + 1)[:, None] + np.arange(k)
    windows = x[:, rows[:, None, :, None], across[None, :, None, :], :]
    out = windows.reshape(-1, windows[0, 0, 0].size) @ w.reshape(-1, filters)
    return out.reshape(n, height - k + 1, width - k + 1, filters)


def columns_by_tiles(x: Any, w: Any) -> Any:
    """By index arrays of one axis for all channels and places of a window, as in many a course."""
    n, channels, height, width = x.shape
    filters, _, k, _ = w.shape
    down, across = height - k + 1, width - k + 1
    rows = np.tile(np.repeat(np.arange(k), k), channels).reshape(-1, 1) + np.repeat(np.arange(down), across).reshape(1, -1)
    cols = np.tile(np.arange(k), k * channels).reshape(-1, 1) + np.tile(np.arange(across), down).reshape(1, -1)
    depth = np.repeat(np.arange(channels), k * k).reshape(-1, 1)
    matrix = x[:, depth, rows, cols].transpose(1, 2, 0).reshape(channels * k * k, -1)
    return (w.reshape(filters, -1) @ matrix).reshape(filters, down, across, n)


def grouped(x: Any, w: Any) -> Any:
    """Each group of channels with filters of its own."""
    windows = sliding_window_view(x.reshape(*x.shape[:3], 2, -1), (3, 3), axis=(1, 2))
    return np.einsum("nhwgcij,gijcf->nhwgf", windows, w)


def along_one_axis(x: Any, w: Any) -> Any:
    return np.einsum("ntck,kcf->ntf", sliding_window_view(x, w.shape[0], axis=1), w)


TAPS = tuple((i, j) for i in range(3) for j in range(3))


def tap_by_tap(x: Any, w: Any, taps: Any = TAPS, start: Any = 0) -> Any:
    """One place of the windows after the other."""
    height, width = x.shape[1] - 2, x.shape[2] - 2
    out = np.zeros((x.shape[0], height, width, w.shape[3]), x.dtype) + start
    for i, j in taps:
        out = out + x[:, i : i + height, j : j + width, :] @ w[i, j]
    return np.maximum(out, 0)


def every_third_tap(x: Any, w: Any) -> Any:
    return tap_by_tap(x, w, TAPS[::-3])


def added_to_another(x: Any, w: Any) -> Any:
    return tap_by_tap(x, w, start=np.tanh(x[:, 1:-1, 1:-1, :1]))


def weights_slope(x: Any, w: Any) -> Any:
    return jitml.grad(lambda w: (channels_last(x, w) ** 2).sum())(w)


LAST, FIRST = (numbers(2, 9, 11, 8), numbers(3, 3, 8, 20)), (numbers(2, 5, 9, 10), numbers(20, 5, 3, 3))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Array, ...], list[str]]] = {
    "channels last": (channels_last, LAST, ["fused"]),
    "channels first": (channels_first, FIRST, ["fused", "k0_maximum"]),
    "tensordot": (contracted, LAST, ["fused"]),
    "padded": (padded, LAST, ["k0_pad", "fused"]),
    "every other": (every_other, LAST, ["fused"]),
    "dilated": (dilated, LAST, ["fused"]),
    "flipped": (flipped, LAST, ["fused"]),
    "columns": (columns, LAST, ["fused", "k0_reshape"]),
    "columns by tiles": (columns_by_tiles, FIRST, ["fused", "k0_reshape"]),
    "grouped": (grouped, (LAST[0], numbers(2, 3, 3, 4, 12)), ["fused", "k0_transpose"]),
    "along one axis": (along_one_axis, (numbers(3, 70, 6), numbers(5, 6, 9)), ["fused"]),
    "a strided argument": (channels_last, (numbers(2, 18, 11, 16)[:, ::2, :, ::2], LAST[1]), ["fused"]),
    "doubles": (channels_last, tuple(a.astype("f8") for a in LAST), ["fused"]),
    "halves": (channels_last, tuple(a.astype("f2") for a in LAST), ["fused"]),
    "tap by tap": (tap_by_tap, LAST, ["fused"]),
    "every third tap": (every_third_tap, LAST, ["fused"]),
    "added to another": (added_to_another, LAST, ["fused"]),
    "doubles tap by tap": (tap_by_tap, tuple(a.astype("f8") for a in LAST), ["fused"]),
    "one row of pixels": (channels_last, (numbers(1, 3, 40, 3), numbers(3, 3, 3, 2)), ["fused"]),
}


def lowered(function: Callable[..., Any], *arguments: Any, **options: Any) -> Lowered:
    found = jitml.jit(function, **options).lower(*arguments)
    return lower(found.traced, BACKEND, fastmath=found.options.fastmath)


def steps(made: Lowered) -> list[str]:
    return [step.name for step in made.program.kernels.steps]


def largest(made: Lowered) -> int:
    """Elements of the largest array that is neither an argument nor a result."""
    kernels = made.program.kernels
    return max((b.size for b in kernels.buffers.values() if b.name not in (*kernels.inputs, *kernels.outputs)), default=0)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDevice]:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated() as device:
        yield device


TOLERANCES = {2: 1e-3, 4: 4e-6, 8: 1e-14}  # of results, relative to the largest, by bytes of an element


def exact(function: Callable[..., Any], arguments: tuple[Array, ...]) -> Array:
    return np.asarray(function(*(a.astype("f8") for a in arguments)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_are_not_stored(name: str) -> None:
    function, arguments, expected = PROGRAMS[name]
    made = lowered(function, *arguments)
    assert steps(made) == expected
    x, result = arguments[0], exact(function, arguments)
    assert largest(made) <= max(2 * x.size, result.size)
    (found,) = run(made.program, tuple(map(np.ascontiguousarray, arguments)))
    assert abs(found - result).max() <= TOLERANCES[x.dtype.itemsize] * abs(result).max()


def answers(device: EmulatedDevice, function: Callable[..., Any], arguments: tuple[Array, ...], **options: Any) -> Array:
    """The same in three orders of threads."""
    found = []
    for device.order in ORDERS:
        found.append(np.asarray(jitml.jit(function, verify="never", host_calls="error", **options)(*arguments)))
    assert device.launches and all(x.tobytes() == found[0].tobytes() for x in found)
    return found[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_over_windows_are_numpys(name: str, device: EmulatedDevice) -> None:
    function, arguments, _ = PROGRAMS[name]
    expected, found = exact(function, arguments), answers(device, function, arguments)
    assert found.dtype == arguments[0].dtype
    assert abs(found - expected).max() <= TOLERANCES[found.dtype.itemsize] * abs(expected).max()


@pytest.mark.parametrize(("rounding", "error"), [("tf32", 2.0**-10), ("bf16", 2.0**-7)])
@pytest.mark.parametrize("name", ["channels last", "channels first"])
def test_tensor_cores_read_windows(name: str, rounding: str, error: float, device: EmulatedDevice) -> None:
    function, arguments, _ = PROGRAMS[name]
    expected, found = function(*arguments), answers(device, function, arguments, fastmath=rounding)
    assert error / 100 < abs(found - expected).max() / abs(expected).max() < error


def test_slopes_of_weights_are_products_over_windows(device: EmulatedDevice) -> None:
    x, w = numbers(2, 14, 15, 4), numbers(3, 3, 4, 6)
    made = lowered(weights_slope, x, w)
    assert steps(made).count("fused") == 2 and "gather" not in str(steps(made)) and largest(made) < 2 * x.size
    exact = run(lowered(weights_slope, *(a.astype("f8") for a in (x, w))).program, (x.astype("f8"), w.astype("f8")))
    np.testing.assert_allclose(answers(device, weights_slope, (x, w)), exact[0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("function", "products"),
    [
        (lambda x, w: tap_by_tap(x, w, TAPS[:4]), 4),  # of no lattice
        (lambda x, w: tap_by_tap(x, w, TAPS[:2]) + tap_by_tap(x, w, TAPS[2:4]), 2),
        (lambda x, w: x[:, :5, :5] @ w[0, 0] + x[:, 1:6, :5] @ w[0, 0], 1),  # factors that are the same
        (lambda x, w: x[:, :5, :5] @ w[0, 0] + np.tanh(x)[:, 1:6, :5] @ w[0, 1], 2),  # of two arrays
        (lambda x, w: ((y := x[:, :5, :5] @ w[0, 0]) + x[:, 1:6, :5] @ w[0, 1]) * y, 2),  # one is wanted otherwise
    ],
)
def test_sums_of_products_are_one_if_their_places_are_a_lattice(
    function: Callable[..., Any], products: int, device: EmulatedDevice
) -> None:
    made = lowered(function, *LAST)
    assert sum(name in ("fused", "gemm") for name in steps(made)) == products
    expected = exact(function, LAST)
    assert abs(answers(device, function, LAST) - expected).max() <= TOLERANCES[4] * abs(expected).max()


@pytest.mark.parametrize(
    "places",
    [
        lambda i: i[:, None] + np.arange(3),  # that only the run knows
        lambda i: np.arange(6)[:, None] - np.arange(3),  # that count from the end
        lambda i: (np.arange(6)[:, None] ** 2 + np.arange(3)) % 9,  # that are not linear in the index
    ],
)
def test_places_without_a_layout_are_gathered(places: Callable[..., Any], device: EmulatedDevice) -> None:
    def convolved(x: Any, w: Any, i: Any) -> Any:
        return np.einsum("nhkc,kcf->nhf", x[:, places(i)], w)

    arguments = (numbers(2, 9, 8), numbers(3, 8, 5), np.array([0, 3, 1, 6, 2, 5]))
    assert "gemm" in steps(lowered(convolved, *arguments))
    np.testing.assert_allclose(answers(device, convolved, arguments), convolved(*arguments), rtol=1e-4, atol=1e-5)


# -------------------------------------------------------------------------------------------------- the compiler


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "tf32", "bf16"])
@pytest.mark.parametrize("name", ["channels last", "channels first"])
def test_nothing_is_spilled(name: str, kind: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from support.emitted_cuda.compiled import ARCHS, reports

    shapes = {"channels last": ((32, 64, 66, 64), (3, 3, 64, 256)), "channels first": ((32, 64, 64, 66), (256, 64, 3, 3))}[name]
    options = {"fastmath": kind} if kind in ("tf32", "bf16") else {}
    given = [np.ones(shape, "f4" if options else kind) for shape in shapes]
    made = lowered(PROGRAMS[name][0], *given, **options)
    source = made.text("cuda")
    for arch in ARCHS if FULL else ("sm_90",):
        found = reports(source, arch)
        assert not {kernel: report.excess for kernel, report in found.items() if report.excess}, arch
        assert found["call_0_fused"].resources.registers <= (168 if kind in ("f4", "f8") else 128)
