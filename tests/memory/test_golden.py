"""What planning does, as text."""

from __future__ import annotations

from jitml.kernels.text.program_parser import parse_program
from jitml.memory.plan import plan
from jitml.memory.report import show
from support import golden_files


def test_plan() -> None:
    golden_files.check("memory/plan.txt", lambda _, before: show(plan(parse_program(before))))
