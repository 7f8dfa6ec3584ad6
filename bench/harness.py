"""How are columns timed side by side, and shown?  Interleaved samples, medians, tables; with machine and versions."""

from __future__ import annotations

import os

os.environ.setdefault("JITML_TRIAL", "0")  # all is compiled, and stays: read when jitml is first asked for something

import argparse
import datetime
import importlib.metadata
import json
import math
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jitml import settle
from jitml.codegen.llvm.runtime.cpu import processor_name, usable_cores


@dataclass
class Row:
    """One program's outcome: seconds by column, first calls, and why a column has none."""

    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    first_call: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def is_slower(self) -> bool:
        return self.seconds.get("jitml", 0.0) > self.seconds.get("numpy", math.inf)


RowT = TypeVar("RowT", bound=Row)
RESULTS = Path(__file__).parent / "results"
# Seconds before each sample: the pools of OpenMP and OpenBLAS spin for milliseconds after their last job,
PAUSE = 0.004
# and virtual machines give idle cores away: they come back only after tens of milliseconds of work for all of them.
WARM_UP = 0.15


def timings(columns: Mapping[str, Callable[[], object]], *, rounds: int = 7, at_least: float = 300e-6) -> dict[str, float]:
    """Median seconds of a call of each column, sampled in turns so that a disturbance hits all alike.

    Args:
        columns: what to run, by name; called once before, so that compilation is not timed.
        rounds: samples of each column.
        at_least: seconds that a sample should last: quick calls are repeated within it.
    """
    repeats = {}
    for name, call in columns.items():
        call()
        settle()
        repeats[name] = max(1, math.ceil(at_least / max(_shortest(call, 10 * at_least), 1e-7)))
    samples: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(rounds):
        for name, call in columns.items():
            warm_up(call)
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(values) for name, values in samples.items()}


def _shortest(call: Callable[[], object], most: float) -> float:
    """Seconds of the shortest of some calls, which take so long at the most: a second call is seldom like later ones."""
    shortest, began = math.inf, time.perf_counter()
    while True:
        start = time.perf_counter()
        call()
        ended = time.perf_counter()
        shortest = min(shortest, ended - start)
        if ended - began >= most:
            return shortest


def warm_up(call: Callable[[], object]) -> None:
    """What a column does before it is sampled: wait for the others' threads to rest, then run until its own are awake.

    Code that was made in a hurry has given way to the full one then.
    """
    time.sleep(PAUSE)
    start = time.perf_counter()
    call()
    settle()
    while time.perf_counter() - start < WARM_UP:
        call()


def geometric_mean(numbers: Iterable[float]) -> float:
    """nan for none."""
    logs = [math.log(x) for x in numbers]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def environment() -> dict[str, Any]:
    """Machine, versions and date of a run."""
    versions = {}
    for package in ("numpy", "scipy", "llvmlite", "numba", "jax", "autograd", "torch", "jitml"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "source" if package == "jitml" else "absent"
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor_name(),
        "cores": usable_cores(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "settings": {name: value for name, value in os.environ.items() if name.startswith(("OPENBLAS_", "OMP_", "XLA_"))},
        "versions": versions,
    }


def record(name: str, title: str, body: str, data: object) -> None:
    """Write a run into bench/results, for people (.md) and for programs (.json), and print it."""
    where = environment()
    versions = ", ".join(f"{package} {version}" for package, version in where["versions"].items())
    machine = f"{where['processor']}, {where['cores']} cores, load average {where['load']}"
    machine += "".join(f", {name}={value}" for name, value in where["settings"].items())
    heading = f"# {title}\n\n{where['date']}, {machine}, Python {where['python']}, {versions}.\n\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(heading + body)
    (RESULTS / f"{name}.json").write_text(json.dumps({"environment": where, "results": data}, indent=1) + "\n")
    print(heading + body)


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def peers_of(columns: Sequence[str]) -> list[str]:
    return [column for column in columns if column != "jitml"]


def heading(columns: Sequence[str]) -> list[str]:
    """The heads of `times`."""
    return [*columns, *[f"{column} / jitml" for column in peers_of(columns)]]


def times(row: Row, columns: Sequence[str]) -> list[str]:
    """A row's seconds in each column, and how many times ours the others take."""
    ours = row.seconds.get("jitml")
    ratios = [f"{row.seconds[c] / ours:.2f}" if ours and c in row.seconds else "-" for c in peers_of(columns)]
    return [*[duration(row.seconds[c]) if c in row.seconds else "-" for c in columns], *ratios]


def means(rows: Sequence[Row], columns: Sequence[str], what: str) -> str:
    """A line for each peer: how much faster jitml is, over what both run."""
    text = f"\nGeometric means over the {what} that both columns run:\n\n"
    for column in peers_of(columns):
        ratios = [row.seconds[column] / row.seconds["jitml"] for row in rows if {column, "jitml"} <= row.seconds.keys()]
        if ratios:
            text += f"* jitml is {geometric_mean(ratios):.2f} times as fast as {column} ({len(ratios)} of {len(rows)} {what})\n"
    return text


def first_line(error: Exception) -> str:
    """An error in a line of the table."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:100]}"


def failures(rows: Iterable[Row]) -> str:
    lines = [f"* {row.name}, {column}: {why}\n" for row in rows for column, why in row.failures.items()]
    return "\nNot run:\n\n" + "".join(lines) if lines else ""


def command_line(doc: str | None, names: Iterable[str], columns: Iterable[str], rounds: int) -> argparse.ArgumentParser:
    """The options that all tables of columns have."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(names), help="names of programs")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--columns", default=",".join(columns))
    parser.add_argument("--no-record", action="store_true", help="print only")
    return parser


def measure_all(names: Iterable[str], measure: Callable[[str], RowT]) -> list[RowT]:
    """The rows of all names, each shown on the way; the programs' own warnings are not."""
    warnings.filterwarnings("ignore")
    rows = []
    for name in names:
        row = measure(name)
        rows.append(row)
        shown = (f"{column} {duration(seconds)}" for column, seconds in row.seconds.items())
        print(f"{name:28s}", *shown, *row.failures.items(), file=sys.stderr, flush=True)
    return rows


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(0.00123)
    '1.23 ms'
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError(seconds)
