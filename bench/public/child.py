"""One program in a process of its own: plain and jitted calls in turns, with fresh arguments; lines of JSON tell how it went."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
import linecache
import random
import resource
import sys
import time
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bench.public.checkouts import decorate, load, prepare
from bench.public.outcomes import Leaves, difference, leaves_of, nudge, spread_of
from bench.public.programs import Program, all_programs

CALLS = 10
_LONG = 0.3  # seconds; of shorter calls the clock of the processor can be too coarse
_CONSTANTS = {"np", "rng", "random", "__builtins__"}


@dataclass
class Side:
    """A copy of the program's module, and how its calls went.

    Seconds are those of the clock; of long calls, such as compile, those of the processor, if they are fewer: on a busy machine
    the clock counts what others do.
    """

    program: Program
    module: types.ModuleType
    seconds: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)  # the globals of what makes arguments, and of calls

    def call(self, number: int, moved_by: int = 0) -> Leaves:
        """Make the arguments of a call, run it, and take down what it left behind.

        Args:
            moved_by: seed of a rounding of the arguments; 0 leaves them as they are.
        """
        names = self.names
        names.clear()
        names.update(vars(self.module), np=np, random=random, rng=np.random.default_rng(number))
        before = {name: id(value) for name, value in names.items()}
        np.random.seed(number)
        random.seed(number)
        exec(_in_a_file(self.program.make, f"{self.module.__file__}.make"), names)
        made = [name for name, value in names.items() if before.get(name) != id(value) and name not in _CONSTANTS]
        if moved_by:
            arguments = {name: names[name] for name in made}
            nudge(arguments, np.random.default_rng(moved_by))
            names.update(arguments)
        np.random.seed(number)
        random.seed(number)
        run = _code(self.program.call, f"{self.module.__file__}.call")
        raised, printed = "", io.StringIO()
        with warnings.catch_warnings(record=True) as told, contextlib.redirect_stdout(printed):
            warnings.simplefilter("always")
            start = time.perf_counter(), time.process_time()
            try:
                exec(run, names)
            except Exception as error:
                if type(error).__module__.startswith("jitml"):
                    raise
                raised = f"{type(error).__name__}: {error}"
            seconds, busy = time.perf_counter() - start[0], time.process_time() - start[1]
            if seconds > _LONG:
                seconds = min(seconds, busy)
        if not moved_by:
            self.seconds.append(seconds)
            self.said += [f"{w.category.__name__}: {w.message}" for w in told if w.category.__module__.startswith("jitml")]
        left = {name: value for name, value in names.items() if before.get(name) != id(value) and name not in _CONSTANTS}
        left.pop("__warningregistry__", None)  # which warnings make, wherever they are shown
        return leaves_of(left) | {"printed": printed.getvalue(), "raised": raised, "np.random": _numpy_state()}


def _numpy_state() -> str:
    return f"{hash(np.random.get_state()[1].tobytes())} {np.random.get_state()[2]} {hash(random.getstate())}"


@functools.cache
def _in_a_file(text: str, name: str) -> types.CodeType:
    """Code whose text is kept, and which is compiled once, as that of a file is in which users write such lines."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec")


@functools.cache
def _code(text: str, name: str) -> types.CodeType:
    """The call as statements; an expression's value is bound to `result`."""
    tree = ast.parse(text)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("result", ast.Store())], last.value), last)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(ast.fix_missing_locations(tree), name, "exec")


def tell(**fields: Any) -> None:
    print(json.dumps(fields), file=sys.__stdout__, flush=True)


def two_sides(program: Program, checkouts: Path) -> tuple[Side, Side]:
    """The program twice: plain, and decorated."""
    import jitml

    root = checkouts / program.directory
    prepare(root, *program.directories)
    sides = []
    for _ in range(2):
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = load(root / program.file, root, only_definitions=program.only_definitions)
            exec(_in_a_file(program.setup, f"{module.__file__}.setup"), vars(module))
        sides.append(Side(program, module))
    jitted, refusals = decorate(sides[1].module, program.jit, program.skip, jitml.jit)
    tell(decorated=len(jitted), refused_when_decorated=refusals)
    return sides[0], sides[1]


def run(program: Program, checkouts: Path) -> None:
    plain, jitted = two_sides(program, checkouts)
    for number in range(CALLS):
        expected = plain.call(number)
        tell(plain=plain.seconds[-1], raised=expected["raised"])
        try:
            got = jitted.call(number)
        except Exception as error:
            tell(refused=str(error), call=number)
            return
        tell(jitted=jitted.seconds[-1], said=jitted.said, call=number)
        jitted.said.clear()
        if (why := difference(got, expected)) is not None:
            again = plain.call(number, moved_by=0)
            plain.seconds.pop()
            if difference(again, expected) is not None:
                tell(unstable=f"plain Python differs from itself: {difference(again, expected)}")
                return
            tell(call=number, **({"conditioned": why} if is_conditioned(plain, number, got, expected) else {"wrong": why}))
    tell(done=True)


def is_conditioned(plain: Side, number: int, got: Leaves, expected: Leaves) -> bool:
    """Whether plain Python's own results move as far when its arguments do by rounding."""
    moved = []
    for seed in range(1, 9):
        moved.append(plain.call(number, moved_by=seed))
        spread = spread_of(expected, moved)
        if spread is None or difference(got, expected, spread) is None:
            return True
    return False


if __name__ == "__main__":
    checkouts_directory, wanted, seconds_at_most = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds_at_most), int(seconds_at_most) + 5))
    run(next(p for p in all_programs() if p.name == wanted), Path(checkouts_directory))
