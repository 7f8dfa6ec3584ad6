"""Random numbers on a GPU are NumPy's, and leave the generator where NumPy would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitml.codegen.cuda.calls.plan import HostWork
from jitml.codegen.cuda.module import Launch
from jitml.ir.ops.random import routine
from jitml.ir.types import I64
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call
from support.cuda_calls import ORDERS, build, plans_of, program_of, run_plan


def _draw(generator: Any, kind: str, dtype: str, count: int, order: int, limits: tuple[int, ...] = (), room: int = 0) -> Any:
    """(the numbers, where the work of the call has been done)."""
    names = ("g", *("lo", "hi")[: len(limits)], *(["n"] if room else []))
    buffers = [*(Buffer(name, I64, ()) for name in (*names, "g2")), Buffer("y", np.dtype(dtype), (room or count,))]
    params = {"routine": routine(kind, isinstance(generator, np.random.RandomState), np.dtype(dtype))}
    call = Call("random", names, ("g2", "y"), {**params, "count": None if room else count})
    text, (plan,) = plans_of([program_of(buffers, call)])
    module = build([text])[0] if plan.source else None
    memory = {name: np.array(x) for name, x in zip(names, (id(generator), *limits, count))}
    memory |= {"g2": np.array(0), "y": np.full(room or count, 7, dtype)}
    found = run_plan(module, plan, memory, order)
    assert found["g2"] == id(generator)
    return found["y"], [type(work) for work in plan.work]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 9001])
@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.Philox], ids=lambda kind: kind.__name__)
def test_uniform_numbers_are_computed_on_the_device(kind: Any, dtype: str, count: int, order: int) -> None:
    ours, numpys = np.random.Generator(kind(count)), np.random.Generator(kind(count))
    for before in (0, 1, 2, 3, 6):  # halves of a number of 64 bits that are left over, and numbers in a buffer
        for generator in (ours, numpys):
            generator.random(before, np.float32)
        found, work = _draw(ours, "uniform", dtype, count, order)
        assert work == [HostWork, Launch]
        np.testing.assert_array_equal(found, numpys.random(count, dtype))
        np.testing.assert_equal(ours.bit_generator.state, numpys.bit_generator.state)


@pytest.mark.parametrize("counter", [[2**64 - 2, 0, 0, 0], [2**64 - 1] * 3 + [5], [2**64 - 1] * 4], ids=["one", "three", "all"])
def test_a_philox_carries(counter: list[int]) -> None:
    made = [np.random.Generator(np.random.Philox(counter=np.array(counter, np.uint64), key=[3, 2**63])) for _ in range(2)]
    found, _ = _draw(made[0], "uniform", "f8", 30, 0)
    np.testing.assert_array_equal(found, made[1].random(30))
    np.testing.assert_equal(made[0].bit_generator.state, made[1].bit_generator.state)


def test_the_run_may_tell_how_many() -> None:
    ours, numpys = np.random.default_rng(1), np.random.default_rng(1)
    found, _ = _draw(ours, "uniform", "f8", 5, 0, room=9)
    np.testing.assert_array_equal(found, [*numpys.random(5), 7, 7, 7, 7])
    assert ours.random() == numpys.random()


def test_other_generators_and_distributions_are_drawn_from_on_the_host() -> None:
    for make in (np.random.MT19937, np.random.SFC64, np.random.PCG64DXSM):
        found, _ = _draw(np.random.Generator(make(3)), "uniform", "f8", 40, 0)
        np.testing.assert_array_equal(found, np.random.Generator(make(3)).random(40))
    found, _ = _draw(np.random.RandomState(3), "uniform", "f8", 40, 0)
    np.testing.assert_array_equal(found, np.random.RandomState(3).random_sample(40))
    found, work = _draw(np.random.default_rng(3), "normal", "f4", 40, 0)
    np.testing.assert_array_equal(found, np.random.default_rng(3).standard_normal(40, np.float32))
    assert work == [HostWork]
    found, _ = _draw(np.random.default_rng(3), "integers", "i4", 40, 0, (-5, 90))
    np.testing.assert_array_equal(found, np.random.default_rng(3).integers(-5, 91, 40, np.int32))
