"""Range analysis: what values can an index take?  Bounds of i64 expressions from the loops, branches and checks around them.

Every expression is read as a sum of atoms (`affine_sums.py`): loop indices, quotients, minima, loaded values. Loops, branches and
checks say what is known of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.types import BOOL, I64, U64, DType, is_integer
from jitml.kernels.analysis.affine_sums import GREATEST, LEAST, Atoms, Sum, constant, plus, ratio, times, within
from jitml.kernels.ir import (
    Apply,
    Const,
    Draw,
    Expr,
    If,
    Load,
    Loop,
    Update,
    Var,
    loaded_by,
    variables_of,
    walk,
)

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_ROUNDED = 1.001  # more than a few roundings make of a number
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


class Ranges(Atoms):
    """The bounds known at one place of a kernel. `scope()` forgets, at its end, what was learned in it.

    Loaded values are atoms by buffer and index: a store in between is not noticed, and is left to the interpreter's
    own checks. A sum of i64 is right but for multiples of 2**64, which is enough for an index whose bounds prove to be
    inside; what is compared, divided or bounded has to be `exact`. Sums of other dtypes always are.

    Args:
        values: least and greatest element of buffers whose contents are known.
    """

    def __init__(self, values: Mapping[str, tuple[int, int] | None]) -> None:
        super().__init__()
        self.values = values
        self.names: dict[str, Sum] = {}
        self.values_of: dict[str, Expr] = {}  # what names of conditions and of floating-point numbers stand for
        self.implied: dict[str, Expr] = {}  # what is true where a name is; where it is not, it may be all the same
        self.claims: frozenset[Expr] = frozenset()  # about floating-point numbers
        self.products: frozenset[Hashable] = frozenset()  # of unknown numbers, which do not wrap around all the same

    @contextmanager
    def scope(self) -> Iterator[None]:
        before = self.names, self.values_of, self.implied, self.claims, self.products, self.lower, self.upper, self.spans
        self.names, self.values_of, self.implied = dict(self.names), dict(self.values_of), dict(self.implied)
        self.lower, self.upper, self.spans = dict(self.lower), dict(self.upper), dict(self.spans)
        try:
            yield
        finally:
            self.names, self.values_of, self.implied, self.claims, self.products, self.lower, self.upper, self.spans = before

    # -------------------------------------------------------------------------------------------------- learning

    def define(self, name: str, value: Expr) -> None:
        """A `Let`: from now on the name is that sum, or that condition."""
        if is_integer(value.dtype):
            self.names[name] = self.sum(value)
            return
        self.forget(name)
        self.values_of[name] = value

    def define_now(self, name: str, value: Expr) -> None:
        """A `Let` where stores are about: what is loaded is a thing of its own, and no other load of that element is it."""
        if not loaded_by(value):
            self.define(name, value)
            return
        least, most = Ranges({}).bounds(value) if is_integer(value.dtype) else (None, None)
        self.forget(name, None if least is None else constant(least), None if most is None else constant(most))

    def draw(self, stmt: Draw) -> None:
        """A random number: of integers, the limits are known."""
        self.forget(stmt.name, *(map(self.exact, stmt.args[1:]) if stmt.dtype == I64 else ()))

    def forget(
        self, name: str, least: Sum | None = None, most: Sum | None = None, word: tuple[int, int] = (LEAST, GREATEST)
    ) -> None:
        """A name of which nothing is known but perhaps bounds: a cell."""
        lower = () if least is None else (least,)
        upper = () if most is None else (most,)
        if name in self.names or name in self.values_of:  # else nothing mentions it yet
            for table in (self.values_of, self.implied):
                for n in [n for n, value in table.items() if n == name or name in variables_of(value)]:
                    del table[n]
            self.claims = frozenset(claim for claim in self.claims if name not in variables_of(claim))
        atom = self.atom((name, len(self.age)), lower, upper)
        self.words[atom] = word
        self.names[name] = {atom: 1, None: 0}

    def learn(self, stmt: If) -> None:
        """After a branch: a truth that the other branch makes false is true only where the condition was (`a and b`)."""
        changed = {s.cell for s in walk((stmt,)) if isinstance(s, Update)}
        for update in stmt.orelse:
            if isinstance(update, Update) and update.value in (Const(False, BOOL), stmt.condition):
                once = sum(isinstance(s, Update) and s.cell == update.cell for s in walk(stmt.orelse)) == 1
                if once and not variables_of(stmt.condition) & changed and not loaded_by(stmt.condition):
                    self.implied[update.cell] = stmt.condition

    def enter(self, loop: Loop) -> None:
        """The loop's index: start + step * count, with 0 <= count <= (stop - start - 1) // step."""
        start = self.exact(loop.start)
        ahead = plus(plus(self.exact(loop.stop), start, -1), constant(-1))
        last = times(ahead, ratio(1, loop.step))
        known = self.most(last)
        upper: tuple[Sum, ...] = (last,) if known is None else (last, constant(known))
        upper += tuple(times(side, ratio(1, loop.step)) for side in self.where_it_runs(ahead))
        if loop.step > 1:
            upper += tuple(_in_whole_steps(ahead, loop.step))
        count = self.atom((loop.index, len(self.age)), (constant(0),), upper)
        self.names[loop.index] = plus(start, {count: loop.step})

    def where_it_runs(self, ahead: Sum) -> Iterator[Sum]:
        """A sum that is not negative, with what a maximum in it then is: not the side that would make it negative."""
        for atom, c in ahead.items():
            if not isinstance(atom, tuple) or atom[:2] not in (("maximum", I64), ("minimum", I64)) or c < 0:
                continue
            rest = {other: k for other, k in ahead.items() if other != atom}
            sides = [plus(rest, dict(side), c) for side in atom[2:]]
            if atom[0] == "minimum":  # neither side is negative
                for side in sides:
                    yield from self.where_it_runs(side)
                continue
            for side, other in (sides, sides[::-1]):
                most = self.most(other)
                if most is not None and most < 0:
                    yield side

    def is_empty(self, loop: Loop) -> bool:
        """Whether the loop certainly runs no iteration."""
        most = self.most(plus(self.exact(loop.stop), self.exact(loop.start), -1))
        return most is not None and most <= 0

    def assume(self, condition: Expr, holds: bool = True) -> None:
        """A condition that holds (or does not) from here to the end of the scope."""
        match condition:
            case Var(name) if name in self.values_of:
                self.assume(self.values_of[name], holds)
            case Var(name) if name in self.implied and holds:
                self.assume(self.implied[name])
            case Apply("bit_and" | "mul", (a, b)) if holds and condition.dtype == BOOL:
                self.assume(a)
                self.assume(b)
            case Apply("bit_or" | "add", (a, b)) if not holds and condition.dtype == BOOL:
                self.assume(a, False)
                self.assume(b, False)
            case Apply("bit_not", (a,)):
                self.assume(a, not holds)
            case Apply("select", (which, a, b)) if condition.dtype == BOOL:
                for branch, other, taken in ((a, b, False), (b, a, True)):
                    if _truth(branch, which, not taken) is (not holds):  # it was the other one
                        self.assume(which, taken)
                        self.assume(other, holds)
                        break
            case Apply("lt", (Apply("convert", (a,), kind), b)) if holds and kind == U64 and a.dtype == I64:
                end = self.exact(b)
                if self.fits(end, I64):  # a negative number is a large one without a sign
                    self.at_least_zero(self.exact(a))
                    self.compare("lt", self.exact(a), end)
            case Apply(fn, (a, b)) if fn in _NEGATED and is_integer(a.dtype):
                self.compare(fn if holds else _NEGATED[fn], self.exact(a), self.exact(b))
            case Apply("le") if holds and not loaded_by(condition):
                self.claims |= {condition}
                self.learn_size(condition)

    def learn_size(self, claim: Expr) -> None:
        """Of integers what floating point has shown: they do not wrap around."""
        match claim:
            case Apply("le", (Apply("abs", (x,)), Const(most))) if most * _ROUNDED < GREATEST:
                expr = self.integer(x)
                if isinstance(expr, Apply):
                    if expr.fn == "mul":
                        self.products |= {self.key(expr)}
                    for sign in (1, -1):
                        self.at_least_zero(plus(constant(int(most * _ROUNDED)), self.sum(expr), sign))

    def compare(self, fn: str, a: Sum, b: Sum) -> None:
        if fn in ("lt", "le", "eq"):
            self.at_least_zero(plus(plus(b, a, -1), constant(-1 if fn == "lt" else 0)))
        if fn in ("gt", "ge", "eq"):
            self.at_least_zero(plus(plus(a, b, -1), constant(-1 if fn == "gt" else 0)))

    # ----------------------------------------------------------------------------------------------------- asking

    def bounds(self, expr: Expr) -> tuple[int | None, int | None]:
        """Least and greatest value, None where there is no telling."""
        total = self.exact(expr)
        least = self.most(times(total, -1))
        return None if least is None else -least, self.most(total)

    def holds(self, condition: Expr) -> bool:
        """Whether a condition is known to be true. Nothing is known of what it loads itself."""
        if loaded_by(condition):
            return False
        if condition in self.claims:
            return True
        match condition:
            case Const(value):
                return bool(value)
            case Var(name) if name in self.values_of:
                return self.holds(self.values_of[name])
            case Apply("bit_and" | "mul", (a, b)) if condition.dtype == BOOL:
                return self.holds(a) and self.holds(b)
            case Apply("bit_or" | "add", (a, b)) if condition.dtype == BOOL:
                return self.holds(a) or self.holds(b)
            case Apply(("lt" | "le" | "gt" | "ge") as fn, (a, b)) if is_integer(a.dtype):
                x, y = (a, b) if fn in ("lt", "le") else (b, a)
                gap = plus(self.exact(y), self.exact(x), -1)
                below = self.most(times(gap, -1))  # the least gap is -below
                return below is not None and -below >= (fn in ("lt", "gt"))
            case Apply("le", (Apply("abs", (x,)), Const(most))) if x.dtype.kind == "f":
                limits = self.float_bounds(x)
                return limits is not None and max(map(abs, limits)) * _ROUNDED < most
        return False

    def refutes(self, condition: Expr) -> bool:
        """Whether a condition is known to be false."""
        match condition:
            case Const(value):
                return not value
            case Load(buffer, _, dtype) if dtype == BOOL:
                return self.values.get(buffer) == (0, 0)
            case Apply("bit_and" | "mul", (a, b)) if condition.dtype == BOOL:
                return self.refutes(a) or self.refutes(b)
            case Apply("bit_or" | "add", (a, b)) if condition.dtype == BOOL:
                return self.refutes(a) and self.refutes(b)
            case Apply("lt" | "le" | "gt" | "ge" as fn, (a, b)) if is_integer(a.dtype):
                return self.holds(Apply(_OPPOSITE[fn], (a, b), BOOL))
        return False

    def float_bounds(self, expr: Expr) -> tuple[float, float] | None:
        """Limits of a sum or product of integers in floating point, but for rounding."""
        match expr:
            case Const(value):
                return float(value), float(value)
            case Var(name) if name in self.values_of:
                return self.float_bounds(self.values_of[name])
            case Apply("convert", (x,)) if is_integer(x.dtype):
                least, most = self.bounds(x)
                return None if least is None or most is None else (float(least), float(most))
            case Apply("add" | "sub" | "mul" as fn, (x, y)):
                a, b = self.float_bounds(x), self.float_bounds(y)
                if a is None or b is None:
                    return None
                ends = [p + q if fn == "add" else p - q if fn == "sub" else p * q for p in a for q in b]
                return min(ends), max(ends)
        return None

    def integer(self, expr: Expr) -> Expr | None:
        """What a sum or product of integers in floating point is in i64."""
        match expr:
            case Const(value) if float(value).is_integer():
                return Const(int(value))
            case Var(name) if name in self.values_of:
                return self.integer(self.values_of[name])
            case Apply("convert", (x,)) if is_integer(x.dtype):
                return x if x.dtype == I64 else Apply("convert", (x,), I64)
            case Apply("add" | "sub" | "mul" as fn, (x, y)):
                a, b = self.integer(x), self.integer(y)
                return None if a is None or b is None else Apply(fn, (a, b), I64)
        return None

    # ------------------------------------------------------------------------------------------------ expressions

    def sum(self, expr: Expr) -> Sum:
        """An integer expression as a sum; whatever is not one becomes an atom."""
        match expr:
            case Const(value):
                return constant(int(value))
            case Var(name) if name in self.names:
                return self.names[name]
            case Apply("add" | "sub" | "neg" | "mul", _, dtype) if (total := self.arithmetic(expr, self.sum)) is not None:
                if dtype == I64 or self.fits(total, dtype):
                    return total
            case Apply("select", (condition, x, y)) if (holds := self.decided(condition)) is not None:
                return self.sum(x if holds else y)
            case Apply("floor_divide", (x, Const(d))) if d > 0:
                return self.quotient(self.exact(x), int(d))
            case Apply("remainder", (x, Const(d))) if d > 0:
                a = self.exact(x)
                return plus(a, self.quotient(a, int(d)), -int(d))
            case Apply("convert", (x,), dtype) if is_integer(x.dtype):
                total = self.sum(x)
                if np.can_cast(x.dtype, dtype) or self.fits(total, dtype):
                    return total
        key = self.key(expr)
        if key not in self.lower:  # else each level of an expression would ask for all below it several times
            self.atom(key, *self.limits(expr))
        return {key: 1, None: 0}

    def arithmetic(self, expr: Apply, of: Callable[[Expr], Sum]) -> Sum | None:
        """A sum, or a multiple, of sums: what it is if nothing wraps around."""
        match expr:
            case Apply("add" | "sub" as fn, (x, y)):
                return plus(of(x), of(y), 1 if fn == "add" else -1)
            case Apply("neg", (x,)):
                return times(of(x), -1)
            case Apply("mul", (x, y)):
                a, b = of(x), of(y)
                if set(a) == {None}:
                    a, b = b, a
                return times(a, b[None]) if set(b) == {None} else None
        return None

    def exact(self, expr: Expr) -> Sum:
        """The same where nothing wraps around; else a thing of its own."""
        total = self.sum(expr)
        if expr.dtype != I64 or self.fits(total, I64, of_words=True):
            return total
        if isinstance(expr, Apply) and expr.fn in ("add", "sub", "neg", "mul"):
            of_exact = self.arithmetic(expr, self.exact)
            if of_exact is not None and self.fits(of_exact, I64, of_words=True):
                return of_exact
        return {self.atom(("wrapped", frozenset(total.items())), (), ()): 1, None: 0}

    def decided(self, condition: Expr) -> bool | None:
        """Which way a condition goes, where that is known."""
        return True if self.holds(condition) else False if self.refutes(condition) else None

    def key(self, expr: Expr) -> Hashable:
        """Equal for expressions that are equal sums of equal things."""
        match expr:
            case Load(buffer, at):
                return (buffer, *(frozenset(self.sum(e).items()) for e in at))
            case Apply(fn, args, dtype):
                parts = (frozenset(self.exact(e).items()) if is_integer(e.dtype) else self.key(e) for e in args)
                return (fn, dtype, *parts)
            case Var(name) if name in self.names:  # a cell of another dtype, as it is now
                return frozenset(self.names[name].items())
        return expr

    def limits(self, expr: Expr) -> tuple[tuple[Sum, ...], tuple[Sum, ...]]:
        """Lower and upper bounds of an expression that is no sum."""
        match expr:
            case Apply("minimum", (x, y)) if is_integer(expr.dtype):
                return _least(self.bounds(x)[0], self.bounds(y)[0]), (self.exact(x), self.exact(y))
            case Apply("mul", (x, y)) if is_integer(expr.dtype):
                ends = (*self.bounds(x), *self.bounds(y))
                found = [end for end in ends if end is not None]
                if len(found) == 4:
                    products = [a * b for a in found[:2] for b in found[2:]]
                    if within(min(products), max(products), expr.dtype):
                        return (constant(min(products)),), (constant(max(products)),)
                elif (
                    self.key(expr) in self.products and ends[0] is not None and ends[2] is not None and min(ends[0], ends[2]) >= 0
                ):
                    return (constant(ends[0] * ends[2]),), ()
            case Apply("floor_divide", (x, y)) if is_integer(expr.dtype) and (self.bounds(y)[0] or 0) > 0:
                least, most = self.bounds(x)
                return _least(least, 0), _greatest(most, 0)
            case Apply("remainder", (_, y)) if is_integer(expr.dtype) and (self.bounds(y)[0] or 0) > 0:
                return (constant(0),), (plus(self.exact(y), constant(-1)),)
            case Apply("maximum", (x, y)) if is_integer(expr.dtype):
                return (self.exact(x), self.exact(y)), _greatest(self.bounds(x)[1], self.bounds(y)[1])
            case Apply("select", (condition, x, y)) if is_integer(expr.dtype):
                with self.scope():
                    self.assume(condition)
                    a = self.bounds(x)
                with self.scope():
                    self.assume(condition, False)
                    b = self.bounds(y)
                return _least(a[0], b[0]), _greatest(a[1], b[1])
            case Apply("bit_and" | "bit_or" | "bit_xor" | "shift_right" as fn, (x, y)) if is_integer(expr.dtype):
                limits = _of_bits(fn, self.bounds(x), self.bounds(y))
                return limits or _dtype_limits(expr.dtype)
            case Load(buffer) if (known := self.values.get(buffer)) is not None:
                return (constant(known[0]),), (constant(known[1]),)
            case Apply("convert", (x,)) if x.dtype == BOOL:
                return _dtype_limits(BOOL)
        return _dtype_limits(expr.dtype)


def _in_whole_steps(ahead: Sum, step: int) -> Iterator[Sum]:
    """Bounds of ahead // step where all but a constant is a multiple of the step: a tile of whole vectors ends with one."""
    for atom, c in ahead.items():
        if isinstance(atom, tuple) and atom[:2] == ("minimum", I64) and c == 1:
            rest = {other: k for other, k in ahead.items() if other != atom}
            for side in atom[2:]:
                yield from _in_whole_steps(plus(rest, dict(side), c), step)
            return
    if all(c % step == 0 for atom, c in ahead.items() if atom is not None):
        yield {atom: c // step for atom, c in ahead.items()}


def _truth(expr: Expr, given: Expr, holds: bool) -> bool | None:
    """What a condition is where another one holds, or does not; None if that does not tell."""
    match expr:
        case Const(value):
            return bool(value)
        case Apply("bit_not", (x,)) if x == given:
            return not holds
    return holds if expr == given else None


def _of_bits(
    fn: str, x: tuple[int | None, int | None], y: tuple[int | None, int | None]
) -> tuple[tuple[Sum, ...], tuple[Sum, ...]] | None:
    """Bounds of what works on bits, if there are any: a number without a sign bit bounds what is masked with it."""
    unsigned = [most for least, most in (x, y) if least is not None and least >= 0 and most is not None]
    if fn == "bit_and":
        return ((constant(0),), (constant(min(unsigned)),)) if unsigned else None
    if len(unsigned) < 2:
        return None
    if fn == "shift_right":
        return (constant(0),), (constant(unsigned[0] >> min(y[0] or 0, 64)),)
    return (constant(0),), (constant((1 << max(unsigned).bit_length()) - 1),)


def _least(a: int | None, b: int | None) -> tuple[Sum, ...]:
    return () if a is None or b is None else (constant(min(a, b)),)


def _greatest(a: int | None, b: int | None) -> tuple[Sum, ...]:
    return () if a is None or b is None else (constant(max(a, b)),)


def _dtype_limits(dtype: DType) -> tuple[tuple[Sum, ...], tuple[Sum, ...]]:
    if dtype == I64 or not (dtype == BOOL or is_integer(dtype)):
        return (), ()
    least, most = dtype_limits(dtype)
    return (constant(least),), (constant(most),)
