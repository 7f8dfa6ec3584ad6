"""Regions on a device: loops and branches that host or device drives, buffers that change places, checks that end them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from jitml.codegen.backend import CodeOptions
from jitml.codegen.cuda.runtime import text as text_of_programs
from jitml.codegen.cuda.runtime.backend import BACKEND
from jitml.codegen.cuda.runtime.device import DeviceArgument
from jitml.codegen.cuda.runtime.executable import CudaExecutable
from jitml.codegen.run.calling import NO_NEEDS
from jitml.errors import FailedCheck
from jitml.ir.interpret import interpret
from jitml.ir.passes import run_passes
from jitml.ir.text.parser import parse
from jitml.kernels.program import Region
from jitml.memory.plan import plan
from support.cuda_emulation import ORDERS, has_compiler
from support.cuda_emulation.device import EmulatedDevice, emulated
from support.fused import fuse

pytestmark = pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")


@pytest.fixture(params=["the device decides", "the host decides"])
def device(request: pytest.FixtureRequest) -> Iterator[EmulatedDevice]:
    with emulated(has_conditions=request.param == "the device decides") as device:
        yield device
        gc.collect()
        assert device.used == 0


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


def test_what_changes_places_comes_home(device: EmulatedDevice) -> None:
    check(device, ROTATION, {0: 1, 1: 2, 2: 3}, range(9))
    check(device, ROTATION, {}, range(6))


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


def rotation(size: int) -> str:
    """A loop in which so many arrays change places, until their sum is large or the last iteration is done."""
    names, taken = [f"a{k}" for k in range(size)], [f"x{k}" for k in range(size)]
    given, inside = (", ".join(f"{name}: f64[8]" for name in which) for which in (names, taken))
    got = ", ".join(f"r{k}: f64[8]" for k in range(size))
    return f"""graph(n: i64[], {given}) {{
      zero: i64[] = full {{dtype=i64, shape=(), value=0}}
      t: i64[], {got} = while_ zero {" ".join(names)} n {{carried={size + 1}}} test(i: i64[], {inside}, n: i64[]) {{
        s: f64[] = reduce_sum x0 {{axes=(0,)}}
        far: f64[] = full {{dtype=f64, shape=(), value=150.0}}
        near: bool[] = lt s far
        more: bool[] = lt i n
        b: bool[] = bit_and near more
        return b
      }} body(i: i64[], {inside}, n: i64[]) {{
        one: i64[] = full {{dtype=i64, shape=(), value=1}}
        j: i64[] = add i one
        k: f64[] = convert j {{dtype=f64}}
        l: f64[8] = broadcast k {{axes=(), shape=(8,)}}
        w: f64[8] = add x0 l
        return j {" ".join(taken[1:])} w
      }}
      return t {" ".join(f"r{k}" for k in range(size))} }}"""


def counted_rotation(size: int) -> str:
    """A loop of so many iterations in which so many arrays change places."""
    names, taken = [f"a{k}" for k in range(size)], [f"x{k}" for k in range(size)]
    given, inside = (", ".join(f"{name}: f64[8]" for name in which) for which in (names, taken))
    got = ", ".join(f"r{k}: f64[8]" for k in range(size))
    return f"""graph(n: i64[], {given}) {{
      {got} = loop n {" ".join(names)} {{carried={size}}} body(i: i64[], {inside}) {{
        j: f64[] = convert i {{dtype=f64}}
        k: f64[8] = broadcast j {{axes=(), shape=(8,)}}
        w: f64[8] = add x0 k
        return {" ".join(taken[1:])} w
      }}
      return {" ".join(f"r{k}" for k in range(size))} }}"""


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
def test_a_loop_ends_after_any_iteration(size: int, device: EmulatedDevice) -> None:
    for text, first in ((counted_rotation(size), 0), (rotation(size), 1)):
        check(device, text, {first + k: k + 1 for k in range(size)}, range(2 * size + 2))
        check(device, text, {}, [*range(2 * size + 2), 99])


def test_a_loop_of_many_iterations_is_one_graph(device: EmulatedDevice) -> None:
    text = """graph(x: f64[8], m: f64[8,8]) {
      n: i64[] = full {dtype=i64, shape=(), value=1500}
      y: f64[8] = loop n x m {carried=1} body(i: i64[], x: f64[8], m: f64[8,8]) {
        v: f64[8,1] = reshape x {shape=(8, 1)}
        w: f64[8,1] = dot_general m v {batch=((), ()), contract=((1,), (0,))}
        z: f64[8] = reshape w {shape=(8,)}
        t: f64[] = full {dtype=f64, shape=(), value=0.1}
        u: f64[8] = broadcast t {axes=(), shape=(8,)}
        q: f64[8] = mul z u
        s: f64[8] = cos q
        return s
      }
      return y }"""
    executable = check(device, text, {}, range(2))
    assert executable.loaded.bound.can_record == device.has_conditions
    assert len(device.graphs) == device.has_conditions


def test_a_while_loop_asks_before_each_iteration(device: EmulatedDevice) -> None:
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
    executable = check(device, text, {0: 0}, range(4))
    assert executable.loaded.bound.can_record == device.has_conditions
    x, m = np.ones(64), np.eye(64)
    executable(x, m, np.asarray(0))
    before = device.copied_out
    executable(x, m, np.asarray(5))
    assert (device.copied_out - before == x.nbytes) == device.has_conditions  # nobody looks in between
    assert bool(device.graphs) == device.has_conditions


NESTED = """graph(x: f64[16], n: i64[], most: i64[]) {
  zero: i64[] = full {dtype=i64, shape=(), value=0}
  k: i64[], y: f64[16] = while_ zero x n most {carried=2} test(i: i64[], x: f64[16], n: i64[], most: i64[]) {
    b: bool[] = lt i n
    return b
  } body(i: i64[], x: f64[16], n: i64[], most: i64[]) {
    one: i64[] = full {dtype=i64, shape=(), value=1}
    j: i64[] = add i one
    u: f64[16] = loop i x {carried=1} body(i: i64[], x: f64[16]) {
      r: f64[16] = cumsum x {axis=0, reverse=False}
      two: f64[] = full {dtype=f64, shape=(), value=2.0}
      f: f64[16] = broadcast two {axes=(), shape=(16,)}
      q: f64[16] = div r f
      return q
    }
    c: bool[] = lt i most
    v: f64[16] = cond c u {} then(x: f64[16]) {
      y: f64[16] = cumsum x {axis=0, reverse=True}
      return y
    } orelse(x: f64[16]) {
      s: f64[16] = cummax x {axis=0, reverse=False}
      y: f64[16] = neg s
      return y
    }
    return j v
  }
  return k y }"""


@pytest.mark.parametrize("order", ORDERS)
def test_regions_in_regions(order: int, device: EmulatedDevice) -> None:
    device.order = order
    graph, rng, executable = parse(NESTED), np.random.default_rng(0), loaded(NESTED, {})
    for n, most in ((0, 0), (1, 0), (4, 2), (5, 9), (3, 3)):
        args = [rng.normal(size=16), np.asarray(n), np.asarray(most)]
        for got, expected in zip(executable(*args), interpret(graph, args), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_a_branch_is_taken_by_what_the_device_says(device: EmulatedDevice) -> None:
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
    check(device, text, {}, [0, 3, 1, 2, 5])


@pytest.mark.parametrize("which", ["then", "orelse"])
def test_a_branch_may_have_nothing_to_do(which: str, device: EmulatedDevice) -> None:
    doing, idle = "y: f64[64] = sin x\n return y", "return x"
    then, orelse = (doing, idle) if which == "then" else (idle, doing)
    text = f"""graph(x: f64[64], n: i64[]) {{
      two: i64[] = full {{dtype=i64, shape=(), value=2}}
      b: bool[] = lt n two
      y: f64[64] = cond b x {{}} then(x: f64[64]) {{
        {then}
      }} orelse(x: f64[64]) {{
        {orelse}
      }}
      return y }}"""
    check(device, text, {0: 0}, [0, 3, 1, 2, 5])
    check(device, text, {}, [0, 3, 1, 2, 5])


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


def test_a_failed_check_ends_a_loop_and_leaves_arguments_alone(device: EmulatedDevice) -> None:
    executable = loaded(CHECKED, {0: 0})
    x = np.linspace(0, 1, 64)
    before = x.copy()
    for n, most in ((5, 3), (2, 3), (9, 0), (3, 3), (4, 1)):
        x[...] = before
        args: list[Any] = [x, np.asarray(n), np.asarray(most)]
        if n <= most:
            (y,) = executable(*args)
            np.testing.assert_allclose(y, [np.sin(before), np.sin(np.sin(before)), np.sin(np.sin(np.sin(before)))][n - 1])
            continue
        with pytest.raises(FailedCheck, match=f"iteration {most} is one too many"):
            executable(*args)
        np.testing.assert_array_equal(x, before)
    assert device.launches < 100  # a device that is not asked would run for ever


CHECKED_ROTATION = """graph(a: f64[300], b: f64[300], most: i64[]) {
  n: i64[] = full {dtype=i64, shape=(), value=TRIPS}
  c: f64[300], d: f64[300] = loop n a b most {carried=2} body(i: i64[], x: f64[300], y: f64[300], most: i64[]) {
    good: bool[] = lt i most
    t: i64[] = check i good i {error='ValueError', message='iteration {} is one too many'}
    j: f64[] = convert t {dtype=f64}
    k: f64[300] = broadcast j {axes=(), shape=(300,)}
    s: f64[300] = cumsum x {axis=0, reverse=False}
    z: f64[300] = add s k
    return y z
  }
  return c d }"""


@pytest.mark.parametrize("trips", [5, 2000])  # a row of launches, and a loop of the device's
def test_a_failed_check_leaves_arrays_of_the_device_alone(trips: int, device: EmulatedDevice) -> None:
    executable = loaded(CHECKED_ROTATION.replace("TRIPS", str(trips)), {0: 0, 1: 1}).on_device
    a, b = np.linspace(0, 1, 300), np.linspace(1, 2, 300)
    there = [DeviceArgument(device.allocate(x.nbytes), x.shape, x.dtype) for x in (a, b)]
    for x, argument in zip((a, b), there, strict=True):
        device.copy_in(argument.address, x)
    for most in (0, 1, 2, 3, 4, 2):
        with pytest.raises(FailedCheck, match=f"iteration {most} is one too many"):
            executable(*there, np.asarray(most))
        for x, argument in zip((a, b), there, strict=True):
            now = np.empty_like(x)
            device.copy_out((now, argument.address))
            np.testing.assert_array_equal(now, x)
    for argument in there:
        device.free(argument.address)


def test_an_old_compiler_leaves_regions_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_of_programs, "_REGIONS", text_of_programs._REGIONS.replace(text_of_programs.DECIDE, "ji_other"))
    with emulated() as device:
        executable = check(device, ROTATION, {}, range(4))
        assert not executable.loaded.bound.can_record and not device.graphs
