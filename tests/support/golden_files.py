"""Golden text: a file of titled before/after pairs, under a header that names the pipeline which makes one of the other.

    ## run: simplify, eliminate_dead
    Algebraic simplification.

    ## a double negation goes
    graph(a: f32[4]) { b: f32[4] = neg a; c: f32[4] = neg b; return c }
    => graph(a: f32[4]) { return a }

`tests/golden/test_golden.py` runs the pipeline on every `before`. Under `pytest --update-golden` the pairs that have changed are
rewritten, and the diff is reviewed. To add a case write its title, its `before` and a line `=>`, and update.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class GoldenFile:
    """`stages`: the names in the header, in the order in which they run."""

    stages: tuple[str, ...]
    introduction: str
    pairs: tuple[Pair, ...]

    def __str__(self) -> str:
        return f"## run: {', '.join(self.stages)}\n{self.introduction}\n\n" + "\n".join(map(str, self.pairs))


def read(path: Path) -> GoldenFile:
    empty, header, *sections = re.split(r"^## ", path.read_text(), flags=re.MULTILINE)
    stages, _, introduction = header.partition("\n")
    assert not empty and stages.startswith("run: "), f"{path} begins with a line `## run: <stages>`"
    pairs = []
    for section in sections:
        title, _, body = section.partition("\n")
        before, _, after = body.partition(_ARROW)
        pairs.append(Pair(title.strip(), before.strip(), after.strip()))
    return GoldenFile(tuple(stages.removeprefix("run: ").split(", ")), introduction.strip(), tuple(pairs))


def update(path: Path, title: str, after: str) -> None:
    """Write what a pair's pipeline gives now."""
    file = read(path)
    pairs = tuple(replace(pair, after=after.strip()) if pair.title == title else pair for pair in file.pairs)
    path.write_text(str(replace(file, pairs=pairs)))
