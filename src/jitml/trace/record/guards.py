"""Guard programs: what has to be done in Python before a compiled call?  A `Host` program: a few plain steps over numbered slots.

Arguments come first, then what the function loads by itself (`slot = globals["W"]`), arithmetic on Python numbers
(`slot = n * 2`: Python computes them, with Python's rules, and the result enters the graph where it meets an array), and
checks: everything that the compiled code takes for granted about dtypes, shapes and values. Steps run in order, so a step that
was safe behind a check stays so. A step that raises counts as a failed check: the call is traced anew, and the exception then
comes from the user's own line.

`render` writes the program as Python source, for `dispatch/entry.py` to compile.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from keyword import iskeyword
from pathlib import PurePath
from typing import Any, Protocol, TypeAlias

import numpy as np

from jitml.errors import Source
from jitml.imports.late import late_class
from jitml.interrupts import pass_on
from jitml.records import dataclass, field

Slot = int
Place: TypeAlias = tuple[int, int | None]  # position among the flattened arguments; axis, or None: the int itself


@dataclass(frozen=True, slots=True)
class Open:
    """A size that is left open: its limits, and the first place that is always equal to it (perhaps its own)."""

    low: int
    high: int
    like: Place


Opened: TypeAlias = Mapping[Place, Open]


class MembersGuard(Protocol):
    """What a class has (`class_guards.py`): it has nothing else while `space`, the class's own dict, is as it was `seen`."""

    space: dict[str, Any]
    seen: dict[str, Any]

    def are_in(self, cls: type, /) -> bool: ...


# Compared by what they say of themselves: equal ones may differ.
_BY_TEXT = (late_class("decimal", "Decimal"), date, time, PurePath)
IMMUTABLE = (late_class("fractions", "Fraction"), timedelta, *_BY_TEXT)
Array = np.ndarray[Any, Any]

IS_OF_TYPE = "type({0}) is {k}"
_EXACT = ("{0} == {k}", "repr({0}) == {k}", "{0} is {k}")  # claims that one value is this one
_FEW_PAIRS = 64  # of objects, that are compared one by one
_LONGEST = 200  # characters of a name that stands in others: n = n + n doubles it
DENSE, OWNS, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400  # bits of ndarray.flags.num
_FLAGS = {WRITEABLE: ("is read-only", "is writeable"), OWNS: ("is a view", "owns its memory")}  # without, and with


@dataclass(frozen=True, slots=True)
class HostConst:
    """An operand, or the value of a slot, that never changes."""

    value: Any


@dataclass(frozen=True, slots=True)
class Compute:
    """`slot = function(*operands)`."""

    slot: Slot
    function: Callable[..., Any]
    operands: tuple[Slot | HostConst, ...]

    def computed(self, slots: Mapping[Slot, Any]) -> Any:
        """Its value, of what other slots hold."""
        return self.function(*(o.value if isinstance(o, HostConst) else slots[o] for o in self.operands))

    def looked_at(self, slots: Mapping[Slot, Any]) -> Any:
        """The same outside of a call, which has told of floating-point errors by itself."""
        with np.errstate(all="ignore"):
            return self.computed(slots)


@dataclass(frozen=True, slots=True)
class GuardCheck:
    """A claim that the compiled code relies on: `code`, with `{0}`, `{1}` for the slots and `{k}` for the constant."""

    slots: tuple[Slot, ...]
    code: str
    constant: Any
    text: str
    source: Source | None = field(default=None, compare=False)  # the user's line that needs it

    def holds(self, *values: Any) -> bool:
        names = {f"v{n}": value for n, value in enumerate(values)} | {"k": self.constant}
        return bool(eval(self.code.format(*(f"v{n}" for n in range(len(values))), k="k"), names))


class ArrayContents:
    """What an array holds."""

    __slots__ = ("dtype", "held", "memory", "shape")

    def __init__(self, array: Array) -> None:
        self.dtype, self.shape, self.memory = array.dtype, array.shape, array.tobytes()
        self.held = array.copy() if array.dtype.hasobject else None  # no other object gets the address of one that is in it

    def are_in(self, array: Array) -> bool:
        return array.dtype == self.dtype and array.shape == self.shape and array.tobytes() == self.memory


def extent(array: Array, axis: int) -> int:
    """The length of an axis."""
    return array.shape[axis]


def _within(name: str) -> str:
    """A name as a part of another one."""
    return name if len(name) <= _LONGEST else "..."


_SYMBOLS: dict[Callable[..., Any], str] = {
    operator.add: "({} + {})", operator.sub: "({} - {})", operator.mul: "({} * {})", operator.truediv: "({} / {})",
    operator.floordiv: "({} // {})", operator.mod: "({} % {})", operator.lt: "({} < {})", operator.le: "({} <= {})",
    operator.gt: "({} > {})", operator.ge: "({} >= {})", operator.eq: "({} == {})", operator.ne: "({} != {})",
    operator.neg: "(-{})", operator.getitem: "{}[{}]", extent: "{}.shape[{}]",
}  # fmt: skip


@dataclass(slots=True)
class Host:
    """The program, grown while tracing."""

    steps: list[Compute | GuardCheck] = field(default_factory=list)
    arguments: dict[Slot, int] = field(default_factory=dict)  # slot -> position among the flattened arguments
    names: list[str] = field(default_factory=list)
    given: set[Slot] = field(default_factory=set)  # the arguments, and what is found in them
    locate: Callable[[], Source | None] = lambda: None
    _known: set[Any] = field(default_factory=set)

    def name(self, slot: Slot) -> str:
        """The user's name or expression for a slot, for reports."""
        return self.names[slot]

    def argument(self, position: int, name: str) -> Slot:
        slot = self._slot(name)
        self.arguments[slot] = position
        self.given.add(slot)
        return slot

    def compute(self, function: Callable[..., Any], operands: tuple[Slot | HostConst, ...], name: str = "") -> Slot:
        if not name:
            texts = [_within(repr(o.value) if isinstance(o, HostConst) else self.names[o]) for o in operands]
            name = _SYMBOLS.get(function, f"{function.__name__}({', '.join('{}' for _ in texts)})").format(*texts)
        slot = self._slot(name)
        self.steps.append(Compute(slot, function, operands))
        if any(type(o) is Slot and o in self.given for o in operands):
            self.given.add(slot)
        return slot

    def hold(self, value: object, name: str) -> Slot:
        """A slot that is always this very object."""
        return self.compute(unchanged, (HostConst(value),), name)

    def require(self, slot: Slot, value: object) -> None:
        """A number or other plain value is exactly this: type, value and the sign of zero."""
        kind = type(value)
        text, source = f"{self.names[slot]} is {value!r}", self.locate()
        self.require_type(slot, kind)
        if value is None:
            return
        is_float = isinstance(value, (float, complex, np.inexact))
        if isinstance(value, _BY_TEXT) or (is_float and (value != value or value == 0.0 or kind is complex)):
            self._add_check(GuardCheck((slot,), "repr({0}) == {k}", repr(value), text, source))
        elif kind is bool:
            self._add_check(GuardCheck((slot,), "{0} is {k}", value, text, source))
        else:
            self._add_check(GuardCheck((slot,), "{0} == {k}", value, text, source))

    def require_range(self, slot: Slot, low: int, high: int) -> None:
        """low <= number <= high."""
        text = f"{low} <= {self.names[slot]} <= {high}"
        self._add_check(GuardCheck((slot,), "{k}[0] <= {0} <= {k}[1]", (low, high), text))

    def require_type(self, slot: Slot, kind: type) -> None:
        """The exact type."""
        self._add_check(GuardCheck((slot,), IS_OF_TYPE, kind, f"type of {self.names[slot]} is {kind.__name__}"))

    def require_unset(self, space: dict[str, Any], name: str) -> None:
        """A module's dict has no such name, so that it means what Python means by it."""
        text = f"{name} is Python's own in {space.get('__name__', 'its module')}"
        self._add_check(GuardCheck((), f"{name!r} not in {{k}}", space, text))

    def require_types(self, slots: Sequence[Slot], kind: type) -> None:
        """The exact type, of many."""
        places = ", ".join(f"{{{n}}}" for n in range(len(slots)))
        text = f"{self.names[slots[0]]} and {len(slots) - 1} others are of type {kind.__name__}"
        self._add_check(GuardCheck(tuple(slots), f"{{{{*map(type, ({places},))}}}} == {{k}}", {kind}, text))

    def require_same(self, slot: Slot, value: object) -> None:
        """The very same object."""
        self._add_check(GuardCheck((slot,), "{0} is {k}", value, f"{self.names[slot]} is the same {type(value).__name__}"))

    def require_identity(self, first: Slot, second: Slot, same: bool) -> None:
        """Two slots hold one object, or two."""
        relation = "is" if same else "is not"
        text = f"{self.names[first]} {relation} {self.names[second]}"
        self._add_check(GuardCheck((first, second), f"{{0}} {relation} {{1}}", None, text))

    def require_alone(self, some: Sequence[Slot], others: Sequence[Slot]) -> None:
        """Some slots hold no object twice, and none that the others hold."""
        if len(some) * (len(some) + len(others)) <= _FEW_PAIRS:
            for n, first in enumerate(some):
                for second in (*some[n + 1 :], *others):
                    self.require_identity(first, second, False)
            return
        self.require_all_different(some)
        places = [f"{{{n}}}" for n in range(len(some) + len(others))]
        mine, theirs = ", ".join(places[: len(some)]), ", ".join(places[len(some) :])
        code = f"{{{{*map(id, ({mine},))}}}}.isdisjoint(map(id, ({theirs},)))"
        text = f"{self.names[some[0]]} and others are none of {len(others)} that stay as they are"
        if others:
            self._add_check(GuardCheck((*some, *others), code, True, text))

    def require_all_different(self, slots: Sequence[Slot]) -> None:
        """Slots hold no object twice."""
        text = f"{self.names[slots[0]]} and {len(slots) - 1} others are different objects"
        places = ", ".join(f"{{{n}}}" for n in range(len(slots)))
        self._add_check(GuardCheck(tuple(slots), f"len({{{{*map(id, ({places},))}}}}) == {{k}}", len(slots), text))

    def require_array(self, slot: Slot, array: Array) -> None:
        """An array of this class, dtype, shape, strides and alignment."""
        name = self.names[slot]
        self.require_type(slot, type(array))
        text = f"{name} is {array.dtype}{list(array.shape)}"
        self._add_check(GuardCheck((slot,), "({0}.dtype is {k} or {0}.dtype == {k})", array.dtype, text))
        self._add_check(GuardCheck((slot,), "{0}.shape == {k}", array.shape, f"{name} has the shape {array.shape}"))
        strides = f"{name} has the strides {array.strides}"
        if array.flags.c_contiguous and array.flags.aligned and min(array.shape, default=2) > 1:
            # Then the shape says what the strides are, and one look at the flags costs less than a tuple.
            bits = ALIGNED | DENSE
            self._add_check(GuardCheck((slot,), f"{{0}}.flags.num & {bits} == {{k}}", bits, f"{strides}, aligned"))
            return
        self._add_check(GuardCheck((slot,), "{0}.strides == {k}", array.strides, strides))
        aligned = array.flags.num & ALIGNED
        if array.size and array.dtype.itemsize > 1:
            text = f"{name} is {'' if aligned else 'not '}aligned"
            self._add_check(GuardCheck((slot,), f"{{0}}.flags.num & {ALIGNED} == {{k}}", aligned, text))

    def require_open_array(self, slot: Slot, array: Array, opened: Collection[int]) -> None:
        """An array of this class, dtype and rank, with these extents but for the open axes."""
        name = self.names[slot]
        self.require_type(slot, type(array))
        text = f"{name} is {array.dtype}, of {array.ndim} axes"
        self._add_check(GuardCheck((slot,), "({0}.dtype is {k} or {0}.dtype == {k})", array.dtype, text))
        self._add_check(GuardCheck((slot,), "{0}.ndim == {k}", array.ndim, text))
        for axis, n in enumerate(array.shape):
            if axis not in opened:
                self._add_check(GuardCheck((slot,), f"{{0}}.shape[{axis}] == {{k}}", n, f"{name}.shape[{axis}] is {n}"))

    def require_layout(self, slot: Slot, array: Array, *, is_aligned: bool) -> None:
        """An array with open axes lies in memory as this one does: in C order, or, having one axis, at these distances."""
        name = self.names[slot]
        if not array.flags.c_contiguous:
            self._add_check(GuardCheck((slot,), "{0}.strides == {k}", array.strides, f"{name} has the strides {array.strides}"))
            return
        text, bits = (f"{name} is aligned and in C order", ALIGNED | DENSE) if is_aligned else (f"{name} is in C order", DENSE)
        self._add_check(GuardCheck((slot,), f"{{0}}.flags.num & {bits} == {{k}}", bits, text))

    def require_contents(self, slot: Slot, array: Array) -> None:
        """An array holds what this one holds now."""
        text = f"{self.names[slot]} holds what it held"
        self._add_check(GuardCheck((slot,), "{k}.are_in({0})", ArrayContents(array), text))

    def require_held(self, slot: Slot, members: MembersGuard) -> None:
        """A class has these members, and no others."""
        code = "({k}.space == {k}.seen or {k}.are_in({0}))"  # the first costs a third of the second
        self._add_check(GuardCheck((slot,), code, members, f"{self.names[slot]} has the methods it had"))

    def require_equal(self, first: Slot, second: Slot) -> None:
        """Two numbers are equal."""
        text = f"{self.names[first]} is {self.names[second]}"
        self._add_check(GuardCheck((first, second), "{0} == {1}", None, text))

    def require_writeable(self, slot: Slot, holds: bool = True) -> None:
        """An array that may be written, or may not."""
        self.require_flag(slot, WRITEABLE, holds)

    def require_flag(self, slot: Slot, bit: int, holds: bool) -> None:
        """An array that has a flag, or has not."""
        text = f"{self.names[slot]} {_FLAGS[bit][holds]}"
        self._add_check(GuardCheck((slot,), f"{{0}}.flags.num & {bit} == {{k}}", bit if holds else 0, text))

    def require_same_view(self, first: Slot, second: Slot, same_view: Callable[[Array, Array], bool]) -> None:
        """Two arrays are the same memory, seen in the same way."""
        text = f"{self.names[first]} is the same memory as {self.names[second]}"
        self._add_check(GuardCheck((first, second), "{k}({0}, {1})", same_view, text))

    def require_disjoint(self, written: Sequence[Slot], others: Sequence[Slot], all_disjoint: Callable[..., bool]) -> None:
        """The written arrays overlap neither each other nor any other."""
        places = [f"{{{n}}}" for n in range(len(written) + len(others))]
        code = f"{{k}}([{', '.join(places[: len(written)])}], [{', '.join(places[len(written) :])}])"
        text = f"{', '.join(self.names[s] for s in written)} overlap no other array"
        self._add_check(GuardCheck((*written, *others), code, all_disjoint, text))

    def require_apart(self, written: Sequence[Slot], holder: Slot, apart: Callable[..., bool]) -> None:
        """The written arrays overlap nothing that an object holds."""
        code = f"{{k}}([{', '.join(f'{{{n}}}' for n in range(len(written)))}], {{{len(written)}}})"
        text = f"{', '.join(self.names[s] for s in written)} overlap nothing that {self.names[holder]} holds"
        self._add_check(GuardCheck((*written, holder), code, apart, text))

    def _add_check(self, check: GuardCheck) -> None:
        is_identity = "is" in check.code or not check.slots  # what it prints as may be long: all globals of a module
        key = (
            check.slots,
            check.code,
            type(check.constant),
            "" if is_identity else repr(check.constant),
            id(check.constant) if is_identity else 0,
        )
        if key not in self._known:
            self._known.add(key)
            self.steps.append(check)

    def _slot(self, name: str) -> Slot:
        self.names.append(name)
        return len(self.names) - 1

    def checks(self) -> tuple[GuardCheck, ...]:
        return tuple(step for step in self.steps if isinstance(step, GuardCheck))

    def summary(self) -> list[str]:
        """The claims for people: one line for all that is claimed of one value."""
        claims: dict[str, list[str]] = {}
        unset: dict[str, list[str]] = {}  # modules -> names
        for check in self.checks():
            if not check.slots:
                unset.setdefault(check.constant.get("__name__", "its module"), []).append(check.text.split()[0])
                continue
            subject, text = self.names[check.slots[0]], check.text
            if len(check.slots) == 1 and text.startswith(f"{subject} "):
                claims.setdefault(subject, []).append(text.removeprefix(f"{subject} "))
            elif text.startswith("type of "):
                claims.setdefault(subject, []).append(f"is of type {text.rsplit(' ', 1)[1]}")
            else:
                claims.setdefault(text, [])
        own = [f"{', '.join(names)}: Python's own in {module}" for module, names in unset.items()]
        return [" ".join([subject, ", ".join(said)]).strip() for subject, said in claims.items()] + own

    def needed_ints(self) -> frozenset[int]:
        """Positions of the arguments whose values matter because an int that is made of them must be exactly so."""
        makers = {step.slot: step.operands for step in self.steps if isinstance(step, Compute)}
        exact = [check for check in self.checks() if check.code == "{0} == {k}" and type(check.constant) is int]
        stack: list[Slot] = [slot for check in exact for slot in check.slots]
        found: set[int] = set()
        while stack:
            slot = stack.pop()
            if slot in self.arguments:
                found.add(self.arguments[slot])
            stack += [o for o in makers.get(slot, ()) if not isinstance(o, HostConst)]
        return frozenset(found)

    def first_failure(self, leaves: Sequence[Any]) -> str:
        """The claim that does not hold for these arguments, or the step that raises; empty if all is well."""
        claim, source = self.failing(leaves)
        return f"not so any more: {claim} ({source})" if source else claim

    def failing(self, leaves: Sequence[Any]) -> tuple[str, Source | None]:
        """The same, and where in the user's code it was claimed."""
        slots: dict[Slot, Any] = {slot: leaves[position] for slot, position in self.arguments.items()}
        for step in self.steps:
            try:
                if isinstance(step, Compute):
                    slots[step.slot] = step.looked_at(slots)
                elif not step.holds(*(slots[s] for s in step.slots)):
                    return (step.text, step.source) if step.source else (f"not so any more: {step.text}", None)
            except Exception as error:
                pass_on(error)
                name = self.names[step.slot] if isinstance(step, Compute) else step.text
                return f"{name} raises {type(error).__name__}", None
        return "", None

    def exchanged(self, leaves: Sequence[Any]) -> frozenset[str]:
        """Names of the values that are others than the program takes for granted, as far as it gets with these arguments."""
        slots: dict[Slot, Any] = {slot: leaves[position] for slot, position in self.arguments.items()}
        found: set[str] = set()
        for step in self.steps:
            try:
                if isinstance(step, Compute):
                    slots[step.slot] = step.looked_at(slots)
                elif step.code in _EXACT and not step.holds(slots[step.slots[0]]):
                    found.add(self.names[step.slots[0]])
            except Exception as error:
                pass_on(error)
                break
        return frozenset(found)

    def values(self, leaves: Sequence[Any], wanted: Iterable[Slot]) -> Mapping[Slot, Any]:
        """What some slots hold in a call that all checks let pass: only the steps run that they need."""
        needed, steps = {*wanted}, []
        for step in reversed(self.steps):
            if isinstance(step, Compute) and step.slot in needed:
                steps.append(step)
                needed.update(o for o in step.operands if not isinstance(o, HostConst))
        slots: dict[Slot, Any] = {slot: leaves[position] for slot, position in self.arguments.items()}
        for step in reversed(steps):
            slots[step.slot] = step.computed(slots)
        return slots

    def render(self, miss: str) -> tuple[list[str], dict[str, Any]]:
        """The steps as Python lines over variables `s0`, `s1`, ...; a failed check runs the statement `miss`.

        Returns the lines and the names that they refer to.
        """
        lines: list[str] = []
        names: dict[str, Any] = {}

        def constant(value: object) -> str:
            if value is None or type(value) in (bool, int, str):
                return repr(value)
            names[f"k{len(names)}"] = value
            return f"k{len(names) - 1}"

        def operand(o: Slot | HostConst) -> str:
            return constant(o.value) if isinstance(o, HostConst) else f"s{o}"

        waiting: list[str] = []

        def flush() -> None:
            if waiting:
                lines.append(f"if not ({' and '.join(waiting)}): {miss}")
                waiting.clear()

        for step in self.steps:
            if isinstance(step, GuardCheck):
                waiting.append(step.code.format(*(f"s{s}" for s in step.slots), k=constant(step.constant)))
                continue
            flush()
            operands = [operand(o) for o in step.operands]
            if step.function is unchanged:
                expression = operands[0]
            elif step.function in _SYMBOLS:
                expression = _SYMBOLS[step.function].format(*operands)
            elif step.function is getattr and _is_attribute(step.operands[1]):
                expression = f"{operands[0]}.{operands[1][1:-1]}"  # which Python finds faster
            else:
                expression = f"{constant(step.function)}({', '.join(operands)})"
            lines.append(f"s{step.slot} = {expression}")
        flush()
        return lines, names


def _is_attribute(name: Slot | HostConst) -> bool:
    """Whether `x.name` is written as it is: Python normalizes other letters."""
    return isinstance(name, HostConst) and name.value.isascii() and name.value.isidentifier() and not iskeyword(name.value)


def unchanged(value: Any) -> Any:
    """The step of a slot that always holds one object."""
    return value
