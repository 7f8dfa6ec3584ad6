"""Stamps: a rule's instructions, written once for a kind of operands and then copied with other names.

`sin` of four vectors is three hundred lines, and a program may have many of them. What the rule has written for the first is
kept as a template, with a slot for all that depends on the place: fresh names, operands, the label of the block before, numbers
of metadata and constants. The next is the template filled in: the same text as if the rule had run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

from jitml.codegen.llvm.ir.builder import Builder, Operand
from jitml.codegen.llvm.ir.declarations import Declarations, mentioned
from jitml.codegen.llvm.ir.operand import mangled
from jitml.codegen.llvm.ir.outlines import Inlined, Outline, inlined
from jitml.codegen.scalar_math import RULES, emit
from jitml.ir.types import DType
from jitml.records import dataclass, replace

_PLAIN = frozenset(("add", "sub", "mul", "div"))  # one instruction: never worth a stamp
_FEW = 12  # lines: a rule that writes no more is as fast as its stamp
_MOST = 1024  # stamps
_NAMES = re.compile(r"%(?P<used>[\w.]+)|^(?P<block>[\w.]+):|(?P<numbered>!\d+\b|@constant\.\d+)|%", re.MULTILINE)
_FRESH = re.compile(r"([\w.]+)\.(\d+)")


@dataclass
class _Stamp:
    """What a rule has written, then the names of its result and the label of the block that it ends in, each with slots.

    slots: of each slot in the text, whether a fresh name's number stands there, and which one; else the place of a name among
    those given. ends: the same of what stands behind the text.
    asked: methods of the module's declarations and their arguments. What they answer is given, too.
    outline: a function that does the same; None if it gives other than one vector.
    """

    text: str
    slots: tuple[tuple[bool, int], ...]
    end: str
    ends: tuple[tuple[bool, int], ...]
    fresh: int
    asked: tuple[tuple[str, tuple[str, ...]], ...]
    result: Operand
    outline: Outline | None = None

    def press(self, b: Builder, args: Sequence[Operand], names: Sequence[str]) -> Operand:
        given = (*names, b.label, *[getattr(b.module, method)(*texts) for method, texts in self.asked])
        first = b.reserve(self.fresh)
        text = self.text % tuple([first + n if is_fresh else given[n] for is_fresh, n in self.slots])
        *results, label = (self.end % tuple([first + n if is_fresh else given[n] for is_fresh, n in self.ends])).split("\n")
        result = Operand(self.result.dtype, self.result.lanes, tuple(results))
        b.lines.append(text if self.outline is None else _either(text, self.outline, args, result, b.label, label[1:]))
        b.label = label[1:]
        return result

    def outlined(self, b: Builder, fn: str, args: Sequence[Operand]) -> Outline | None:
        """A function that does the same as the stamp, under a name that tells what it is of and how it does it."""
        if len(self.result.names) > 1 or any(len(x.names) > 1 for x in args):
            return None
        alone = b.alone()
        own = [replace(x, names=(f"%x{n}",)) for n, x in enumerate(args)]
        result = self.press(alone, own, [x.names[0] for x in own])
        body = "\n".join(["entry:", *alone.lines, f"  ret {result.type} {result.names[0]}"])
        declared = alone.module.text_for({*mentioned(body)})
        made = hashlib.blake2b(f"{body}\n{declared}".encode(), digest_size=8).hexdigest()
        name = ".".join([fn, *dict.fromkeys(mangled(x.dtype, x.lanes) for x in own), made])
        head = f"hidden {result.type} @{name}({', '.join(f'{x.type} {x.names[0]}' for x in own)})"
        return Outline(head, body, declared)


def _either(text: str, outline: Outline, args: Sequence[Operand], result: Operand, begins: str, ends: str) -> Inlined:
    passed = ", ".join(f"{x.type} {x.names[0]}" for x in args)
    call = f"  {result.names[0]} = call {result.type} @{outline.name}({passed})"
    return inlined(text, call, outline, begins, ends)


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
        return stamp.press(b, args, names)
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
    if b.lines is not lines or len(written) <= _FEW:
        _stamps[key] = None
        return result
    given, ends = [*names, label, *asked.answers], "\n".join([*result.names, f"%{b.label}"])
    stamp = _stamps[key] = _cut("\n".join(written), ends, given, len(names), fresh, b.reserve(0) - fresh, asked, result)
    if stamp is not None and (outline := stamp.outlined(b, fn, args)) is not None:
        stamp.outline = outline
        lines[begin:] = [_either("\n".join(written), outline, args, result, label, b.label)]
    return result


def _cut(
    text: str, end: str, given: list[str], operands: int, first: int, fresh: int, asked: _Questions, result: Operand
) -> _Stamp | None:
    """The stamp of a text and what stands behind it: `given` are the operands' names, the label before, and answers."""
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

    template, own = _NAMES.sub(slot, text), len(slots)
    behind = _NAMES.sub(slot, end)
    return (
        None if strange else _Stamp(template, tuple(slots[:own]), behind, tuple(slots[own:]), fresh, tuple(asked.asked), result)
    )


__all__ = ["emit_stamped"]
