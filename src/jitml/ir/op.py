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
from jitml.ir.types import Aval, DType
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


def is_total(name: str) -> bool:
    """Whether the op of a name may be computed in vain."""
    return name not in OPS or OPS[name].is_total


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
        is_total: it ends whatever it is given, so that it may be computed in vain.
        work: of one element of a pointwise op, in simple vector operations, where no table says (`kernels/target.py`).
    """

    name: str
    family: str
    aval: AvalRule = field(repr=False)
    evaluate: Callable[..., Any] = field(repr=False)
    is_commutative: bool = False
    has_effect: bool = False
    has_bodies: bool = False
    is_total: bool = True
    work: float = 1.0

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


@dataclass(frozen=True, slots=True)
class ScalarCode:
    """LLVM IR of a function of numbers.

    Args:
        entry: the function's name in it. It takes numbers and returns one; a bool is an `i8`.
        text: definitions and declarations, without target and attributes. It calls nothing but the C library's mathematics.
    """

    entry: str
    text: str
    operands: tuple[DType, ...]
    result: DType


@dataclass(frozen=True, eq=False)
class UserFunction(Op):
    """The op of such a function."""

    code: ScalarCode | None = field(default=None, repr=False)


R = TypeVar("R", bound=Callable[..., Any])


class RuleTable(Generic[R]):
    """The rules of one layer, one per op, filled by a decorator.

    >>> table = RuleTable("lowering", "fusion/lower")
    """

    def __init__(self, what: str, where: str) -> None:
        self.what, self.where = what, where
        self._rules: dict[Op, R] = {}
        self._families: dict[str, Callable[[Op], R | None]] = {}

    def rule(self, *ops: Op) -> Callable[[R], R]:
        """Register the decorated function as the rule of each op; a second rule for an op is refused."""

        def register(function: R) -> R:
            for op in ops:
                if op in self._rules:
                    raise ValueError(f"{op.name} has a {self.what} rule already")
                self._rules[op] = function
            return function

        return register

    def family(self, *families: str) -> Callable[[Callable[[Op], R | None]], Callable[[Op], R | None]]:
        """Let the decorated function make the rule of each op of these families that has none of its own, if it makes one."""

        def register(make: Callable[[Op], R | None]) -> Callable[[Op], R | None]:
            self._families |= dict.fromkeys(families, make)
            return make

        return register

    def __contains__(self, op: Op) -> bool:
        return self.get(op) is not None

    def get(self, op: Op) -> R | None:
        rule = self._rules.get(op)
        if rule is None and (make := self._families.get(op.family)) is not None and (rule := make(op)) is not None:
            self._rules[op] = rule
        return rule

    def __getitem__(self, op: Op) -> R:
        rule = self.get(op)
        if rule is None:
            raise LoweringError(f"{op.name} has no {self.what} rule; add one in {self.where}/{op.family}.py")
        return rule
