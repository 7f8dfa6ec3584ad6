"""How are columns timed side by side?  Interleaved samples, medians; and what is said about machine and versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from jitml.runtime.target import processor_name, usable_cores

RESULTS = Path(__file__).parent / "results"
# A pause before each sample: the pools of OpenMP and OpenBLAS spin for milliseconds after their last job.
_PAUSE = 0.004


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
        start = time.perf_counter()
        call()
        repeats[name] = max(1, math.ceil(at_least / max(time.perf_counter() - start, 1e-7)))
    samples: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(rounds):
        for name, call in columns.items():
            time.sleep(_PAUSE)
            call()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            samples[name].append((time.perf_counter() - start) / repeats[name])
    return {name: statistics.median(values) for name, values in samples.items()}


def geometric_mean(numbers: Iterable[float]) -> float:
    """nan for none."""
    logs = [math.log(x) for x in numbers]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def environment() -> dict[str, Any]:
    """Machine, versions and date of a run."""
    versions = {}
    for package in ("numpy", "scipy", "llvmlite", "numba", "jax", "jitml"):
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
        "versions": versions,
    }


def record(name: str, title: str, body: str, data: object) -> None:
    """Write a run into bench/results, for people (.md) and for programs (.json), and print it."""
    where = environment()
    versions = ", ".join(f"{package} {version}" for package, version in where["versions"].items())
    machine = f"{where['processor']}, {where['cores']} cores, load average {where['load']}"
    heading = f"# {title}\n\n{where['date']}, {machine}, Python {where['python']}, {versions}.\n\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(heading + body)
    (RESULTS / f"{name}.json").write_text(json.dumps({"environment": where, "results": data}, indent=1) + "\n")
    print(heading + body)


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(0.00123)
    '1.23 ms'
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError(seconds)
