"""Bounds of affine sums: how large can a sum get whose terms bound each other?

Sums of *atoms*: numbers of which no more is known than bounds.

Each atom has lower and upper bounds that are sums over older atoms. To bound a sum, its youngest atom is replaced by its bounds,
until only a number is left; that is exact for the triangular limits and tiles that lowering and scheduling write.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import TypeAlias

from jitml.ir.analysis.limits import dtype_limits
from jitml.ir.types import I64, DType

Number: TypeAlias = int | Fraction  # whole ones are ints, with which Python counts ten times faster
Sum: TypeAlias = dict[Hashable, Number]  # atom -> coefficient; None -> the constant
_Known: TypeAlias = dict[frozenset[tuple[Hashable, Number]], Number | None]  # the greatest values of sums
_MOST_SUMS = 200  # that one question leads to: nested maxima, and quotients of quotients, multiply them
LEAST, GREATEST = -(2**63), 2**63 - 1  # i64
_FARTHER = {True: "maximum", False: "minimum"}  # by whether it is added: what either of two sums may make large


def constant(value: Number) -> Sum:
    return {None: value}


def ratio(a: Number, b: Number) -> Number:
    """a / b, exactly."""
    return whole(Fraction(a) / b)


def whole(x: Number) -> Number:
    return x.numerator if x.denominator == 1 else x


def plus(a: Sum, b: Sum, factor: Number = 1) -> Sum:
    """a + factor * b"""
    total = dict(a)
    for atom, c in b.items():
        c = total.get(atom, 0) + factor * c
        if c or atom is None:
            total[atom] = c if type(c) is int else whole(c)
        else:
            total.pop(atom, None)
    return total


def times(a: Sum, factor: Number) -> Sum:
    return plus(constant(0), a, factor)


def within(least: Number, most: Number, dtype: DType) -> bool:
    """Whether an integer dtype has these numbers."""
    first, last = dtype_limits(dtype)
    return first <= least and most <= last


class Atoms:
    """The bounds of atoms: `lower` and `upper` of what is known here, `words` of what keeps away from the ends of i64."""

    def __init__(self) -> None:
        self.lower: dict[Hashable, tuple[Sum, ...]] = {}
        self.upper: dict[Hashable, tuple[Sum, ...]] = {}
        self.age: dict[Hashable, int] = {}
        self.words: dict[Hashable, tuple[int, int]] = {}
        self.spans: dict[Hashable, tuple[int | None, int | None]] = {}  # of atoms that have been asked for

    def atom(self, key: Hashable, lower: tuple[Sum, ...], upper: tuple[Sum, ...]) -> Hashable:
        self.age.setdefault(key, len(self.age))
        self.lower.setdefault(key, lower)
        self.upper.setdefault(key, upper)
        return key

    def quotient(self, a: Sum, d: int) -> Sum:
        """a // d, between (a - d + 1) / d and a / d; where a's own bounds are numbers, between whole numbers."""
        inner = next((atom for atom in a if isinstance(atom, tuple) and atom[0] == "//"), None)
        if inner is not None and a[inner] == 1 and a.keys() <= {inner, None} and a.get(None, 0).denominator == 1:
            # (x // e + c) // d is (x + c * e) // (e * d), which is seen to be what it is beside x.
            _, x, e = inner
            return self.quotient(plus(dict(x), constant(a.get(None, 0) * e)), e * d)
        key = ("//", frozenset(a.items()), d)
        negated, most = self.most(times(a, -1)), self.most(a)
        lower = (times(plus(a, constant(1 - d)), ratio(1, d)), *(() if negated is None else (constant(-negated // d),)))
        upper = (times(a, ratio(1, d)), *(() if most is None else (constant(most // d),)))
        return {self.atom(key, lower, upper): 1, None: 0}

    def at_least_zero(self, total: Sum) -> None:
        youngest = self.youngest(total)
        if youngest is None:
            return
        c = total[youngest]
        if isinstance(youngest, tuple) and youngest[:2] == (("maximum" if c < 0 else "minimum"), I64):
            rest = {atom: k for atom, k in total.items() if atom != youngest}
            for side in youngest[2:]:  # what is at least the maximum is at least both
                self.at_least_zero(plus(rest, dict(side), c))
        bound = times({atom: k for atom, k in total.items() if atom != youngest}, ratio(-1, c))
        table = self.lower if c > 0 else self.upper
        table[youngest] = (*table.get(youngest, ()), bound)
        self.spans.pop(youngest, None)
        # Between it and each bound on the other side there is room: `0 < j` and `j < i` say something of i.
        for other in (self.upper if c > 0 else self.lower).get(youngest, ()):
            self.at_least_zero(plus(other, bound, -1) if c > 0 else plus(bound, other, -1))

    def most(self, total: Sum, *, of_words: bool = False) -> int | None:
        """The greatest value of a sum; with `of_words`, an atom of which nothing is known is an i64 at least."""
        bound = self._most(total, of_words, {})
        return None if bound is None else bound.numerator // bound.denominator

    def _most(self, total: Sum, of_words: bool, known: _Known) -> Number | None:
        """The same, of sums of which many lead to the same ones; `known` has those of this question."""
        youngest = self.youngest(total)
        if youngest is None:
            return total.get(None, 0)
        key = frozenset(total.items())
        if key not in known:
            if len(known) >= _MOST_SUMS:  # quotients of quotients of quotients are bounded in more ways than can be tried
                return self._most_of_each(total)
            known[key] = self._most_by_bounds(total, youngest, of_words, known)
        return known[key]

    def _most_of_each(self, total: Sum) -> Number | None:
        """The same by the bounds of each atom that have been asked for, whatever they say of each other."""
        most = total.get(None, 0)
        for atom, c in total.items():
            if atom is None:
                continue
            span = self.spans.get(atom, (None, None))
            end = span[1] if c > 0 else span[0]
            if end is None:
                return None
            most += c * end
        return most

    def _most_by_bounds(self, total: Sum, youngest: Hashable, of_words: bool, known: _Known) -> Number | None:
        c = total[youngest]
        rest = {atom: k for atom, k in total.items() if atom != youngest}
        candidates = (self.upper if c > 0 else self.lower).get(youngest, ())
        found = [self._most(plus(rest, bound, c), of_words, known) for bound in candidates]
        if isinstance(youngest, tuple) and youngest[0] == "//":
            found.append(self._most_by_remainder(total, youngest, of_words, known))
        elif isinstance(youngest, tuple) and youngest[:2] == (_FARTHER[c > 0], I64) and len(rest) > 1 and len(known) < _MOST_SUMS:
            found.append(self._most_by_sides(rest, youngest, c, of_words, known))
        most = min((most for most in found if most is not None), default=None)
        if most is None and of_words:
            least, greatest = self.words.get(youngest, (LEAST, GREATEST))
            return self._most(plus(rest, constant(greatest if c > 0 else least), c), of_words, known)
        return most

    def _most_by_remainder(self, total: Sum, quotient: Hashable, of_words: bool, known: _Known) -> Number | None:
        """The same where a is there beside a // d: of both, as much as makes a % d, which is in 0..d - 1."""
        assert isinstance(quotient, tuple)
        a, d = dict(quotient[1]), quotient[2]
        oldest = min((atom for atom in a if atom is not None), key=self.age.__getitem__, default=None)
        share = ratio(total.get(oldest, 0), a[oldest]) if oldest is not None else 0
        if not share:
            return None
        rest = plus(plus(total, a, -share), {quotient: share * d})
        most = self._most(rest, of_words, known)
        return None if most is None else most + max(share * (d - 1), 0)

    def _most_by_sides(self, rest: Sum, choice: Hashable, c: Number, of_words: bool, known: _Known) -> Number | None:
        """The same of a maximum (or the negative of a minimum), which is one of two sums, beside what else bounds them."""
        assert isinstance(choice, tuple)
        found = [self._most(plus(rest, dict(side), c), of_words, known) for side in choice[2:]]
        return None if None in found else max(most for most in found if most is not None)

    def span(self, atom: Hashable, of_words: bool) -> tuple[int | None, int | None]:
        """Least and greatest value of an atom, as far as they are known."""
        known = self.spans.get(atom)
        if known is None:
            negated, most = self.most({atom: -1, None: 0}), self.most({atom: 1, None: 0})
            known = self.spans[atom] = (None if negated is None else -negated, most)
        if not of_words or None not in known:
            return known
        (least, most), word = known, self.words.get(atom, (LEAST, GREATEST))
        return word[0] if least is None else least, word[1] if most is None else most

    def youngest(self, total: Sum) -> Hashable | None:
        atoms = [atom for atom in total if atom is not None]
        return max(atoms, key=self.age.__getitem__) if atoms else None

    def fits(self, total: Sum, dtype: DType, *, of_words: bool = False) -> bool:
        """Whether a dtype is known to have every value of a sum."""
        if of_words and total.get(None, 0) == 0 and [c for atom, c in total.items() if atom is not None] == [1]:
            return True
        low = high = total.get(None, 0)
        for atom, c in total.items():
            if atom is None:
                continue
            least, most = self.span(atom, of_words)
            if least is None or most is None:
                break
            low, high = (low + c * least, high + c * most) if c > 0 else (low + c * most, high + c * least)
        else:
            if within(low, high, dtype):  # nearly always: no need to see which atoms bound each other
                return True
        negated, most = (self.most(side, of_words=of_words) for side in (times(total, -1), total))
        return negated is not None and most is not None and within(-negated, most, dtype)
