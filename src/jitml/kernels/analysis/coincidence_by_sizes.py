"""Coincidence by sizes: can two addresses be the same in different iterations, if rows are as long as only the run knows?

Addresses are polynomials over counts of loops and sizes. The index of a loop, or of loops over the pieces of one, is one digit:
in `i * n + j`, j is less than n wherever its loop runs, however that is cut. Quotient and remainder of an index are two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from jitml.kernels.analysis.dependence import CONSTANT, FAR, Accesses, Form, Path
from jitml.kernels.analysis.mixed_radix import SizedDigit, certainly_zero, solved
from jitml.kernels.analysis.polynomials import (
    MOST_TERMS,
    Poly,
    constant,
    divided,
    magnitude,
    never_negative,
    plus,
    raised,
    times,
    variable,
)
from jitml.kernels.ir import Loop
from jitml.records import dataclass, field, replace

_REST = (0,)  # at the end of a quotient's path: the remainder
_WORD = 1 << 62  # sums below it do not wrap around


def coincide_by_sizes(a: Form, b: Form, shared: Sequence[Path], wanted: Sequence[Path], known: Accesses) -> bool:
    """Whether a == b implies that both stand in the same iteration of each loop in `wanted`; as `coincide_only_together`."""
    if all(path == CONSTANT or path in known.loops for path in (*a, *b)):
        return False  # there are no sizes
    comparison = _SizedComparison(known, frozenset(shared) - frozenset(wanted), wanted)
    return any(comparison.coincide(a, b, prefer) for prefer in (0, -1))


@dataclass(frozen=True, slots=True)
class _Term:
    """What one index adds to an address: the index, times a polynomial over sizes."""

    factor: Poly
    step: int  # of the index
    low: Poly
    highs: tuple[Poly, ...]  # alternatives
    says: Form  # the index over counts


_Terms: TypeAlias = dict[Path, _Term]


@dataclass
class _SizedComparison:
    """
    Args:
        same: loops and names that have one value for both accesses.
    """

    known: Accesses
    same: frozenset[Path]
    wanted: Sequence[Path]
    least: dict[Path, int] = field(init=False)
    most: dict[Path, int] = field(init=False)
    changes: dict[Path, int] = field(init=False)  # of counts and what is made of them, the greatest there can be

    def __post_init__(self) -> None:
        known = self.known
        sizes = {p: limits for p, limits in known.limits.items() if p[0] < 0 or p in self.same}
        counts = {p: (0, last) for p, last in known.last.items() if last is not None}
        quotients = {p: ends for p in known.quotients if (ends := self._quotient_limits(p)) is not None}
        limits = sizes | counts | quotients
        rests = {_rest(p): d - 1 for p, (_, d) in known.quotients.items()}
        self.changes = rests | {p: high - low for p, (low, high) in (counts | quotients).items()}
        self.most = {p: max(map(abs, ends)) for p, ends in limits.items() if max(map(abs, ends)) < FAR}
        self.least = {p: low for p, (low, _) in limits.items() if p in self.most and not self._is_free(p)}

    def coincide(self, a: Form, b: Form, prefer: int) -> bool:
        parts = [self._terms(form) for form in (a, b)]
        if parts[0] is None or parts[1] is None:
            return False
        (terms, offset), (others, other_offset) = parts[0], parts[1]
        least = raised(self.least, self._positive({*a, *b, *terms, *others}))
        digits: list[SizedDigit] = []
        for path in {*terms, *others}:
            x, y = terms.get(path), others.get(path)
            if x is not None and y is not None and (x.factor, x.step) == (y.factor, y.step):
                spread = times(x.factor, plus(x.highs[prefer], x.low, -1))
                made = self._digit(x, times(spread, constant(-1)), spread, x.says, least)
                digits += [made] if made else []
                if not made:
                    return False
                continue
            for term, sign in ((x, 1), (y, -1)):
                if term is not None:
                    ends = [times(term.factor, times(end, constant(sign))) for end in (term.low, term.highs[prefer])]
                    low, high = ends[::sign]
                    made = self._digit(replace(term, step=1), low, high, {}, least)
                    if made is None:
                        return False
                    digits.append(made)
        zero = certainly_zero(digits, plus(offset, other_offset, -1), least)
        if zero is None:
            return True
        found = solved(self._equations(zero), self.changes)
        return all(p in found or self.known.last.get(p) == 0 for p in self.wanted)

    def _equations(self, zero: Sequence[SizedDigit]) -> Iterator[Form]:
        """Sums of changes that are zero if these digits are."""
        for digit in zero:
            yield {p: c for p, c in digit.says.items() if self._is_free(p)}
        for path, (form, d) in self.known.quotients.items():
            if self._is_free(path):
                yield {**{p: c for p, c in form.items() if self._is_free(p)}, path: -d, _rest(path): -1}

    def _digit(self, term: _Term, low: Poly, high: Poly, says: Form, least: Mapping[Path, int]) -> SizedDigit | None:
        """None if nobody knows the sign of the factor, or if numbers may be so large that they wrap around."""
        for sign in (1, -1):
            factor = times(term.factor, constant(sign))
            if never_negative(factor, least):
                low, high = (low, high) if sign > 0 else (high, low)
                sizes = [magnitude(p, self.most) for p in (low, high)]
                if any(size is None or size > _WORD for size in sizes):
                    return None
                return SizedDigit(times(factor, constant(term.step)), low, high, says)
        return None

    # ------------------------------------------------------------------------------------------------ addresses

    def _terms(self, form: Form) -> tuple[_Terms, Poly] | None:
        """An address as indices with their factors, and what is left; None if it is no such sum."""
        whole = self._expanded(form)
        if whole is None or (size := magnitude(whole, self.most)) is None or size > _WORD:
            return None
        factors: dict[Path, Poly] = {}
        rest: Poly = {}
        for monomial, c in whole.items():
            free = [p for p in monomial if self._is_free(p)]
            if len(free) > 1:
                return None
            if free:
                others = tuple(p for p in monomial if p != free[0])
                factors[free[0]] = plus(factors.get(free[0], {}), {others: c})
            else:
                rest = plus(rest, {monomial: c})
        pending = _Pending(factors, rest)
        terms: _Terms = {}
        for quotient in sorted(p for p in self.known.quotients if self._is_free(p) and factors.get(p)):
            terms |= self._parts_of_division(quotient, pending)
        for path in sorted((p for p in self.known.loops), key=lambda p: (-len(p), p)):
            if pending.factors.get(path):
                term = self._index(path, pending)
                if term is None:
                    return None
                terms[path] = term
        if any(pending.factors.values()):
            return None
        return terms, pending.rest

    def _expanded(self, form: Form) -> Poly | None:
        total: Poly = {}
        for path, c in form.items():
            if path in self.known.products:
                a, b = (self._expanded(factor) for factor in self.known.products[path])
                if a is None or b is None or len(a) * len(b) > MOST_TERMS:
                    return None
                total = plus(total, times(a, b), c)
            else:
                total = plus(total, variable(path) if path else constant(1), c)
        return total

    def _parts_of_division(self, path: Path, pending: _Pending) -> Iterator[tuple[Path, _Term]]:
        """q and r, where an address has both what q divides and q: a = d * q + r."""
        form, d = self.known.quotients[path]
        inner = max((p for p in form if p != CONSTANT and pending.factors.get(p)), key=len, default=None)
        times_form = None if inner is None else divided(pending.factors[inner], form[inner])
        if times_form:
            pending.subtract(times_form, form, self)
            pending.add(path, times(times_form, constant(d)))
            yield _rest(path), _Term(times_form, 1, {}, (constant(d - 1),), {_rest(path): 1})
        limits = self._quotient_limits(path)
        factor = pending.factors.pop(path, {})
        if factor and limits is not None:
            least, most = limits
            sized = [m for high in self._highs(form) if (m := divided(plus(high, constant(1)), d)) is not None]
            highs = *(plus(m, constant(-1)) for m in sized), constant(most)
            yield path, _Term(factor, 1, constant(least), highs, {path: 1})
        elif factor:
            pending.factors[path] = factor  # nobody knows how large it gets

    def _index(self, path: Path, pending: _Pending) -> _Term | None:
        """The index of a loop, with the loops around it that it is the sum of."""
        loop, span = self.known.loops[path], self.known.spans.get(path)
        factor = pending.factors[path]
        if isinstance(loop, Loop) and span is not None and span.index is not None and span.start is not None:
            whole = divided(factor, loop.step)
            highs, low = self._highs(span.index), self._least_of(span.start)
            is_known = all(p == CONSTANT or p in self.most for p in span.index)
            if whole is not None and highs and low is not None and is_known:
                pending.subtract(whole, span.index, self)
                return _Term(whole, _smallest_step(span.index, self), low, tuple(highs), span.index)
        last = self.known.last.get(path)
        if last is None:
            return None
        del pending.factors[path]
        return _Term(factor, 1, {}, (constant(last),), {path: 1})

    # --------------------------------------------------------------------------------------------------- limits

    def _highs(self, form: Form) -> list[Poly]:
        """Upper bounds of an index, those over sizes first."""
        found: list[Poly] = []
        inner = max((p for p in form if p in self.known.spans), key=len, default=None)
        if inner is not None and self.known.spans[inner].index == form:
            for stop in self.known.spans[inner].stops:
                bound = self._greatest_of(stop)
                if bound is not None:
                    found.append(plus(bound, constant(-1)))
        found.sort(key=lambda p: not any(p))
        numeric = self._greatest_of(form)
        return [*found, numeric] if numeric is not None else found

    def _greatest_of(self, form: Form) -> Poly | None:
        below = self._least_of({p: -c for p, c in form.items()})
        return None if below is None else times(below, constant(-1))

    def _least_of(self, form: Form) -> Poly | None:
        """The least value of a sum: counts are at 0 where they are added, and at their last where they are subtracted."""
        kept: Form = {}
        for p, c in form.items():
            if p not in self.known.loops:
                kept[p] = c
            elif c < 0:
                last = self.known.last.get(p)
                if last is None:
                    return None
                kept[CONSTANT] = kept.get(CONSTANT, 0) + c * last
        whole = self._expanded(kept)
        return None if whole is None or any(self._is_free(p) for monomial in whole for p in monomial) else whole

    def _quotient_limits(self, path: Path) -> tuple[int, int] | None:
        form, d = self.known.quotients[path]
        limits = self._limits(form)
        return None if limits is None else (limits[0] // d, limits[1] // d)

    def _limits(self, form: Form) -> tuple[int, int] | None:
        for p in form:
            if p in self.known.quotients:
                inner, d = self.known.quotients[p]
                remainder = {**inner, p: -d}
                beside = {q: form.get(q, 0) - remainder.get(q, 0) for q in {*form, *remainder}}
                if not any(c for q, c in beside.items() if q != CONSTANT):
                    return beside.get(CONSTANT, 0), beside.get(CONSTANT, 0) + d - 1
        low = high = form.get(CONSTANT, 0)
        for p, c in form.items():
            if p == CONSTANT:
                continue
            last = self.known.last.get(p)
            ends = self._quotient_limits(p) if p in self.known.quotients else None if last is None else (0, last)
            if ends is None:
                return None
            low, high = low + min(c * end for end in ends), high + max(c * end for end in ends)
        return low, high

    def _positive(self, paths: set[Path]) -> Iterator[Poly]:
        """Sizes that are at least 1, since the loops run."""
        for path in {*paths, *self.same, *self.wanted} & self.known.spans.keys():
            span = self.known.spans[path]
            start = None if span.start is None else self._least_of(span.start)
            if start is None:
                continue
            for stop in span.stops:
                bound = self._greatest_of(stop)
                if bound is not None and (size := magnitude(bound, self.most)) is not None and size <= _WORD:
                    yield plus(bound, start, -1)

    def _is_free(self, path: Path) -> bool:
        """Whether what a path stands for may differ from one access to the other."""
        if path[-1:] == _REST and path[0] < 0:
            path = path[:-1]
        if path in self.known.quotients:
            return any(self._is_free(p) for p in self.known.quotients[path][0] if p != CONSTANT)
        return path in self.known.loops and path not in self.same


@dataclass
class _Pending:
    """What of an address has not been understood yet."""

    factors: dict[Path, Poly]
    rest: Poly

    def add(self, path: Path, factor: Poly) -> None:
        self.factors[path] = plus(self.factors.get(path, {}), factor)

    def subtract(self, factor: Poly, form: Form, names: _SizedComparison) -> None:
        """Take factor * form out."""
        for path, c in form.items():
            if path != CONSTANT and names._is_free(path):
                self.add(path, times(factor, constant(-c)))
            else:
                self.rest = plus(self.rest, times(factor, times(variable(path) if path else constant(1), constant(c))), -1)


def _rest(quotient: Path) -> Path:
    """The name of a remainder."""
    return quotient + _REST


def _smallest_step(form: Form, names: _SizedComparison) -> int:
    """The least that an index changes by."""
    steps = [abs(c) for path, c in form.items() if path != CONSTANT and names._is_free(path)]
    return min(steps) if all(step % min(steps) == 0 for step in steps) else 1
