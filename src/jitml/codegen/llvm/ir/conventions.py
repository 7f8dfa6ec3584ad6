"""Conventions between emitted code and the runtime: names of functions, words of records, status codes; parts of a module.

What loads a program that an earlier process has compiled needs these, and nothing else of what writes LLVM IR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from jitml.records import dataclass

if TYPE_CHECKING:
    from jitml.errors import Source
    from jitml.ir.ops.host import HostFunction
    from jitml.kernels.ir import Buffer

# What a program exports: its entry, and what says the shapes of results that follow from the inputs.
ENTRY, SHAPES = "jitml_run", "jitml_shapes"

# What the runtime supplies.
CLEAR = "jitml_arena_clear"  # (start, bytes): zeros in the arena, from the system where they are whole pages
ASIDE = ("jitml_arena_put_aside", "jitml_arena_bring_back")
CALLS = "jitml_host_calls"
LOOK = "jitml_look"
PARALLEL_FOR, PARALLEL_FOR_WATCHED = "jitml_parallel_for", "jitml_parallel_for_watched"

# What functions of a program return, beside 0 and 1 + the number of a check that has failed.
NO_MEMORY = -1  # the scratch could not be had
RAISED = -2  # a call of Python has raised: the exception is the thread's
HEARD = -3  # floating-point errors came up that plain Python shall tell of (the native call alone returns it)

# The record that functions of a program are handed as `error`, in words of 64 bits: four values of a failed check, then these.
DUE = 4  # where the word lies that is not 0 when it is time to look
STOPPED = 5  # whether the program is to end
OWNER = 6  # the thread that called it, which is the one to look
ERROR_WORDS = 7

# What LLVM does for a function: the least; select, schedule and allocate with care; optimise it before that.
Effort: TypeAlias = Literal["least", "usual", "optimizer"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


class ModulePart(NamedTuple):
    """LLVM IR of some of a program's functions, all worth the same effort, or of one that other programs have: a module.

    A user's function is one of those that others have, and LLVM finds vectors in it (`vectorizer`).

    Args:
        short: the same with calls for long operations, for quick code; "" if it has none.
        outlines: the modules of the functions that it calls then.
    """

    effort: Effort | Literal["shared", "vectorizer"]
    text: str
    short: str = ""
    outlines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostStep:
    """A call into Python, which the runtime makes: what, and how the memory looks that it is given."""

    function: HostFunction
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    source: Source | None
