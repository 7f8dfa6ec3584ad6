"""Symbolic dimensions: how is a size written that nobody knows yet?

`Dim`: a polynomial over `Sym`s, the integers known when the program runs.

A dimension is a plain int where it is known and a `Dim` where it depends on data, on a loop's index or on an argument whose
size changes: `A[i, :i]` has the shape `(i,)`. Two sizes are the same if their polynomials are: no other equation is known.

Every `Sym` has limits, and so has every `Dim`: layers below the graph give an array the memory of its largest shape, with the
strides of that shape, and run their loops to the true one.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

from jitml.errors import UnknownSizeError
from jitml.records import dataclass, field

_serial = itertools.count()


@dataclass(frozen=True, eq=False)
class Sym:
    """An integer that is known when the program runs; `low <= sym <= high`. Each is its own, whatever its name.

    A `bind` node of the graph says which value it is.
    """

    name: str
    low: int
    high: int
    serial: int = field(default_factory=lambda: next(_serial), repr=False)

    def __repr__(self) -> str:
        return self.name


Monomial: TypeAlias = tuple[Sym, ...]  # sorted by serial, a factor standing as often as its power; () is the constant


def as_size(x: int | Sym | Dim) -> Size:
    """An int, or a Dim that is none."""
    return Dim((((x,), 1),)) if isinstance(x, Sym) else x


@dataclass(frozen=True)
class Dim:
    """A sum of products of Syms with whole coefficients; immutable, equal to what is written alike, never a plain number.

    Arithmetic with ints and Dims gives an int or a Dim. Comparisons by order are answered from the limits.

    Raises:
        UnknownSizeError: Python asks for what is known only at run time (an int, a truth, an order).

    >>> n = as_size(Sym("n", 0, 10))
    >>> n + 1, (n + 1) - n, 2 * n <= 20
    (n + 1, 1, True)
    """

    terms: tuple[tuple[Monomial, int], ...]

    @property
    def syms(self) -> frozenset[Sym]:
        return frozenset(sym for monomial, _ in self.terms for sym in monomial)

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value that the limits of the Syms allow."""
        low = high = 0
        for monomial, factor in self.terms:
            ends = [factor * prod(choice) for choice in itertools.product(*((s.low, s.high) for s in monomial))]
            low, high = low + min(ends), high + max(ends)
        return low, high

    @property
    def bound(self) -> int:
        """The largest size: what memory is reserved for."""
        return max(0, self.limits[1])

    def evaluate(self, values: Mapping[Sym, Any]) -> Any:
        """The size, given all its Syms (ints, or anything that adds and multiplies)."""
        total: Any = 0
        for monomial, factor in self.terms:
            term: Any = factor
            for sym in monomial:
                term = values[sym] * term
            total = term + total
        return total

    def substitute(self, values: Mapping[Sym, Size]) -> Size:
        """The same with some Syms replaced."""
        size: Size = self.evaluate({sym: values.get(sym, as_size(sym)) for sym in self.syms})
        return size

    def linear_in(self, sym: Sym) -> tuple[Size, Size] | None:
        """Which sizes f and r make the same as f * sym + r; None if a higher power of the Sym is in it.

        >>> n, m = Sym("n", 0, 10), Sym("m", 0, 10)
        >>> (2 * as_size(n) * as_size(m) + as_size(m) - 1).linear_in(n)
        (2*m, m - 1)
        """
        factor: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms:
            powers = monomial.count(sym)
            if powers > 1:
                return None
            if powers:
                place = monomial.index(sym)
                factor[monomial[:place] + monomial[place + 1 :]] = coefficient
            else:
                rest[monomial] = coefficient
        return _size(factor), _size(rest)

    def __add__(self, other: Any) -> Any:
        return _combine(self, other, 1) if isinstance(other, (int, Dim)) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _combine(self, other, -1) if isinstance(other, (int, Dim)) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return _combine(-1 * self, other, 1) if isinstance(other, (int, Dim)) else NotImplemented

    def __neg__(self) -> Any:
        return self * -1

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        product: dict[Monomial, int] = {}
        for (a, m), (b, n) in itertools.product(self.terms, _terms(other)):
            monomial = tuple(sorted(a + b, key=lambda sym: sym.serial))
            product[monomial] = product.get(monomial, 0) + m * n
        return _size(product)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, int) and other and all(factor % other == 0 for _, factor in self.terms):
            return _size({monomial: factor // other for monomial, factor in self.terms})
        if isinstance(other, Dim) and (whole := _quotient(self, other)) is not None:
            return whole
        raise UnknownSizeError(f"{self} // {other} is known only when the program runs")

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int) and other and all(factor % other == 0 for _, factor in self.terms):
            return 0
        raise UnknownSizeError(f"{self} % {other} is known only when the program runs")

    def __lt__(self, other: Any) -> bool:
        return _decide(self, other, lambda low, high: (high < 0, low >= 0), "<")

    def __le__(self, other: Any) -> bool:
        return _decide(self, other, lambda low, high: (high <= 0, low > 0), "<=")

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        low, high = self.limits
        if low > 0 or high < 0:
            return True
        raise UnknownSizeError(f"whether the size {self} is 0 is known only when the program runs")

    def __index__(self) -> int:
        raise UnknownSizeError(f"the size {self} is known only when the program runs")

    __int__ = __index__

    def __str__(self) -> str:
        def factors(monomial: Monomial) -> str:
            return "*".join(sym.name for sym in monomial)

        text = ""
        for monomial, factor in self.terms:
            size = abs(factor)
            part = factors(monomial) if size == 1 and monomial else f"{size}*{factors(monomial)}" if monomial else str(size)
            text += part if not text and factor > 0 else f"-{part}" if not text else f" {'+' if factor > 0 else '-'} {part}"
        return text

    __repr__ = __str__


Size: TypeAlias = int | Dim


def _terms(x: Size) -> tuple[tuple[Monomial, int], ...]:
    return x.terms if isinstance(x, Dim) else (((), int(x)),)


def _size(terms: Mapping[Monomial, int]) -> Size:
    """Canonical: no zero terms, longest products first; a constant is an int."""
    kept = [(monomial, factor) for monomial, factor in terms.items() if factor]
    if not any(monomial for monomial, _ in kept):
        return kept[0][1] if kept else 0
    return Dim(tuple(sorted(kept, key=lambda term: (-len(term[0]), [sym.serial for sym in term[0]]))))


def _combine(x: Dim, y: Size, sign: int) -> Size:
    total = dict(x.terms)
    for monomial, factor in _terms(y):
        total[monomial] = total.get(monomial, 0) + sign * factor
    return _size(total)


def _quotient(x: Dim, y: Dim) -> Size | None:
    """x / y where y is one product that divides every term of x."""
    if len(y.terms) != 1:
        return None
    divisor, by = y.terms[0]
    result: dict[Monomial, int] = {}
    for monomial, factor in x.terms:
        left = list(monomial)
        for sym in divisor:
            if sym not in left:
                return None
            left.remove(sym)
        if factor % by:
            return None
        result[tuple(left)] = factor // by
    return _size(result)


def _decide(x: Dim, y: Any, claims: Callable[[int, int], tuple[bool, bool]], sign: str) -> bool:
    low, high = limits(x - y)
    true, false = claims(low, high)
    if true or false:
        return true
    raise UnknownSizeError(f"whether {x} {sign} {y} is known only when the program runs")


def limits(size: Size) -> tuple[int, int]:
    """The least and the greatest value of a size."""
    return size.limits if isinstance(size, Dim) else (size, size)


def bound(size: Size) -> int:
    """The largest value of a size: what memory is reserved for."""
    return size.bound if isinstance(size, Dim) else size


def stretched(first: int, second: int) -> int:
    """Which of two sizes broadcasting stretches to the other, 1 or 2; 0 for neither.

    >>> stretched(1, 5), stretched(5, 1), stretched(5, 5)
    (1, 2, 0)
    """
    return 0 if first == second else 1 if first == 1 else 2 if second == 1 else 0


def have_elements_if(sizes: Iterable[Size], others: Collection[Size]) -> bool:
    """Whether arrays of these sizes surely have elements where those of the others have some."""
    return all(limits(n)[0] > 0 or n in others for n in sizes)


def syms_in(x: object) -> list[Sym]:
    """The Syms in a shape, a parameter, or anything made of tuples, as they are written, with repetitions."""
    found: list[Sym] = []
    _collect(x, found)
    return found


def _collect(x: object, found: list[Sym]) -> None:
    if type(x) is int:  # nearly always
        return
    if isinstance(x, tuple):
        for part in x:
            _collect(part, found)
    elif isinstance(x, Dim):
        found += [sym for monomial, _ in x.terms for sym in monomial]
    elif isinstance(x, Sym):
        found.append(x)


def resolve(x: Any, values: Mapping[Sym, Any]) -> Any:
    """A shape or parameter with the given Syms replaced: by ints it becomes plain, by Dims another one."""
    if isinstance(x, Dim):
        return x.substitute(values) if any(s in values for s in x.syms) else x
    if isinstance(x, tuple):
        return tuple(resolve(part, values) for part in x)
    return x


def parse_size(text: str, syms: Mapping[str, Sym]) -> Size:
    """`n*m - 2*n + 1` as a size; names are looked up in `syms`.

    Raises:
        ValueError: the text is no size, or a name in it is none of `syms`.
    """

    def read(node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name) if name in syms:
                return as_size(syms[name])
            case ast.Constant(value=int(value)):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -1 * read(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return read(left) + read(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return read(left) - read(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return read(left) * read(right)
        raise ValueError(f"not a size: {text!r}")

    try:
        size: Size = read(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"not a size: {text!r}") from error
    return size
