"""What do the functions of a program share?  Declarations, checks, calls of Python; a module for each effort they are worth."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from jitml.codegen.llvm.builder import Builder
from jitml.codegen.llvm.declarations import Declarations
from jitml.codegen.target import Target
from jitml.errors import Source
from jitml.fusion.loops import Buffer, Check, Kernel, walk
from jitml.fusion.printer import show
from jitml.ir.ops.host import HostFunction

LONG_BLOCK = 1000  # instructions

# What LLVM does for a function: the least; select, schedule and allocate with care; optimise it before that.
Effort: TypeAlias = Literal["least", "usual", "optimizer"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


@dataclass(frozen=True, slots=True)
class HostStep:
    """A call into Python, which the runtime makes: what, and how the memory looks that it is given."""

    function: HostFunction
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    source: Source | None


@dataclass
class Known:
    """A kernel and its function; its text without the names that the program gives it."""

    kernel: Kernel
    symbol: str

    @cached_property
    def text(self) -> str:
        names = {b.name: f"{position}" for position, b in enumerate(self.kernel.params)}
        text = show(replace(self.kernel, name="", params=(), updates={}))
        return re.sub(r"\w+(?=\[)", lambda name: names.get(name[0], name[0]), text)


@dataclass
class Unit:
    """What all functions of a program share.

    Args:
        threads: how many the program may use; others can run it too.
        functions: their definitions, by LLVM's effort for them: a module each.
        heads: what the other modules need to know of them.
        loops: how many loops of the entry are around the step that is being written.
        kernels: those that have a function, by what that depends on besides their text.
    """

    target: Target
    fastmath: str = ""
    threads: int = 8
    declarations: Declarations = field(default_factory=Declarations)
    checks: list[Check] = field(default_factory=list)
    hosts: list[HostStep] = field(default_factory=list)
    functions: dict[Effort, list[str]] = field(default_factory=lambda: {effort: [] for effort in EFFORTS})
    heads: dict[Effort, list[str]] = field(default_factory=lambda: {effort: [] for effort in EFFORTS})
    loops: int = 0
    kernels: dict[Hashable, list[Known]] = field(default_factory=dict)

    def add(self, head: str, body: str, effort: Effort | None = None) -> None:
        """Take a function in, `i64 @name(ptr %x)` and its blocks; without an effort it has no loops that matter.

        What runs once in a call of the program is worth the least: LLVM's work takes a thousand times as long as it saves. So are
        long blocks: scheduling and allocating them takes most of the time, and gains nothing. Loops with accumulators or short
        bodies run two to three times as long so (bench/results/code_generation.md).
        """
        if effort is None:
            effort = "usual" if self.loops else "least"
        if effort == "usual" and _longest_block(body) >= LONG_BLOCK:
            effort = "least"
        self.functions[effort].append(f"define hidden {head} #0 {{\n{body}\n}}")
        self.heads[effort].append(f"declare hidden {head}")

    def twin(self, kernel: Kernel, signature: Hashable, symbol: str) -> str | None:
        """The function of an earlier kernel that is the same but for its name and those of its buffers.

        Layers that a loop of Python's writes one by one are such. Checks are not: each says where it stands.

        Args:
            signature: what the function depends on besides the kernel's text.
            symbol: the function's name if there is none.
        """
        new, known = Known(kernel, symbol), self.kernels.setdefault(signature, [])
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
        quiet = self.target.is_x86 and self.target.has_fma  # what has FMA has AVX, and with it 32 ways to compare
        return Builder(
            self.declarations,
            has_fma=self.target.has_fma,
            compares_quietly=quiet,
            is_optimized=effort == "optimizer",
            half_lanes=self.target.vector_bytes // 4,
            fastmath=self.fastmath,
        )


def _longest_block(body: str) -> int:
    longest = block = 0
    for line in body.splitlines():
        block = block + 1 if line.startswith("  ") else 0
        longest = max(longest, block)
    return longest
