"""Linear index forms: what does an index depend on, and how strongly?

Index expressions as integer combinations of SSA values.
"""

from __future__ import annotations

from collections.abc import Mapping

from jitml.records import dataclass, field


@dataclass(frozen=True, slots=True)
class LinearForm:
    """`constant + sum(coefficient * name)`, where a name is an i64 (scalar or vector) SSA value.

    >>> LinearForm({"%i": 2}, 1) + LinearForm({"%i": -2, "%j": 1})
    LinearForm(terms={'%j': 1}, constant=1)
    """

    terms: Mapping[str, int] = field(default_factory=dict)
    constant: int = 0

    def __add__(self, other: LinearForm) -> LinearForm:
        terms = dict(self.terms)
        for name, coefficient in other.terms.items():
            terms[name] = terms.get(name, 0) + coefficient
        return LinearForm({name: c for name, c in terms.items() if c}, self.constant + other.constant)

    def __mul__(self, factor: int) -> LinearForm:
        if factor == 0:
            return LinearForm()
        return LinearForm({name: c * factor for name, c in self.terms.items()}, self.constant * factor)

    def __sub__(self, other: LinearForm) -> LinearForm:
        return self + other * -1
