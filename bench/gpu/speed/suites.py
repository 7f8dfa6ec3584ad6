"""Suites of programs, measured in all columns: compiled and compared with NumPy in several processes, timed in one at a time."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import optree

from gpu.cases import Cases, Outcome, Setting
from gpu.failures import Mismatch, Skipped
from gpu.roofline import figures_of
from gpu.speed.columns import COLUMNS, PACKAGES, compiled, to_device, to_host
from gpu.speed.timing import medians, rotating, sets_for, timings, turn

Function = Callable[..., Any]
RESERVED = 45  # seconds for measurements, in which nothing more is compiled


@dataclass(frozen=True)
class Program:
    """One program of a suite.

    Args:
        function: plain NumPy; of a gradient, the one by hand.
        make: fresh arguments, of a seed.
        loss, argnums: of a gradient, what it is of.
        mutates: positions of arguments that the function changes.
        rtol: of comparisons, relative to the largest element.
        own: what makes the function of a column that has one of its own.
    """

    name: str
    function: Function
    make: Callable[[int], tuple[Any, ...]]
    loss: Function | None = None
    argnums: tuple[int, ...] = ()
    mutates: tuple[int, ...] = ()
    rtol: float = 1e-6
    own: Mapping[str, Callable[[], Function]] = field(default_factory=dict)


@dataclass
class Prepared:
    """A program compiled in all columns that can run it."""

    functions: dict[str, Function] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)


_prepared: dict[str, Prepared] = {}


def suite_cases(programs: list[Program], setting: Setting, columns: tuple[str, ...] = COLUMNS) -> Cases:
    """First all are compiled, then all are timed: a process that is done with the one waits until the others are, too."""
    for program in programs:
        yield f"{program.name}, compiled", partial(prepare, program, columns, setting)
    # As many cases as there are processes more or less would deal the timing of a program to one that has not compiled it.
    for n in range(-len(programs) % setting.processes):
        yield f"(place {n} of {programs[0].name})", dict
    for program in programs:
        yield program.name, partial(measure, program, columns, setting)


def prepare(program: Program, columns: tuple[str, ...], setting: Setting) -> Outcome:
    if setting.seconds_left < RESERVED:
        raise Skipped("no time left to compile it: what has been compiled is to be timed")
    with turn(alone=False):
        ready = _prepared[program.name] = _ready(program, columns, setting)
    return {"first": ready.first, "not run": ready.failures}


def measure(program: Program, columns: tuple[str, ...], setting: Setting) -> Outcome:
    """Times in microseconds, ours first; how many times ours the others are; what the model says."""
    ready = _prepared.pop(program.name, None)
    if ready is None or not ready.functions:
        raise Skipped(f"no column runs it: {ready.failures}" if ready else "it was not compiled")
    first = program.make(0)
    nbytes = sum(x.nbytes for x in first if isinstance(x, np.ndarray))
    sets = [first, *(program.make(seed) for seed in range(1, sets_for(nbytes) if setting.device == "real" else 2))]
    with turn(alone=True):
        calls = {name: rotating(f, [to_device(name, args) for args in sets]) for name, f in ready.functions.items()}
        samples = timings(calls)
        del calls
    seconds = medians(samples)
    figures: dict[str, Any] = {f"{column} us": 1e6 * taken for column, taken in seconds.items()}
    ours = seconds.get("jitml", seconds.get("stand-in"))
    if ours is not None:
        figures |= {f"{column} / ours": taken / ours for column, taken in seconds.items() if taken is not ours}
    figures |= {f"model: {name}": x for name, x in ready.model.items() if name in ("launches", "H100 us", "bound by")}
    figures["first call ms"] = 1e3 * ready.first.get("jitml", ready.first.get("stand-in", float("nan")))
    return {"figures": figures, "samples": samples, "first": ready.first, "not run": ready.failures, "model": ready.model}


def _ready(program: Program, columns: tuple[str, ...], setting: Setting) -> Prepared:
    ready = Prepared()
    args = program.make(0)
    eager = copy.deepcopy(args)
    with np.errstate(all="ignore"):
        result = program.function(*eager)
    expected = tuple(eager[k] for k in program.mutates) if program.mutates else result
    for column in columns:
        if column == "jitml" and setting.backend != "cuda":
            column = "stand-in"
        if column in PACKAGES and find_spec(PACKAGES[column]) is None:
            ready.failures[column] = "absent"
            continue
        try:
            made = program.own.get(column) or partial(compiled, column, program.function, program.loss, program.argnums)
            function = made()
            own = to_device(column, copy.deepcopy(args))
            start = time.perf_counter()
            found = function(*own)
            leaves = [to_host(x) for x in _leaves(_results(program, column, found, own))]
            ready.first[column] = time.perf_counter() - start
            require_near(leaves, _leaves(expected), program.rtol)
            ready.functions[column] = function
        except Exception as error:  # a column that fails is a result, to be shown
            ready.failures[column] = f"{type(error).__name__}: {str(error)[:300]}"
            continue
        if column in ("jitml", "stand-in"):
            ready.model = model_of(function, args)
    return ready


def _results(program: Program, column: str, found: Any, own: tuple[Any, ...]) -> Any:
    """What is to be compared: results, or what a function has written; JAX returns what the others write."""
    return tuple(own[k] for k in program.mutates) if program.mutates and column != "jax" else found


def model_of(jitted: Any, args: tuple[Any, ...]) -> Mapping[str, Any]:
    try:
        return figures_of(jitted.lower(*args))
    except Exception as error:  # times are worth having without it
        return {"model": f"{type(error).__name__}: {str(error)[:200]}"}


def _leaves(x: Any) -> list[Any]:
    return list(optree.tree_leaves(x))


def require_near(got: list[Any], expected: list[Any], rtol: float) -> None:
    if len(got) != len(expected):
        raise Mismatch(f"{len(got)} results, NumPy gives {len(expected)}")
    for g, e in zip(got, expected):
        e, g = np.asarray(e, np.float64), np.asarray(g, np.float64)
        if g.shape != e.shape:
            raise Mismatch(f"shape {g.shape}, NumPy gives {e.shape}")
        apart = float(np.max(np.abs(g - e), initial=0.0))
        if not apart <= rtol * max(1.0, float(np.max(np.abs(e), initial=0.0))):
            raise Mismatch(f"apart from NumPy by {apart:.3g}, of {float(np.max(np.abs(e), initial=0.0)):.3g}")
