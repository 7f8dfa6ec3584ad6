"""Translation units: the text of a program's functions, in the parts that LLVM gets; with the checks and calls in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from jitml.codegen.llvm.ir.blocks import LONG_BLOCK, longest_block, split_blocks
from jitml.codegen.llvm.ir.builder import Builder
from jitml.codegen.llvm.ir.conventions import EFFORTS, Effort, HostStep, ModulePart
from jitml.codegen.llvm.ir.cpu import Cpu
from jitml.codegen.llvm.ir.declarations import Declarations, mentioned
from jitml.codegen.llvm.ir.outlines import Outline, outlined
from jitml.kernels.ir import Check, Kernel, walk
from jitml.kernels.text.nameless import nameless
from jitml.records import dataclass, field

SHORT_PART = 60  # lines up to which a module of their own costs more than the usual effort for them: half a millisecond
LONG_PART = 1000  # lines from which on LLVM may begin with what there is of a program: some 25 ms of its work


@dataclass
class KnownKernel:
    """A kernel and its function; its text without the names that the program gives it."""

    kernel: Kernel
    symbol: str

    @cached_property
    def text(self) -> str:
        return nameless(self.kernel)


class Definition(NamedTuple):
    """A function as it is written out, and with calls for long operations: of the outlines, if there are any."""

    text: str
    short: str
    outlines: tuple[Outline, ...] = ()


@dataclass
class Unit:
    """What all functions of a program share.

    Args:
        threads: how many the program may use; others can run it too.
        finished: is given each part but the last ones as soon as it is written. A function comes after those that it calls.
        functions: definitions that are in no part yet, by LLVM's effort for them.
        heads: what other parts need to know of a function, by its name.
        loops: how many loops of the entry are around the step that is being written.
        kernels: those that have a function, by what that depends on besides their text.
        is_long: whether the program looks from time to time whether it is to end.
    """

    cpu: Cpu
    fastmath: str = ""
    threads: int = 8
    finished: Callable[[ModulePart], None] | None = None
    declarations: Declarations = field(default_factory=Declarations)
    checks: list[Check] = field(default_factory=list)
    hosts: list[HostStep] = field(default_factory=list)
    functions: dict[Effort, list[Definition]] = field(default_factory=lambda: {effort: [] for effort in EFFORTS})
    heads: dict[str, str] = field(default_factory=dict)
    parts: list[ModulePart] = field(default_factory=list)
    loops: int = 0
    kernels: dict[Hashable, list[KnownKernel]] = field(default_factory=dict)
    is_long: bool = False

    def add(self, head: str, body: str | list[str], effort: Effort | None = None) -> None:
        """Take a function in, `i64 @name(ptr %x)` and its blocks, or their lines; without an effort it has no loops that matter.

        What runs once in a call of the program is worth the least: LLVM's work takes a thousand times as long as it saves. So are
        long blocks: scheduling and allocating them takes most of the time, and gains nothing. Loops with accumulators or short
        bodies run two to three times as long so (bench/results/code_generation.md).
        """
        lines = [body] if isinstance(body, str) else body
        body = "\n".join(lines)
        if effort is None:
            effort = "usual" if self.loops else "least"
        if effort == "usual" and longest_block(body) >= LONG_BLOCK:
            effort = "least"
        if effort == "least":
            body = split_blocks(body)
        short, outlines = outlined(lines) if effort != "least" else (body, ())
        written, in_short = (f"define hidden {head} #0 {{\n{x}\n}}" for x in (body, short))
        self.functions[effort].append(Definition(written, in_short, outlines))
        self.heads[mentioned(head)[0]] = f"declare hidden {head}"
        if _lines(self.functions[effort]) >= LONG_PART:
            part = self._part(effort)
            if self.finished is not None:
                self.finished(part)

    def finish(self) -> tuple[ModulePart, ...]:
        """All parts, once every function has been added."""
        usual, least = self.functions["usual"], self.functions["least"]
        if usual and _lines(least) <= SHORT_PART:
            usual += least
            least.clear()
        for effort in EFFORTS:
            if self.functions[effort]:
                self._part(effort)
        shared = self.declarations.shared(*self._around)
        head, tail = self._around
        modules = [f"{head}\n\n{text}\n\n{tail}\n" for text in self.declarations.modules.values()]
        return (
            *self.parts,
            *(ModulePart("shared", text) for text in shared),
            *(ModulePart("vectorizer", text) for text in modules),
        )

    def _part(self, effort: Effort) -> ModulePart:
        """Make a part of the functions that are in none yet."""
        functions = self.functions[effort]
        outlines = dict.fromkeys(outline for function in functions for outline in function.outlines)
        text = self._text([function.text for function in functions])
        short = self._text([function.short for function in functions], outlines) if outlines else ""
        self.parts.append(ModulePart(effort, text, short, tuple(outline.module(*self._around) for outline in outlines)))
        self.functions[effort] = []
        return self.parts[-1]

    def _text(self, functions: Sequence[str], outlines: Iterable[Outline] = ()) -> str:
        """A module of these functions."""
        # A definition begins with its own name.
        own = {mentioned(text.partition("(")[0])[0] for text in functions}
        names = {name for text in functions for name in mentioned(text)}
        elsewhere = [head for name, head in self.heads.items() if name in names - own]
        elsewhere += [f"declare {outline.head}" for outline in outlines]
        head, tail = self._around
        return "\n\n".join([head, *functions, tail, "\n".join([*elsewhere, self.declarations.text_for(names)])]) + "\n"

    @property
    def _around(self) -> tuple[str, str]:
        """The first and the last lines of a module."""
        return f'target triple = "{self.cpu.triple}"', f"attributes #0 = {{ {attributes(self.cpu)} }}"

    def twin(self, kernel: Kernel, signature: Hashable, symbol: str) -> str | None:
        """The function of an earlier kernel that is the same but for its name and those of its buffers.

        Layers that a loop of Python's writes one by one are such. Checks are not: each says where it stands.

        Args:
            signature: what the function depends on besides the kernel's text.
            symbol: the function's name if there is none.
        """
        new, known = KnownKernel(kernel, symbol), self.kernels.setdefault(signature, [])
        if known and any(isinstance(stmt, Check) for stmt in walk(kernel.body)):
            return None
        twin = next((other.symbol for other in known if other.text == new.text), None)
        if twin is None:
            known.append(new)
        return twin

    def check_number(self, check: Check) -> int:
        """Position among the program's checks; a statement that is written twice (main loop and tail) has one."""
        for number, known in enumerate(self.checks):
            if known is check:
                return number
        self.checks.append(check)
        return len(self.checks) - 1

    def builder(self, effort: Effort = "usual") -> Builder:
        quiet = self.cpu.is_x86 and self.cpu.has_fma  # what has FMA has AVX, and with it 32 ways to compare
        return Builder(
            self.declarations,
            has_fma=self.cpu.has_fma,
            compares_quietly=quiet,
            is_optimized=effort == "optimizer",
            half_lanes=self.cpu.vector_bytes // 4,
            fastmath=self.fastmath,
        )


def _lines(functions: Sequence[Definition]) -> int:
    return sum(function.text.count("\n") for function in functions)


def attributes(cpu: Cpu) -> str:
    """The attribute group of every function."""
    parts = ["nounwind", f'"target-cpu"="{cpu.cpu}"', f'"prefer-vector-width"="{8 * cpu.vector_bytes}"']
    if cpu.features:
        parts.append(f'"target-features"="{cpu.features}"')
    return " ".join(parts)
