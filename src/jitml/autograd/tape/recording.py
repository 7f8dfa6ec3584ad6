"""Recording: how does an operation of NumPy's get on a tape?

NumPy computes it on plain values. Views of operands are known by their memory and need no rule; for what else is made of
something that is differentiated, the rule is found by the kinds of operands, and what it reads is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jitml.autograd.arguments.point import article
from jitml.autograd.tape.memory import MemoryPlace, OwnMemory, meets_itself
from jitml.autograd.tape.rules import LocalRule, NoRule, applied, is_float, rule_for
from jitml.autograd.tape.tape import Operation, Replacement, Tape, current_tape, users_place
from jitml.autograd.tape.values import Array, Taped, bare, kind_of, lose, of_slot, saved, wrapped

Function = Callable[..., Any]
_ARRAYS_OF = (np.array, np.asarray, np.asanyarray)


class MethodOf:
    """A method of arrays, as a function."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, self.__name__)(*args, **kwargs)


class AttributeOf(MethodOf):
    """An attribute of arrays, as a function."""

    __slots__ = ()

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, self.__name__)


class _Operands:
    """The arguments of an operation, taken apart: what tells its kind, and the arrays and floats.

    fixed: whether floats of Python's belong to the kind; ints do.
    """

    __slots__ = ("fixed", "key", "leaves", "plain")

    def __init__(self, fixed: bool) -> None:
        self.key: list[Any] = []
        self.leaves: list[Any] = []
        self.fixed = fixed

    def leaf(self, x: Any, raw: Any, kind: Any) -> Any:
        self.leaves.append(x)
        self.key.append(kind)
        if kind is np.ndarray:
            self.key += (raw.dtype, raw.shape)
        return raw

    def take(self, x: Any) -> Any:
        """Its plain value."""
        kind = type(x)
        if kind is Taped:
            return self.leaf(x, x.value, type(x.value))
        if kind is np.ndarray or isinstance(x, np.generic):
            return self.leaf(x, x, kind)
        if kind is float or kind is complex:
            if not self.fixed:
                return self.leaf(x, x, kind)
        elif kind is tuple or kind is list:
            self.key += (kind, len(x))
            return kind(map(self.take, x))
        elif kind is dict:
            self.key += (kind, *x)
            return {name: self.take(part) for name, part in x.items()}
        elif kind is slice:
            self.key += (kind, x.start, x.stop, x.step)
            return x
        self.key += (kind, repr(x) if kind in (float, complex) else x)
        return x

    def active(self) -> tuple[int, ...]:
        """The leaves that are differentiated."""
        return tuple(n for n, x in enumerate(self.leaves) if type(x) is Taped and x.is_active)


def _filled(x: Any, leaves: Iterator[Any], is_leaf: Callable[[Any], bool]) -> Any:
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([_filled(part, leaves, is_leaf) for part in x])
    if kind is dict:
        return {name: _filled(part, leaves, is_leaf) for name, part in x.items()}
    return next(leaves) if is_leaf(x) else x


def _is_leaf(fixed: bool) -> Callable[[Any], bool]:
    numbers = () if fixed else (float, complex)

    def is_leaf(x: Any) -> bool:
        kind = type(x)
        return kind is Taped or kind is np.ndarray or isinstance(x, np.generic) or kind in numbers

    return is_leaf


def record(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of a function of NumPy's, computed by NumPy, and recorded if something is differentiated that went into it."""
    taken = _Operands(False)
    plain = [taken.take(x) for x in args]
    named = {name: taken.take(x) for name, x in kwargs.items()}
    if function in _ARRAYS_OF and type(args[0]) in (list, tuple):
        return _array_of(args[0], function(*plain, **named))
    result = function(*plain, **named)
    operands = [x for x in taken.leaves if type(x) is Taped]
    found: list[Any] = []  # what the result's floats are, where that is known without a rule
    shown = _shown(result, operands, found)
    if None not in map(_is_known, found):
        return _refilled(shown, iter(found))
    wrt = taken.active()
    tape = operands[0].tape if operands else current_tape()
    if not wrt or tape is None:
        made = [wrapped(tape, x) if known is None else known for known, x in zip(found, _floats(result), strict=True)]
        return _refilled(shown, iter(made))
    rule, taken = _rule(function, args, kwargs, taken)
    return _refilled(shown, iter(enter(tape, rule, function, taken.leaves, taken.active(), found, _floats(result))))


def _is_known(x: Any) -> bool | None:
    return None if x is None else True


def _rule(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], taken: _Operands
) -> tuple[LocalRule | NoRule, _Operands]:
    """The rule of an operation, and its operands as it has them; floats are operands, or else belong to its kind."""
    rule: LocalRule | NoRule = NoRule("an argument cannot be told from others")
    for fixed, calls in ((False, False), (True, False), (True, True)):
        if fixed and not taken.fixed:
            taken = _Operands(True)
            for x in (*args, *kwargs.values()):
                taken.take(x)
        wrt = taken.active()
        try:
            key = (function, fixed, calls, wrt, tuple(kwargs), *taken.key)
            hash(key)
        except TypeError:
            continue
        rule = rule_for(key, _alone(function, args, kwargs, fixed), [bare(x) for x in taken.leaves], wrt, calls)
        if type(rule) is LocalRule:
            break
    return rule, taken


def _array_of(items: Any, array: Array) -> Any:
    """An array of a list in which something is on the tape."""
    tape = current_tape()
    if tape is None or array.dtype.kind not in "fc":
        return array
    made = Taped(tape, array, OwnMemory(array, None))
    for place, x in _elements(items, ()):
        if x.is_active:
            slot = x.slot
            assert made.storage is not None
            entry = Replacement(MemoryPlace(None, place or ..., False), made.storage.slot, slot, tape.new(kind_of(array)))
            tape.entries.append(entry)
            made.storage.slot = entry.output
    return made


def _elements(items: Any, place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Taped]]:
    if type(items) is Taped:
        yield place, items
    elif type(items) in (list, tuple):
        for n, x in enumerate(items):
            yield from _elements(x, (*place, n))


def _alone(function: Function, args: Sequence[Any], kwargs: dict[str, Any], fixed: bool) -> Function:
    """The operation as a function of its leaves."""
    is_leaf = _is_leaf(fixed)

    def operation(*leaves: Any) -> Any:
        remaining = iter(leaves)
        given = [_filled(x, remaining, is_leaf) for x in args]
        named = {name: _filled(x, remaining, is_leaf) for name, x in kwargs.items()}
        return applied(function, given, named)

    return operation


class _Float:
    """The place of a float in a result."""


_FLOAT = _Float()
_HARMLESS = (np.ndarray, np.generic, bool, int, str, bytes, np.dtype, type, type(None))  # nothing differentiated is in them


def _shown(result: Any, operands: Sequence[Taped], found: list[Any]) -> Any:
    """The result with places for its floats; `found` gets what those are that need no rule: operands and views of them."""
    kind = type(result)
    if kind in (tuple, list) or (isinstance(result, tuple) and hasattr(result, "_fields")):
        parts = [_shown(part, operands, found) for part in result]
        return kind(*parts) if hasattr(result, "_fields") else kind(parts)
    if kind is dict:
        return {name: _shown(part, operands, found) for name, part in result.items()}
    if kind is np.ndarray:
        for x in operands:
            if x.value is result:
                found.append(x)
                return _FLOAT
            if x.storage is not None and result.base is x.storage.buffer:
                return _view(x, result, found)
    if is_float(result):
        found.append(None)
        return _FLOAT
    if not isinstance(result, _HARMLESS) and any(x.is_active for x in operands):
        lose(article(kind.__name__))
    return result


def _view(x: Taped, result: Array, found: list[Any]) -> Any:
    """A part of an operand's memory."""
    assert x.storage is not None
    if result.dtype == x.storage.buffer.dtype and not meets_itself(result):
        found.append(Taped(x.tape, result, x.storage))
        return _FLOAT
    if result.dtype.kind not in "fc" and x.is_active:
        lose("bits")
    x.storage.frozen = "a view that is none of the same numbers side by side"
    if result.dtype.kind in "fc":
        found.append(None)
        return _FLOAT
    copy = result.copy()
    copy.flags.writeable = False
    return copy


def _refilled(shown: Any, values: Iterator[Any]) -> Any:
    if shown is _FLOAT:
        return next(values)
    kind = type(shown)
    if kind in (tuple, list):
        return kind([_refilled(part, values) for part in shown])
    if isinstance(shown, tuple) and hasattr(shown, "_fields"):
        return kind(*[_refilled(part, values) for part in shown])
    if kind is dict:
        return {name: _refilled(part, values) for name, part in shown.items()}
    return shown


def _floats(result: Any) -> list[Any]:
    kind = type(result)
    if kind in (tuple, list) or (isinstance(result, tuple) and hasattr(result, "_fields")):
        return [x for part in result for x in _floats(part)]
    if kind is dict:
        return [x for part in result.values() for x in _floats(part)]
    return [result] if is_float(result) else []


def enter(
    tape: Tape,
    rule: LocalRule | NoRule,
    function: Function,
    leaves: Sequence[Any],
    wrt: Sequence[int],
    found: Sequence[Any],
    floats: Sequence[Any],
) -> list[Any]:
    """Enter an operation on the tape; the floats of its result.

    Args:
        found: what they are, where that is known otherwise.
    """
    if type(rule) is LocalRule and not rule.is_checked:
        if _fits(rule, floats):
            rule.is_checked = True
        else:
            rule = NoRule("its result is not what it is where it is compiled")
    inputs: list[int | None] = [None] * len(leaves)
    for n in wrt:
        inputs[n] = leaves[n].slot
    moving = rule.moving if type(rule) is LocalRule else range(len(floats))
    outputs: list[int | None] = [None] * len(floats)
    made = list(found)
    for n, x in enumerate(floats):
        if made[n] is None:
            if n in moving:
                outputs[n] = slot = tape.new(kind_of(x))
                made[n] = of_slot(tape, x, slot)
            else:
                made[n] = wrapped(tape, x)
    tape.entries.append(Operation(rule, inputs, _saved(tape, rule, leaves, made), outputs, name_of(function), users_place()))
    return made


def enter_one(tape: Tape, rule: LocalRule, function: Function, leaves: Sequence[Any], value: Any) -> Any:
    """`enter`, of an operation that has one result, whose rule has been seen to fit."""
    slots: list[int | None] = [None] * len(leaves)
    for n in rule.wrt:
        slots[n] = leaves[n].slot
    if not rule.moving:
        return wrapped(tape, value)
    slot = tape.new(kind_of(value))
    made = of_slot(tape, value, slot)
    tape.entries.append(Operation(rule, slots, _saved(tape, rule, leaves, (made,)), (slot,), name_of(function), users_place()))
    return made


def _fits(rule: LocalRule, floats: Sequence[Any]) -> bool:
    avals = rule.graph.out_avals
    return len(avals) == len(floats) and all(
        a.dtype == (x.dtype if hasattr(x, "dtype") else np.dtype(type(x))) and (not a.is_static or a.shape == np.shape(x))
        for a, x in zip(avals, floats)
    )


def _saved(tape: Tape, rule: LocalRule | NoRule, leaves: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The operands and results that the derivative reads."""
    for x in leaves:
        if type(x) is np.ndarray:
            tape.met[id(x)] = x
    if type(rule) is not LocalRule:
        return []
    if tape.keeps_all:
        return [saved(tape, x) for x in (*leaves, *results)]
    kept: list[Any] = [None] * (len(leaves) + len(results))
    for n in rule.read:
        kept[n] = saved(tape, leaves[n] if n < len(leaves) else results[n - len(leaves)])
    return kept


def name_of(function: Any) -> str:
    return str(getattr(function, "__name__", function))
