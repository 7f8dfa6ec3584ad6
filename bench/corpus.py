"""How fast are whole programs, loops and branches included, and how long does it take to compile them?

    python bench/corpus.py [--only NAME ...] [--rounds N] [--columns numpy,numba,jitml] [--no-record]

The programs of tests/programs/corpus, unmodified: NumPy runs them as they stand, Numba with `@njit` on each of their functions
(where it compiles them), jitml with `@jit` on the program. Results are compared with NumPy's before anything is timed; every
call gets fresh arguments, since many programs change theirs. The table goes to bench/results/corpus.md and corpus.json.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import statistics
import sys
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import harness
from harness import duration, first_line, record, table, warm_up
from programs.comparing import difference, within
from programs.corpus import NAMES, Program, load

COLUMNS = ("numpy", "numba", "jitml")
# Parameters that count the steps of a simulation: compile time must not depend on their values.
STEPS = ("steps", "sweeps", "limit")


@dataclass
class Row(harness.Row):
    """With compile times by number of steps."""

    compiling: dict[int, float] = field(default_factory=dict)


def with_jitml(program: Program) -> Callable[..., Any]:
    import jitml

    return jitml.jit(program.function)


def with_numba(program: Program) -> Callable[..., Any]:
    """The program's module once more, with all of its functions compiled: each is called by the others."""
    import numba

    source = inspect.getsourcefile(program.function)
    assert source is not None
    spec = importlib.util.spec_from_file_location(f"numba_{program.name}", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and name != "make":
            setattr(module, name, numba.njit(value))
    function: Callable[..., Any] = getattr(module, program.name)
    return function


PREPARE: Mapping[str, Callable[[Program], Callable[..., Any]]] = {
    "numpy": lambda program: program.function,
    "numba": with_numba,
    "jitml": with_jitml,
}


def measure(program: Program, columns: tuple[str, ...], rounds: int) -> Row:
    """Check and time one program in all columns."""
    row = Row(program.name)
    args = program.arguments("large", 0)
    eager = copy.deepcopy(args)
    expected = program.function(*eager)
    calls: dict[str, Callable[..., Any]] = {}
    for column in columns:
        try:
            function = PREPARE[column](program)
            own = copy.deepcopy(args)
            start = time.perf_counter()
            result = function(*own)
            row.first_call[column] = time.perf_counter() - start
            apart = difference([result, *own], [expected, *eager], within(1e-6))
            if apart and column == "jitml":
                raise AssertionError(apart)
        except Exception as error:  # a column that fails is a result, to be shown
            row.failures[column] = first_line(error)
            continue
        calls[column] = function
    row.seconds = timings(calls, args, rounds)
    if "jitml" in calls:
        try:
            row.compiling = compile_times(program)
        except Exception as error:  # so is a number of steps that cannot be compiled
            row.failures["jitml, 10,000 steps"] = first_line(error)
    return row


def timings(calls: Mapping[str, Callable[..., Any]], args: tuple[Any, ...], rounds: int) -> dict[str, float]:
    """Median seconds of a call, sampled in turns, each with a fresh copy of the arguments."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            warm_up(lambda call=call: call(*copy.deepcopy(args)))
            own = copy.deepcopy(args)
            start = time.perf_counter()
            call(*own)
            samples[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in samples.items()}


def compile_times(program: Program, rounds: int = 7) -> dict[int, float]:
    """Seconds from function to machine code for 10 and for 10,000 steps, where a parameter says how many.

    The least processor time of several rounds in turns: two numbers that are to be equal need less noise than a clock has.
    """
    import jitml

    counted = [n for n, name in enumerate(inspect.signature(program.function).parameters) if name in STEPS]
    samples: dict[int, list[float]] = {10: [], 10_000: []}
    for _ in range(rounds if counted else 0):
        for steps, seconds in samples.items():
            args = [steps if n == counted[0] else x for n, x in enumerate(program.arguments("small", 0))]
            start = time.process_time()
            jitml.jit(program.function).lower(*args).compile()
            seconds.append(time.process_time() - start)
    return {steps: min(seconds) for steps, seconds in samples.items() if seconds}


def report(rows: list[Row], columns: tuple[str, ...]) -> str:
    """The table, the geometric means, and what falls short."""

    def cells(row: Row) -> list[str]:
        first = duration(row.first_call["jitml"]) if "jitml" in row.first_call else "-"
        compiling = [duration(row.compiling[n]) if n in row.compiling else "" for n in (10, 10_000)]
        return [row.name, *harness.times(row, columns), first, *compiling]

    heading = ["program", *harness.heading(columns), "first call", "compile, 10 steps", "10,000 steps"]
    text = table(heading, map(cells, rows)) + harness.means(rows, columns, "programs")
    slow_start = [row.name for row in rows if row.first_call.get("jitml", 0) > 1]
    text += f"\nSlower than NumPy: {', '.join(row.name for row in rows if row.is_slower) or 'none'}.\n"
    text += f"First call above one second: {', '.join(slow_start) or 'none'}.\n"
    growing = [row.name for row in rows if row.compiling and row.compiling[10_000] > 1.1 * row.compiling[10]]
    text += f"Compile time more than 10 % longer for 10,000 steps: {', '.join(growing) or 'none'}.\n"
    return text + harness.failures(rows)


def main() -> None:
    options = harness.command_line(__doc__, NAMES, COLUMNS, rounds=5).parse_args()
    columns = tuple(options.columns.split(","))
    rows = harness.measure_all(options.only, lambda name: measure(load(name), columns, options.rounds))
    body = report(rows, columns)
    if options.no_record:
        print(body)
    else:
        record("corpus", "Whole programs: loops, branches, updates in place", body, [row.__dict__ for row in rows])


if __name__ == "__main__":
    main()
