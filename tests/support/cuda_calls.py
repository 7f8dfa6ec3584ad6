"""Plans of library calls, run by the emulation on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitml.codegen.cuda.calls.calls import plan_call
from jitml.codegen.cuda.calls.plan import CallPlan, HostWork, Means
from jitml.codegen.cuda.module import Launch
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call, KernelProgram
from support.cuda_emulation import ORDERS, EmulatedModule, arguments_of, build, guarded

Array = np.ndarray[Any, Any]


def program_of(buffers: Sequence[Buffer], call: Call, **more: Any) -> KernelProgram:
    """A program of one call."""
    inputs = tuple(name for name in dict.fromkeys(call.reads) if name not in call.writes)
    return KernelProgram({b.name: b for b in buffers}, inputs, call.writes, {}, {}, (call,), **more)


def plans_of(programs: Sequence[KernelProgram], fastmath: Sequence[str] = ()) -> tuple[str, list[CallPlan]]:
    """The text of the calls of programs, each of one step, and their plans. Checks are numbered as their programs are."""
    means = Means(fastmath=frozenset(fastmath))
    plans = [plan_call(program.steps[0], program, f"call_{n}", means) for n, program in enumerate(programs)]  # type: ignore[arg-type]
    templates = dict.fromkeys(text for plan in plans for text in plan.templates)
    return "\n".join([*templates, *(plan.numbered(f"call_{n}", n + 1) for n, plan in enumerate(plans))]), plans


def run_plan(module: EmulatedModule | None, plan: CallPlan, memory: Mapping[str, Array], order: int) -> dict[str, Array]:
    """What is in memory after the work of a plan, and before it what `memory` says: of the error record, too, if it has one."""
    held = {name: guarded(x) for name, x in memory.items()}
    held |= {b.name: guarded(np.full(b.shape, 77, b.dtype)) for b in plan.scratch}
    for work in plan.work:
        match work:
            case Launch():
                assert module is not None
                given = arguments_of(work, held, held.get("error", 0))
                module.launch(work.entry, work.blocks, work.threads, *given, shared=work.shared, order=order)
            case HostWork():
                made = {b.name: np.full(b.shape, 99, b.dtype) for b in work.writes}
                for name in work.run([held[b.name].reshape(b.shape) for b in work.reads], list(made.values())):
                    held[name] = guarded(made[name])
            case _:
                raise TypeError(f"the emulation has no library for {work}")
    return held


@dataclass(frozen=True)
class Case:
    """A program of one call, what is in memory, and the result that is wanted, up to an error."""

    program: KernelProgram
    memory: Mapping[str, Array]
    result: str
    wanted: Array
    error: float = 0.0


def check(cases: Sequence[Case], fastmath: Sequence[str] = ()) -> None:
    """Every case gives what is wanted, and the same bits in every order of threads."""
    text, plans = plans_of([case.program for case in cases], fastmath)
    (module,) = build([text])
    for case, plan in zip(cases, plans):
        found = [run_plan(module, plan, case.memory, order)[case.result] for order in ORDERS]
        assert all(x.tobytes() == found[0].tobytes() for x in found), case.program
        if not case.error:
            assert found[0].tobytes() == case.wanted.tobytes(), case.program
        np.testing.assert_allclose(found[0], case.wanted, rtol=0, atol=case.error, strict=True, err_msg=str(case.program))


def placed(memory: Array, buffer: Buffer, live: Sequence[int] | None = None) -> Array:
    """A buffer in its memory, or the part of it that counts."""
    whole = as_strided(memory, buffer.shape, [step * memory.itemsize for step in buffer.element_strides])
    return whole if live is None else whole[tuple(map(slice, live))]
