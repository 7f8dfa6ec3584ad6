"""Whole programs: arguments, globals, helper functions, and a function that uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from programs.drawn.breaks import Breaks
from programs.drawn.choices import Choices
from programs.drawn.inputs import CALLS, Argument, argument_lines, draw_argument
from programs.drawn.people import People, above, draw_held, pruned
from programs.drawn.scope import EXACT, INEXACT, ROUNDED, Scope, comes_back
from programs.drawn.statements import Statements
from programs.drawn.things import breaks, recipes

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


SHAPES = ("numeric", "people", "breaks")
_SEEDED = ("random.seed({})", "np.random.seed({})")


@dataclass(frozen=True)
class Drawn:
    """A program's source text. `exact`: its results are to be compared bit by bit; `about`: the kinds of its objects."""

    text: str
    exact: bool
    about: str = ""

    def __repr__(self) -> str:
        return f"\n{self.text}"


@st.composite
def programs(draw: Any, shape: str = "numeric") -> Drawn:
    """Programs, as a strategy: what shrinks is the decisions that led to them."""
    return write_program(Choices.drawn(draw), shape=shape)


def write_program(choices: Choices, statements: int = 7, shape: str = "numeric") -> Drawn:
    """A program of up to so many statements at its top level.

    Args:
        shape: "numeric", "people" (objects and passages of real code among numeric statements), or "breaks" (statements that
            cannot be compiled among numeric ones).
    """
    return {"numeric": _write_numeric, "people": _write_people, "breaks": _write_breaks}[shape](choices, statements)


def _write_numeric(choices: Choices, statements: int) -> Drawn:
    arrays = _arrays(choices)
    numbers = _numbers(choices)
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
    _finish(choices, scope, scope.containers()[:3] + scope.arrays() + scope.scalars())
    return _whole(scope)


def _write_people(choices: Choices, statements: int) -> Drawn:
    arrays = [_plain_array(choices, name) for name in "xy"[: choices.number(1, 2)]]
    numbers = _numbers(choices)
    held = draw_held(choices)
    parameters = [h.parameter for h in held if h.parameter] + [a.name for a in arrays] + list(numbers)
    objects = {h.parameter: list(h.values) for h in held if h.parameter}
    before = [[line for h in held if h.before for line in h.before[call]] for call in range(CALLS)]
    arguments = "\n".join(argument_lines(choices, arrays, numbers | objects, parameters, False, before)) + "\n"
    header = f"import numpy as np\n{above(held)}\n\n{arguments}\n\n"
    if not comes_back(header + "def program(*args): pass\n"):
        return _write_people(choices, statements)
    levels = {a.name: ROUNDED if a.special else EXACT for a in arrays}
    scope = Scope(header, parameters, arguments, levels)
    writer = People(choices, scope, held)
    for _ in range(choices.number(2, statements)):
        writer.statement(3)
    writer.read_each()
    _finish(choices, scope, writer.worth_returning())
    drawn = _whole(scope)
    if not comes_back(drawn.text):
        return _write_people(choices, statements)
    return Drawn(pruned(drawn.text), drawn.exact, "+".join(h.thing.name for h in held))


def _write_breaks(choices: Choices, statements: int) -> Drawn:
    arrays = [_plain_array(choices, name) for name in "xyz"[: choices.number(1, 3)]]
    numbers = _numbers(choices)
    parameters = [a.name for a in arrays] + list(numbers)
    before = [[line.format(call) for line in _SEEDED] for call in range(CALLS)]
    arguments = "\n".join(argument_lines(choices, arrays, numbers, parameters, False, before)) + "\n"
    header = f"import numpy as np\n{recipes.ABOVE}\n\n{breaks.ABOVE}\n\n{arguments}\n\n"
    levels = {a.name: ROUNDED if a.special else EXACT for a in arrays}
    scope = Scope(header, parameters, arguments, levels)
    writer = Breaks(choices, scope)
    for _ in range(choices.number(3, statements + 2)):
        writer.statement(3)
    _finish(choices, scope, writer.worth_returning())
    drawn = _whole(scope)
    return Drawn(pruned(drawn.text), drawn.exact, "breaks") if comes_back(drawn.text) else _write_breaks(choices, statements)


def _whole(scope: Scope) -> Drawn:
    return Drawn(scope.header + scope.body, all(level < INEXACT for level in scope.levels.values()))


def _numbers(choices: Choices) -> dict[str, list[str]]:
    numbers = {}
    for n in range(choices.number(0, 2)):
        values = NUMBERS[choices.pick(list(NUMBERS))]
        numbers[f"n{n}"] = [choices.pick(values) for _ in range(3)]
    return numbers


def _arrays(choices: Choices) -> list[Argument]:
    arrays: list[Argument] = []
    for n in range(choices.number(1, 3)):
        arrays.append(draw_argument(choices, "xyz"[n], [a.shape for a in arrays]))
    return arrays


def _plain_array(choices: Choices, name: str) -> Argument:
    dtype = choices.pick(("float64", "float64", "int64", "float32", "bool"))
    return Argument(name, dtype, choices.pick(((5,), (3,), (4,), (3, 4))), "{}", special=False, read_only=False)


def _finish(choices: Choices, scope: Scope, names: list[str]) -> None:
    """At times an exception that is not foreseen, mostly a return."""
    if choices.chance(4) and scope.arrays():
        scope.write(
            choices.pick(
                ("{0}[99] = 1", "{0} + np.ones(77)", "v99 = {0}[{0}.size + 3]", "{0}.reshape(7, 11)", "np.ones(3) @ np.ones(4)")
            ).format(scope.arrays()[0])
        )
    returned = choices.some(names[:8]) if names else ["None"]
    ending = choices.pick(("{}", "({})", "[{}]", "{}"))
    scope.write(f"return {ending.format(', '.join(returned))}")
