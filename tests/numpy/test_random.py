"""Random numbers come from NumPy's own streams: the same values, the same state afterwards, in the program's order."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import jitml
from against_numpy import compare, run_traced

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
    f = jitml.jit(lambda rng, x: x + rng.normal(size=3), host_calls="error")
    mine, theirs = np.random.default_rng(0), np.random.default_rng(0)
    compare(f(mine, X), X + theirs.normal(size=3))
    assert "host calls" not in f.explain(mine, X) and "draw Generator.normal" in f.explain(mine, X)


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
