"""Attention and its kin: passes over squares that are never stored give NumPy's answers, forward and backward."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.codegen.cuda.target import cuda_target
from jitml.codegen.interpreter import run
from jitml.config import CONFIG
from jitml.fusion.prepare.chains import Chain, Tiles, tiles_for
from jitml.kernels.program import Call
from jitml.kernels.text.printer import show_program
from jitml.kernels.text.program_parser import parse_program
from jitml.pipeline import Lowered, lower
from support.cuda_emulation import ORDERS, KernelFault, build, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated
from support.effort import FULL

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
Array = np.ndarray[Any, Any]
Function = Callable[..., Any]
RNG = np.random.default_rng(0)


def numbers(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def heads(rows: int, columns: int, depth: int, width: int, *batch: int, dtype: str = "f4") -> tuple[Array, Array, Array]:
    return tuple(numbers(*batch, n, d, dtype=dtype) for n, d in ((rows, depth), (columns, depth), (columns, width)))  # type: ignore[return-value]


def softmax(scores: Any) -> Any:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) * 0.3) @ v


def in_doubles(q: Any, k: Any, v: Any) -> Any:
    """The scale is a double, and so is what is computed of it."""
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) * 0.3
    return softmax(np.where(np.tri(scores.shape[-2], scores.shape[-1], dtype=bool), scores, -np.inf)) @ v


def masked_in_place(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2)
    scores[np.triu(np.ones(scores.shape, dtype=bool), 1)] = -np.inf
    return softmax(scores) @ v


def masked(q: Any, k: Any, v: Any, mask: Any, bias: Any) -> Any:
    return softmax(np.where(mask, q @ k.swapaxes(-1, -2) + bias, -np.inf)) @ v


def division_last(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights @ v) / weights.sum(axis=-1, keepdims=True)


def no_maximum(q: Any, k: Any, v: Any) -> Any:
    weights = np.exp(q @ k.swapaxes(-1, -2) * 0.1)
    return (weights / weights.sum(axis=-1, keepdims=True)) @ v


def by_columns(q: Any, k: Any, v: Any) -> Any:
    """Scores with keys down, as some write them."""
    scores = k @ q.T
    weights = np.exp(scores - scores.max(axis=0))
    return (weights / weights.sum(axis=0)).T @ v


def by_einsum(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(np.einsum("nhd,mhd->hnm", q, k) * 0.2)
    return np.einsum("hnm,mhd->nhd", weights, v)


def one_projection(x: Any) -> Any:
    """Batch, length, and for each head queries, keys and values side by side."""
    q, k, v = (x[:, :, n * 24 : n * 24 + 24].reshape(*x.shape[:2], 3, 8).transpose(0, 2, 1, 3) for n in range(3))
    return plain(q, k, v).transpose(0, 2, 1, 3).reshape(*x.shape[:2], 24)


def shared_keys(q: Any, k: Any, v: Any) -> Any:
    """One head of keys and values for all heads of queries."""
    return plain(q, k[:, None], v[:, None])


def kernel_sums(x: Any, y: Any, w: Any) -> Any:
    """A matrix of distances that ends as sums: no softmax."""
    squared = (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T)
    near = np.exp(-0.1 * squared)
    return (near @ w) / near.sum(axis=1, keepdims=True), squared.min(axis=0)


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


def lowered(function: Function, *arguments: Any, **options: Any) -> Lowered:
    found = jitml.jit(function, **options).lower(*arguments)
    return lower(found.traced, BACKEND, fastmath=found.options.fastmath)


def steps(made: Lowered) -> list[str]:
    return [step.name for step in made.program.kernels.steps]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones, too."""
    monkeypatch.setattr("jitml.fusion.prepare.chained_products.pays", lambda *a: True)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedDevice]:
    monkeypatch.setattr("jitml.codegen.backend.CONFIG", replace(CONFIG, backend="cuda"))
    with emulated() as device:
        yield device


def flat(results: Any) -> list[Array]:
    return [r for x in results for r in flat(x)] if isinstance(results, (tuple, list)) else [np.asarray(results)]


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


def squared(function: Function) -> Function:
    """The derivative of the sum of a function's squares."""
    return jitml.grad(lambda q, k, v: (function(q, k, v) ** 2).sum(), argnums=(0, 1, 2))


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


def difference_of_two(q: Any, k: Any, v: Any) -> Any:
    """Differential attention: two softmaxes in one square."""
    return (softmax(q @ k.T) - 0.3 * softmax(q[:, ::-1] @ k.T * 0.5)) @ v


def of_its_own_result(q: Any, k: Any, v: Any) -> Any:
    """The second scores take what the first have made."""
    first = softmax(q @ k.T) @ v
    return softmax(q @ k.T * first[:, :1]) @ (v * first.sum())


def two_values(q: Any, k: Any, v: Any) -> Any:
    p = softmax(q @ k.T)
    return p @ v, p @ (v * v), p.T @ q, p.sum(axis=0), p.max(axis=1)


def weights_with_gates(q: Any, k: Any, v: Any) -> Any:
    """What is multiplied is more than a softmax."""
    return (softmax(q @ k.T) * np.tanh(q @ k.T)) @ v


def down_and_across(q: Any, k: Any, v: Any) -> Any:
    """Sums of rows and of columns that need each other."""
    near = np.exp(-0.1 * (q @ k.T) ** 2)
    near = near / near.sum(axis=1, keepdims=True)
    near = near / near.sum(axis=0)
    return near @ v, near.T @ q


def second_derivative(q: Any, k: Any, v: Any) -> Any:
    slope = jitml.grad(lambda q: (plain(q, k, v) ** 2).sum())
    return jitml.grad(lambda q: (slope(q) * v.sum()).sum())(q)


def log_sum_exp(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T
    top = scores.max(axis=-1, keepdims=True)
    return np.log(np.exp(scores - top).sum(axis=-1)) + top[:, 0], np.tanh(scores) @ v


def layers(q: Any, k: Any, v: Any) -> Any:
    for _ in range(3):
        q = q + softmax(q @ k.T) @ k
    return q


KIN = (
    *(difference_of_two, of_its_own_result, two_values, weights_with_gates, down_and_across, second_derivative, log_sum_exp),
    layers,
)


@pytest.mark.parametrize("function", KIN, ids=lambda f: f.__name__)
def test_what_is_alike_is_cut_into_passes_that_wait_for_each_other(function: Function, always: None) -> None:
    arguments = heads(40, 50, 12, 12, dtype="f8")
    made = lowered(function, *arguments)
    assert "tiles=" in made.kernels
    if function is not second_derivative:
        wanted = flat(function(*arguments))
    else:
        wanted = flat(jitml.jit(function)(*arguments))
    assert max(b.nbytes for b in made.program.kernels.buffers.values()) < 8 * 40 * 50
    for x, y in zip(run(made.program, arguments), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


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


# -------------------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (plain, heads(256, 200, 20, 30, 2), ["fused"]),
        (plain, heads(256, 200, 20, 30, 1), ["fused"]),
        (plain, heads(256, 200, 20, 30, 1, 3), ["fused"]),
        (causal, heads(200, 200, 64, 64, 2, dtype="f8"), ["fused"]),
        (by_einsum, tuple(numbers(n, 3, 8) for n in (90, 66, 66)), ["fused"]),
        (one_projection, (numbers(2, 120, 72),), ["fused", "k0_reshape"]),
        (shared_keys, (numbers(2, 3, 90, 8), numbers(2, 80, 8), numbers(2, 80, 9)), ["fused"]),
        (squared(causal), heads(200, 200, 20, 20, 2), ["fused", "k0_mul", "fused", "fused"]),
        (squared(causal), heads(200, 200, 20, 20, 1), ["fused", "k0_mul", "fused", "fused"]),
        (squared(division_last), heads(100, 120, 20, 20), None),
    ],
)
def test_nothing_as_large_as_the_scores_is_stored(
    function: Function, arguments: tuple[Any, ...], expected: list[str] | None
) -> None:
    made = lowered(function, *arguments)
    assert expected is None or steps(made) == expected
    kernels = made.program.kernels
    largest = max(kernels.buffers[name].size for name in (*kernels.inputs, *kernels.outputs))
    assert max(b.size for b in kernels.buffers.values()) <= largest
    chains = [Chain.of(step.params["call"]) for step in kernels.steps if isinstance(step, Call) and "tiles" in step.params]
    assert chains and all(chain is not None and prod(chain.shape) > largest for chain in chains)


def also_weights(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(q @ k.swapaxes(-1, -2))
    return weights, weights @ v


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        pytest.param(also_weights, heads(100, 100, 20, 20), id="the weights are wanted, too"),
        pytest.param(plain, heads(100, 100, 20, 20, dtype="f2"), id="halves, which tensor cores multiply"),
        pytest.param(plain, heads(16, 2048, 8, 8), id="few rows, and one block would go through all columns"),
        pytest.param(plain, heads(20, 2048, 64, 64, 40), id="fewer scores than keys"),
        pytest.param(plain, heads(400, 400, 300, 20, 3), id="long sums"),
        pytest.param(plain, heads(400, 400, 20, 300, 3), id="many columns"),
    ],
)
def test_what_does_not_pay_is_done_as_before(function: Function, arguments: tuple[Any, ...]) -> None:
    assert "tiles" not in lowered(function, *arguments).kernels


def test_the_cpu_has_no_such_step() -> None:
    assert "fused" not in jitml.jit(plain).lower(*heads(100, 100, 20, 20)).kernels


def test_tiles_are_as_large_as_the_processor_allows() -> None:
    narrow, wide = (found(plain, heads(256, 256, d, d, 200)) for d in (32, 128))
    large, small = (cuda_target(arch).limits for arch in ("sm_90", "sm_10"))
    assert [tiles_for(chain, large) for chain in (narrow, wide)] == [Tiles(64, 64), Tiles(64, 64)]
    assert [tiles_for(chain, small) for chain in (narrow, wide)] == [Tiles(64, 32), Tiles(16, 32)]
    few = found(plain, heads(256, 256, 32, 32, 4))
    assert tiles_for(few, large) == Tiles(16, 64)


def found(function: Function, arguments: tuple[Any, ...]) -> Chain:
    (step,) = lowered(function, *arguments).program.kernels.steps
    assert isinstance(step, Call)
    chain = Chain.of(step.params["call"])
    assert chain is not None
    return chain


def test_the_interpreter_knows_passes_and_they_are_read_back() -> None:
    arguments = heads(70, 80, 9, 11, 2)
    made = lowered(squared(plain), *arguments)
    text = show_program(made.program.kernels)
    assert show_program(parse_program(text)) == text and text.count("tiles=") == 3
    for x, y in zip(run(made.program, arguments), squared(plain)(*(a.astype("f8") for a in arguments)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def by_hand(factor: Callable[[Any, Any], Any]) -> Function:
    """Slopes as a user writes them, with some sum of rows."""

    def slopes(q: Any, k: Any, v: Any, given: Any) -> Any:
        p = softmax(q @ k.T)
        out = p @ v
        d_out = 2 * out + given
        d_p = d_out @ v.T
        d_scores = p * (d_p + factor(d_p, p).sum(axis=-1, keepdims=True))
        return d_scores @ k, d_scores.T @ q, p.T @ d_out, out

    return slopes


@pytest.mark.parametrize(
    ("factor", "passes"),
    [
        (lambda d_p, p: -d_p * p, 3),
        (lambda d_p, p: p * d_p * -0.5, 3),
        (lambda d_p, p: -(2 * p) * -d_p, 3),
        (lambda d_p, p: d_p * p * p, 4),
        (lambda d_p, p: p * p, 4),
        (lambda d_p, p: d_p * np.abs(p), 4),
        (lambda d_p, p: d_p + p, 4),
    ],
)
def test_sums_of_rows_are_short_where_they_can_be(factor: Callable[[Any, Any], Any], passes: int) -> None:
    arguments = (*heads(70, 80, 9, 9), numbers(70, 9))
    made = lowered(by_hand(factor), *arguments)
    assert made.kernels.count("tiles=") == passes
    for x, y in zip(run(made.program, arguments), by_hand(factor)(*(a.astype("f8") for a in arguments)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-4)


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
    ],
)
def test_nothing_is_spilled(function: Function, argument: Array, fastmath: Any) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from support.emitted_cuda.compiled import ARCHS, reports

    made = lowered(function, argument, argument.copy(), argument.copy(), fastmath=fastmath)
    assert ("ji_square_tf32<64, 64>" in made.text("cuda")) == bool(fastmath)
    assert made.kernels.count("tiles=") >= 3  # more if scores are made again in any case, so that little is kept
    for arch in ARCHS if FULL else ("sm_90",):
        found = reports(made.text("cuda"), arch)
        assert not {kernel: report.excess for kernel, report in found.items() if report.excess}, arch
