"""Scalar expressions: what is a value at one index?

A `Scalar`: an expression over loop indices and loads, shared where it repeats.

Lowering rules build scalars; `fusion/schedule/loop_writer.py` writes them down, with a `Let` wherever one is used twice or can
stand outside a loop. Equal scalars are one object, so that "used twice" is a count and not a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jitml.ir.printer import show_number
from jitml.ir.types import BOOL, I64, DType
from jitml.kernels.ir import Const, Expr, variables_of
from jitml.records import dataclass

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Scalar:
    """A node of the expression graph at one point of a kernel.

    kind: "const" (value), "index" (an i64 expression over loop indices), "load" (value: buffer name; places: one
    index expression per axis, or None where the next of args gives the index), "cell" (value: name of a reduction's
    result), or "apply" (value: the pointwise op's name).
    variables: the loop indices and cells it depends on.
    """

    kind: str
    value: Any
    args: tuple[Scalar, ...]
    places: tuple[Expr | None, ...]
    dtype: DType
    variables: frozenset[str]


class Scalars:
    """Makes scalars, each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Scalar] = {}

    def _make(self, kind: str, value: Any, args: tuple[Scalar, ...], places: tuple[Expr | None, ...], dtype: DType) -> Scalar:
        # The text tells 0.0 from -0.0 and True from 1.
        key = (kind, show_number(value) if kind == "const" else value, tuple([id(a) for a in args]), places, dtype)
        known = self._known.get(key)
        if known is None:
            own = frozenset((value,)) if kind == "cell" else _NONE
            variables = own.union(variables_of(*(e for e in places if e is not None)), *(a.variables for a in args))
            known = self._known[key] = Scalar(kind, value, args, places, dtype, variables)
        return known

    def const(self, value: bool | int | float, dtype: DType) -> Scalar:
        return self._make("const", value, (), (), dtype)

    def index(self, expr: Expr) -> Scalar:
        """An index expression as an i64 scalar."""
        if isinstance(expr, Const):
            return self.const(int(expr.value), I64)
        return self._make("index", None, (), (expr,), I64)

    def apply(self, fn: str, args: tuple[Scalar, ...], dtype: DType) -> Scalar:
        return self._make("apply", fn, args, (), dtype)

    def convert(self, x: Scalar, dtype: DType) -> Scalar:
        return x if x.dtype == dtype else self.apply("convert", (x,), dtype)

    def select(self, condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
        return x if x is y else self.apply("select", (condition, x, y), x.dtype)

    def compare(self, fn: str, x: Scalar, y: Scalar) -> Scalar:
        return self.apply(fn, (x, y), BOOL)

    def load(self, buffer: str, at: tuple[Expr | Scalar, ...], dtype: DType) -> Scalar:
        args = tuple([e for e in at if isinstance(e, Scalar)])
        places = tuple([None if isinstance(e, Scalar) else e for e in at])
        return self._make("load", buffer, args, places, dtype)

    def cell(self, name: str, dtype: DType) -> Scalar:
        return self._make("cell", name, (), (), dtype)

    def substituted(self, roots: Iterable[Scalar], names: Iterable[str], change: Callable[[Expr], Expr]) -> dict[Scalar, Scalar]:
        """Scalars, and those that they are made of, with other index expressions where these names are in them."""
        done: dict[Scalar, Scalar] = {}
        waiting = [*roots]
        while waiting:  # what is fused may be deeper than Python's stack
            x = waiting[-1]
            if x in done:
                waiting.pop()
            elif x.variables.isdisjoint(names):
                done[waiting.pop()] = x
            elif missing := [a for a in x.args if a not in done]:
                waiting += missing
            else:
                done[waiting.pop()] = self._with(x, tuple([done[a] for a in x.args]), change)
        return done

    def _with(self, x: Scalar, args: tuple[Scalar, ...], change: Callable[[Expr], Expr]) -> Scalar:
        if x.kind == "index":
            (place,) = x.places
            assert place is not None
            return self.index(change(place))
        if x.kind == "apply" and x.value == "select":
            return self.select(*args)
        places = tuple([None if e is None else change(e) for e in x.places])
        return self._make(x.kind, x.value, args, places, x.dtype)
