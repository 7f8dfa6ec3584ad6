"""The plot of a measurement: kernels in per cent of a copy, and other libraries' times in terms of ours.

    python -m gpu.plot RESULTS

draws RESULTS/gpu-measure.svg from RESULTS/gpu-measure.json, where matplotlib is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WIDTH, OF_A_ROW = 11.0, 0.19  # inches
SHARE, MODEL = "% of copy", "model: H100 us"
Row = Mapping[str, Any]


def bars_of(data: Mapping[str, Any]) -> tuple[list[tuple[str, float]], list[tuple[str, dict[str, float]]]]:
    """Kernels with their per cent of a copy; programs with each column's time, and the model's, in terms of ours."""
    rows: list[Row] = [row for result in data["results"] for row in result["rows"] if row.get("figures")]
    shares = [(row["case"], float(row["figures"][SHARE])) for row in rows if SHARE in row["figures"]]
    ratios = []
    for row in rows:
        figures = row["figures"]
        found = {name.removesuffix(" / ours"): float(x) for name, x in figures.items() if name.endswith(" / ours")}
        if found:
            ours = figures.get("jitml us", figures.get("stand-in us"))
            found |= {"model": figures[MODEL] / ours} if MODEL in figures and ours else {}
            ratios.append((row["case"], found))
    return sorted(shares, key=lambda bar: bar[1]), ratios


def draw(data: Mapping[str, Any], place: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shares, ratios = bars_of(data)
    heights = [max(8, len(shares)), max(8, len(ratios))]
    figure, axes = pyplot.subplots(2, 1, figsize=(WIDTH, OF_A_ROW * sum(heights) + 2), gridspec_kw={"height_ratios": heights})
    axes[0].barh([name for name, _ in shares], [share for _, share in shares], color="#4477aa")
    axes[0].axvline(90, color="#aa3377", linewidth=1)
    axes[0].set_title("Memory-bound kernels: per cent of the copy bandwidth of the same minute")
    places = range(len(ratios))
    for n, column in enumerate(columns_of(ratios)):
        own = [(place, found[column]) for place, (_, found) in zip(places, ratios) if column in found]
        marker = "|" if column == "model" else "o^sDv"[n % 5]
        axes[1].scatter([x for _, x in own], [place for place, _ in own], label=column, s=26, marker=marker)
    axes[1].axvline(1, color="black", linewidth=1)
    axes[1].set_xscale("log")
    axes[1].set_yticks(list(places), [name for name, _ in ratios])
    axes[1].set_title("Times in terms of ours: to the right of the line, we are faster")
    axes[1].legend(fontsize=8)
    for axis in axes:
        axis.tick_params(labelsize=7)
        axis.grid(axis="x", linewidth=0.3)
    figure.tight_layout()
    figure.savefig(place)


def columns_of(ratios: Sequence[tuple[str, Mapping[str, float]]]) -> list[str]:
    return list(dict.fromkeys(column for _, found in ratios for column in found))


def main() -> None:
    folder = Path(sys.argv[1])
    draw(json.loads((folder / "gpu-measure.json").read_text()), folder / "gpu-measure.svg")


if __name__ == "__main__":
    main()
