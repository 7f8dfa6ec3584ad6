"""Stamps: a rule's instructions, written once for a kind of operands and then copied with other names.

`sin` of four vectors is three hundred lines, and a program may have many of them. What the rule has written for the first is
kept as a template, with a slot for all that depends on the place: fresh names, operands, the label of the block before, numbers
of metadata and constants. The next is the template filled in: the same text as if the rule had run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

from jitml.codegen.llvm.ir.builder import Builder, Operand
from jitml.codegen.llvm.ir.declarations import Declarations
from jitml.codegen.scalar_math import RULES, emit
from jitml.ir.types import DType
from jitml.records import dataclass

_PLAIN = frozenset(("add", "sub", "mul", "div"))  # one instruction: never worth a stamp
_FEW = 12  # lines: a rule that writes no more is as fast as its stamp
_MOST = 1024  # stamps
_NAMES = re.compile(r"%(?P<used>[\w.]+)|^(?P<block>[\w.]+):|(?P<numbered>!\d+\b|@constant\.\d+)|%", re.MULTILINE)
_FRESH = re.compile(r"([\w.]+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What a rule has written, then the names of its result, then the label of the block that it ends in.

    slots: of each, whether a fresh name's number stands there, and which one; else the place of a name among those given.
    asked: methods of the module's declarations and their arguments. What they answer is given, too.
    """

    text: str
    slots: tuple[tuple[bool, int], ...]
    fresh: int
    asked: tuple[tuple[str, tuple[str, ...]], ...]
    result: Operand

    def press(self, b: Builder, names: Sequence[str]) -> Operand:
        given = (*names, b.label, *[getattr(b.module, method)(*texts) for method, texts in self.asked])
        first = b.reserve(self.fresh)
        filled = self.text % tuple([first + n if is_fresh else given[n] for is_fresh, n in self.slots])
        *lines, label = filled.split("\n")
        count = len(self.result.names)
        b.lines += lines[:-count]
        b.label = label[1:]
        return Operand(self.result.dtype, self.result.lanes, tuple(lines[-count:]))


_stamps: dict[Hashable, _Stamp | None] = {}  # None: of no use, or with names that nothing here accounts for


class _Questions:
    """Stands for the declarations of a module: what is asked of them, and what they answer."""

    def __init__(self, module: Declarations) -> None:
        self._module = module
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.answers: list[str] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def ask(*texts: str) -> Any:
            answer = getattr(self._module, method)(*texts)
            self.asked.append((method, texts))
            self.answers.append(answer)
            return answer

        return ask


def emit_stamped(b: Builder, fn: str, args: Sequence[Operand], dtype: DType) -> Operand:
    """`scalar_math.emit`, which runs a rule once for each kind of operands.

    Raises:
        LoweringError: no rule bears that name.
    """
    names = [name for x in args for name in x.names]
    has_rule = fn in RULES or fn == "convert"  # and is no function of a user's, which is a call
    if not has_rule or fn in _PLAIN or not all(name.startswith("%") for name in names):  # rules look at constants
        return emit(b, fn, args, dtype)
    kinds = tuple([(x.dtype, x.lanes, len(x.names)) for x in args])
    key = (fn, dtype, kinds, b.settings, tuple(map(names.index, names)) if len(names) > len({*names}) else ())
    if (stamp := _stamps.get(key)) is not None:
        return stamp.press(b, names)
    if key in _stamps or len(_stamps) >= _MOST:
        return emit(b, fn, args, dtype)
    module, lines, begin, label, fresh = b.module, b.lines, len(b.lines), b.label, b.reserve(0)
    asked = _Questions(module)
    b.module = cast(Declarations, asked)
    try:
        result = emit(b, fn, args, dtype)
    finally:
        b.module = module
    written = lines[begin:]
    if b.lines is lines and len(written) > _FEW:
        text = "\n".join([*written, *result.names, f"%{b.label}"])
        _stamps[key] = _cut(text, [*names, label, *asked.answers], len(names), fresh, b.reserve(0) - fresh, asked, result)
    else:
        _stamps[key] = None
    return result


def _cut(text: str, given: list[str], operands: int, first: int, fresh: int, asked: _Questions, result: Operand) -> _Stamp | None:
    """The stamp of a text: `given` are the operands' names, the label before, and answers."""
    slots: list[tuple[bool, int]] = []
    strange: list[str] = []

    def slot(match: re.Match[str]) -> str:
        name = match["used"] or match["block"] or match["numbered"]
        made = _FRESH.fullmatch(name or "")
        if match["numbered"] is None and made is not None and first <= int(made[2]) < first + fresh:
            slots.append((True, int(made[2]) - first))
            return f"%%{made[1]}.%d" if match["used"] else f"{made[1]}.%d:"
        if match["used"] and f"%{name}" in given[:operands]:
            slots.append((False, given.index(f"%{name}")))
            return "%s"
        if match["used"] and name == given[operands]:
            slots.append((False, operands))
            return "%%%s"
        if match["numbered"] and name in given[operands + 1 :]:
            slots.append((False, given.index(name, operands + 1)))
            return "%s"
        strange.append(match[0])
        return match[0]

    template = _NAMES.sub(slot, text)
    return None if strange else _Stamp(template, tuple(slots), fresh, tuple(asked.asked), result)


__all__ = ["emit_stamped"]
