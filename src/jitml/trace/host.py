"""What happens to Python numbers?  Python computes them, before each call: a `Host` program of plain Python steps.

A function's Python ints, floats and bools stay Python: `n * 2 + 1` in a traced function becomes a step here, run with
Python's own rules (unbounded ints, ZeroDivisionError), and its result enters the graph where it meets an array. When the trace
needs to know a number (a shape, a list index, an `if`), a `Check` on exactly that is put at that place of the program.
The steps run in order, so that a step which was safe behind a check stays so; one that raises is a guard that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Slot = int


@dataclass(frozen=True, slots=True)
class Const:
    """A concrete operand of a step."""

    value: Any


@dataclass(frozen=True, slots=True)
class Compute:
    """`slot = function(*operands)`."""

    slot: Slot
    function: Callable[..., Any]
    operands: tuple[Slot | Const, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """A claim about a number that the compiled code relies on; `text` says it to people."""

    slot: Slot
    kind: Literal["is", "range", "type"]  # the same type, value and sign as low; low <= slot <= high; type(slot) is low
    low: Any
    high: Any
    text: str


@dataclass(slots=True)
class Host:
    """The program, grown while tracing. Number arguments take slots first, by `argument`."""

    steps: list[Compute | Check] = field(default_factory=list)
    arguments: dict[Slot, int] = field(default_factory=dict)  # slot -> position among the flattened arguments
    names: list[str] = field(default_factory=list)
    _checked: set[tuple[Slot, str, str, str]] = field(default_factory=set)

    def name(self, slot: Slot) -> str:
        """The user's name or expression of a number, for reports."""
        return self.names[slot]

    def argument(self, position: int, name: str) -> Slot:
        slot = self._slot(name)
        self.arguments[slot] = position
        return slot

    def compute(self, function: Callable[..., Any], operands: tuple[Slot | Const, ...]) -> Slot:
        texts = ", ".join(repr(o.value) if isinstance(o, Const) else self.names[o] for o in operands)
        slot = self._slot(f"{getattr(function, '__name__', function)}({texts})")
        self.steps.append(Compute(slot, function, operands))
        return slot

    def require(self, slot: Slot, value: object) -> None:
        """Guard on a number being exactly this: type, value and the sign of zero."""
        self._check(Check(slot, "is", value, value, f"{self.names[slot]} is {value!r}"))

    def require_range(self, slot: Slot, low: int, high: int) -> None:
        """Guard on low <= number <= high."""
        self._check(Check(slot, "range", low, high, f"{low} <= {self.names[slot]} <= {high}"))

    def require_type(self, slot: Slot, kind: type) -> None:
        """Guard on a number's type, where Python lets the value decide it: `2 ** n` is a float for n < 0."""
        self._check(Check(slot, "type", kind, kind, f"{self.names[slot]} is a {kind.__name__}"))

    def _check(self, check: Check) -> None:
        key = (check.slot, check.kind, repr(check.low), repr(check.high))
        if key not in self._checked:
            self._checked.add(key)
            self.steps.append(check)

    def _slot(self, name: str) -> Slot:
        self.names.append(name)
        return len(self.names) - 1
