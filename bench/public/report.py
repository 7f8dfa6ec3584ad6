"""How did public programs fare?  A line for each, counts, refusals by cause, and the geometric mean of what is gained."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

HANG = 10.0  # seconds of a first call beyond plain Python's
SLOW = 0.95
LONG = 1e-3  # seconds of a plain call that count in the mean


@dataclass
class Outcome:
    """A program's fate: right, conditioned, refused, wrong, hang, crash, or broken (the entry itself)."""

    name: str
    kind: str
    detail: str = ""
    plain: list[float] = field(default_factory=list)
    jitted: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    refused_when_decorated: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def of(cls, name: str, lines: list[dict[str, Any]], status: int | None, errors: str, seconds: float) -> Outcome:
        merged = {key: value for line in lines for key, value in line.items()}
        plain = [line["plain"] for line in lines if "plain" in line]
        jitted = [line["jitted"] for line in lines if "jitted" in line]
        said = list(dict.fromkeys(text for line in lines for text in line.get("said", ())))
        outcome = cls(name, "right", "", plain, jitted, said, merged.get("refused_when_decorated", []), seconds)
        wrong = next((line for line in lines if "wrong" in line), None)
        if any(text.startswith("WrongResultWarning") for text in said):
            outcome.kind, outcome.detail = "wrong", next(t for t in said if t.startswith("WrongResultWarning"))
        elif wrong is not None:
            outcome.kind, outcome.detail = "wrong", f"call {wrong['call']}: {wrong['wrong']}"
        elif "refused" in merged:
            outcome.kind, outcome.detail = "refused", merged["refused"]
        elif "unstable" in merged:
            outcome.kind, outcome.detail = "broken", merged["unstable"]
        elif not jitted and not plain:
            outcome.kind, outcome.detail = "broken", errors.strip() or "no call of plain Python ended"
        elif jitted and jitted[0] > plain[0] + HANG:
            outcome.kind, outcome.detail = "hang", f"the first call took {jitted[0]:.1f} s"
        elif status is None and len(jitted) < 2:
            outcome.kind, outcome.detail = "hang", f"ended after {seconds:.0f} s, in call {len(jitted) + 1}"
        elif status is None:
            outcome.detail = f"ended after {seconds:.0f} s, in call {len(jitted) + 1}"
        elif status:
            outcome.kind, outcome.detail = "crash", f"status {status}: {errors.strip()}"
        elif all(line.get("raised") for line in lines if "plain" in line):
            outcome.kind, outcome.detail = "broken", f"plain Python raises {merged['raised']}"
        elif "conditioned" in merged:
            outcome.detail = f"as far as rounding allows: {merged['conditioned']}"
        return outcome

    @property
    def gain(self) -> float | None:
        """How many times as fast calls 2 to 10 are, all together."""
        later = len(self.jitted)
        return sum(self.plain[1:later]) / max(sum(self.jitted[1:later]), 1e-9) if later > 1 else None

    @property
    def plain_call(self) -> float:
        """Seconds of a plain call, the first one left out where there are others."""
        calls = self.plain[1:] or self.plain
        return sum(calls) / len(calls) if calls else math.nan

    def line(self) -> str:
        gain = f"{self.gain:7.2f}x" if self.gain is not None else "       -"
        first = f"{self.jitted[0]:6.2f} s" if self.jitted else "      - "
        detail = self.detail or "; ".join(self.said)
        return f"{self.name:48s} {self.kind:8s} {1e3 * self.plain_call:9.3f} ms {first} {gain}  {one_line(detail)[:140]}"


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", without_paths(text)).replace("|", "/")


def without_paths(text: str) -> str:
    """Paths of this machine do not belong in a report."""
    return re.sub(r"/(?:[\w+.@ -]+/)+(?=[\w.-]+)", "", text)


def cause(text: str) -> str:
    """A refusal's words without the values, so that those of one cause are counted together."""
    first = text.splitlines()[0] if text else ""
    return re.sub(r"0x\w+|\d+|'[^']*'|`[^`]*`", "#", without_paths(first))[:110]


def geometric_mean(numbers: list[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def report(outcomes: list[Outcome]) -> str:
    kinds = Counter(outcome.kind for outcome in outcomes)
    right = [o for o in outcomes if o.kind == "right" and o.gain is not None]
    slow = [o for o in right if o.gain is not None and o.gain < SLOW]
    long = [o.gain for o in right if o.gain is not None and o.plain_call >= LONG]
    plain = [o for o in outcomes if any("UncompiledWarning" in text for text in o.said)]
    late = [o for o in outcomes if o.jitted and o.jitted[0] > o.plain[0] + 1]
    lines = [
        f"{len(outcomes)} programs: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()) + ".",
        "",
        f"* slower than {SLOW} of plain Python in calls 2 to 10: {len(slow)}",
        f"* geometric mean of the {len(long)} right ones that take 1 ms or more: {geometric_mean(long):.2f} times plain Python",
        f"* that warn that a function runs as plain Python: {len(plain)}",
        f"* first call more than a second beyond plain Python's: {len(late)}",
        "",
        "| program | outcome | plain | first call | gain | |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for o in outcomes:
        first, gain = (f"{o.jitted[0]:.2f} s" if o.jitted else "-"), (f"{o.gain:.2f}" if o.gain is not None else "-")
        detail = one_line(o.detail or "; ".join(o.said))[:120]
        lines.append(f"| {o.name} | {o.kind} | {1e3 * o.plain_call:.3f} ms | {first} | {gain} | {detail} |")
    lines += ["", "Refusals by cause:", ""]
    causes: dict[str, list[str]] = {}
    for o in outcomes:
        if o.kind == "refused":
            causes.setdefault(cause(o.detail), []).append(o.name)
        for text in o.said:
            if text.startswith("UncompiledWarning"):
                causes.setdefault("(warned) " + cause(re.sub(r"^UncompiledWarning: \S+ ", "", text)), []).append(o.name)
    for why, names in sorted(causes.items(), key=lambda item: -len(item[1])):
        lines.append(f"* {len(names)} {why}: {', '.join(names)}")
    return "\n".join(lines) + "\n"
