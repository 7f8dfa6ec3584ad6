"""`python -m jitml demo`: three programs on real data, NumPy beside jitml, in one table.

Each program is plain NumPy; this module runs and times them. Times are wall clock; `steady` is the median of repeated
calls after the first, except for the training, where both columns are the whole run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from jitml.api import jit
from jitml.demo import digits, options, photo
from jitml.kernels.ir import Kernel
from jitml.memory.report import bytes_text
from jitml.pipeline import Lowered
from jitml.records import dataclass

_COLUMNS = ("program", "NumPy", "first\ncall", "jitml\nsteady", "ratio", "largest\nerror", "kernels", "bytes\nallocated")
CURVE_TOLERANCE = 1e-10  # relative; both trainings run in f64


_NEXT = """\
  {python} examples/first_steps.py
    a tour: compile, look inside, derive
  {python} -m jitml info
    this machine as jitml sees it
  JITML_DUMP=kernels {python} -m jitml demo
    the loops that were made
  and put @jitml.jit on a function of your own"""


@dataclass(frozen=True)
class TableRow:
    """One program's line of the table; times in seconds, error relative to NumPy's result."""

    name: str
    numpy: float
    first: float
    steady: float
    error: float
    kernels: int
    allocated: int


Tick = Callable[[], None]


def _timed(function: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def _relative_error(ours: Any, theirs: Any) -> float:
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    scale = float(np.abs(theirs).max()) or 1.0
    return float(np.abs(ours - theirs).max()) / scale


def _cost(lowered: Lowered) -> tuple[int, int]:
    """Kernels, and bytes that one call allocates: its arena and its results."""
    program = lowered.program.kernels
    fresh = sum(program.buffers[name].nbytes for name in program.outputs if name not in program.aliases)
    return sum(isinstance(step, Kernel) for step in program.steps), lowered.program.arena_size + fresh


def _compare(
    name: str, plain: Callable[..., Any], fast: Any, args: tuple[Any, ...], repeats: int, tick: Tick
) -> tuple[TableRow, Any]:
    """Time one call of a function beside the jitted one, interleaved."""
    theirs, ours = plain(*args), None
    first, ours = _timed(fast, *args)
    times: dict[str, list[float]] = {"numpy": [], "jitml": []}
    for _ in range(repeats):
        times["numpy"].append(_timed(plain, *args)[0])
        times["jitml"].append(_timed(fast, *args)[0])
        tick()
    pairs = zip(ours, theirs) if isinstance(ours, tuple) else [(ours, theirs)]
    error = max(_relative_error(a, b) for a, b in pairs)
    return TableRow(name, median(times["numpy"]), first, median(times["jitml"]), error, *_cost(fast.lower(*args))), ours


def train_digits(tick: Tick) -> tuple[TableRow, float]:
    """The network, trained twice; and its accuracy on held-out digits.

    Raises:
        AssertionError: the two loss curves differ by more than CURVE_TOLERANCE, relative.
    """
    x, y, held_x, held_y = digits.load()
    fast = jit(digits.step, strict=True)
    params, averages = digits.init(), digits.moments(digits.init())
    first, _ = _timed(fast, params, averages, x[: digits.BATCH], y[: digits.BATCH], digits.RATE)
    numpy_time, (_, theirs) = _timed(digits.train, digits.step_by_hand, x, y, digits.EPOCHS, tick)
    steady, (params, ours) = _timed(digits.train, fast, x, y, digits.EPOCHS, tick)
    error = float(np.max(np.abs(np.array(ours) - theirs) / np.abs(theirs)))
    assert error <= CURVE_TOLERANCE, f"the loss curves differ by {error:.1e}"
    cost = _cost(fast.lower(params, averages, x[: digits.BATCH], y[: digits.BATCH], digits.RATE))
    return TableRow("train on digits", numpy_time, first, steady, error, *cost), digits.accuracy(params, held_x, held_y)


def filter_photo(tick: Tick, path: Path) -> TableRow:
    """The photograph's drawing; both pictures go to `path`."""
    image = photo.load()
    row, drawing = _compare("filter a photo", photo.sketch, jit(photo.sketch, strict=True), (image,), 15, tick)
    photo.save(image, drawing, path)
    return row


def price_options(tick: Tick) -> TableRow:
    """A million options: prices and four Greeks each."""
    fast = jit(options.prices_and_greeks, strict=True)
    row, _ = _compare("price options", options.prices_and_greeks_by_hand, fast, options.market(), 9, tick)
    return row


def _seconds(t: float) -> str:
    return f"{t:.2f} s" if t >= 1 else f"{t * 1e3:.3g} ms"


def main(path: Path = Path("out/photograph.png")) -> int:
    """Run the demo, write the picture to `path` and print the table; 0 if all went well."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Table

    console = Console()
    steps = 2 * digits.EPOCHS * ((1797 - 1797 // 5) // digits.BATCH) + 15 + 9
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console, transient=True) as bar:
        task = bar.add_task("training on digits", total=steps)
        training, accuracy = train_digits(lambda: bar.advance(task))
        bar.update(task, description="filtering a photograph")
        filtering = filter_photo(lambda: bar.advance(task), path)
        bar.update(task, description="pricing options")
        pricing = price_options(lambda: bar.advance(task))
    table = Table(title="NumPy beside jitml", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for head in _COLUMNS:
        table.add_column(head, justify="left" if head == "program" else "right", no_wrap=True)
    for row in (training, filtering, pricing):
        table.add_row(
            row.name,
            _seconds(row.numpy),
            _seconds(row.first),
            _seconds(row.steady),
            f"{row.numpy / row.steady:.1f} x",
            f"{row.error:.1e}",
            str(row.kernels),
            bytes_text(row.allocated),
        )
    console.print(table)
    console.print(f"Held-out accuracy of the network: {accuracy:.1%}; its gradient was derived from the plain NumPy loss.")
    console.print(f"The photograph, before and after: {path}", soft_wrap=True)
    console.print("\nWhat to try next:", style="bold")
    here, python = Path.cwd(), Path(sys.executable)
    shown = python.relative_to(here) if python.is_relative_to(here) else python
    console.print(_NEXT.format(python=shown), highlight=False)
    return 0
