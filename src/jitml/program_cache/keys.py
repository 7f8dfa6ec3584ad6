"""Keys: all that a program depends on.

The graph, constants and places in the user's code included, what it is compiled with, the processor, the versions of Python,
NumPy and LLVM, and jitml's own files, by size and time as Python knows them itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from jitml.config import CONFIG
from jitml.disk_cache import IMPORTED, DiskCache, disk_cache, stamp, stamps
from jitml.ir.encode import NotWritten, encode
from jitml.ir.graph import Graph

# What a graph goes through on its way to a program, below `jitml`; files beside these folders count, too.
COMPILER = ("codegen", "fusion", "ir", "kernels", "memory")
_HERE = os.path.dirname(os.path.dirname(__file__))


def key_of(
    graph: Graph,
    *,
    aliases: Mapping[int, int],
    strides: Mapping[int, tuple[int, ...]],
    threads: int | None,
    fastmath: frozenset[str],
    schedules: Mapping[str, Any],
) -> str | None:
    """Where the program is kept; None if it is not: stages are to be checked or shown, or something in it is this process's."""
    if CONFIG.backend != "llvm" or CONFIG.check or CONFIG.dump or schedules or disk_cache().folder is None:
        return None
    if CONFIG.tier == "quick":  # what is kept is full code
        return None
    if (made_by := versions()) is None:
        return None
    try:
        content = encode(graph)
    except NotWritten:
        return None
    from jitml.codegen.llvm.runtime.cached_programs import made_for

    options = repr((sorted(aliases.items()), sorted(strides.items()), threads, sorted(fastmath), CONFIG.num_threads))
    return DiskCache.key("program", (content, options, made_for(), made_by))


@cache
def versions(folders: tuple[str, ...] | None = COMPILER) -> str | None:
    """Those of what makes programs: Python, NumPy and its build, jitml's own files; None if these have changed under us.

    Args:
        folders: of jitml, that count; None for all.
    """
    numpy = sys.modules["numpy._core._multiarray_umath" if hasattr(np, "_core") else "numpy.core._multiarray_umath"].__file__
    found = [("numpy", *stamp(os.stat(str(numpy)))), *stamps(_HERE, folders)]
    if any(changed >= IMPORTED for *_, changed in found):  # after we were imported, perhaps: whose work is it?
        return None
    return repr((sys.version, np.__version__, [place[:-1] for place in found]))


__all__ = ["COMPILER", "key_of", "versions"]
