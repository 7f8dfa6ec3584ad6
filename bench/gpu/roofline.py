"""Roofline model: how long does a planned program take on a GPU at the least, by its bytes, operations and launches?

    python -m bench.gpu.roofline [--backend cuda] [--only NAME ...] [--no-record]

Needs no GPU: programs are lowered and not run. A step takes as long as its memory traffic, its arithmetic, or its launches take,
whichever is longest. Every buffer is read once and written once by a step that touches it, from memory: what still lies in the
second cache counts as much, so that a chain of small kernels may be faster than the model. A region counts its iterations,
and `USUAL_TRIPS` where only data ends it. The table goes to bench/results/gpu-roofline.md and .json.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests"))
if __name__ == "__main__" and "--backend" not in sys.argv:
    os.environ.setdefault("JITML_BACKEND", "cuda")  # which jitml reads when it is imported
from jitml.kernels.ir import Alloc, Apply, If, Kernel, Loop, Stmt, Store, Update, While, expressions, walk, walk_expression
from jitml.kernels.metrics import USUAL_TRIPS, bytes_moved, matrix_flops, most_trips, times_run
from jitml.kernels.program import Call, KernelProgram, Region, Step
from jitml.kernels.target import WORK
from jitml.memory.program import Program

# Measured on an H100 (make gpu-check: leads).
LAUNCH = 1.2e-6  # seconds: of a small kernel in a graph of twenty
HOST_TRIP = 17e-6  # seconds: a launch, a flag to the host, and a wait, where the host drives a loop
SERIAL = 20e-9  # seconds: an operation, with its loads, in a kernel of one thread


@dataclass(frozen=True)
class Device:
    """What a GPU does at most. Operations are simple ones (an addition, a product), not contracted.

    Args:
        bandwidth: bytes a second of a copy, as measured, reads and writes counted.
        f32, f64: operations a second.
        matrix: operations a second in products of matrices, by bytes of an element, a product and a sum as two.
    """

    name: str
    bandwidth: float
    f32: float = 33e12
    f64: float = 17e12
    matrix: Mapping[int, float] = field(default_factory=lambda: {2: 750e12, 4: 55e12, 8: 55e12})


H100 = Device("H100", 3.0e12)
H200 = Device("H200", 4.3e12)


@dataclass(frozen=True)
class Estimate:
    """Of a program or a step.

    Args:
        launches: of kernels, on all iterations of regions.
        moved: bytes.
        operations: by bytes of their dtype, simple ones.
        seconds: at the least.
        bound: seconds by what bounds them: launch, memory, arithmetic, matrix, host, one thread.
    """

    launches: int = 0
    moved: int = 0
    operations: Mapping[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    bound: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.launches + other.launches,
            self.moved + other.moved,
            dict(Counter(self.operations) + Counter(other.operations)),
            self.seconds + other.seconds,
            dict(Counter(self.bound) + Counter(other.bound)),
        )

    def __mul__(self, times: int) -> Estimate:
        return Estimate(
            self.launches * times,
            self.moved * times,
            {size: n * times for size, n in self.operations.items()},
            self.seconds * times,
            {what: seconds * times for what, seconds in self.bound.items()},
        )

    @property
    def bounded_by(self) -> str:
        return max(self.bound, key=lambda what: self.bound[what]) if self.bound else "nothing"


Launches = Callable[[Step], int]


def estimate(program: Program, device: Device = H100, launches: Launches | None = None) -> Estimate:
    """A planned program's time.

    Args:
        launches: of a kernel or a call; by default one each, none of memory that is only to be there.
    """
    launches = launches or one_launch
    total = Estimate()
    for step in program.kernels.steps:
        if isinstance(step, Region):
            total += of_region(step, program.bodies[step.name], device, launches)
        else:
            total += of_step(step, program.kernels, device, launches(step))
    return total


def launches_of(text: Any) -> Launches | None:
    """As many as a program's CUDA C++ has for a kernel or a call; None for code of another kind."""
    if not hasattr(text, "calls"):
        return None
    found = {key: len(launches) for key, launches in text.module.launches.items()}
    found |= {key: len(plan.work) for key, plan in text.calls.items()}
    return lambda step: found.get(id(step), one_launch(step))


def one_launch(step: Step) -> int:
    return 0 if isinstance(step, Call) and step.name == "empty" else 1


def of_region(region: Region, plans: Sequence[Program], device: Device, launches: Launches) -> Estimate:
    """The larger branch, or all iterations with what the host does for each."""
    bodies = [estimate(body, device, launches) for body in plans]
    trip = Estimate(seconds=HOST_TRIP, bound={"host": HOST_TRIP})
    if region.kind == "cond":
        return trip + max(bodies, key=lambda body: body.seconds)
    body = sum(bodies, Estimate())
    if region.kind == "while" or isinstance(region.control, str):
        body += trip
    return body * times_run(region)


def of_step(step: Kernel | Call, program: KernelProgram, device: Device, launches: int) -> Estimate:
    alone = replace(program, steps=(step,))
    moved, products = bytes_moved(alone), matrix_flops(alone)
    operations = work(step.body) if isinstance(step, Kernel) else Counter[int]()
    bounds = {
        "launch": LAUNCH * launches,
        "memory": moved / device.bandwidth,
        "arithmetic": operations[8] / device.f64 + sum(n for size, n in operations.items() if size < 8) / device.f32,
    }
    if products:
        assert isinstance(step, Call)
        bounds["matrix"] = products / device.matrix[program.buffers[step.writes[0]].dtype.itemsize]
    if isinstance(step, Kernel) and is_serial(step):
        bounds["one thread"] = SERIAL * sum(operations.values())
    longest = max(bounds, key=lambda what: bounds[what])
    return Estimate(launches, moved, dict(operations), bounds[longest], {longest: bounds[longest]})


def is_serial(kernel: Kernel) -> bool:
    """Whether one thread runs all of its loops."""
    loops = [stmt for stmt in walk(kernel.body) if isinstance(stmt, Loop)]
    own = {loop.kind for loop in loops}
    return bool(loops or any(isinstance(stmt, While) for stmt in walk(kernel.body))) and own <= {"serial", "unroll"}


def work(body: tuple[Stmt, ...], times: float = 1.0) -> Counter[int]:
    """Operations on numbers, by their bytes: functions count as the simple ones that they are made of, indices not at all."""
    total: Counter[int] = Counter()
    for stmt in body:
        for expr in expressions(stmt):
            for part in walk_expression(expr):
                if isinstance(part, Apply) and part.dtype.kind == "f":
                    total[part.dtype.itemsize] += times * WORK.get(part.fn, 1.0)  # type: ignore[assignment]  # of floats
        if isinstance(stmt, (Store, Update)) and stmt.combine is not None and stmt.value.dtype.kind == "f":
            total[stmt.value.dtype.itemsize] += times  # type: ignore[assignment]  # of floats
        match stmt:
            case Loop():
                total += work(stmt.body, times * (1 if (most := most_trips(stmt)) is None else most))
            case Alloc():
                total += work(stmt.body, times)
            case If():
                total += work(stmt.then, times) + work(stmt.orelse, times)
            case While():
                total += work(stmt.test + stmt.body, times * USUAL_TRIPS)
    return total


@dataclass(frozen=True)
class Subject:
    """A function and its arguments, to be lowered: `family` is the suite that it is of."""

    name: str
    family: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def subjects(elements: int = 1 << 26) -> Iterator[Subject]:
    """The memory-bound kernels, the everyday suite and the gradient suite, at the sizes that are measured."""
    import jitml
    from autodiff import WORKLOADS as DERIVATIVES
    from autodiff.columns import ours
    from gpu.memory_bound import KERNELS
    from workloads import WORKLOADS

    for kernel in KERNELS.values():
        for dtype in kernel.dtypes:
            yield Subject(
                f"{kernel.name}, {dtype}", "kernels", kernel.function, lambda k=kernel, d=dtype: k.arguments(elements, d)
            )
    for everyday in WORKLOADS.values():
        loss, function = everyday.loss, everyday.function
        f = function if loss is None else jitml.grad(loss, argnums=everyday.argnums)
        yield Subject(everyday.name, "everyday", f, everyday.make_inputs)
    for derivative in DERIVATIVES.values():
        task = derivative.task.of(ours.Transforms(), derivative.function)
        yield Subject(derivative.name, "gradients", task, derivative.make_inputs)


def figures_of(lowered: Any) -> dict[str, Any]:
    """The model of a lowered program on each device, for a table."""
    launches = launches_of(lowered.module)
    found: dict[str, Any] = {}
    for device in (H100, H200):
        one = estimate(lowered.program, device, launches)
        if device is H100:
            steps = lowered.program.kernels.steps
            found |= {"steps": len(steps), "launches": one.launches, "MB": one.moved / 1e6}
            found |= {"Mop": sum(one.operations.values()) / 1e6}
        found[f"{device.name} us"] = 1e6 * one.seconds
        if device is H100:
            found["bound by"] = one.bounded_by
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", help="instead of the one that JITML_BACKEND names")
    parser.add_argument("--only", nargs="*", help="names, or families")
    parser.add_argument("--no-record", action="store_true", help="print only")
    options = parser.parse_args()
    if options.backend and options.backend != os.environ.get("JITML_BACKEND"):
        os.environ["JITML_BACKEND"] = options.backend  # jitml has read the environment: once more, from the start
        os.execv(sys.executable, [sys.executable, *sys.argv])
    import jitml
    from gpu.account import table_of
    from harness import first_line, record

    rows, failures = [], []
    for subject in subjects():
        if options.only and not {subject.name, subject.family} & set(options.only):
            continue
        try:
            lowered = jitml.jit(subject.function).lower(*subject.arguments())
            rows.append({"case": subject.name, "family": subject.family, "figures": figures_of(lowered)})
        except Exception as error:  # a program that cannot be lowered is a result, to be shown
            failures.append(f"* {subject.name}: {first_line(error)}\n")
        print(rows[-1] if rows else failures[-1], file=sys.stderr, flush=True)
    families = list(dict.fromkeys(row["family"] for row in rows))
    body = "".join(f"## {name}\n\n{table_of([r for r in rows if r['family'] == name])}\n\n" for name in families)
    body += "\nNot lowered:\n\n" + "".join(failures) if failures else ""
    if options.no_record:
        print(body)
    else:
        record("gpu-roofline", "The least times of programs on a GPU, by a model", body, rows)


if __name__ == "__main__":
    main()
