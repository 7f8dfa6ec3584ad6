"""Ops: what can be computed?  `Op`: a name, a result rule, and its meaning in NumPy. Nothing else.

How an op is differentiated, lowered or simplified belongs to the layer that does so, in a `RuleTable` of that layer.
Called on arrays an op evaluates; called while a recorder is active (see `recording`) it records a node instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from jitml.errors import LoweringError
from jitml.interrupts import unset
from jitml.ir.types import Aval
from jitml.records import dataclass, field

AvalRule = Callable[..., Aval | tuple[Aval, ...]]


class Recorder(Protocol):
    """What an op asks of whoever is recording: a `GraphBuilder`."""

    def record(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any: ...


_active: ContextVar[Recorder | None] = ContextVar("jitml_recorder", default=None)


def active_recorder() -> Recorder | None:
    return _active.get()


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[None]:
    """Send every op call inside the block to `recorder` (None: evaluate, as outside any trace)."""
    token = _active.set(recorder)
    try:
        yield
    finally:
        unset(_active, token)


def record_into(recorder: Recorder) -> None:
    """Send op calls to another recorder from here on, as far as the `recording` block around goes."""
    _active.set(recorder)


OPS: dict[str, Op] = {}


@dataclass(frozen=True, eq=False)
class Op:
    """One primitive. Arrays are positional, static parameters are keywords.

    Args:
        name: the text form's name, unique.
        family: the file of `ir/ops` it stands in, and of the rules about it in other layers.
        aval: result rule, `(*avals, **params) -> Aval` (or a tuple of them); raises ShapeError or DTypeError.
        evaluate: its meaning, `(*arrays, **params) -> array` in plain NumPy; the oracle of all tests.
        is_commutative: operands may be swapped without changing a bit of the result.
        has_effect: must run even if nothing uses its result (checks, host calls).
        has_bodies: its nodes hold graphs that the program runs: a loop, a branch.
    """

    name: str
    family: str
    aval: AvalRule = field(repr=False)
    evaluate: Callable[..., Any] = field(repr=False)
    is_commutative: bool = False
    has_effect: bool = False
    has_bodies: bool = False

    def __post_init__(self) -> None:
        if self.name in OPS:
            raise ValueError(f"an op named {self.name} exists already")
        OPS[self.name] = self

    @property
    def is_pointwise(self) -> bool:
        """One result element depends on the operands' elements at the same place only."""
        return self.family in ("pointwise", "complex")

    def __call__(self, *args: Any, **params: Any) -> Any:
        recorder = _active.get()
        if recorder is not None:
            return recorder.record(self, args, params)
        return self.run(args, params)

    def run(self, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """Evaluate in NumPy, silently: floating-point warnings are the eager program's business, not the oracle's."""
        with np.errstate(all="ignore"):
            return self.evaluate(*args, **params)

    def __str__(self) -> str:
        return self.name


R = TypeVar("R", bound=Callable[..., Any])


class RuleTable(Generic[R]):
    """The rules of one layer, one per op, filled by a decorator.

    >>> table = RuleTable("lowering", "fusion/lower")
    """

    def __init__(self, what: str, where: str) -> None:
        self.what, self.where = what, where
        self._rules: dict[Op, R] = {}

    def rule(self, *ops: Op) -> Callable[[R], R]:
        """Register the decorated function as the rule of each op; a second rule for an op is refused."""

        def register(function: R) -> R:
            for op in ops:
                if op in self._rules:
                    raise ValueError(f"{op.name} has a {self.what} rule already")
                self._rules[op] = function
            return function

        return register

    def __contains__(self, op: Op) -> bool:
        return op in self._rules

    def get(self, op: Op) -> R | None:
        return self._rules.get(op)

    def __getitem__(self, op: Op) -> R:
        rule = self._rules.get(op)
        if rule is None:
            raise LoweringError(f"{op.name} has no {self.what} rule; add one in {self.where}/{op.family}.py")
        return rule
