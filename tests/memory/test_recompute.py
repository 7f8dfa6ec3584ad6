"""Recomputation: graphs in which values are made twice give the same bits, and need less memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitml
from jitml.codegen.backend import backend_named
from jitml.fusion.fuse import fuse
from jitml.ir import ops
from jitml.ir.analysis.verify import verify
from jitml.ir.graph import Graph
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from jitml.ir.text.parser import parse
from jitml.memory.plan import plan
from jitml.memory.program import Program
from jitml.memory.recompute import _choices, _saved, bytes_needed, recomputed, within

ROWS, WIDTH = 500, 32


def net(weights: Any, x: Any) -> Any:
    for w in weights:
        x = np.tanh(x @ w)
    return (x**2).sum()


def gated(weights: Any, x: Any) -> Any:
    for w in weights:
        x = x + np.tanh(x @ w) * np.exp(-x * x)
    return np.log(np.exp(x).sum(axis=1)).mean()


def drawn(layers: int) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(layers)
    return [rng.standard_normal((WIDTH, WIDTH)) / WIDTH for _ in range(layers)], rng.standard_normal((ROWS, WIDTH))


def slope(f: Callable[..., Any], layers: int) -> Graph:
    return run_passes(jitml.jit(jitml.grad(f)).lower(*drawn(layers)).traced)


def planned(graph: Graph) -> Program:
    backend = backend_named("cuda")
    return plan(fuse(graph, target=backend.target, scheduler=backend.scheduler), backend.target.limits.alignment)


@pytest.mark.parametrize("f", [net, gated])
def test_what_is_made_twice_has_the_same_bits(f: Callable[..., Any]) -> None:
    graph, rng = slope(f, 5), random.Random(0)
    weights, x = drawn(5)
    args = [*weights, x]
    wanted = interpret(graph, args)
    saved = [s.value for s in _saved(graph)]
    assert len(saved) > 5
    for chosen in (saved, [], *(rng.sample(saved, rng.randrange(len(saved))) for _ in range(6))):
        changed = verify(recomputed(graph, frozenset(chosen)))
        assert (len(changed.nodes) > len(graph.nodes)) == bool(chosen)
        for mine, numpys in zip(interpret(changed, args), wanted, strict=True):
            np.testing.assert_array_equal(mine, numpys)


@pytest.mark.parametrize("f", [net, gated])
def test_memory_grows_less_than_the_number_of_layers(f: Callable[..., Any]) -> None:
    arrays = {}
    for layers in (4, 16):
        graph = slope(f, layers)
        program = planned(graph)
        changed, less = within(0, graph, program, planned)
        assert bytes_needed(less) < bytes_needed(program)
        arrays[layers] = less.arena_size / (8 * ROWS * WIDTH)
        assert program.arena_size / (8 * ROWS * WIDTH) > layers
        assert less is not program and changed is not graph
    assert arrays[16] < 2.5 * arrays[4]
    assert "values twice: needs" in str(less.kernels.decisions[0])


def test_as_little_as_is_needed_is_made_twice() -> None:
    graph = slope(gated, 8)
    program = planned(graph)
    changed, less = within(bytes_needed(program) - 1, graph, program, planned)
    first = recomputed(graph, next(_choices(graph)))
    assert str(changed) == str(first)
    contractions = [node for node in changed.nodes if node.op is ops.dot_general]
    assert len(contractions) == sum(node.op is ops.dot_general for node in graph.nodes)
    assert bytes_needed(less) < bytes_needed(program)


def test_what_has_effects_is_made_once() -> None:
    graph = parse(
        """graph(g: i64[], x: f64[1000]) {
          h: i64[], a: f64[1000] = random g {distribution='uniform', dtype=f64, legacy=False, shape=(1000,)}
          b: f64[1000] = exp a; c: f64[1000] = sin x; d: f64[1000] = cos c; e: f64[1000] = tan d; f: f64[1000] = sqrt e
          i: f64[1000] = log f; j: f64[1000] = mul i b; k: f64[1000] = mul j a; l: f64[1000] = add k c
          return h l
        }"""
    )
    changed = verify(recomputed(graph, frozenset(s.value for s in _saved(graph))))
    names = [node.op.name for node in changed.nodes]
    assert names.count("random") == 1 and names.count("sin") == 2


def test_a_program_that_fits_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from jitml import pipeline
    from jitml.codegen.cuda.runtime import backend

    traced = jitml.jit(jitml.grad(net)).lower(*drawn(6)).traced
    found = {}
    for most in (1 << 40, 900_000):
        monkeypatch.setattr(backend, "most_bytes", lambda most=most: most)
        found[most] = pipeline.lower(traced, backend_named("cuda"))
    assert str(found[1 << 40].graph) == str(run_passes(traced))
    assert bytes_needed(found[1 << 40].program) > 900_000 >= bytes_needed(found[900_000].program)
