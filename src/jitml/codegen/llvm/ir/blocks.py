"""Basic blocks of LLVM IR: how long are they, and how are long ones written as several?

LLVM selects instructions for one block at a time, which takes longer than linear time: for 29,000 lines thirteen times as long
as for the same in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

LONG_BLOCK = 1000  # instructions
_FROM = re.compile(r"%([-$\w.]+) \]")  # where a phi's value comes from
_BEGINS = re.compile(r"  [%\w]")  # an instruction, which may go on in further lines


def longest_block(body: str) -> int:
    """The instructions of the longest block."""
    return max((sum(1 for _ in lines) for inside, lines in groupby(body.splitlines(), _is_inside) if inside), default=0)


def split_blocks(body: str) -> str:
    """The same function's body with blocks cut at each `LONG_BLOCK` instructions, if one has twice as many.

    What an entry block takes of the stack stays in the first piece: anywhere else it would be taken anew each time.

    >>> split_blocks("entry:\\n  ret void")
    'entry:\\n  ret void'
    """
    if longest_block(body) < 2 * LONG_BLOCK:
        return body
    last: dict[str, str] = {}  # block -> its last piece, from which the blocks behind it are reached
    lines = list(_in_pieces(body, last))
    return "\n".join(_FROM.sub(lambda m: f"%{last.get(m[1], m[1])} ]", line) if " = phi " in line else line for line in lines)


def _in_pieces(body: str, last: dict[str, str]) -> Iterator[str]:
    label, cuts = "", 0
    for inside, group in groupby(body.splitlines(), _is_inside):
        lines = list(group)
        if not inside:
            label = next((line[:-1] for line in reversed(lines) if line.endswith(":")), label)
            yield from lines
            continue
        kept = max((n for n, line in enumerate(lines) if " = alloca " in line or " = phi " in line), default=-1)
        length = 0
        for n, line in enumerate(lines):
            if length >= LONG_BLOCK and n > kept and _BEGINS.match(line):
                cuts, length = cuts + 1, 0
                last[label] = f"{label}.more{cuts}"
                yield f"  br label %{last[label]}"
                yield f"{last[label]}:"
            length += 1
            yield line


def _is_inside(line: str) -> bool:
    return line.startswith("  ")
