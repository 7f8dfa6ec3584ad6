"""Random numbers come from NumPy's own streams: the same values, the same state afterwards, in the program's order."""

from __future__ import annotations

import concurrent.futures
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

import jitml
from jitml.codegen.interpreter import run
from jitml.kernels.program import Call
from jitml.kernels.target import Accepts, Target
from jitml.kernels.text.printer import show_program
from jitml.memory.plan import plan
from support.against_numpy import compare, run_traced
from support.fused import fuse

Array = np.ndarray[Any, Any]
X = np.arange(6.0).reshape(2, 3)
RNG = np.random.default_rng(3)


@dataclass
class Walk:
    rng: np.random.Generator
    place: Array


def steps(walk: Walk) -> Array:
    walk.place += walk.rng.normal(size=2)
    return walk.place


def unused(rng: Any, x: Array) -> Array:
    rng.normal()
    return x + rng.random()


def into_views(rng: Any, x: Array) -> Any:
    rng.shuffle(x[0])
    rng.random(out=x[1])
    return x.sum()


def again_and_again(rng: Any, x: Array) -> Array:
    for n in range(3):
        x = x + rng.normal(scale=n + 1, size=x.shape)
    return x


def two(first: Any, second: Any, x: Array) -> Any:
    return first.random() + second.random() * first.random() + x


def monte_carlo(rng: Any, n: int) -> Any:
    x, y = rng.random(n), rng.random(n)
    return 4 * np.mean(x * x + y * y < 1)


def legacy(x: Array) -> Any:
    np.random.seed(7)
    a = np.random.rand(3) + np.random.randn(2, 3) + x
    np.random.shuffle(a)
    return a, np.random.randint(0, 10, 4), np.random.choice(5, 2), np.random.permutation(4), np.random.sample()


def made_inside(seed: int, x: Array) -> Any:
    rng, other = np.random.default_rng(seed), np.random.RandomState(seed)
    return rng.normal(size=3) + x + other.rand(), rng.integers(0, 9)


def made_by_name(x: Array) -> Array:
    return default_rng(3).normal(x)


def from_a_global(x: Array) -> Any:
    return x * RNG.exponential() + RNG.uniform(-1, 1, 3)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "an argument": (lambda rng, x: rng.normal(size=(2, 3)) + x, (RNG, X)),
    "a Python float": (lambda rng, x: x * rng.normal(), (RNG, np.ones(3, np.float32))),
    "integers": (lambda rng: (rng.integers(10), rng.integers(0, 5, size=3), rng.integers(0, [3, 4])), (RNG,)),
    "parameters that are traced": (lambda rng, x: rng.normal(x, x[0].sum()), (RNG, X)),
    "choices": (lambda rng, x: (rng.choice(5), rng.choice(x[0], 2), rng.choice(3, 4, p=[0.1, 0.2, 0.7])), (RNG, X)),
    "permutations": (lambda rng, x: (rng.permutation(x), rng.permutation(4), rng.permuted(x, axis=1)), (RNG, X)),
    "dtypes": (lambda rng: rng.random(3, dtype=np.float32) + rng.standard_normal(dtype=np.float32), (RNG,)),
    "draws that nobody uses": (unused, (RNG, X)),
    "in place": (into_views, (RNG, X)),
    "again and again": (again_and_again, (RNG, X)),
    "two generators": (two, (RNG, np.random.default_rng(1), X)),
    "one generator twice": (two, (RNG, RNG, X)),
    "an attribute": (steps, (Walk(RNG, np.zeros(2)),)),
    "a dict": (lambda d, x: d["rng"].random() + x, ({"rng": RNG}, X)),
    "RandomState": (lambda rng, x: (rng.rand(2), rng.randint(5), rng.normal(x)), (np.random.RandomState(3), X)),
    "another bit generator": (lambda rng: rng.poisson(3.0, 5), (np.random.Generator(np.random.MT19937(3)),)),
    "Monte Carlo": (monte_carlo, (RNG, 1000)),
    "a generator made inside": (made_inside, (4, X)),
    "a generator made by a function of Cython's that has a name": (made_by_name, (X,)),
    "the global generator": (legacy, (X,)),
    "a generator that is a global": (from_a_global, (X,)),
    "isinstance": (lambda rng, x: x + (rng.random() if isinstance(rng, np.random.Generator) else 0), (RNG, X)),
}


def states(args: Any) -> list[Any]:
    """The states of all generators in reach."""
    found = [np.random.mtrand._rand.get_state(legacy=False), RNG.bit_generator.state]
    for arg in args:
        arg = arg.rng if isinstance(arg, Walk) else arg["rng"] if isinstance(arg, dict) else arg
        if isinstance(arg, np.random.RandomState):
            found.append(arg.get_state(legacy=False))
        elif isinstance(arg, np.random.Generator):
            found.append(arg.bit_generator.state)
    return [str(state) for state in found]


@pytest.mark.parametrize("f, args", PROGRAMS.values(), ids=PROGRAMS)
def test_the_numbers_are_numpys(f: Callable[..., Any], args: tuple[Any, ...], target: str) -> None:
    jitted = jitml.jit(f)
    for _ in range(3):
        legacy_before, global_before = np.random.get_state(), RNG.bit_generator.state
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        expected = f(*theirs)
        after = states(theirs)
        np.random.set_state(legacy_before)
        RNG.bit_generator.state = global_before
        compare(jitted(*mine) if target == "compiled" else run_traced(f, *mine), expected)
        assert states(mine) == after
        for x, y in zip(mine, theirs):
            if isinstance(x, np.ndarray):
                compare(x, y)
    assert target == "interpreted" or len(jitted.variants) == 1


def test_a_replay_draws_once(target: str) -> None:
    def f(rng: Any, x: Array, i: Array) -> Any:
        x += rng.normal(size=3)
        np.random.rand()
        return x[i] + rng.random()

    if target == "interpreted":
        return
    jitted = jitml.jit(f)
    for i in ([0], [9], [1]):
        mine, theirs = (np.random.default_rng(0), np.zeros(3)), (np.random.default_rng(0), np.zeros(3))
        results = []
        before = np.random.get_state()
        for g, args in ((f, theirs), (jitted, mine)):
            np.random.set_state(before)
            try:
                results.append(g(*args, np.array(i)))
            except IndexError as error:
                results.append(np.array(str(error)))
            results.append(str(np.random.get_state()))
        np.testing.assert_array_equal(results[0], results[2])
        assert results[1] == results[3] and states(mine) == states(theirs)
        compare(mine[1], theirs[1])


def test_they_are_no_host_calls() -> None:
    f = jitml.jit(lambda rng, x: x + rng.poisson(3.0, size=3), host_calls="error")
    mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
    compare(f(mine, X), X + theirs.poisson(3.0, size=3))
    assert "host calls" not in f.explain(mine, X) and "draw Generator.poisson" in f.explain(mine, X)


def bits() -> list[Any]:
    return [np.random.PCG64(5), np.random.MT19937(5), np.random.Philox(5), np.random.SFC64(5)]


NATIVE: dict[str, Callable[[Any], Any]] = {
    "random": lambda rng: (rng.random(), rng.random(3), rng.random((2, 3)), rng.random(()), rng.random(4, dtype=np.float32)),
    "uniform": lambda rng: (rng.uniform(), rng.uniform(-2, 3, 7), rng.uniform(high=4.5, size=(2, 2))),
    "normal": lambda rng: (rng.normal(), rng.normal(1, 2.5, 9), rng.standard_normal((3, 2)), rng.standard_normal(4, np.float32)),
    "exponential": lambda rng: (rng.exponential(), rng.exponential(2.0, 8), rng.standard_exponential(3)),
    "integers": lambda rng: (rng.integers(10), rng.integers(-5, 5, 6), rng.integers(2**40, size=(2, 2)),
                            rng.integers(1, endpoint=True)),
    "narrow integers": lambda rng: tuple(
        rng.integers(0, 100, size, dtype) for dtype in (np.int8, np.uint16, np.int32, np.uint64) for size in (None, 5)
    ),
    "widest integers": lambda rng: (
        rng.integers(-(2**63), 2**63 - 1, 3, endpoint=True), rng.integers(2**64, size=3, dtype=np.uint64),
        rng.integers(2**32, size=3), rng.integers(2, size=9, dtype=bool), rng.integers(7, 8), rng.integers(3, dtype=int),
    ),
    "the half that is kept": lambda rng: (rng.integers(9), rng.random(), rng.integers(9), rng.integers(2**33), rng.integers(9)),
}  # fmt: skip
LEGACY: dict[str, Callable[[Any], Any]] = {
    "random": lambda rng: (rng.random(), rng.rand(), rng.rand(2, 3), rng.random_sample(4), rng.uniform(2, 3, 2)),
    "normal": lambda rng: (rng.randn(), rng.randn(4), rng.normal(1, 2), rng.standard_normal(2), rng.normal(size=3)),
    "integers": lambda rng: (rng.randint(10), rng.randint(-5, 5, 6), rng.randint(0, 100, (2, 2), np.uint8), rng.randint(2**40)),
}


@pytest.mark.parametrize("f", [*NATIVE.values(), *LEGACY.values()], ids=[*NATIVE, *(f"legacy {name}" for name in LEGACY)])
def test_native_draws(f: Callable[[Any], Any], target: str) -> None:
    """With each bit generator; nothing of them runs in Python."""
    kind = np.random.RandomState if f in LEGACY.values() else np.random.Generator
    jitted = jitml.jit(f)
    for mine, theirs in zip(map(kind, bits()), map(kind, bits())):
        for _ in range(2):
            compare(jitted(mine) if target == "compiled" else run_traced(f, mine), f(theirs))
            assert states([mine]) == states([theirs])
    if target == "compiled":
        assert "Generator." not in jitted.explain(kind(bits()[0])) and "RandomState." not in jitted.explain(kind(bits()[0]))


def integers(g: Any) -> Any:
    return g.integers if hasattr(g, "integers") else g.randint


PARAMETERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "numbers": (lambda g, a, n: (g.normal(a, n), g.normal(n, a, 4), g.uniform(n, a), g.uniform(-a, a, (2, 3)),
                                 g.normal(True, n, ())),
                (2.5, 1)),
    "numbers of Python": (lambda g, a: (g.exponential(float(a[1])), g.exponential(int(a[2]), 3), g.normal(a.sum(), 2)),
                          (np.arange(4.0),)),
    "NumPy scalars": (lambda g, x, k: (g.normal(x[1], 1.0), g.uniform(x[0], x[1], 5), g.exponential(k[1]), g.normal(k[0], x[1])),
                      (np.array([0.5, 2], np.float32), np.array([3, 1], np.int8))),
    "arrays": (lambda g, x: (g.normal(x), g.normal(x, x[0] + 1), g.uniform(x[:, :1], 9.0), g.exponential(x),
                             g.normal(x[0], 2, (4, 3)), g.uniform(-x, x, (2, 2, 3)), g.normal(x[:1, :1])), (X,)),
    "nan": (lambda g, x: (g.normal(0, x), g.normal(x, x), g.exponential(x[0])), (np.array([np.nan, 0.0]),)),
    "sizes that data decide": (lambda g, x: (g.normal(x[x > 1]), g.exponential(x[x > 1].sum(), 3)), (X,)),
    "negative": (lambda g, x: g.normal(0, x[0]) + g.normal(), (np.array([-1.0]),)),
    "negative zero": (lambda g, x: g.exponential(x), (np.array([1.0, -0.0]),)),
    "limits that fall": (lambda g, x: g.uniform(x[1], x[0]), (X[0],)),
    "limits of integers": (lambda g, x, k: (integers(g)(k[1], x[0]), integers(g)(x[2], size=3), integers(g)(np.int8(-3), x[1])),
                           (np.array([5, 9, 2]), np.array([9, 1], np.int8))),
    "limits of integers that fall": (lambda g, x: integers(g)(0, x[0]) + integers(g)(x[0], x[1]), (np.array([5, 5]),)),
    "no limit": (lambda g, x: g.uniform(x[1], x[0] + np.inf), (X[0],)),
    "no limits": (lambda g, x: g.uniform(x, np.inf), (X[0],)),
    "sizes that differ": (lambda g, x: g.normal(x, 1.0, 2), (X[0],)),
}  # fmt: skip


@pytest.mark.parametrize("f, args", PARAMETERS.values(), ids=PARAMETERS)
@pytest.mark.parametrize("kind", [np.random.Generator, np.random.RandomState])
def test_parameters_of_native_draws(kind: Any, f: Callable[..., Any], args: tuple[Any, ...], target: str) -> None:
    """Errors are NumPy's, and leave the generator as it was there."""
    mine, theirs = kind(np.random.PCG64(5)), kind(np.random.PCG64(5))
    jitted = jitml.jit(f)
    for _ in range(2):
        try:
            expected = f(theirs, *args)
        except (ValueError, OverflowError) as refusal:
            with pytest.raises(type(refusal)) as raised:
                jitted(mine, *args) if target == "compiled" else run_traced(f, mine, *args)
            assert str(raised.value).splitlines()[0] == str(refusal)
        else:
            compare(jitted(mine, *args) if target == "compiled" else run_traced(f, mine, *args), expected)
            if target == "compiled" and kind is np.random.Generator:
                assert "Generator." not in jitted.explain(mine, *args)
        assert states([mine]) == states([theirs])


def walk(rng: Any, steps: int) -> Any:
    place, turns = 0, 0
    for _ in range(steps):
        place += 1 if rng.random() < 0.5 else -1
        if place > 3:
            turns += rng.integers(0, place)
            place = 0
    return place, turns


def shuffled(rng: Any, x: Array) -> Array:
    for i in range(len(x) - 1, 0, -1):
        j = rng.integers(0, i + 1)
        x[i], x[j] = x[j], x[i]
    return x


def blocks(rng: Any, n: int) -> Any:
    inside = total = 0
    while total < 5 * n:
        x, y = rng.random(n), rng.random(n)
        inside += np.count_nonzero(x * x + y * y < 1.0)
        total += n
    return inside


@pytest.mark.parametrize(
    "f, more", [(walk, 50), (shuffled, np.arange(20.0)), (blocks, 30000)], ids=["walk", "shuffled", "blocks"]
)
def test_native_draws_in_loops(f: Callable[..., Any], more: Any, target: str) -> None:
    jitted = jitml.jit(f)
    for kind in (np.random.PCG64, np.random.MT19937):
        mine, theirs = np.random.Generator(kind(2)), np.random.Generator(kind(2))
        for _ in range(2):
            args, expected = (mine, copy.deepcopy(more)), f(theirs, copy.deepcopy(more))
            compare(jitted(*args) if target == "compiled" else run_traced(f, *args), expected)
            assert states([mine]) == states([theirs])
    if target == "compiled":
        assert "Generator." not in jitted.explain(np.random.default_rng(1), copy.deepcopy(more))


def test_scalar_draws_in_a_loop_are_part_of_its_kernel() -> None:
    lowered = jitml.jit(walk).lower(np.random.default_rng(1), 50)
    assert not any(isinstance(step, Call) for step in lowered.program.kernels.steps) and "draw r0: f64" in lowered.kernels


def test_a_generator_is_locked_while_a_program_draws() -> None:
    rng = np.random.default_rng(1)
    f = jitml.jit(lambda rng: rng.random(1000).sum())
    f(rng)
    with concurrent.futures.ThreadPoolExecutor(1) as other, rng.bit_generator.lock:
        running = other.submit(f, rng)
        with pytest.raises(concurrent.futures.TimeoutError):
            running.result(timeout=0.05)
        rng.bit_generator.lock.release()
        assert running.result(timeout=10) > 0
        rng.bit_generator.lock.acquire()


def test_a_failed_call_has_drawn_nothing() -> None:
    """Limits that only the run knows: NumPy raises, after as many draws as it makes itself."""

    def f(rng: Any, x: Array) -> Array:
        total = 0
        for i in range(len(x)):
            total += rng.integers(0, int(x[i]))
        return total

    mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
    jitted = jitml.jit(f)
    assert jitted(mine, np.array([3, 4, 5])) == f(theirs, np.array([3, 4, 5]))
    for g, rng in ((jitted, mine), (f, theirs)):
        with pytest.raises(ValueError, match=r"low >= high|high <= 0"):
            g(rng, np.array([3, 0, 5]))
    assert states([mine]) == states([theirs])


def test_sizes_and_aliases_are_guarded(target: str) -> None:
    if target == "interpreted":
        return
    f = jitml.jit(lambda rng, n: rng.random(n))
    assert [f(np.random.default_rng(0), n).size for n in (2, 3, 2)] == [2, 3, 2]
    g = jitml.jit(two)
    for _ in range(2):
        one, other = np.random.default_rng(0), np.random.default_rng(1)
        compare(g(one, other, X), two(np.random.default_rng(0), np.random.default_rng(1), X))
        again = copy.deepcopy(one)
        compare(g(one, one, X), two(again, again, X))
    assert len(g.variants) == 2


def test_what_is_not_native_is_drawn_by_python() -> None:
    graph = jitml.jit(walk).lower(np.random.default_rng(1), 50).graph
    kernels = fuse(graph, target=Target(calls={"random": Accepts(routines=())}))
    assert "host(" in show_program(kernels) and "draw r" not in show_program(kernels)
    mine, theirs = np.random.default_rng(4), np.random.default_rng(4)
    place, turns, is_python = run(plan(kernels), [np.array(id(mine))])  # `turns` is Python's 0 until something is added
    expected = walk(theirs, 50)
    assert (int(place), int(turns), bool(is_python)) == (*expected, type(expected[1]) is int)
    assert states([mine]) == states([theirs])


def test_lengths_that_change_share_a_variant() -> None:
    f = jitml.jit(lambda rng, n, x: (rng.random(n), rng.normal(size=(len(x), 3)), rng.integers(9, size=n)))
    mine, theirs = np.random.default_rng(4), np.random.default_rng(4)
    for n in (5, 9, 0, 1, 300, 2, 70):
        x = np.zeros(n // 2)
        compare(f(mine, n, x), (theirs.random(n), theirs.normal(size=(len(x), 3)), theirs.integers(9, size=n)))
    assert len(f.variants) <= 3 and states([mine]) == states([theirs])


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937])
def test_many_uniform_numbers_of_each_length(kind: Any) -> None:
    """PCG64's are drawn four at a time."""
    mine, theirs = np.random.Generator(kind(2)), np.random.Generator(kind(2))
    for n in (*range(14), 1003):
        compare(jitml.jit(lambda rng, n=n: (rng.random(n), rng.integers(5)))(mine), (theirs.random(n), theirs.integers(5)))
        assert states([mine]) == states([theirs])
