"""What a statement computes: expressions over the names in scope, without side effects."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from programs.drawn.choices import Choices
from programs.drawn.forms import (
    CUMULATIVE,
    DECIDING_BINARY,
    DTYPES,
    EXACT_BINARY,
    EXACT_UNARY,
    INEXACT_BINARY,
    INEXACT_UNARY,
    INTEGER_BINARY,
    INTEGER_DTYPES,
    INTEGER_STEPS,
    INTEGERS,
    JOINS,
    LITERALS,
    MADE,
    MEANS,
    PICKS,
    PRODUCTS,
    RESIZED,
    ROUNDED_BINARY,
    ROUNDING_UNARY,
    SPREADS,
    SUMS,
    WITHIN_A_PERIOD,
)
from programs.drawn.scope import EXACT, INEXACT, ROUNDED, Expression, Scope


class Expressions:
    """Draws expressions that have a value in the scope."""

    def __init__(self, choices: Choices, scope: Scope) -> None:
        self.choices, self.scope = choices, scope

    # numbers

    def literal(self) -> str:
        return self.choices.pick(LITERALS)

    def index(self, n: int) -> str:
        """An index into an axis of n; in range here, if not always."""
        names = [
            s
            for s in self.scope.scalars(EXACT)
            if type(self.scope.values[s]) is int or isinstance(self.scope.values[s], np.integer)
        ]
        options = ["0", "-1", str(n // 2)]
        for name in names[:3]:
            options += [name, f"{name} % {max(n, 1)}", f"{name} - 1", f"-{name}", f"{name} + 1"]
        return self.choices.pick(options)

    def number(self, most: int = INEXACT) -> Expression:
        """A scalar: a Python number or a NumPy scalar."""
        names = self.scope.scalars(most)
        arrays = self.scope.arrays(most)
        options: list[tuple[str, int]] = [(self.literal(), EXACT)]
        if names:
            name = self.choices.pick(names)
            options += [(name, self.scope.level_of(name))] * 3
            options.append((f"({name} {self.choices.pick(('+', '*', '-'))} {self.literal()})", self.scope.level_of(name)))
        if arrays:
            name = self.choices.pick(arrays)
            array, level = self.scope.values[name], self.scope.level_of(name)
            where = ", ".join(self.index(n) for n in array.shape) or "()"
            options += [(f"{name}[{where}]", level)] * 2
            options += [(f"len({name})", EXACT), (f"{name}.shape[0]", EXACT), (f"{name}.size", EXACT)]
            options.append((f"{name}.max()", level))
            if level == EXACT:
                options += [(f"{name}.sum()", EXACT), (f"int({name}.sum())", EXACT), (f"float({name}.min())", EXACT)]
                options.append((f"abs({name}[{where}])", EXACT))
        text, level = self.choices.pick(options)
        return self.scope.evaluate(text, level) or Expression("1", 1)

    # tests

    def test(self) -> str:
        """A condition, on exact values only."""
        if self.choices.chance(25):
            how = self.choices.pick(("{} and {}", "{} or {}", "not ({})", "({}) and not ({})", "{} and {}"))
            return how.format(self.simple_test(), self.simple_test())
        return self.simple_test()

    def simple_test(self) -> str:
        arrays = self.scope.arrays(EXACT)
        a, b = self.number(EXACT), self.number(EXACT)
        options = [
            f"{a.text} > {b.text}",
            f"{a.text} < {self.literal()}",
            f"{a.text} == {b.text}",
            f"{self.literal()} < {a.text} <= {b.text}",
        ]
        if arrays:
            name = self.choices.pick(arrays)
            options += [
                f"{name}.sum() > {self.literal()}",
                f"{name}.any()",
                f"({name} > {self.literal()}).all()",
                f"np.max({name}) != {b.text}",
            ]
        options.append(f"{a.text} % 2 == 0")
        text = self.choices.pick(options)
        return text if self.scope.evaluate(f"bool({text})", EXACT) else "True"

    # views and indices

    def view_of(self, name: str) -> str:
        """A basic view of a named array: shares its memory where NumPy says so."""
        array = self.scope.values[name]
        if not array.ndim:
            return self.choices.pick((name, f"{name}[...]", f"{name}[None]"))
        options = [
            name,
            f"{name}[{self.slices(array)}]",
            f"{name}[{self.slices(array)}]",
            f"{name}[{self.index(array.shape[0])}]",
            f"{name}[::-1]",
            f"{name}.T",
            f"{name}[..., {self.slice(array.shape[-1])}]",
            f"{name}[:, None]" if array.ndim < 3 else name,
            f"{name}[None]" if array.ndim < 3 else name,
            f"{name}.reshape(-1)",
            f"{name}.ravel()",
        ]
        if array.ndim >= 2:
            options += [
                f"{name}.diagonal()",
                f"{name}[:, {self.index(array.shape[1])}]",
                f"{name}.swapaxes(0, 1)",
                f"np.diag({name}, 1)",
            ]
        if array.size % 2 == 0:
            options += [f"{name}.reshape(2, -1)", f"{name}.reshape(-1, 2).T"]
        return self.choices.pick(options)

    def slice(self, n: int) -> str:
        options = [":", "1:", ":-1", "::2", "::-1", "1:-1", ":2", "-2:", f"{n // 2}:", "::-2", "2:0:-1"]
        names = [s for s in self.scope.scalars(EXACT) if type(self.scope.values[s]) is int]
        for name in names[:2]:
            options += [f":{name}", f"{name}:", f"{name} + 1:", f"{name}:{name} + 2"]
        return self.choices.pick(options)

    def slices(self, array: Any) -> str:
        """Slices of some of the leading axes."""
        count = self.choices.number(1, max(array.ndim, 1))
        return ", ".join(self.slice(n) for n in array.shape[:count])

    # arrays

    def leaf(self, most: int = INEXACT) -> Expression:
        names = self.scope.arrays(most)
        if not names:
            made = self.choices.pick(MADE)
            return self.scope.evaluate(made, EXACT) or Expression("np.ones(4)", np.ones(4))
        name = self.choices.pick(names)
        text = self.view_of(name) if self.choices.chance(45) else name
        found = self.scope.evaluate(text, self.scope.level_of(name))
        return found or Expression(name, self.scope.values[name], self.scope.level_of(name))

    def array(self, depth: int = 2, most: int = INEXACT) -> Expression:
        """An array (at times a scalar: a reduction of all)."""
        if depth == 0 or self.choices.chance(25):
            return self.leaf(most)
        kinds: list[Callable[[int, int], tuple[str, int]]] = [
            self._binary,
            self._binary,
            self._binary,
            self._unary,
            self._unary,
            self._reduction,
            self._cumulative,
            self._where,
            self._masked,
            self._fancy,
            self._joined,
            self._product,
            self._cast,
            self._made,
            self._sized,
            self._few_bits,
            self._few_bits,
        ]
        text, level = self.choices.pick(kinds)(depth - 1, most)
        if level > most:
            return self.leaf(most)
        return self.scope.evaluate(text, level) or self.leaf(most)

    def like(self, shape: tuple[int, ...]) -> Expression:
        """Something that broadcasts to a shape."""
        for _ in range(3):
            found = self.array(1)
            try:
                if np.broadcast_shapes(np.shape(found.value), shape) == shape:
                    return found
            except ValueError:
                continue
        return self.number()

    def _mate(self, x: Expression, depth: int, most: int) -> Expression:
        """A second operand for x."""
        if self.choices.chance(35):
            return self.number(most)
        for _ in range(2):
            y = self.array(depth, most)
            try:
                np.broadcast_shapes(np.shape(x.value), np.shape(y.value))
            except ValueError:
                continue
            return y
        return x

    def _binary(self, depth: int, most: int) -> tuple[str, int]:
        x = self.array(depth, most)
        y = self._mate(x, depth, most)
        level = max(x.level, y.level)
        integer = all(np.asarray(v.value).dtype.kind in "biu" for v in (x, y))
        forms = [(f, level) for f in EXACT_BINARY] + [(f, max(level, ROUNDED)) for f in ROUNDED_BINARY]
        if level < INEXACT:
            forms += [(f, INEXACT if "hypot" in f else max(level, ROUNDED)) for f in DECIDING_BINARY]
        if integer:
            forms += [(f, level) for f in INTEGER_BINARY] * 2
        forms += [(f, INEXACT) for f in INEXACT_BINARY]
        form, level = self.choices.pick(forms)
        return f"({form.format(bracketed(x.text), bracketed(y.text))})", level

    def _few_bits(self, depth: int, most: int) -> tuple[str, int]:
        """Integers that are widened, computed with and narrowed, or compared."""
        x = self.array(depth, EXACT)
        if np.asarray(x.value).dtype.kind not in "biu":
            return self._unary(depth, most)
        text = f"{bracketed(x.text)}.astype({self.choices.pick(INTEGER_DTYPES)})" if self.choices.chance(70) else x.text
        for _ in range(self.choices.number(1, 4)):
            other = self.choices.pick(INTEGERS)
            if self.choices.chance(30):
                y = self._mate(x, 0, EXACT)
                other = y.text if np.asarray(y.value).dtype.kind in "biu" else other
            longer = self.choices.pick(INTEGER_STEPS).format(bracketed(text), bracketed(other))
            text = longer if self.scope.evaluate(longer, EXACT) else text
        if self.choices.chance(25):
            return f"({bracketed(text)} {self.choices.pick(('>', '<=', '==', '!='))} {self.choices.pick(INTEGERS)})", EXACT
        return (f"{bracketed(text)}.astype({self.choices.pick(INTEGER_DTYPES)})" if self.choices.chance(70) else text), EXACT

    def _unary(self, depth: int, most: int) -> tuple[str, int]:
        x = self.array(depth, most)
        forms = [(f, x.level if "square" not in f else max(x.level, ROUNDED)) for f in EXACT_UNARY]
        forms += [(f, x.level) for f in ROUNDING_UNARY] if x.level < INEXACT else []
        forms += [("np.sqrt(np.abs({}))", max(x.level, ROUNDED))]
        may_be_inexact = x.level == INEXACT or self.scope.depth > 1  # in a loop, x may come to be what a later line binds
        forms += [(WITHIN_A_PERIOD.get(f, f) if may_be_inexact else f, INEXACT) for f in INEXACT_UNARY]
        form, level = self.choices.pick(forms)
        return form.format(bracketed(x.text)), level

    def _axis(self, x: Expression) -> str:
        n = np.ndim(x.value)
        return self.choices.pick(
            ["axis=None", "axis=0", "axis=-1", "axis=1", "axis=0, keepdims=True", "axis=(0, 1)"][: 3 if n < 2 else 6]
        )

    def _reduction(self, depth: int, most: int) -> tuple[str, int]:
        x = self.array(depth, most)
        forms = [(f, EXACT if x.level == EXACT else INEXACT) for f in SUMS] * 2 + [(f, INEXACT) for f in MEANS]
        forms += [(f, INEXACT) for f in SPREADS] if x.level == EXACT else []
        forms += [(f, x.level) for f in PICKS] if x.level < INEXACT else [(f, x.level) for f in PICKS[:2]]
        form, level = self.choices.pick(forms)
        return form.format(bracketed(x.text), self._axis(x)), level

    def _cumulative(self, depth: int, most: int) -> tuple[str, int]:
        x = self.array(depth, most)
        form = self.choices.pick(CUMULATIVE)
        adds = "add." in form or "sum" in form
        axis = "axis=-1" if np.ndim(x.value) < 2 else self.choices.pick(("axis=0", "axis=1", "axis=-1"))
        return form.format(bracketed(x.text), axis), INEXACT if adds and x.level > EXACT else x.level

    def _where(self, depth: int, most: int) -> tuple[str, int]:
        c = self.array(1, ROUNDED)
        x, y = self.like(np.shape(c.value)), self.like(np.shape(c.value))
        return f"np.where({bracketed(c.text)} > {self.literal()}, {x.text}, {y.text})", max(x.level, y.level)

    def _masked(self, depth: int, most: int) -> tuple[str, int]:
        names = self.scope.arrays(min(ROUNDED, most)) or [self.leaf(EXACT).text]
        name = self.choices.pick(names)
        mask = f"{name} {self.choices.pick(('>', '<', '==', '!='))} {self.literal()}"
        forms = (
            f"{name}[{mask}]",
            f"np.nonzero({mask})[0]",
            f"np.flatnonzero({mask})",
            f"{name}[~({mask})]",
            f"np.unique({name})",
            f"np.compress({name}.ravel() > 0, {name}.ravel())",
            f"np.argwhere({mask})",
            f"np.where({mask})[0]",
        )
        return self.choices.pick(forms), self.scope.level_of(name)

    def _fancy(self, depth: int, most: int) -> tuple[str, int]:
        x = self.leaf(most)
        n = np.shape(x.value)[0] if np.ndim(x.value) else 0
        index = self.choices.pick(
            (
                "[0, -1]",
                "[0, 0, 1]",
                f"np.arange({n})[::-1]",
                f"np.arange({n}) // 2",
                f"np.argsort({x.text}, axis=0, kind='stable')",
            )
        )
        if "argsort" in index and x.level > ROUNDED:
            index = "[0]"
        names = [a for a in self.scope.arrays(EXACT) if self.scope.values[a].dtype.kind in "iu"]
        if names and self.choices.chance(40):
            index = f"{self.choices.pick(names)} % {max(n, 1)}"
        return self.choices.pick(("{}[{}]", "np.take({}, {}, axis=0)")).format(bracketed(x.text), index), x.level

    def _joined(self, depth: int, most: int) -> tuple[str, int]:
        x = self.leaf(most)
        y = self._mate(x, 0, most)
        form = self.choices.pick(JOINS)
        return form.format(x.text, y.text), max(x.level, y.level, ROUNDED if "outer" in form else EXACT)

    def _product(self, depth: int, most: int) -> tuple[str, int]:
        x = self.array(depth, most)
        y = self._mate(x, depth, most)
        form = self.choices.pick(PRODUCTS)
        whole = all(np.asarray(v.value).dtype.kind in "biu" for v in (x, y))
        return f"({form.format(bracketed(x.text), bracketed(y.text))})", max(x.level, y.level) if whole else INEXACT

    def _cast(self, depth: int, most: int) -> tuple[str, int]:
        x = self.array(depth, most)
        kinds = DTYPES if x.level < INEXACT else ("np.float64", "np.float32")
        dtype = self.choices.pick(kinds)
        # A float that an integer type cannot hold has no defined integer.
        if np.asarray(x.value).dtype.kind == "f" and "float" not in dtype and dtype != "bool":
            return f"np.clip(np.nan_to_num({x.text}), 0, 9).astype({dtype})", x.level
        return f"{bracketed(x.text)}.astype({dtype})", x.level

    def _made(self, depth: int, most: int) -> tuple[str, int]:
        x = self.leaf(most)
        n = self.choices.pick(["4", "x.shape[0]".replace("x", bracketed(x.text)), *self.scope.scalars(EXACT)[:2]])
        forms = (
            f"np.zeros_like({x.text})",
            f"np.ones({bracketed(x.text)}.shape)",
            f"np.arange({n})",
            f"np.zeros({n}, np.float32)",
            f"np.full({n}, 2.5)",
            f"np.arange({n}) * 0.5",
            f"np.empty_like({x.text}) * 0 + 1" if np.asarray(x.value).dtype.kind in "iu" else f"np.zeros({n}, int)",
            f"np.eye({n})",
            "np.linspace(0, 4, 5)",
        )
        return self.choices.pick(forms), EXACT

    def _sized(self, depth: int, most: int) -> tuple[str, int]:
        x = self.leaf(most)
        form = self.choices.pick(RESIZED if x.level < INEXACT else RESIZED[:10])
        return form.format(*[bracketed(x.text)] * form.count("{}")), x.level


def bracketed(text: str) -> str:
    """In brackets, unless an operator after it would have all of it as its operand."""
    whole = isinstance(ast.parse(text, mode="eval").body, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
    return text if whole else f"({text})"
