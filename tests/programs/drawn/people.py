"""Programs as people write them: objects that come from outside, are made inside, kept, changed and handed around.

What differs from the numeric programs is the alphabet: between their statements stand uses of one or two kinds of objects
(things.py) and passages of real code (recipes.py). Staleness shows when a function is called again: each call gets other objects
of the same kinds, or the same ones after a change.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator

import numpy as np

from programs.drawn.choices import Choices
from programs.drawn.scope import EXACT, INEXACT, ROUNDED, Expression, Scope
from programs.drawn.statements import Statement, Statements
from programs.drawn.things import places, recipes, tables
from programs.drawn.things.containers import CONTAINERS
from programs.drawn.things.functions import FUNCTIONS
from programs.drawn.things.library import LIBRARY
from programs.drawn.things.objects import OBJECTS
from programs.drawn.things.places import Held
from programs.drawn.things.seldom import SELDOM
from programs.drawn.things.thing import Thing, filled

THINGS = (OBJECTS, OBJECTS, FUNCTIONS, LIBRARY, CONTAINERS, CONTAINERS)
_RETURNABLE = (str, bytes, type(None), slice, range, deque)


class People(Statements):
    """Writes statements that use objects, among numeric ones."""

    def __init__(self, choices: Choices, scope: Scope, held: list[Held]) -> None:
        super().__init__(choices, scope, {}, False)
        self.held = [(h.thing, h.access) for h in held]
        self.things = [h.thing for h in held]
        self.tables: list[str] = []
        self.kept: list[str] = []
        self.uses: list[Statement] = [self.read, self.read, self.write, self.write, self.make_inside, self.keep, self.read_back]

    def numeric(self, room: int) -> None:
        """A statement that has nothing to do with objects."""
        super().statement(room)

    def statement(self, room: int) -> None:
        """Half of them are numeric."""
        roll = self.choices.number(0, 99)
        if roll < 50:
            self.numeric(room)
        elif roll < 75:
            self.choices.pick(self.uses)()
        elif roll < 90 and self.scope.depth < 3:
            self.passage()
        else:
            self.table()

    def words(self) -> dict[str, str]:
        """What the marks of a template stand for, this time."""
        arrays = [n for n in self.scope.arrays() if self.scope.values[n].ndim] or ["np.arange(3.0)"]
        first = self.scope.name()
        return {
            "v": first,
            "w": self.scope.name(),
            "c": f"C{self.scope.name()[1:]}",
            "l": f"i{self.scope.name()[1:]}",
            "x": self.choices.pick(arrays),
            "n": self.make.number(ROUNDED).text,
            "e": self._integer(),
            "i": self.choices.pick(("0", "1", "-1", *self._whole_names())),
            "k": self.choices.pick(("2", "3", "5", "1")),
        }

    def _whole_names(self) -> list[str]:
        return [n for n in self.scope.scalars(EXACT) if type(self.scope.values[n]) is int][:2]

    def _integer(self) -> str:
        name = self.choices.pick(self.scope.arrays(EXACT) or [""])
        options = ["1", "2", "0", *self._whole_names()]
        if name and self.scope.values[name].size:
            options += [f"{name}.size", f"int({name}.max())", f"int(abs({name}).min())"]
        text = self.choices.pick(options)
        return text if self.scope.evaluate(text, EXACT) else "1"

    def _write_lines(self, text: str) -> bool:
        return self.scope.attempt(*text.splitlines())

    # objects

    def _object(self) -> tuple[Thing, str] | None:
        return self.choices.pick(self.held) if self.held else None

    def read(self) -> bool:
        """A name for what an object gives, at times added to what another holds."""
        if not (found := self._object()):
            return False
        thing, access = found
        text = filled(self.choices.pick(thing.reads), o=access, **self.words())
        known = self.scope.evaluate(text, thing.level)
        numbers = self.scope.scalars(ROUNDED)
        name = self.scope.name()
        if known and numbers and np.ndim(known.value) == 0 and self.choices.chance(25):
            text, name = f"{self.choices.pick(numbers)} + {text}", self.scope.name()
        return self._bind(name, Expression(text, None, known.level if known else thing.level))

    def write(self) -> bool:
        if not (found := self._object()) or not found[0].writes:
            return self.read()
        thing, access = found
        return self._write_lines(filled(self.choices.pick(thing.writes), o=access, **self.words()))

    def make_inside(self) -> bool:
        """One more of the kinds there are, made by the program itself."""
        thing = self.choices.pick(self.things)
        words = self.words()
        if self.choices.chance(50):
            words["k"] = words["e"]
        name = self.scope.name()
        if not self.scope.attempt(f"{name} = {filled(self.choices.pick(thing.made), **words)}"):
            return False
        self.held.append((thing, name))
        return True

    def keep(self) -> bool:
        """A second name, or a container, for an object."""
        if not (found := self._object()):
            return False
        thing, access = found
        name = self.scope.name()
        form, again = self.choices.pick((("{}", "{}"), ("[{}, 1]", "{}[0]"), ("{{'a': {}}}", "{}['a']"), ("(1, {})", "{}[1]")))
        if not self.scope.attempt(f"{name} = {form.format(access)}"):
            return False
        self.held.append((thing, again.format(name)))
        self.kept.append(name)
        return True

    def read_back(self) -> bool:
        """What an object holds after a write, where it will be returned."""
        if not (found := self._object()):
            return False
        name = self.scope.name()
        if not self.scope.attempt(f"{name} = {found[1]}"):
            return False
        self.kept.append(name)
        return True

    # passages

    def table(self) -> bool:
        """A table of lists is made, written or read."""
        words = self.words()
        present = [t for t in self.tables if t in self.scope.values]
        if not present or self.choices.chance(15):
            if not self._write_lines(filled(self.choices.pick(tables.MAKE_TABLES), **words)):
                return False
            self.tables.append(words["v"])
            return True
        words["t"] = self.choices.pick(present)
        if self.choices.chance(30):
            text = filled(self.choices.pick(tables.READ_TABLES), **words)
            return self._bind(words["v"], Expression(text, None, ROUNDED))
        return self._write_lines(filled(self.choices.pick(tables.USE_TABLES), **words))

    def passage(self) -> bool:
        """A passage of real code, with drawn statements in its midst."""
        words = self.words()
        return self._as_exact(filled(self.choices.pick(recipes.PASSAGES), **words).splitlines(), words)

    def _as_exact(self, lines: list[str], words: dict[str, str], least: int = EXACT) -> bool:
        """Write lines: what they bind or write is as exact as what they read."""
        around = any(line.strip() == recipes.BODY for line in lines)
        read = [self.scope.level_of(name) for name in re.findall(r"\w+", "\n".join(lines))]
        level = max([least, *read])
        bound = INEXACT if ROUNDED in read and any(".sum()" in line for line in lines) else level  # a sum in any order
        if not (self._around(lines) if around else self.scope.attempt(*lines)):
            return False
        is_kept = any(name in line for line in lines for name in recipes.KEPT)
        if is_kept and isinstance(self.scope.values.get(words["v"]), np.ndarray):
            bound = INEXACT  # the next call finds it as this one leaves it
        for name, of in ((words["v"], bound), (words["w"], bound), (words["l"], level), (words["x"], level)):
            if name in self.scope.values:
                self.scope.taint(name, of)
        return True

    def _around(self, lines: list[str]) -> bool:
        before = len(self.scope.lines)
        where = next(n for n, line in enumerate(lines) if line.strip() == recipes.BODY)
        depth, indent = self.scope.depth, len(lines[where]) - len(lines[where].lstrip())
        loops, levels = any(line.startswith(("for", "while")) for line in lines[:where]), dict(self.scope.levels)
        self.scope.write(*lines[:where])
        self.scope.depth = depth + indent // 4
        self.scope.loops += loops
        self.block(2)
        self.scope.loops -= loops
        self.scope.depth = depth
        self.scope.write(*lines[where + 1 :])
        return self._closed_loop(before, levels) if loops else self._closed(before)

    def read_each(self) -> None:
        """What the objects hold in the end."""
        for found in self.held[:3]:
            self.held, held = [found], self.held
            self.read()
            self.held = held

    def worth_returning(self) -> list[str]:
        known = self.scope.values
        arrays, numbers, containers = self.scope.arrays(), self.scope.scalars(), self.scope.containers()
        plain = {*arrays, *numbers, *containers}
        objects = [n for n in [*self.kept, *self.tables, *reversed(known)] if n in known and n not in plain]
        if not self.choices.chance(20):  # functions, and much that programs make, cannot be returned
            objects = [n for n in objects if isinstance(known[n], _RETURNABLE)]
        names = dict.fromkeys([*objects[:4], *self.tables[:1], *numbers[:4], *containers[:3], *arrays])
        written = set(re.findall(r"\w+", self.scope.body))  # a block that was taken back may have bound others
        return [n for n in names if n in written]


def draw_held(choices: Choices) -> list[Held]:
    """One kind of objects, at times two."""
    held = []
    for number in range(1 + choices.chance(35)):
        family = choices.pick(THINGS) if choices.chance(95) else SELDOM
        held.append(places.place(choices, choices.pick(family), number))
    return held


def above(held: list[Held]) -> str:
    """Imports, classes and functions that the objects and passages need."""
    texts = dict.fromkeys([recipes.ABOVE, places.ABOVE, *(h.thing.above for h in held)])
    return "\n\n".join(texts)


def pruned(text: str) -> str:
    """The text without the imports, classes, functions and globals that nothing in it uses."""
    lines = text.splitlines()
    nodes = ast.parse(text).body
    used = {"arguments", "program"}
    while more := {name for node in nodes if _belongs(node, used) for name in _mentioned(node)} - used:
        used |= more
    pieces = [_gap(node) + "\n".join(lines[_first(node) - 1 : node.end_lineno]) for node in nodes if _belongs(node, used)]
    return "\n".join(dict.fromkeys(pieces)).lstrip("\n") + "\n"


def _belongs(node: ast.stmt, used: set[str]) -> bool:
    return not used.isdisjoint(_defined(node))


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in names)
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=[ast.Name(id=name)]):
            yield name


def _mentioned(node: ast.stmt) -> Iterator[str]:
    """Names, and those in texts such as `globals()['THING']`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _gap(node: ast.stmt) -> str:
    return "\n\n" if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ""
