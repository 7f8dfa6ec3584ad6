"""Regions on a device: loops and branches that the host drives, buffers that change places, and checks that end them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from jitml.codegen.backend import CodeOptions
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.codegen.cuda.runtime.executable import CudaExecutable
from jitml.codegen.run.calling import NO_NEEDS
from jitml.errors import FailedCheck
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from jitml.ir.text.parser import parse
from jitml.kernels.program import Region
from jitml.memory.plan import plan
from support.cuda_emulation import has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated
from support.fused import fuse

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")


def loaded(text: str, aliases: Mapping[int, int]) -> CudaExecutable:
    """A graph as regions of kernels, which no pass has made into one kernel."""
    target = BACKEND.target
    kernels = fuse(run_passes(parse(text)), aliases=aliases, rolls=False, target=target, scheduler=BACKEND.scheduler)
    assert any(isinstance(step, Region) for step in kernels.steps)
    program = plan(kernels, target.limits.alignment)
    _, executable = BACKEND.compile(program, CodeOptions(), NO_NEEDS)
    assert isinstance(executable, CudaExecutable)
    return executable


def check(device: EmulatedDevice, text: str, aliases: Mapping[int, int], numbers: Sequence[int]) -> CudaExecutable:
    """Compare answers with the graph's, for some values of its integers."""
    graph, rng, executable = parse(text), np.random.default_rng(0), loaded(text, aliases)
    for n in numbers:
        args = [np.asarray(rng.normal(size=v.shape) if v.dtype.kind == "f" else n).astype(v.dtype) for v in graph.inputs]
        mine = [a.copy() for a in args]
        for k, (got, expected) in enumerate(zip(executable(*mine), interpret(graph, args), strict=True)):
            np.testing.assert_allclose(got, expected, rtol=1e-12)
            assert k not in aliases or got is mine[aliases[k]]
    return executable


ROTATION = """graph(n: i64[], a: f64[64], b: f64[64], c: f64[64]) {
  d: f64[64], e: f64[64], f: f64[64] = loop n a b c {carried=3} body(i: i64[], x: f64[64], y: f64[64], z: f64[64]) {
    w: f64[64] = sin x
    return y z w
  }
  return d e f }"""


def test_what_changes_places_comes_home() -> None:
    with emulated() as device:
        check(device, ROTATION, {0: 1, 1: 2, 2: 3}, range(7))
        check(device, ROTATION, {}, range(4))


def test_a_loop_whose_trips_are_known_is_recorded() -> None:
    text = """graph(a: f64[64], b: f64[64]) {
      n: i64[] = full {dtype=i64, shape=(), value=5}
      c: f64[64], d: f64[64] = loop n a b {carried=2} body(i: i64[], x: f64[64], y: f64[64]) {
        j: f64[] = convert i {dtype=f64}
        k: f64[64] = broadcast j {axes=(), shape=(64,)}
        z: f64[64] = add x k
        return y z
      }
      return c d }"""
    with emulated() as device:
        executable = check(device, text, {}, range(4))
        assert executable.loaded.bound.can_record
        (graph,) = device.graphs
        assert graph.replays == 3


def test_a_while_loop_asks_before_each_iteration() -> None:
    text = """graph(x: f64[64], m: f64[64,64], n: i64[]) {
      zero: i64[] = full {dtype=i64, shape=(), value=0}
      k: i64[], y: f64[64] = while_ zero x n m {carried=2} test(i: i64[], x: f64[64], n: i64[], m: f64[64,64]) {
        b: bool[] = lt i n
        return b
      } body(i: i64[], x: f64[64], n: i64[], m: f64[64,64]) {
        one: i64[] = full {dtype=i64, shape=(), value=1}
        j: i64[] = add i one
        v: f64[64,1] = reshape x {shape=(64, 1)}
        w: f64[64,1] = dot_general m v {batch=((), ()), contract=((1,), (0,))}
        z: f64[64] = reshape w {shape=(64,)}
        return j z
      }
      return y }"""
    with emulated() as device:
        executable = check(device, text, {0: 0}, range(4))
        assert not executable.loaded.bound.can_record


def test_a_branch_is_taken_by_what_the_device_says() -> None:
    text = """graph(x: f64[64], n: i64[]) {
      two: i64[] = full {dtype=i64, shape=(), value=2}
      b: bool[] = lt n two
      y: f64[64] = cond b x {} then(x: f64[64]) {
        y: f64[64] = sin x
        return y
      } orelse(x: f64[64]) {
        y: f64[64] = neg x
        return y
      }
      return y }"""
    with emulated() as device:
        check(device, text, {}, range(4))


CHECKED = """graph(x: f64[64], n: i64[], most: i64[]) {
  zero: i64[] = full {dtype=i64, shape=(), value=0}
  k: i64[], y: f64[64] = while_ zero x n most {carried=2} test(i: i64[], x: f64[64], n: i64[], most: i64[]) {
    b: bool[] = lt i n
    return b
  } body(i: i64[], x: f64[64], n: i64[], most: i64[]) {
    one: i64[] = full {dtype=i64, shape=(), value=1}
    j: i64[] = add i one
    good: bool[] = lt i most
    t: i64[] = check j good i {error='ValueError', message='iteration {} is one too many'}
    z: f64[64] = sin x
    return t z
  }
  return y }"""


def test_a_failed_check_ends_a_loop_and_leaves_arguments_alone() -> None:
    with emulated() as device:
        executable = loaded(CHECKED, {0: 0})
        x = np.linspace(0, 1, 64)
        before = x.copy()
        for n, most in ((5, 3), (2, 3), (9, 0)):
            x[...] = before
            args: list[Any] = [x, np.asarray(n), np.asarray(most)]
            if n <= most:
                (y,) = executable(*args)
                np.testing.assert_allclose(y, np.sin(np.sin(before)))
                continue
            with pytest.raises(FailedCheck, match=f"iteration {most} is one too many"):
                executable(*args)
            np.testing.assert_array_equal(x, before)
        assert device.launches < 60  # a device that is not asked would run for ever
