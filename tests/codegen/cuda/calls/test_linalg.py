"""Factorizations on a GPU, run by the emulation: NumPy's answers in every order of threads, and failures where it has errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.plan import MOST_BLOCKS, HostWork
from jitml.ir.op import OPS
from jitml.ir.ops.host import HostFunction, Routine
from jitml.ir.types import Aval
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from support.cuda_calls import Case, check, placed, plans_of, program_of, run_plan
from support.cuda_emulation import ORDERS, build, has_compiler

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(29)
RESULTS = ("y", "z")


def _call(name: str, operands: Sequence[Array], results: Sequence[Array], steps: Sequence[Any] = (None, None)) -> KernelProgram:
    """A program of one routine; `steps` are the strides of operands in memory."""
    op = OPS[name]
    reads = [Buffer(n, x.dtype, x.shape, step) for n, x, step in zip("ab", operands, steps)]
    writes = [Buffer(n, x.dtype, x.shape) for n, x in zip(RESULTS, results)]
    avals = tuple(Aval(x.shape, x.dtype) for x in results)
    function = HostFunction(f"np.linalg.{name}", op.evaluate, avals, routine=Routine(name, {}, ("real",) * len(operands)))
    params = {"function": function, "shapes": tuple(x.shape for x in operands)}
    return program_of([*reads, *writes], Call("host", tuple(b.name for b in reads), tuple(b.name for b in writes), params))


def _results(name: str, operands: Sequence[Array]) -> list[Array]:
    found = OPS[name].evaluate(*operands)
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def _cases(name: str, *operands: Array, error: float | None = None) -> list[Case]:
    with np.errstate(all="ignore"):
        results = _results(name, operands)
    program = _call(name, operands, results)
    size = max((float(abs(x[np.isfinite(x)]).max(initial=1)) for x in results), default=1.0)
    error = size * (2e-4 if operands[0].dtype == np.float32 else 1e-11) if error is None else error
    memory = dict(zip("ab", operands)) | {n: np.full_like(x, 7) for n, x in zip(RESULTS, results)}
    return [Case(program, memory, n, x, error) for n, x in zip(RESULTS, results)]


def _matrices(n: int, stack: tuple[int, ...] = (), dtype: str = "f8") -> Array:
    return (RNG.standard_normal((*stack, n, n)) + 2 * np.eye(n)).astype(dtype)


def _positive(n: int, stack: tuple[int, ...] = (), dtype: str = "f8") -> Array:
    x = RNG.standard_normal((*stack, n, n))
    return (x @ x.swapaxes(-1, -2) / n + np.eye(n)).astype(dtype)


def _right(n: int, m: int, stack: tuple[int, ...] = (), dtype: str = "f8") -> Array:
    return RNG.standard_normal((*stack, n, m)).astype(dtype)


TURNED = np.roll(np.eye(6), 2, axis=0) * [1.0, -2, 3, -4, 5, 6]  # zeros on the diagonal
TINY = np.array([[1e-310, 0.0], [-1e-310, 2.0]])  # the reciprocal of a pivot is no finite number
NAN = np.array([[1.0, np.nan, 2], [3, 4, 5], [6, 7, 9]])


def _all_cases() -> list[Case]:
    cases: list[Case] = []
    for n, m, stack, dtype in (
        *((1, 1, (), "f8"), (2, 3, (2,), "f4"), (5, 2, (2, 3), "f8"), (31, 1, (), "f8"), (33, 7, (2,), "f4"), (40, 40, (), "f8")),
        *((72, 1, (), "f8"), (70, 40, (2,), "f4")),  # in global memory
    ):
        cases += _cases("solve", _matrices(n, stack, dtype), _right(n, m, stack, dtype))
    for n, stack, dtype in ((1, (3,), "f4"), (4, (2, 2), "f8"), (33, (), "f8"), (72, (), "f8")):
        cases += _cases("slogdet", _matrices(n, stack, dtype)) + _cases("det", _matrices(n, stack, dtype))
        cases += _cases("cholesky", _positive(n, stack, dtype))
    cases += _cases("solve", TURNED, _right(6, 2)) + _cases("slogdet", TURNED) + _cases("det", TURNED)
    many = (MOST_BLOCKS + 40,)  # so that blocks have several
    cases += _cases("solve", _matrices(2, many), _right(2, 2, many)) + _cases("det", _matrices(2, many))
    cases += _cases("cholesky", _positive(2, many)) + _cases("solve_again", TURNED, TURNED)
    tiny = _call("solve", (TINY, TINY), (TINY,))
    cases.append(Case(tiny, {"a": TINY, "b": TINY, "y": np.empty((2, 2))}, "y", np.eye(2), 1e-12))
    singular = np.stack([np.ones((3, 3)), np.eye(3), np.zeros((3, 3)), np.diag([0.0, -0.0, 1])])
    cases += _cases("slogdet", singular) + _cases("det", singular)
    cases += _cases("det", np.eye(4) * 1e100) + _cases("det", np.eye(4) * 1e-100) + _cases("slogdet", np.eye(4) * -1e200)
    cases += _cases("det", NAN) + _cases("solve", NAN, np.ones((3, 1))) + _cases("det", np.diag([np.inf, 1, -2]))
    return cases


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
def test_results_are_numpys() -> None:
    check(_all_cases())


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
def test_operands_may_have_strides_of_their_own() -> None:
    a, b = _matrices(7), _right(7, 3)
    (case,) = _cases("solve", a, b)
    steps = ((1, 9), (5, 1))
    memory = {"a": np.zeros(7 * 9), "b": np.zeros(7 * 5), "y": case.memory["y"]}
    program = _call("solve", (a, b), (case.wanted,), steps)
    for name, x in (("a", a), ("b", b)):
        placed(memory[name], program.buffers[name])[...] = x
    check([Case(program, memory, "y", case.wanted, 1e-12)])


@pytest.mark.skipif(not has_compiler(), reason="kernels are emulated by g++")
def test_what_numpy_refuses_is_noted_by_its_number() -> None:
    good, zeros = _matrices(4), np.zeros((4, 4))
    not_positive = np.diag([1.0, 1, -1, 1])
    nan = np.diag([1.0, np.nan, 1, 1])
    cases = [
        *((n, a) for n in ("solve", "cholesky") for a in (np.stack([_positive(4), zeros]), np.stack([zeros, zeros]))),
        *(("cholesky", np.stack([x, x])) for x in (not_positive, nan)),
        ("solve", np.stack([good, _positive(4)])),
        ("cholesky", _positive(4, (2,))),
    ]
    programs = [
        _call(n, (a, _right(4, 1, (2,)))[: 2 if n == "solve" else 1], (a if n == "cholesky" else a[..., :1],)) for n, a in cases
    ]
    text, plans = plans_of(programs)
    (module,) = build([text])
    for order in ORDERS:
        for number, ((_, a), plan, program) in enumerate(zip(cases, plans, programs), 1):
            memory = {name: np.ones(buffer.shape) for name, buffer in program.buffers.items()} | {"a": a}
            found = run_plan(module, plan, memory | {"error": np.zeros(1, np.int64)}, order)
            assert found["error"][0] == (number if number <= 6 else 0), (number, order)
    assert all(len(plan.checks) == 1 for plan in plans)
    # What has failed before stays.
    found = run_plan(
        module, plans[0], {"a": cases[0][1], "b": np.ones((2, 4, 1)), "y": np.ones((2, 4, 1)), "error": np.full(1, 9)}, 0
    )
    assert found["error"][0] == 9


def test_the_rest_is_pythons() -> None:
    def is_hosts(program: KernelProgram) -> bool:
        return any(isinstance(work, HostWork) for work in plan_call(program.steps[0], program, "call").work)  # type: ignore[arg-type]

    def solving(n: int, m: int) -> KernelProgram:
        return _call("solve", (np.empty((n, n)), np.empty((n, m))), (np.empty((n, m)),))

    assert not is_hosts(solving(512, 1))
    assert is_hosts(solving(513, 1)) and is_hosts(solving(0, 3)) and is_hosts(solving(3, 0))
    assert is_hosts(_call("eig", (np.eye(3),), (np.ones(3), np.eye(3))))
    packed = _call("cholesky", (np.ones((3, 3, 2)),), (np.ones((3, 3, 2)),))
    function = packed.steps[0].params["function"]  # type: ignore[union-attr, call-overload]
    object.__setattr__(function, "routine", Routine("cholesky", {}, ("packed",)))
    assert is_hosts(packed)
