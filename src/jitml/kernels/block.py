"""Blocks in the making: what do those who write kernels write into?"""

from __future__ import annotations

from jitml.kernels.ir import Alloc, Buffer, Stmt
from jitml.records import dataclass, field


@dataclass(slots=True)
class Block:
    """Statements in the making, to be the body of the statement that holds them; `scratch` lives as long as they run."""

    statements: list[Stmt] = field(default_factory=list)
    scratch: list[Buffer] = field(default_factory=list)

    @property
    def body(self) -> tuple[Stmt, ...]:
        body = tuple(self.statements)
        for buffer in reversed(self.scratch):
            body = (Alloc(buffer, body),)
        return body
