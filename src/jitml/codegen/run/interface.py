"""Program interfaces: what does a caller need to know of a compiled program?  Arrays in and out, and checks; none of its steps.

`describe.py` reads it off a program. It pickles, for programs that are kept on disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jitml.records import dataclass

if TYPE_CHECKING:
    from jitml.ir.ops.host import HostFunction
    from jitml.kernels.ir import Buffer, Check, Expr


@dataclass(frozen=True, slots=True)
class ProgramInterface:
    """
    Args:
        inputs, outputs: as the caller sees them, of the largest shapes.
        aliases: position of an output -> that of the input whose memory it is.
        measured: for each output but the last one and each axis, where among the extents that the last one holds its extent
            stands, or None; None if there is no such output.
        exact: name of an output whose shape follows from the inputs -> that shape, over the names of `sizes`.
        sizes: name of a size -> position of the input that holds it.
        arena: bytes of scratch.
        checks: what may fail, by the number less 1 that a run gives.
        functions: Python's that it calls.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    aliases: Mapping[int, int]
    measured: tuple[tuple[int | None, ...] | None, ...] | None
    exact: Mapping[str, tuple[Expr, ...]]
    sizes: Mapping[str, int]
    arena: int
    checks: tuple[Check, ...] = ()
    functions: tuple[HostFunction, ...] = ()


__all__ = ["ProgramInterface"]
