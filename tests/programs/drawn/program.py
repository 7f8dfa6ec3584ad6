"""Whole programs: arguments, globals, helper functions, and a function that uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from programs.drawn.choices import Choices
from programs.drawn.inputs import Argument, argument_lines, draw_argument
from programs.drawn.scope import EXACT, INEXACT, ROUNDED, Scope
from programs.drawn.statements import Statements

# Helper functions, by their number of parameters: they write into what they get, return views, branch.
HELPERS = {
    "scale": (2, "def scale(a, w):\n    a *= 2\n    return a[::-1]\n"),
    "mix": (3, "def mix(a, b, w):\n    a[...] = a + b\n    if w > 1:\n        return a - w\n    return b\n"),
    "inexact_norm": (2, "def inexact_norm(a, w):\n    return np.sqrt((a * a).sum()) + w\n"),
    "clear": (2, "def clear(a, w):\n    for i in range(len(a)):\n        a[i] = i\n    return w * 2\n"),
    "first": (2, "def first(a, w):\n    return a if w else a.copy()\n"),
    "step": (3, "def step(a, b, w):\n    def inner(x):\n        return x + w\n    b[1:] = inner(a)[:-1]\n    return inner(b)\n"),
}
GLOBALS = "G = np.arange(4.0)\nG2 = np.arange(6).reshape(2, 3)\nW = 3\n"
NUMBERS = {
    "int": ("3", "2", "5", "0", "1", "-2", "4"),
    "float": ("0.5", "2.0", "-1.5", "0.0", "1.0"),
    "bool": ("True", "False"),
}


@dataclass(frozen=True)
class Drawn:
    """A program's source text. `exact`: its results are to be compared bit by bit."""

    text: str
    exact: bool

    def __repr__(self) -> str:
        return f"\n{self.text}"


@st.composite
def programs(draw: Any) -> Drawn:
    """Programs, as a strategy: what shrinks is the decisions that led to them."""
    return write_program(Choices.drawn(draw))


def write_program(choices: Choices, statements: int = 7) -> Drawn:
    """A program of up to so many statements at its top level."""
    arrays = _arrays(choices)
    numbers = {}
    for n in range(choices.number(0, 2)):
        values = NUMBERS[choices.pick(list(NUMBERS))]
        numbers[f"n{n}"] = [choices.pick(values) for _ in range(3)]
    draws = choices.chance(6)
    parameters = [a.name for a in arrays] + list(numbers) + (["rng"] if draws else [])
    helpers = {name: HELPERS[name][0] for name in HELPERS if choices.chance(15)}
    header = "import numpy as np\n\n"
    header += GLOBALS if choices.chance(20) else ""
    header += "".join("\n\n" + HELPERS[name][1] for name in helpers)
    arguments = "\n".join(argument_lines(choices, arrays, numbers, parameters, draws)) + "\n"
    header = f"{header}\n\n{arguments}\n\n"
    levels = {a.name: ROUNDED if a.special else EXACT for a in arrays}
    scope = Scope(header, parameters, arguments, levels)
    writer = Statements(choices, scope, helpers, draws)
    for _ in range(choices.number(1, statements)):
        writer.statement(3)
    _finish(choices, scope)
    exact = all(level < INEXACT for level in scope.levels.values())
    return Drawn(header + scope.body, exact)


def _arrays(choices: Choices) -> list[Argument]:
    arrays: list[Argument] = []
    for n in range(choices.number(1, 3)):
        arrays.append(draw_argument(choices, "xyz"[n], [a.shape for a in arrays]))
    return arrays


def _finish(choices: Choices, scope: Scope) -> None:
    """At times an exception that is not foreseen, mostly a return."""
    names = scope.containers()[:3] + scope.arrays() + scope.scalars()
    if choices.chance(4) and scope.arrays():
        scope.write(
            choices.pick(
                ("{0}[99] = 1", "{0} + np.ones(77)", "v99 = {0}[{0}.size + 3]", "{0}.reshape(7, 11)", "np.ones(3) @ np.ones(4)")
            ).format(scope.arrays()[0])
        )
    returned = choices.some(names[:8]) if names else ["None"]
    ending = choices.pick(("{}", "({})", "[{}]", "{}"))
    scope.write(f"return {ending.format(', '.join(returned))}")
