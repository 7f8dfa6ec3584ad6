"""Random programs that have derivatives, as source text: loops, branches, whiles, and writes of elements, slices and masks.

Values stay small: what is computed goes through bounded functions. Every program takes two vectors and a matrix of N.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

N = 5
HEAD = "import numpy as np\n\n\ndef program(x, y, a):\n    s = 1.0\n    ys = []\n"


class Writer:
    """One program, statement by statement.

    >>> print(Writer(random.Random(1)).program())  # doctest: +ELLIPSIS
    import numpy as np
    ...
    """

    def __init__(self, choices: random.Random) -> None:
        self.r = choices
        self.lines: list[str] = []
        self.indices: list[str] = []  # of the loops around
        self.appends = False  # a list grows in a loop around
        self.names = 0

    def program(self) -> str:
        for _ in range(self.r.randint(2, 4)):
            self.statement(1, 3)
        self.line(1, "return s + np.tanh(x).sum() + (y * y).sum() + np.sin(a).sum() + sum(ys)")
        return HEAD + "\n".join(self.lines) + "\n"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def pick(self, *texts: str) -> str:
        return self.r.choice(texts)

    # ---------------------------------------------------------------------------------------------- expressions

    def index(self) -> str:
        return self.pick(*self.indices, *self.indices, str(self.r.randrange(N)))

    def scalar(self) -> str:
        i, j = self.index(), self.index()
        return self.pick(
            "s", f"x[{i}]", f"y[{j}]", f"a[{i}, {j}]", f"x[{i}]", "0.5", f"a[{i}, :{j}].sum()", f"(x[:{j}] @ y[:{j}])"
        )

    def vector(self) -> str:
        i = self.index()
        return self.pick("x", "y", f"a[{i}]", f"a[:, {i}]", "(a @ x)", "(y @ a)", "x[::-1]", "np.roll(y, 1)")

    def bounded(self, value: str) -> str:
        return self.pick(f"np.tanh({value})", f"np.sin({value})", f"0.5 * np.cos({value})", f"1 / (1 + ({value}) ** 2)")

    def of(self, operand: Callable[[], str]) -> str:
        """A bounded expression of operands of one kind."""
        x, y = operand(), operand()
        return self.bounded(self.pick(f"{x} * {y}", f"{x} + {y}", f"{x} - 0.3 * {y}", f"{x} * {x} + {y}", x))

    # ----------------------------------------------------------------------------------------------- statements

    def statement(self, depth: int, levels: int) -> None:
        kinds = [self.assign, self.element, self.element, self.part, self.row, self.masked]
        if levels > 1:
            kinds += [self.loop, self.loop, self.loop, self.branch, self.branch, self.until]
        if self.appends:
            kinds += [self.append]
        kind = self.r.choice(kinds)
        if kind in (self.loop, self.branch, self.until):
            kind(depth, levels - 1)
        else:
            kind(depth)

    def block(self, depth: int, levels: int) -> None:
        for _ in range(self.r.randint(1, 3)):
            self.statement(depth, levels)

    def assign(self, depth: int, levels: int = 0) -> None:
        kind = self.r.randrange(3)
        if kind == 0:
            self.line(depth, f"s = {self.of(self.scalar)}")
        elif kind == 1:
            self.line(depth, f"s {self.pick('+', '-')}= {self.of(self.vector)}.sum()")
        else:
            self.line(depth, f"{self.pick('x', 'y')} = {self.of(self.vector)}")

    def element(self, depth: int, levels: int = 0) -> None:
        target = self.pick(f"x[{self.index()}]", f"y[{self.index()}]", f"a[{self.index()}, {self.index()}]")
        self.line(depth, f"{target} {self.pick('=', '=', '+=', '*=')} {self.of(self.scalar)}")

    def part(self, depth: int, levels: int = 0) -> None:
        v, w = self.pick("x", "y"), self.pick("x", "y")
        i = self.index()
        self.line(
            depth,
            self.pick(
                f"{v}[1:-1] = 0.5 * {v}[:-2] + np.sin({w}[2:])",
                f"{v}[:{i}] *= {self.of(self.scalar)}",
                f"{v}[{i}:] += np.tanh({w}[{i}:])",
                f"{v}[::2] = {self.bounded(f'{w}[::2] * {v}[::2]')}",
                f"{v}[:{i}] = {self.bounded(f'a[{i}, :{i}]')}",
            ),
        )

    def row(self, depth: int, levels: int = 0) -> None:
        i = self.index()
        self.line(
            depth,
            self.pick(
                f"a[{i}] = {self.of(self.vector)}",
                f"a[:, {i}] *= {self.of(self.vector)}",
                f"a[{i}] -= 0.1 * {self.of(self.vector)}",
                f"a = {self.bounded('a @ a.T')}",
            ),
        )

    def masked(self, depth: int, levels: int = 0) -> None:
        v = self.pick("x", "y")
        self.line(
            depth,
            self.pick(
                f"{v}[{v} > 0.1] *= 0.7",
                f"{v} = np.where({v} > 0.2, np.sin({v}), 0.5 * {v})",
                f"s += ({v}[{v} < 0.3] ** 2).sum()",
            ),
        )

    def append(self, depth: int, levels: int = 0) -> None:
        self.line(depth, f"ys.append({self.of(self.scalar)})")

    def loop(self, depth: int, levels: int) -> None:
        i = f"i{len(self.indices)}"
        stop = self.pick(*(f"1, {j} + 1" for j in self.indices), str(N), str(N), f"1, {N}", "3")
        self.line(depth, f"for {i} in range({stop}):")
        self.indices.append(i)
        before, self.appends = self.appends, self.r.random() < 0.2 and not self.indices[1:]
        if self.appends:
            self.append(depth + 1)
        self.block(depth + 1, levels)
        self.appends = before
        if self.r.random() < 0.2:
            self.line(depth + 1, f"if {self.of(self.scalar)} > 0.9:")
            self.line(depth + 2, self.pick("break", "continue"))
            self.line(depth + 1, f"s = {self.of(self.scalar)}")
        self.indices.pop()

    def branch(self, depth: int, levels: int) -> None:
        self.line(depth, f"if {self.of(self.scalar)} > {self.pick('0.1', '0.3', '-0.2')}:")
        before, self.appends = self.appends, False
        self.block(depth + 1, levels)
        if self.r.random() < 0.6:
            self.line(depth, "else:")
            self.block(depth + 1, levels)
        self.appends = before

    def until(self, depth: int, levels: int) -> None:
        self.names += 1
        w = f"w{self.names}"
        self.line(depth, f"{w} = 1.0 + 0.1 * {self.of(self.scalar)}")
        self.line(depth, f"while {w} < 3:")
        before, self.appends = self.appends, False
        self.block(depth + 1, levels)
        self.appends = before
        self.line(depth + 1, f"{w} = {w} * 1.3 + 0.1 * {self.of(self.scalar)} ** 2")
        self.line(depth, f"s += 0.1 * {w}")


def drawn(seed: int) -> tuple[Callable[..., Any], str]:
    """A program, and its text."""
    text = Writer(random.Random(seed)).program()
    name = f"<drawn {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {}
    exec(compile(text, name, "exec"), names)
    return names["program"], text


def arguments(seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-1, 1, shape) for shape in ((N,), (N,), (N, N)))
