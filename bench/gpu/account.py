"""The account of a check: its results as JSON, as a Markdown page, and as a summary that fits the end of a log."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpu.supervision import PartResult

RESULTS = Path(__file__).parent.parent / "results"
SUMMARY = 11_000  # characters: what a log keeps of its end is little more
_WHOLE = 3  # failures of one kind that are kept with all their texts

Row = Mapping[str, Any]


def kind_of(row: Row) -> str:
    """What failures have in common that are probably one: class and first line without numbers, and where it was raised."""
    first = (str(row.get("message", "")).strip().splitlines() or [""])[0]
    first = re.sub(r"0x\w+|-?\d+(\.\d+)?(e[+-]?\d+)?|'[^']*'|\[[^]]*\]", "#", first)[:110]
    if row.get("error") == "Mismatch":
        first = first.split("element")[0]
    place = next((p for p in reversed(row.get("places", ())) if p.startswith("src/")), "")
    return f"{row.get('error', row['status'])}: {first}" + (f" ({place})" if place and row.get("error") != "Mismatch" else "")


def kinds(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Failures by kind, the most frequent first."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(kind_of(row), []).append(row)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def without_repeated_texts(result: PartResult) -> dict[str, Any]:
    """A part's results for JSON: of each kind of failure, the first few with the texts of their kernels."""
    data = asdict(result)
    seen: Counter[str] = Counter()
    for row in data["rows"]:
        if row["status"] in ("passed", "skipped", "unfinished"):
            continue
        seen[kind_of(row)] += 1
        if seen[kind_of(row)] > _WHOLE:
            row.pop("texts", None)
            row.pop("stderr", None)
    return data


def headline(result: PartResult) -> str:
    """One part in a line."""
    if result.skipped:
        return f"{result.part}: skipped: {result.skipped}"
    counts = Counter(str(row["status"]) for row in result.rows)
    shown = ", ".join(f"{n} {status}" for status, n in sorted(counts.items(), key=lambda item: item[0] != "failed"))
    verdicts = Counter(str(row["verdict"]) for row in result.rows if "verdict" in row)
    text_of_verdicts = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
    lost = sum("lost" in row for row in result.rows)
    text = f"{result.part}: {shown or 'nothing ran'} in {result.seconds:g} s"
    text += f" ({text_of_verdicts})" if verdicts else ""
    text += f", {result.left} not reached" if result.left else ""
    text += f", device lost {lost} times" if lost else ""
    return text + "".join(f"; BROKEN {why.strip().splitlines()[-1][:300]}" for why in result.broken)


def shown(row: Row, *, texts: int) -> str:
    """A failure in full, `texts` characters of each of its texts."""
    parts = [f"{row['case']}: {row.get('error', row['status'])}: {str(row.get('message', ''))[:1200]}"]
    if row.get("places"):
        parts.append("  at " + " < ".join(reversed(row["places"][-5:])))
    for name in ("cause", "lost", "operands", "stderr"):
        if row.get(name):
            parts.append(f"  {name}: {str(row[name])[-texts:] if name == 'stderr' else str(row[name])[:800]}")
    for stage, text in (row.get("texts") or {}).items():
        if texts:
            parts.append(f"  --- {stage}\n{text[:texts]}")
    return "\n".join(parts)


def page(title: str, facts: Mapping[str, Any], results: Sequence[PartResult], plot: str = "") -> str:
    """The Markdown page; `plot` is the name of a picture beside it."""
    lines = [f"# {title}", "", machine_line(facts), "", *(f"* {headline(result)}" for result in results), ""]
    lines += [f"![{title}]({plot})", ""] if plot else []
    for result in results:
        figures = [row for row in result.rows if row["status"] == "passed" and row.get("figures")]
        if figures:
            lines += [
                f"## {result.part}",
                "",
                result.question,
                "",
                *(f"* {line}" for line in means(result)),
                "",
                table_of(figures),
                "",
            ]
            lines += [
                *(f"* {row['case']}, {column}: {why}" for row in figures for column, why in (row.get("not run") or {}).items()),
                "",
            ]
        if result.failed or result.broken:
            lines += [f"## {result.part}: what failed", ""]
            lines += [f"```\n{why}\n```\n" for why in result.broken]
        for kind, rows in kinds(result.failed).items():
            lines += [f"### {len(rows)}: {kind}", "", ", ".join(str(row["case"]) for row in rows[:40]), ""]
            lines += [f"```\n{shown(rows[0], texts=5000)}\n```", ""]
    return "\n".join(lines)


def means(result: PartResult) -> list[str]:
    """How far ahead of each column ours is, in the geometric mean of all cases that both run."""
    ratios: dict[str, list[float]] = {}
    for row in result.rows:
        for name, value in (row.get("figures") or {}).items():
            if name.endswith(" / ours"):
                ratios.setdefault(name.removesuffix(" / ours"), []).append(float(value))
    ran = sum(bool(row.get("figures")) for row in result.rows)
    lines = []
    for column, values in ratios.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        ahead = sum(value > 1 for value in values)
        lines.append(f"{column} takes {mean:.2f} times as long as ours ({len(values)} of {ran} cases; ours ahead in {ahead})")
    return lines


def table_of(rows: Sequence[Row]) -> str:
    """Figures as a table: a row for each case, a column for each name that a case has."""
    columns = list(dict.fromkeys(name for row in rows for name in row["figures"]))
    lines = [["case", *columns], ["---", *["---:"] * len(columns)]]
    lines += [[str(row["case"]), *(figure(row["figures"].get(name, "")) for name in columns)] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compact(result: PartResult) -> list[str]:
    """A part's figures in as few characters as can be read: the columns' names once, then a line for each case."""
    rows = [row for row in result.rows if row.get("figures")]
    names = dict.fromkeys(name for row in rows for name in row["figures"])
    columns = [
        name for name in names if not name.endswith((" / ours", "MB", ": bound by", ": launches", ": steps", ": Mop", "H200 us"))
    ]
    if not rows:
        return []
    lines = [f"[{result.part}] " + " | ".join(columns)]
    return lines + [f"{row['case']}: " + " ".join(figure(row["figures"].get(name, "-"), 3) for name in columns) for row in rows]


def figure(x: Any, digits: int = 4) -> str:
    return f"{x:.{digits}g}" if isinstance(x, float) else str(x)


def machine_line(facts: Mapping[str, Any]) -> str:
    device = facts.get("device")
    if isinstance(device, Mapping):
        major, minor = device["capability"]
        gpu = f"{device['name']} (sm_{major}{minor}, {device['multiprocessors']} multiprocessors), driver {device['driver']}"
    else:
        gpu = f"no GPU ({device})"
    versions = ", ".join(f"{name} {at}" for name, at in facts.get("packages", {}).items() if at != "absent")
    return f"{facts.get('date')}, {gpu}, NVRTC {facts.get('nvrtc')}, Python {facts.get('python')}, {versions}."


def summary(title: str, facts: Mapping[str, Any], results: Sequence[PartResult], tables: bool) -> str:
    """What fits the end of a log: headlines last; before them as many failures, one of each kind, as there is room for."""
    heads = [title, machine_line(facts), *(headline(result) for result in results)]
    failures = [(result, kind, rows) for result in results for kind, rows in kinds(result.failed).items()]
    heads += [f"[{result.part}] {len(rows)}x {kind[:230]}" for result, kind, rows in failures[:25]]
    heads += [f"[{result.part}] {line}" for result in results for line in means(result)]
    if tables:
        heads += [line for result in results for line in compact(result)]
    end = "\n".join(heads)[:SUMMARY]
    room = SUMMARY - len(end)
    details = []
    for texts in (1500, 500, 0):
        details = [f"[{r.part}] {shown(rows[0], texts=texts)}" for r, _, rows in failures]
        if sum(map(len, details)) <= room:
            break
    return (
        "\n\n".join([*details, end])[-SUMMARY:] if sum(map(len, details)) <= room else "\n\n".join(details)[:room] + "\n\n" + end
    )


def write(name: str, title: str, facts: Mapping[str, Any], results: Sequence[PartResult], folder: Path, plot: str = "") -> None:
    """The page and the data, each by way of a file beside it: whoever reads meanwhile, or kills this, finds a whole one."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"environment": dict(facts), "results": [without_repeated_texts(result) for result in results]}
    for suffix, text in (("json", json.dumps(data, indent=1, default=str)), ("md", page(title, facts, results, plot))):
        beside = folder / f"{name}.{suffix}.part"
        beside.write_text(text + "\n")
        beside.replace(folder / f"{name}.{suffix}")
