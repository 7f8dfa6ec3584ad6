"""Chained products in plans: what is never stored, in how many passes, and when it is done as before."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import jitml
from codegen.cuda.attention import (
    KIN,
    Function,
    by_einsum,
    by_hand,
    causal,
    division_last,
    flat,
    heads,
    lowered,
    numbers,
    one_projection,
    plain,
    second_derivative,
    shared_keys,
    softmax,
    squared,
    steps,
)
from jitml.codegen.cuda.target import cuda_target
from jitml.codegen.interpreter import run
from jitml.fusion.prepare.chains import Chain, Tiles, tiles_for
from jitml.kernels.program import Call
from jitml.kernels.text.printer import show_program
from jitml.kernels.text.program_parser import parse_program


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (plain, heads(256, 200, 20, 30, 2), ["fused"]),
        (plain, heads(256, 200, 20, 30, 1), ["fused"]),
        (plain, heads(256, 200, 20, 30, 1, 3), ["fused"]),
        (causal, heads(256, 200, 20, 30, 2, dtype="f2"), ["fused"]),
        (squared(causal), heads(200, 200, 20, 20, 2, dtype="f2"), None),
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


def weights_of_floats(q: Any, k: Any, v: Any) -> Any:
    return softmax((q @ k.T).astype(np.float32)) @ v


def also_weights(q: Any, k: Any, v: Any) -> Any:
    weights = softmax(q @ k.swapaxes(-1, -2))
    return weights, weights @ v


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        pytest.param(also_weights, heads(100, 100, 20, 20), id="the weights are wanted, too"),
        pytest.param(plain, (*heads(100, 100, 20, 20, dtype="f2")[:2], numbers(100, 20)), id="halves times floats"),
        pytest.param(weights_of_floats, heads(100, 100, 20, 20, dtype="f2"), id="floats times halves"),
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


def beside_its_factor(x: Any, w: Any) -> Any:
    y = np.tanh(x)
    return np.square(y @ w + y - x @ w).sum(axis=1)


def product_of_squares(x: Any, w: Any) -> Any:
    z = np.square(x @ w + x)
    return (z @ w * z).sum(axis=1), (z @ w).max(axis=1)


def slope(x: Any, w: Any) -> Any:
    return jitml.grad(lambda x, w: np.exp(-beside_its_factor(x, w)).sum(), argnums=(0, 1))(x, w)


@pytest.mark.parametrize(("function", "passes"), [(beside_its_factor, 1), (product_of_squares, 0), (slope, None)])
def test_products_of_what_is_made_element_by_element(
    function: Function, passes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jitml.fusion.prepare.chained_products.pays", lambda *a: True)
    arguments = (numbers(40, 50).astype("f8"), numbers(50, 50).astype("f8"))
    made = lowered(function, *arguments)
    assert passes is None or made.kernels.count("tiles=") == passes
    assert "__global__" in made.text("cuda")
    wanted = flat(jitml.jit(function)(*arguments))
    for x, y in zip(run(made.program, arguments), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", KIN, ids=lambda f: f.__name__)
def test_what_is_alike_is_cut_into_passes_that_wait_for_each_other(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jitml.fusion.prepare.chained_products.pays", lambda *a: True)
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
