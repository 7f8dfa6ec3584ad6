"""Schedules: the primitives that say how the loops of a kernel run, as data; and the text of schedules, written and read.

A schedule is a sequence of primitives, applied one after the other to loops that are all serial at first:

    schedule k0_div {
      stage %2 in h
      parallel i0 grain 4
      vector i1
    }

`i0` names every loop over that index, `i0.1` the second of them. What a primitive does to loops, and when it may, stands in
`fusion/schedule/primitives/`. A kernel that does one thing here and another there in its arrays has primitives for each such box.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias, TypeVar, Union, get_args

from jitml.errors import ScheduleError
from jitml.records import dataclass, fields


@dataclass(frozen=True, slots=True)
class Split:
    """A loop in pieces of `size` iterations, and a loop `outer` over the pieces around it."""

    FORM: ClassVar[str] = "split {loop} {size} -> {outer}"
    loop: str
    size: int
    outer: str


@dataclass(frozen=True, slots=True)
class Fuse:
    """One loop in place of two, of which `inner` is all that `outer` holds."""

    FORM: ClassVar[str] = "fuse {outer} {inner} -> {fused}"
    outer: str
    inner: str
    fused: str


@dataclass(frozen=True, slots=True)
class Reorder:
    """Loops that hold nothing but each other, in another order, from the outermost in."""

    FORM: ClassVar[str] = "reorder {loops}"
    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """Threads take iterations, at least `grain` of them at once."""

    FORM: ClassVar[str] = "parallel {loop}[ grain {grain}]"
    loop: str
    grain: int = 1


@dataclass(frozen=True, slots=True)
class BindLoop:
    """Blocks of threads take iterations (`to` is `block`), or the threads of one block, each at least `grain` (`thread`)."""

    FORM: ClassVar[str] = "bind {loop} {to}[ grain {grain}]"
    loop: str
    to: str
    grain: int = 1


@dataclass(frozen=True, slots=True)
class Vector:
    """Iterations are the lanes of vectors."""

    FORM: ClassVar[str] = "vector {loop}"
    loop: str


@dataclass(frozen=True, slots=True)
class Unroll:
    """The body is written out for each iteration."""

    FORM: ClassVar[str] = "unroll {loop}"
    loop: str


@dataclass(frozen=True, slots=True)
class RFactor:
    """Partial results of the reductions in a loop, combined afterwards.

    In a cell of the loop's own (`rfactor j`), one for each block of iterations (`rfactor j 1024 -> jb`), one for each
    iteration of a loop across, so that blocks run outside it (`rfactor j 16 -> jb across i`), or in an array of partial results,
    one for each chunk, so that chunks run in any order (`rfactor j 65536 -> c in memory`).
    """

    FORM: ClassVar[str] = "rfactor {loop}[ {block} -> {outer}][ across {across}][ in {scope}]"
    loop: str
    block: int = 0
    outer: str = ""
    across: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """A scalar that several passes over a row need waits in memory from one to the next: in an output, or in a row of scratch."""

    FORM: ClassVar[str] = "stage {scalar} in {home}"
    scalar: str
    home: str


@dataclass(frozen=True, slots=True)
class StageAhead:
    """A scalar waits in scratch for loops that hold one point: it is made ahead of them, in loops of its own, in this order."""

    FORM: ClassVar[str] = "stage {scalar} ahead along {loops}"
    scalar: str
    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageCells:
    """The reductions of a piece of a loop wait in scratch until all of them are done; a second loop uses them."""

    FORM: ClassVar[str] = "stage cells at {outer}"
    outer: str


@dataclass(frozen=True, slots=True)
class Inline:
    """A staged scalar is computed again in each pass: the opposite of `stage`."""

    FORM: ClassVar[str] = "inline {scalar}"
    scalar: str


@dataclass(frozen=True, slots=True)
class Jam:
    """So many iterations run side by side: one loop over what they share, with the statements of each in it."""

    FORM: ClassVar[str] = "jam {loop} {times}"
    loop: str
    times: int


Primitive: TypeAlias = (
    Split | Fuse | Reorder | Parallel | BindLoop | Vector | Unroll | RFactor | Stage | StageAhead | StageCells | Inline | Jam
)
PRIMITIVES: tuple[type[Primitive], ...] = get_args(Union[Primitive])  # noqa: UP007  # of a union of classes, too


@dataclass(frozen=True, slots=True)
class Schedule:
    """The primitives for each box of a kernel."""

    boxes: tuple[tuple[Primitive, ...], ...] = ((),)

    def __str__(self) -> str:
        return show_schedule("", self)


def introduced(primitive: Primitive) -> str:
    """The name of the loop that a primitive makes; empty if it makes none."""
    match primitive:
        case Split(outer=name) | RFactor(outer=name) | Fuse(fused=name):
            return name
    return ""


# ------------------------------------------------------------------------------------------------------------- text


def show_primitive(primitive: Primitive) -> str:
    values = {f.name: getattr(primitive, f.name) for f in fields(primitive)}
    defaults = {f.name: f.default for f in fields(primitive)}

    def shown(form: str) -> str:
        return form.format(**{name: " ".join(v) if isinstance(v, tuple) else v for name, v in values.items()})

    def optional(match: re.Match[str]) -> str:
        """A part of the form in brackets, if one of its fields is not as usual."""
        names = _FIELD.findall(match[1])
        return shown(match[1]) if any(values[name] != defaults[name] for name in names) else ""

    return shown(_OPTIONAL.sub(optional, primitive.FORM))


def show_schedule(kernel: str, schedule: Schedule) -> str:
    """`schedule k0_add { vector i0 }`, a primitive a line; with a part for each box if there are several."""
    lines = [f"schedule {kernel} {{" if kernel else "schedule {"]
    for n, primitives in enumerate(schedule.boxes):
        if len(schedule.boxes) == 1:
            lines += [f"  {show_primitive(p)}" for p in primitives]
        else:
            lines += [f"  box {n} {{", *(f"    {show_primitive(p)}" for p in primitives), "  }"]
    return "\n".join([*lines, "}"])


_FIELD = re.compile(r"\{(\w+)\}")
_BOX = re.compile(r"\bbox\s+([0-9]+)\s*\{([^{}]*)\}")
_OPTIONAL = re.compile(r"\[(.*?)\]")
_NEW = r"[A-Za-z_]\w*"
_NAME = rf"(?:%[0-9]+|{_NEW}(?:[.:][0-9]{{1,9}})?)"  # `%0`, `i0`, `i0.1`; what is stored to h in a second place is `h:1`
_PATTERNS = {"int": r"[0-9]{1,18}", "str": _NAME, "tuple[str, ...]": rf"{_NAME}(?:[ \t]+{_NAME})*"}  # numbers fit 64 bits
T = TypeVar("T", bound=Primitive)


def _pattern(primitive: type[Primitive]) -> re.Pattern[str]:
    kinds = {f.name: f.type for f in fields(primitive)}
    text = _OPTIONAL.sub(r"(?:\1)?", primitive.FORM).replace(" ", r"[ \t]+")
    return re.compile(_FIELD.sub(lambda m: f"(?P<{m[1]}>{_PATTERNS[str(kinds[m[1]])]})", text), re.ASCII)


def parse_primitive(text: str) -> Primitive:
    """
    >>> parse_primitive("split i0 64 -> io")
    Split(loop='i0', size=64, outer='io')
    """
    keyword = text.split()[0] if text.split() else ""
    candidates = [p for p in PRIMITIVES if p.FORM.split()[0] == keyword]
    for primitive in sorted(candidates, key=lambda p: p.FORM, reverse=True):
        match = _pattern(primitive).fullmatch(text.strip())
        if match is not None:
            made = _made(primitive, match.groupdict())
            if (name := introduced(made)) and not re.fullmatch(_NEW, name, re.ASCII):
                raise ScheduleError(f"cannot read {text.strip()!r}: {name} is no name for a new loop")
            return made
    if candidates:
        forms = (_FIELD.sub(lambda m: m[1].upper(), p.FORM) for p in candidates)
        raise ScheduleError(f"cannot read {text.strip()!r}: it is written {' or '.join(map(repr, forms))}")
    known = dict.fromkeys(p.FORM.split()[0] for p in PRIMITIVES)
    raise ScheduleError(f"no primitive is called {keyword!r}; there are {', '.join(known)}")


def _made(primitive: type[T], found: Mapping[str, str | None]) -> T:
    values: dict[str, Any] = {}
    for field in fields(primitive):
        text = found[field.name]
        if text is not None:
            values[field.name] = int(text) if field.type == "int" else text if field.type == "str" else tuple(text.split())
    return primitive(**values)


def parse_schedule(text: str) -> Schedule:
    """A schedule from its text, with or without its head; `;` is the same as a line break.

    Raises:
        ScheduleError: a part of the text is no primitive.

    >>> parse_schedule("split i0 64 -> io; parallel io; vector i0").boxes
    ((Split(loop='i0', size=64, outer='io'), Parallel(loop='io', grain=1), Vector(loop='i0')),)
    """
    text = re.sub(r"#.*", "", text)
    head = re.fullmatch(r"\s*schedule\b[^{}]*\{(.*)\}\s*", text, re.DOTALL)
    text = head[1] if head else text
    boxes = _BOX.findall(text)
    if boxes and (rest := _BOX.sub("", text).strip()):
        raise ScheduleError(f"{rest!r} stands in no box")
    if (numbers := [number for number, _ in boxes]) != [*map(str, range(len(boxes)))]:
        raise ScheduleError(f"the boxes of a schedule stand in order, from 0 on, and not as {', '.join(numbers)}")
    parts = [box for _, box in boxes] or [text]
    return Schedule(tuple(tuple(parse_primitive(line) for line in _lines(part)) for part in parts))


def parse_schedules(given: object) -> tuple[tuple[str, Schedule], ...]:
    """The schedules of several kernels, from a mapping of texts."""
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for pair in given.items() for text in pair):
        raise TypeError(f"schedules={given!r} is no mapping from names of kernels to schedules, as texts")
    return tuple((name, parse_schedule(text)) for name, text in given.items())


def _lines(text: str) -> list[str]:
    return [line for line in re.split(r"[;\n]", text) if line.strip()]
