"""Kept guard programs: do they hold in this process?  Reading one runs it.

A guard program loads what the function reads from outside, and compares it. Where it compares by identity, this process has other
objects than the one that has written it. What a load gives here, if it can be told to be the same (`identities.py`), is what
later calls are compared with. `written.py` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from jitml.errors import Source, forget_frames
from jitml.interrupts import pass_on
from jitml.program_cache.identities import Identity, NotKept, found, of_code, of_function, of_library
from jitml.trace.record.guards import Compute, GuardCheck, Host, HostConst, Slot

# Of a variant, what is kept beside its guards.
PARTS = ("graph", "entries", "aliases", "strides", "copied", "numbers", "out_specs", "results")


class KeptStep(NamedTuple):
    """A `Compute`, or a `GuardCheck` if it has a code.

    Args:
        slots: the one that it fills, or those that it looks at.
        function: where that is.
        operands: what it is given: slots and identities; of a check, what it compares with.
    """

    slots: tuple[Slot, ...]
    function: tuple[str, str] = ("", "")
    operands: tuple[Slot | Identity, ...] = ()
    code: str = ""
    text: str = ""
    source: Source | None = None


class KeptGuards(NamedTuple):
    """A guard program.

    Args:
        arguments, names, given: as `Host`'s.
        contents: what libraries must have: module, name and identity of each.
    """

    arguments: dict[Slot, int]
    names: tuple[str, ...]
    given: frozenset[Slot]
    steps: tuple[KeptStep, ...]
    contents: tuple[tuple[str, str, Identity], ...]


class _Other(Exception):
    """Something is not what it was."""


def read(kept: KeptGuards, function: FunctionType, leaves: Sequence[Any]) -> Host | None:
    """The guard program of a function, if it holds in this process, for this call."""
    try:
        if any(of_library(found(home, name)) != identity for home, name, identity in kept.contents):
            return None
        return _GuardReader(function, kept, leaves).host
    except (_Other, NotKept) as error:
        forget_frames(error)
        return None


class _GuardReader:
    def __init__(self, function: FunctionType, kept: KeptGuards, leaves: Sequence[Any]) -> None:
        self._functions = [function]
        self._slots: dict[Slot, Any] = {slot: leaves[position] for slot, position in kept.arguments.items()}
        self.host = Host(arguments=kept.arguments, names=list(kept.names), given=set(kept.given))
        for step in kept.steps:
            self.host.steps.append(self._check(step) if step.code else self._compute(step))

    def _compute(self, kept: KeptStep) -> Compute:
        operands = tuple(o if type(o) is int else HostConst(self._constant(o)) for o in kept.operands)
        (slot,) = kept.slots
        step = Compute(slot, found(*kept.function), operands)
        with _other_if_it_raises():
            self._slots[slot] = step.looked_at(self._slots)
        return step

    def _check(self, kept: KeptStep) -> GuardCheck:
        values = [self._slots[slot] for slot in kept.slots]
        (operand,) = kept.operands
        constant = self._constant(operand, values[0] if values else None)
        check = GuardCheck(kept.slots, kept.code, constant, kept.text, kept.source)
        with _other_if_it_raises():
            holds = check.holds(*values)
        return check if holds else self._is_other(kept.text)

    def _constant(self, identity: Any, there: Any = None) -> Any:
        """What has this identity; `there` is what is to have it, where only a load tells."""
        match identity:
            case ("plain", value):
                return value
            case ("type" | "library", str(home), str(name), known):
                x = found(home, name)
                return x if of_library(x) == known else self._is_other(name)
            case ("code", known):
                return there if type(there) is CodeType and of_code(there) == known else self._is_other("code")
            case ("new function", known):
                if type(there) is not FunctionType or of_function(there) != known:
                    self._is_other("a function")
                self._functions.append(there)
                return there
            case ("function", int(n)):
                return self._functions[n]
            case ("globals", int(n)):
                return self._functions[n].__globals__
            case ("cell", int(n), int(m)):
                return (self._functions[n].__closure__ or ())[m]
            case ("module", name):
                return sys.modules.get(name)
        return self._is_other(str(identity))

    @staticmethod
    def _is_other(what: str) -> Any:
        raise _Other(what)


@contextmanager
def _other_if_it_raises() -> Iterator[None]:
    """What a guard program loads and compares may raise anything: what it looks for is not there."""
    try:
        yield
    except Exception as error:
        pass_on(error)
        raise _Other from None


__all__ = ["PARTS", "KeptGuards", "KeptStep", "read"]
