"""Memory report: what did memory planning do?  The program's text with every place, and the planner's account in words."""

from __future__ import annotations

from jitml.kernels.text.printer import show_program
from jitml.memory.program import Place, Program


def show_place(place: Place) -> str:
    """`arena 128`, `input 0`"""
    return f"arena {place.offset}" if place.space == "arena" else f"{place.space} {place.index}"


def show(program: Program, *, sources: bool = False) -> str:
    """The kernel program with the place of each buffer as a comment, so that it parses as a kernel program."""
    notes = {name: show_place(place) for name, place in program.places.items()}
    text = show_program(program.kernels, notes=notes, sources=sources)
    return f"# arena: {program.arena_size} bytes\n{text}"


def bytes_text(n: int) -> str:
    """A number of bytes for people.

    >>> [bytes_text(n) for n in (100, 65536, 3 << 20)]
    ['100 B', '64.0 KiB', '3.0 MiB']
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


def describe(program: Program) -> str:
    """The planner's report as lines of text."""
    report = program.report
    lines = [f"arena {bytes_text(report.arena)}; without reuse {bytes_text(report.total)}"]
    if report.arena > report.lower_bound:
        lines.append(f"  no plan could need less than {bytes_text(report.lower_bound)}, the peak of live bytes")
    elif report.arena:
        lines.append("  that is the peak of live bytes: no plan could need less")
    for written, read, step in report.in_place:
        lines.append(f"  {written} takes the storage of {read} (step {step})")
    for name in report.copies:
        lines.append(f"  {name} is copied: its contents are still needed, or are read after they would be overwritten")
    return "\n".join(lines)
