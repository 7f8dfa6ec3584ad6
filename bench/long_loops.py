"""What does the derivative of a long loop cost?  Bytes, time and compile time against the number of iterations, with and without
`checkpoint(policy="sqrt")`.

`python bench/long_loops.py` writes `results/long_loops.md`, and the plot of `docs/derivatives.md`. Times are the processor's, of
this process alone, on one thread; what is compared is measured in turns, after another program has been compiled.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import log10, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import jitml

HERE = Path(__file__).parent
COUNTS = (100, 300, 1_000, 3_000, 10_000)
STATE = np.linspace(0.1, 1.0, 256)
COMPILATIONS, SAMPLES = 5, 9
CALLS = 20_000  # iterations that are timed at once
WIDTH, HEIGHT, MARGIN = 460, 300, 50


def leapfrog(steps: int) -> Callable[[Any], Any]:
    """A chain of pendulums, integrated in so many steps."""

    def energy(x: Any) -> Any:
        v = np.zeros(len(x))
        for _ in range(steps):
            v = v - 1e-3 * np.sin(x)
            x = x + 1e-3 * v
        return (v * v).sum() + np.cos(x).sum()

    return energy


@dataclass
class Row:
    """One number of iterations, with or without segments."""

    steps: int
    segmented: bool
    first: list[float] = field(default_factory=list)  # seconds of first calls, each of a function made anew
    warm: list[float] = field(default_factory=list)  # seconds of later ones
    nbytes: int = 0

    def derivative(self) -> Any:
        f = leapfrog(self.steps)
        return jitml.jit(jitml.grad(jitml.checkpoint(f, policy="sqrt") if self.segmented else f), threads=1)

    @property
    def running(self) -> float:
        return min(self.warm)

    @property
    def compiling(self) -> float:
        return median(self.first) - self.running


def seconds(f: Callable[[Any], Any], calls: int = 1) -> float:
    started = time.process_time()
    for _ in range(calls):
        f(STATE)
    return (time.process_time() - started) / calls


def measure(rows: Sequence[Row]) -> None:
    for _ in range(COMPILATIONS):
        for row in rows:
            derivative = row.derivative()
            gc.collect()  # what the last one left
            jitml.settle()
            row.first.append(seconds(derivative))
    compiled = [row.derivative() for row in rows]
    for row, derivative in zip(rows, compiled):
        row.nbytes = derivative.lower(STATE).program.arena_size
        derivative(STATE)
    jitml.settle()
    for _ in range(SAMPLES):
        for row, derivative in zip(rows, compiled):
            row.warm.append(seconds(derivative, max(1, CALLS // row.steps)))


def table(plain: list[Row], segmented: list[Row]) -> str:
    lines = [
        "# Derivatives of long loops",
        "",
        "Written by `python bench/long_loops.py`: 256 pendulums by leapfrog, the gradient by the state that they start from.",
        "Processor time on one core: of compiling the median of five, measured in turns; of running the least of nine.",
        "",
        "| iterations | bytes | with sqrt | compile | with sqrt | run | with sqrt | extra work |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for a, b in zip(plain, segmented):
        lines.append(
            f"| {a.steps:,} | {a.nbytes:,} | {b.nbytes:,} | {a.compiling * 1e3:.0f} ms | {b.compiling * 1e3:.0f} ms "
            f"| {a.running * 1e3:.2f} ms | {b.running * 1e3:.2f} ms | {b.running / a.running - 1:.0%} |"
        )
    return "\n".join(lines) + "\n"


def plot(plain: list[Row], segmented: list[Row]) -> str:
    """Bytes against iterations, both logarithmic, as SVG."""
    low, high = log10(min(r.nbytes for r in segmented)) - 0.3, log10(max(r.nbytes for r in plain)) + 0.2
    first, last = log10(COUNTS[0]), log10(COUNTS[-1])

    def place(steps: float, nbytes: float) -> str:
        x = MARGIN + (log10(steps) - first) / (last - first) * (WIDTH - 2 * MARGIN)
        y = HEIGHT - MARGIN - (log10(nbytes) - low) / (high - low) * (HEIGHT - 2 * MARGIN)
        return f"{x:.1f},{y:.1f}"

    def line(points: list[tuple[float, float]], style: str) -> str:
        return f'<polyline fill="none" {style} points="{" ".join(place(*point) for point in points)}"/>'

    def text(x: float, y: float, words: str, anchor: str = "middle") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'

    root = segmented[-1].nbytes / sqrt(COUNTS[-1])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        line([(r.steps, r.nbytes) for r in plain], 'stroke="#888" stroke-width="2"'),
        line([(r.steps, r.nbytes) for r in segmented], 'stroke="#06c" stroke-width="2"'),
        line([(n, root * sqrt(n)) for n in COUNTS], 'stroke="#06c" stroke-dasharray="3 4"'),
        text(WIDTH - MARGIN, MARGIN - 8, "everything saved", "end"),
        text(WIDTH - MARGIN, HEIGHT - MARGIN - 75, 'checkpoint("sqrt"); dots: root of n', "end"),
        text(WIDTH / 2, HEIGHT - 12, "iterations"),
    ]
    for n in COUNTS:
        x, y = place(n, 10**low).split(",")
        parts.append(text(float(x), float(y) + 16, f"{n:,}"))
    for k in range(int(low) + 1, int(high) + 1):
        x, y = place(COUNTS[0], 10**k).split(",")
        parts.append(text(float(x) - 6, float(y), f"{10**k / 1e6:g} MB", "end"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    for flag in (False, True):  # imports, LLVM's first module
        seconds(Row(7, flag).derivative())
    rows = [Row(n, flag) for n in COUNTS for flag in (False, True)]
    measure(rows)
    plain, segmented = rows[::2], rows[1::2]
    found = table(plain, segmented)
    (HERE / "results" / "long_loops.md").write_text(found)
    (HERE.parent / "docs" / "long_loops.svg").write_text(plot(plain, segmented))
    print(found)


if __name__ == "__main__":
    main()
