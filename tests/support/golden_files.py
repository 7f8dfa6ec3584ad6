"""Golden text: a file of titled before/after pairs, checked by transforming each `before` again.

    ## a dead chain goes whole
    graph(a: f32[4]) { b: f32[4] = exp a; c: f32[4] = neg b; d: f32[4] = tanh a; return d }
    => graph(a: f32[4]) { b: f32[4] = tanh a; return b }

`check(name, transform)` compares every pair, line breaks and `;` aside; under `pytest --update-golden` it rewrites the
file instead, and the diff is reviewed. To add a case write its title, its `before` and a line `=>`, and update.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"
updating = False  # set by conftest.py from --update-golden

_ARROW = "\n=>"


@dataclass(frozen=True)
class Pair:
    title: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"## {self.title}\n{self.before}{_ARROW} {self.after}\n"

    def agrees(self, other: Pair) -> bool:
        return re.sub(r"[;\s]+", " ", self.after) == re.sub(r"[;\s]+", " ", other.after)


def read(path: Path) -> tuple[str, list[Pair]]:
    """The introduction of a golden file, and its pairs."""
    intro, *sections = re.split(r"^## ", path.read_text(), flags=re.MULTILINE)
    pairs = []
    for section in sections:
        title, _, body = section.partition("\n")
        before, _, after = body.partition(_ARROW)
        pairs.append(Pair(title.strip(), before.strip(), after.strip()))
    return intro, pairs


def check(name: str, transform: Callable[[str, str], str]) -> None:
    """Hold `transform(title, before)` against every pair of tests/golden/<name>."""
    path = GOLDEN / name
    intro, pairs = read(path)
    done = [Pair(p.title, p.before, transform(p.title, p.before).strip()) for p in pairs]
    if updating:
        path.write_text(intro + "\n".join(map(str, done)))
        return
    for expected, got in zip(pairs, done, strict=True):
        assert got.agrees(expected), f"{name}: {expected.title} (pytest --update-golden rewrites)\n\n{got}"
