"""Random NumPy programs: compiled and eager, they agree, or jitml says that it cannot compile them. See drawn/ and fuzz.py."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from programs.drawn.choices import Choices
from programs.drawn.outcomes import judge
from programs.drawn.program import Drawn, programs, write_program
from programs.drawn.shrinking import shrink


def agrees(program: Drawn) -> str | None:
    """Why the program is a failure, if it is one."""
    verdict = judge(program.text, program.exact)
    return verdict.detail if verdict.kind == "different" else None


@pytest.mark.parametrize("batch", range(12))
def test_numbered_programs(batch: int) -> None:
    for number in range(20 * batch, 20 * batch + 20):
        program = write_program(Choices.seeded(f"ci:{number}"))
        assert agrees(program) is None, program


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_drawn_programs(program: Drawn) -> None:
    assert agrees(program) is None


def test_a_program_is_the_same_each_time() -> None:
    first, again = (write_program(Choices.seeded("0:7")).text for _ in range(2))
    assert first == again


def test_an_argument_that_is_given_twice_is_judged_as_one() -> None:
    text = (
        "import numpy as np\ndef arguments(call):\n    x = np.ones(3)\n    return (x, x)\ndef program(x, y):\n    return y, x\n"
    )
    assert judge(text, True).kind == "equal"


def test_shrinking_keeps_what_fails() -> None:
    lines = ["    a = x + 1", "    for i in range(3):", "        a = a * 2", "        x[0] = a[1] / 3", "    return a, x"]
    text = "\n".join(["def arguments(call):", "    return (1,)", "def program(x):", *lines]) + "\n"
    smaller = shrink(text, lambda candidate: "/ 3" in candidate)
    assert smaller.splitlines()[-3:] == ["def program(x):", "    x[0] = a[1] / 3", "    return a"]
