"""How fast is it, at a glance?  Draws `docs/speed.svg` from `bench/results/suite.json`: times NumPy's speed, by kind of program.

Each bar is the geometric mean over the programs of a kind that the column runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, exp, log
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COLUMNS = {"numba": ("Numba", "#9aa5b1"), "jax": ("JAX", "#e0a458"), "jitml": ("jitml", "#3f51b5")}
WIDTH, LEFT, TOP, BAR, GAP = 640, 130, 58, 13, 14


def gain(rows: Iterable[Mapping[str, Any]], column: str) -> float:
    """The geometric mean of NumPy's time over a column's.

    >>> gain([{"seconds": {"numpy": 2.0, "jax": 1.0}}, {"seconds": {"numpy": 8.0, "jax": 1.0}}], "jax")
    4.0
    """
    logs = [log(row["seconds"]["numpy"] / row["seconds"][column]) for row in rows if row["seconds"].get(column)]
    return exp(sum(logs) / len(logs))


def gains(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By kind of program, and over all: each column's gain."""
    kinds = {kind: [row for row in results if row["family"] == kind] for kind in sorted({row["family"] for row in results})}
    found = {kind: {column: gain(rows, column) for column in COLUMNS} for kind, rows in kinds.items()}
    order = sorted(found, key=lambda kind: -found[kind]["jitml"])
    return {f"all {len(results)}": {column: gain(results, column) for column in COLUMNS}} | {kind: found[kind] for kind in order}


def picture(data: Mapping[str, Any]) -> str:
    """The bars, as SVG."""
    found = gains(data["results"])
    most = ceil(max(max(row.values()) for row in found.values()))
    height = TOP + len(found) * (len(COLUMNS) * BAR + GAP) + 30
    scale = (WIDTH - LEFT - 50) / most

    def text(x: float, y: float, words: str, anchor: str = "start", style: str = "") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {style}>{words}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="white" stroke="#ddd"/>',
        text(LEFT, 24, "Times as fast as NumPy", style='font-weight="bold"'),
    ]
    for n, (name, color) in enumerate(COLUMNS.values()):
        parts.append(f'<rect x="{LEFT + 200 + 90 * n}" y="14" width="12" height="12" fill="{color}"/>')
        parts.append(text(LEFT + 218 + 90 * n, 24, name))
    y = TOP
    for kind, row in found.items():
        bold = 'font-weight="bold"' if kind.startswith("all") else ""
        parts.append(text(LEFT - 10, y + len(COLUMNS) * BAR / 2 + 4, kind, "end", bold))
        for column, (_, color) in COLUMNS.items():
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{row[column] * scale:.1f}" height="{BAR - 2}" fill="{color}"/>')
            parts.append(text(LEFT + row[column] * scale + 5, y + BAR - 3, f"{row[column]:.1f}", style='font-size="11"'))
            y += BAR
        y += GAP
    one = LEFT + scale
    parts.append(f'<line x1="{one:.1f}" y1="{TOP - 12}" x2="{one:.1f}" y2="{y - 6}" stroke="#222" stroke-dasharray="3 3"/>')
    parts.append(text(one, TOP - 16, "NumPy", "middle", 'font-size="11"'))
    machine = data["environment"]
    parts.append(
        text(
            LEFT,
            height - 12,
            f"{machine['processor']}, {machine['cores']} cores, {machine['date']}; geometric means",
            style='fill="#666"',
        )
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    data = json.loads((HERE / "results" / "suite.json").read_text())
    (HERE.parent / "docs" / "speed.svg").write_text(picture(data))


if __name__ == "__main__":
    main()
