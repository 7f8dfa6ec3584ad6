"""What a statement does: call, check, branch, loop, or write."""

from __future__ import annotations

from collections.abc import Callable

from programs.drawn.choices import Choices
from programs.drawn.forms import DRAWS
from programs.drawn.scope import EXACT, INEXACT, ROUNDED, Expression, Scope
from programs.drawn.writes import Writes

Statement = Callable[[], bool]
_DEEPEST = 3  # nesting of blocks


class Statements(Writes):
    """Writes statements into a scope. Each method says whether it wrote something."""

    def __init__(self, choices: Choices, scope: Scope, helpers: dict[str, int], draws: bool) -> None:
        super().__init__(choices, scope)
        self.helpers = helpers
        simple: list[Statement] = [
            self.bind,
            self.bind,
            self.bind,
            self.bind_number,
            self.bind_view,
            self.store,
            self.store,
            self.augment,
            self.augment,
            self.augment_part,
            self.augment_part,
            self.overlap,
            self.masked_store,
            self.out,
            self.method,
            self.swap,
            self.rebind,
            self.scatter,
        ]
        if helpers:
            simple += [self.call, self.call]
        if draws:
            simple += [self.draw, self.draw]
        self.simple = simple
        containers: list[Statement] = [self.contain, self.contain, self.change_container, self.read_container]
        self.rare: list[Statement] = [self.check, self.closure, self.collect, self.world, *containers]
        self.compound: list[Statement] = [self.branch, self.branch, self.count, self.count, self.rows, self.until]

    def statement(self, room: int) -> None:
        """One statement, of at most `room` levels of blocks."""
        roll = self.choices.number(0, 99)
        if room > 0 and roll >= 68:
            self.choices.pick(self.compound)()
        elif roll >= 60:
            self.choices.pick(self.rare)()
        else:
            self.choices.pick(self.simple)()

    def block(self, most: int = 3) -> None:
        """The body of a block; never empty."""
        before = len(self.scope.lines)
        for _ in range(self.choices.number(1, most)):
            self.statement(_DEEPEST - self.scope.depth)
        if len(self.scope.lines) == before:
            self.scope.write("pass")

    # calls and effects

    def call(self) -> bool:
        helper = self.choices.pick(list(self.helpers))
        names = self.scope.arrays()
        if not names:
            return False
        args = [self.choices.pick(names) for _ in range(self.helpers[helper] - 1)]
        number = self.make.number(ROUNDED)
        name = self.scope.name()
        if not self.scope.attempt(f"{name} = {helper}({', '.join([*args, number.text])})"):
            return False
        level = max(INEXACT if "inexact" in helper else ROUNDED, *[self.scope.level_of(a) for a in args], number.level)
        for changed in (name, *args):
            self.scope.taint(changed, level)
        return True

    def draw(self) -> bool:
        name = self.scope.name()
        drawn = self.choices.pick(DRAWS)
        return self._bind(name, Expression(drawn, 0, ROUNDED))

    def check(self) -> bool:
        test = self.make.test()
        return self.scope.attempt(self.choices.pick((f"assert {test}", f"assert {test}, 'as drawn'")))

    def closure(self) -> bool:
        """A function of its own that uses and changes what is around it."""
        if not (name := self._target()) or self.scope.depth > 2:
            return False
        f, e = self.scope.name(), self.make.number(ROUNDED)
        if not self.scope.attempt(f"def {f}(a, b=2):", f"    {name}[...] = {name} * b", f"    return {name} + a"):
            return False
        level = max(ROUNDED, e.level, self.scope.level_of(name))
        done = self.scope.attempt(f"{f}_{f} = {f}({e.text})")
        self.scope.taint(name, level)
        self.scope.levels[f"{f}_{f}"] = level
        return done

    def collect(self) -> bool:
        """A list that a loop fills, stacked."""
        ys, v, i = self.scope.name(), self.scope.name(), f"i{self.scope.fresh}"
        if not self.scope.attempt(f"{ys} = []"):
            return False
        self.scope.filled.add(ys)
        n = self.choices.pick(("3", "4", *[f"len({a})" for a in self.scope.arrays(EXACT)[:1] if self.scope.values[a].ndim]))
        with self.scope.block(f"for {i} in range({n}):", loop=True):
            self.scope.look()
            if self.choices.chance(50):
                self.block(1)
            e = self.make.array(1) if self.choices.chance(60) else self.make.number()
            if not self.scope.attempt(f"{ys}.append({e.text})"):
                self.scope.write("pass")
        self.scope.look()
        self.scope.levels[ys] = INEXACT  # also where its rows do not stack
        return self._bind(v, Expression(self.choices.pick(("np.array({})", "np.stack({})")).format(ys), 0, INEXACT))

    def world(self) -> bool:
        """Global values are read, and written in place."""
        names = [n for n in self.scope.namespace if n.startswith("G")]
        if not names:
            return False
        name = self.choices.pick(names)
        if self.choices.chance(30):
            return self.scope.attempt(
                self.choices.pick((f"{name}[0] += 1", f"{name}[1:] = {name}[:-1]", f"{name} *= 2")).replace(
                    f"{name} *=", f"{name}[...] *="
                )
            )
        return self._bind(
            self.scope.name(),
            Expression(
                self.choices.pick((f"{name} * W", f"{name}[::-1]", f"{name} + {self.make.literal()}", "W + 1")), 0, ROUNDED
            ),
        )

    # blocks

    def branch(self) -> bool:
        before = len(self.scope.lines)
        with self.scope.block(f"if {self.make.test()}:"):
            self.scope.look()
            self._arm()
        if self.choices.chance(25):
            with self.scope.block(f"elif {self.make.test()}:"):
                self._arm()
        if self.choices.chance(50):
            with self.scope.block("else:"):
                self._arm()
        return self._closed(before)

    def _arm(self) -> None:
        roll = self.choices.number(0, 99)
        if self.scope.loops and roll >= 75:
            self.block(1)
            self.scope.write(self.choices.pick(("break", "continue")))
        elif roll >= 95:
            self.scope.write(f"return {self._returned()}")
        else:
            self.block()

    def _returned(self) -> str:
        names = self.scope.containers()[:2] + self.scope.arrays() + self.scope.scalars()
        return ", ".join(self.choices.some(names[:6])) if names else "None"

    def count(self) -> bool:
        """A `for` over a range."""
        i = self._loop_name("i")
        limits = ["3", "1, 4", "2, -1, -1", "0", "5"]
        for name in self.scope.arrays(EXACT)[:2]:
            if self.scope.values[name].ndim:
                limits += [f"{name}.shape[0]", f"1, len({name})", f"len({name}) - 1, 0, -1", f"len({name}) - 1"]
        limits += [
            n for n in self.scope.scalars(EXACT)[:3] if type(self.scope.values[n]) is int and 0 <= self.scope.values[n] < 12
        ]
        return self._loop(f"for {i} in range({self.choices.pick(limits)}):")

    def rows(self) -> bool:
        """A `for` over arrays."""
        names = [n for n in self.scope.arrays() if self.scope.values[n].ndim]
        if not names:
            return False
        i, x, y = self._loop_name("i"), self.choices.pick(names), self.choices.pick(names)
        v, w = self.scope.name(), self.scope.name()
        heading = self.choices.pick((f"for {v} in {x}:", f"for {i}, {v} in enumerate({x}):", f"for {v}, {w} in zip({x}, {y}):"))
        self.scope.levels |= {v: self.scope.level_of(x), w: self.scope.level_of(y)}
        return self._loop(heading)

    def until(self) -> bool:
        """A `while` that surely ends: it counts, or something grows."""
        k = self._loop_name("k")
        if not self.scope.attempt(f"{k} = 0"):
            return False
        test = self.choices.pick(
            (
                f"{k} < {self.choices.number(1, 5)}",
                f"{k} < 4 and ({self.make.test()})",
                f"({self.make.test()}) and {k} < 3",
                f"not {k} >= 3",
            )
        )
        return self._loop(f"while {test}:", f"{k} += 1")

    def _loop_name(self, first: str) -> str:
        return f"{first}{self.scope.name()[1:]}"

    def _loop(self, heading: str, *first: str) -> bool:
        before = len(self.scope.lines)
        levels = dict(self.scope.levels)
        with self.scope.block(heading, loop=True):
            self.scope.write(*first)
            self.scope.look()
            self.block(4)
        if self.choices.chance(15):
            with self.scope.block("else:"):
                self.block(1)
        return self._closed_loop(before, levels)

    def _closed_loop(self, before: int, levels: dict[str, int]) -> bool:
        """The loop is complete: it runs, and later iterations decide on nothing that an earlier one made inexact; or it goes."""
        self.scope.look()
        self.scope.taint_large({word for line in self.scope.lines[before:] for word in _words(line)})
        if self._decides_on_what_became_inexact(before, levels):
            self.scope.levels = levels
            del self.scope.lines[before:]
            self.scope.look()
            return False
        return self._closed(before)

    def _decides_on_what_became_inexact(self, before: int, levels: dict[str, int]) -> bool:
        """A later iteration would read, where an exact value is wanted, what an earlier one made inexact."""
        worse = [n for n, level in self.scope.levels.items() if level > levels.get(n, EXACT) and n in levels]
        if not worse:
            return False
        names, lines = set(worse), self.scope.lines[before:]
        while more := {_target(line) for line in lines if _mentions(line, names)} & self.scope.levels.keys() - names:
            names |= more  # what the next iteration makes of them
        self.scope.levels |= dict.fromkeys(names, INEXACT)
        deciding = ("if ", "while ", "elif ", "astype", "//", "%", "[", ">", "<", "==", "floor", "range", "assert")
        return any(_mentions(line, names) and any(d in line for d in deciding) for line in lines)

    def _closed(self, before: int) -> bool:
        """The block is complete: it runs, or goes."""
        if self.scope.runs():
            self.scope.look()
            return True
        del self.scope.lines[before:]
        self.scope.look()
        return False


def _target(line: str) -> str:
    """The name that a statement binds or changes."""
    return _words(line)[0] if _words(line) else ""


def _mentions(line: str, names: set[str]) -> bool:
    return not names.isdisjoint(_words(line))


def _words(line: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in line).split()
