"""What a statement does to names and memory: it binds, rebinds, and writes in place in all the ways of NumPy."""

from __future__ import annotations

import numpy as np

from programs.drawn.choices import Choices
from programs.drawn.expressions import Expressions
from programs.drawn.forms import CARRIED, METHODS, OVERLAPS
from programs.drawn.scope import EXACT, INEXACT, ROUNDED, Expression, Scope


class Writes:
    """Writes simple statements into a scope. Each method says whether it wrote something."""

    def __init__(self, choices: Choices, scope: Scope) -> None:
        self.choices, self.scope = choices, scope
        self.make = Expressions(choices, scope)

    # names and values

    def _bind(self, name: str, e: Expression) -> bool:
        if not self.scope.attempt(f"{name} = {e.text}"):
            return False
        self.scope.levels[name] = max(e.level, self.scope.level_of(name) if self.scope.depth > 1 else EXACT)
        return True

    def bind(self) -> bool:
        return self._bind(self.scope.name(), self.make.array(2))

    def bind_number(self) -> bool:
        return self._bind(self.scope.name(), self.make.number())

    def bind_view(self) -> bool:
        return self._bind(self.scope.name(), self.make.leaf())

    def rebind(self) -> bool:
        """A name gets another value; in loops, one that is carried."""
        numbers = self.scope.scalars(ROUNDED)
        if numbers and self.choices.chance(50):
            name = self.choices.pick(numbers)
            if name not in self._counters():
                how = self.choices.pick(CARRIED)
                other = self.make.number(ROUNDED)
                rest = [other.text] * (how.count("{}") - 1)
                return self._bind(
                    name, Expression(how.format(name, *rest), 0, max(self.scope.level_of(name), other.level, ROUNDED))
                )
        names = self.scope.arrays()
        if not names:
            return False
        name = self.choices.pick(names)
        return self._bind(name, self.make.like(np.shape(self.scope.values[name])))

    def contain(self) -> bool:
        """A container, which another name may hold as well: a name of before, too, such as what a loop goes over."""
        names = [n for n in self.scope.arrays() + self.scope.scalars() if not n.startswith("k")]
        name = self.choices.pick(names) if names and self.choices.chance(40) else self.scope.name()
        items = self.make.number(ROUNDED), self.make.array(1) if self.choices.chance(50) else self.make.number(ROUNDED)
        form = self.choices.pick(("[{}, {}]", "({}, [{}])", "{{'a': {}, 'b': {}}}", "[{}, ({}, 2)]"))
        if not self._bind(name, Expression(form.format(*(e.text for e in items)), 0, max(e.level for e in items))):
            return False
        return not self.choices.chance(60) or self._bind(self.scope.name(), Expression(name, 0, self.scope.level_of(name)))

    def change_container(self) -> bool:
        """One that several names may hold is changed through one of them."""
        if not (names := self.scope.containers(list, dict)):
            return False
        name = self.choices.pick(names)
        held, e = self.scope.values[name], self.make.number(ROUNDED)
        forms = ("{}.append({})", "{}[0] = {}", "{}[-1] += {}", "{}.insert(0, {})", "{}.pop()")
        how = self.choices.pick(("{}['a'] = {}", "{}['c'] = {}", "{}['b'] *= {}") if isinstance(held, dict) else forms)
        level = max(e.level, self.scope.level_of(name), ROUNDED)
        for other in [n for n in self.scope.containers() if held is self.scope.values[n]]:
            self.scope.levels[other] = level
        return self.scope.attempt(how.format(name, e.text))

    def read_container(self) -> bool:
        if not (names := self.scope.containers()):
            return False
        name = self.choices.pick(names)
        form = self.choices.pick(
            ("{}['a']", "{}['b']") if isinstance(self.scope.values[name], dict) else ("{}[0]", "{}[-1]", "{}[1]")
        )
        return self._bind(self.scope.name(), Expression(form.format(name), 0, self.scope.level_of(name)))

    def _counters(self) -> set[str]:
        return {name for name in self.scope.values if name.startswith(("i", "k"))}

    def swap(self) -> bool:
        names = self.scope.arrays()
        if len(names) < 2:
            return False
        a, b = names[0], self.choices.pick(names[1:])
        if self.scope.loops and self.scope.values[a].shape != self.scope.values[b].shape:
            return False  # sizes could double at every turn
        level = max(self.scope.level_of(a), self.scope.level_of(b))
        done = self.scope.attempt(
            self.choices.pick((f"{a}, {b} = {b}, {a}", f"{a}, {b} = {b}, {a} + 1", f"{a}, {b} = {b} * 1, {a}"))
        )
        if done:
            self.scope.levels |= {a: level, b: level}
        return done

    # writes

    def _writes(self, name: str, level: int, text: str) -> bool:
        if not self.scope.attempt(text):
            return False
        self.scope.taint(name, level)
        return True

    def _target(self) -> str | None:
        """An array that may be written; mostly a float one, since stores cast."""
        names = [n for n in self.scope.arrays() if self.scope.values[n].flags.writeable]
        return self.choices.pick(names) if names else None

    def _part(self, name: str) -> str:
        """What to index a target with."""
        array = self.scope.values[name]
        if not array.ndim:
            return "()"
        return self.choices.pick(
            (
                self.make.slices(array),
                self.make.slices(array),
                self.make.index(array.shape[0]),
                "...",
                ", ".join(self.make.index(n) for n in array.shape),
            )
        )

    def _fitting(self, name: str, part: str) -> Expression:
        """A value that can be stored into a part of an array, and cast without loss of definition."""
        found = self.scope.evaluate(f"{name}[{part}]", EXACT)
        e = self.make.like(np.shape(found.value) if found else ())
        return self._safe(name, e)

    def _safe(self, name: str, e: Expression) -> Expression:
        """A float stored into integers is made one that they can hold."""
        kind = self.scope.values[name].dtype.kind
        if kind in "iu" and np.asarray(e.value).dtype.kind == "f":
            if e.level == INEXACT:
                return Expression("1", 1)
            return Expression(f"np.clip(np.nan_to_num({e.text}), 0, 9)", e.value, e.level)
        if kind in "biu" and e.level == INEXACT:
            return Expression("1", 1)
        if kind in "iu" and type(e.value) is int:
            return Expression(f"({e.text}) % 100", e.value, e.level)
        return e

    def store(self) -> bool:
        if not (name := self._target()):
            return False
        part = self._part(name)
        e = self._fitting(name, part)
        return self._writes(name, e.level, f"{name}[{part}] = {e.text}")

    def _operator(self, name: str, e: Expression) -> tuple[str, int]:
        level = max(e.level, self.scope.level_of(name))
        kind = self.scope.values[name].dtype.kind
        if kind == "f":
            options = [("+=", level), ("-=", level), ("*=", max(level, ROUNDED)), ("/=", max(level, ROUNDED))]
            return self.choices.pick([*options, ("//=", max(level, ROUNDED))] if level < INEXACT else options)
        whole = np.asarray(e.value).dtype.kind in "biu"
        return self.choices.pick(
            ("+=", "-=", "*=", "|=", "^=", "&=", "//=", "%=") if whole and kind != "b" else ("|=", "&=", "^=", "+=")
        ), EXACT

    def augment(self) -> bool:
        if not (name := self._target()):
            return False
        e = self._safe(name, self.make.like(self.scope.values[name].shape))
        operator, level = self._operator(name, e)
        return self._writes(name, level, f"{name} {operator} {e.text}")

    def augment_part(self) -> bool:
        if not (name := self._target()):
            return False
        part = self._part(name)
        e = self._fitting(name, part)
        operator, level = self._operator(name, e)
        return self._writes(name, level, f"{name}[{part}] {operator} {e.text}")

    def overlap(self) -> bool:
        """Reads and writes of one array that meet."""
        if not (name := self._target()):
            return False
        level = self.scope.level_of(name)
        form = self.choices.pick(OVERLAPS)
        raised = INEXACT if "cumsum" in form and level else max(level, ROUNDED)
        if raised == INEXACT and self.scope.values[name].dtype.kind != "f":
            return False
        return self._writes(name, raised, form.format(name))

    def masked_store(self) -> bool:
        if not (name := self._target()):
            return False
        if self.scope.level_of(name) == INEXACT:
            return False
        e = self._safe(name, self.make.number(ROUNDED))
        test = f"{name} {self.choices.pick(('>', '<', '=='))} {self.make.literal()}"
        forms = (
            f"{name}[{test}] = {e.text}",
            f"{name}[{test}] += {name}.dtype.type(1)",
            f"np.copyto({name}, {name}.dtype.type(2), where={test})",
            f"np.putmask({name}, {test}, 1)",
            f"{name}[{test}] = {name}[{test}][::-1]",
            f"{name}[~({test})] *= {name}.dtype.type(2)",
        )
        return self._writes(name, max(e.level, ROUNDED), self.choices.pick(forms))

    def out(self) -> bool:
        if not (name := self._target()):
            return False
        shape = self.scope.values[name].shape
        a, b = self._safe(name, self.make.like(shape)), self._safe(name, self.make.like(shape))
        where = ""
        masks = [
            m
            for m in self.scope.arrays(EXACT)
            if self.scope.values[m].dtype.kind == "b" and self.scope.values[m].shape in (shape, shape[-1:])
        ]
        if masks and self.choices.chance(50):
            where = f", where={self.choices.pick(masks)}"
        f = self.choices.pick(("add", "subtract", "multiply", "maximum", "true_divide", "minimum"))
        level = max(a.level, b.level, ROUNDED, self.scope.level_of(name))
        return self._writes(name, level, f"np.{f}({a.text}, {b.text}, out={name}{where})")

    def method(self) -> bool:
        if not (name := self._target()):
            return False
        if self.scope.level_of(name) == INEXACT:
            return self._writes(name, EXACT, f"{name}.fill(1)")
        return self._writes(name, EXACT, self.choices.pick(METHODS).format(name))

    def scatter(self) -> bool:
        if not (name := self._target()):
            return False
        array = self.scope.values[name]
        if not array.ndim or not array.shape[0]:
            return False
        names = [
            a for a in self.scope.arrays(EXACT) if self.scope.values[a].dtype.kind in "iu" and self.scope.values[a].ndim == 1
        ]
        index = (
            f"{self.choices.pick(names)} % {array.shape[0]}" if names else self.choices.pick(("[0, 0, -1]", "np.arange(3) % 2"))
        )
        e = self._safe(name, self.make.number(ROUNDED))
        forms = (
            f"{name}[{index}] = {e.text}",
            f"{name}[{index}] += {e.text}",
            f"np.add.at({name}, {index}, {e.text})",
            f"np.maximum.at({name}, {index}, {e.text})",
        )
        return self._writes(name, max(e.level, ROUNDED), self.choices.pick(forms))
