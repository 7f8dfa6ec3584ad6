"""Random NumPy programs: compiled and eager, they agree, or jitml says that it cannot compile them. See drawn/ and fuzz.py."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import HealthCheck, given, settings

from programs.drawn.choices import Choices
from programs.drawn.expressions import bracketed
from programs.drawn.outcomes import judge
from programs.drawn.program import Drawn, programs, write_program
from programs.drawn.scope import EXACT, INEXACT, Expression, Scope
from programs.drawn.shrinking import shrink
from programs.drawn.writes import Writes
from support.effort import drawn


def agrees(program: Drawn) -> str | None:
    """Why the program is a failure, if it is one."""
    verdict = judge(program.text, program.exact)
    return verdict.detail if verdict.kind == "different" else None


# What `make fuzz` draws thousands of: enough to see that something is broken.
@pytest.mark.parametrize("batch", range(drawn(5, 24)))
def test_numbered_programs(batch: int) -> None:
    for number in range(10 * batch, 10 * batch + 10):
        program = write_program(Choices.seeded(f"ci:{number}"))
        assert agrees(program) is None, program


@pytest.mark.parametrize("batch", range(drawn(2, 4)))
def test_numbered_programs_of_people(batch: int) -> None:
    for number in range(6 * batch, 6 * batch + 6):
        program = write_program(Choices.seeded(f"ci:{number}"), shape="people")
        assert agrees(program) is None, program


@pytest.mark.parametrize("batch", range(drawn(2, 6)))
def test_numbered_programs_with_statements_that_break(batch: int) -> None:
    for number in range(6 * batch, 6 * batch + 6):
        program = write_program(Choices.seeded(f"ci:{number}"), shape="breaks")
        assert agrees(program) is None, program


def test_statements_that_break_are_drawn() -> None:
    texts = [write_program(Choices.seeded(f"ci:{number}"), shape="breaks").text for number in range(12)]
    breaking = ("LOG.", "STATE", "MODEL", "TICKS", "random.", "try:", "yield", "Bar(", "del ", "Entered(", "lambda")
    assert sum(any(word in text.partition("def program")[2] for word in breaking) for text in texts) >= 9


@settings(max_examples=drawn(12, 60), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
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


@pytest.mark.parametrize(
    "write, kind",
    [("x[2] = x[:, -1]", "equal"), ("np.copyto(x[2], x[:, -1])", "equal"), ("x[2] = int(__name__[6:])", "different")],
)
def test_elements_that_numpy_reads_after_it_has_written_them_are_not_judged(write: str, kind: str) -> None:
    text = (
        "import numpy as np\ndef arguments(call):\n    return (np.arange(25).reshape(5, 5),)\n"
        f"def program(x):\n    {write}\n    return x\n"
    )
    assert judge(text, True).kind == kind


def test_a_flag_that_products_leave_by_accident_is_not_judged() -> None:
    text = (
        "import numpy as np\ndef arguments(call):\n    x = np.ones((3, 4), np.float32)\n    x[0, 0] = np.inf\n    return (x,)\n"
        "def program(x):\n    return x @ x.T, np.dot(x, x.T)\n"
    )
    assert judge(text, False).kind == "equal"


@pytest.mark.parametrize("text", ["x", "x.T", "x[1:]", "np.ones(3)", "np.ones(3).T[0]"])
def test_what_is_one_operand_has_no_brackets(text: str) -> None:
    assert bracketed(text) == text


@pytest.mark.parametrize("text", ["-x", "1", "x > 2", "np.empty_like(x) * 0 + 1", "np.arange(4) * x[0]"])
def test_what_is_more_than_one_operand_has_brackets(text: str) -> None:
    """`np.empty_like(x) * 0 + 1 // y` divided what was in memory."""
    assert bracketed(text) == f"({text})"


@pytest.mark.parametrize("text", ["x", "G"])
def test_what_the_caller_sees_stays_inexact_when_its_name_is_bound_anew(text: str) -> None:
    scope = Scope("import numpy as np\nG = np.ones(3)\ndef arguments(call):\n    return (np.ones(3),)\n", ["x"], "", {"x": EXACT})
    assert scope.attempt(f"v = {text}[1:]")
    assert scope.attempt("v *= np.exp(v)")
    scope.taint("v", INEXACT)
    scope.levels |= {"v": EXACT, "x": EXACT}
    assert max(scope.levels.values()) == INEXACT


@pytest.mark.parametrize("arm, level", [("if False:", INEXACT), ("while False:", INEXACT), (None, EXACT)])
def test_what_a_branch_may_leave_alone_stays_inexact(arm: str | None, level: int) -> None:
    scope = Scope("import numpy as np\ndef arguments(call):\n    return (np.ones(3),)\n", ["x"], "", {"x": INEXACT})
    writes = Writes(Choices.seeded("0"), scope)
    with scope.block(arm) if arm else nullcontext():
        assert writes._bind("x", Expression("x.size", 3))
    assert scope.level_of("x") == level


def test_programs_whose_arrays_double_are_not_drawn() -> None:
    scope = Scope("import numpy as np\ndef arguments(call):\n    return (np.ones(3),)\n", ["x"], "", {"x": EXACT})
    assert not scope.attempt("for i in range(30):", "    x = np.concatenate([x, x])", "    y = i")
    assert scope.attempt("for i in range(3):", "    x = np.concatenate([x, x])", "    y = i")


def test_no_array_of_objects_holds_itself() -> None:
    """NumPy overflows the stack with one that does: it ended a campaign."""
    scope = Scope("import numpy as np\ndef arguments(call):\n    return (np.ones(3),)\n", ["x"], "", {"x": EXACT})
    assert scope.attempt("v = np.array({})")
    assert not scope.attempt("v[()] = v")
    assert scope.values["v"][()] == {}


def test_shrinking_keeps_what_fails() -> None:
    lines = ["    a = x + 1", "    for i in range(3):", "        a = a * 2", "        x[0] = a[1] / 3", "    return a, x"]
    text = "\n".join(["def arguments(call):", "    return (1,)", "def program(x):", *lines]) + "\n"
    smaller = shrink(text, lambda candidate: "/ 3" in candidate)
    assert smaller.splitlines()[-3:] == ["def program(x):", "    x[0] = a[1] / 3", "    return a"]
