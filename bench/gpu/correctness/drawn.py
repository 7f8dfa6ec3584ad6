"""Drawn programs on the device, as long as there is time: those of `tests/programs/fuzz.py`, each a case."""

from __future__ import annotations

from functools import partial
from itertools import count

from gpu.cases import Cases, Outcome, Setting
from gpu.running import require_backend
from programs.drawn.choices import Choices
from programs.drawn.outcomes import judge
from programs.drawn.program import SHAPES, write_program

SEED = 29


class Disagreement(AssertionError):
    """A drawn program does not do what NumPy does."""


def cases(setting: Setting) -> Cases:
    """The first of each shape, again and again; each process takes its own."""
    require_backend(setting.backend)
    for number in count():
        if setting.seconds_left < 0:
            return
        yield f"{SEED}:{number}", partial(check_program, number)


def check_program(number: int) -> Outcome:
    drawn = write_program(Choices.seeded(f"{SEED}:{number}"), shape=SHAPES[0] if number % 4 else SHAPES[1])
    verdict = judge(drawn.text, drawn.exact, "machine")
    if verdict.kind not in ("equal", "refused", "uncompiled", "invalid", "sensitive"):
        error = Disagreement(f"{verdict.kind}: {verdict.detail}")
        error.operands = drawn.text  # type: ignore[attr-defined]  # errors may carry what they like
        raise error
    return {"verdict": verdict.kind, "replayed": verdict.replays > 0, "detail": verdict.detail[:200]}
