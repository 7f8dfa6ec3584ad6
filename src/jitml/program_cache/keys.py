"""Keys: all that a program depends on.

The graph, constants and places in the user's code included, what it is compiled with, the processor, the versions of Python,
NumPy and LLVM, and jitml's own files, by size and time as Python knows them itself.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from jitml.config import CONFIG
from jitml.disk_cache import DiskCache, disk_cache
from jitml.ir.encode import NotWritten, encode
from jitml.ir.graph import Graph

# What a graph goes through on its way to a program, below `jitml`; files beside these folders count, too.
COMPILER = ("codegen", "fusion", "ir", "kernels", "memory")
_HERE = os.path.dirname(os.path.dirname(__file__))
_BEGUN = time.time_ns()


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
    if (made_by := versions()) is None:
        return None
    try:
        content = encode(graph)
    except NotWritten:
        return None
    from jitml.codegen.llvm.runtime.kept import made_for

    options = repr((sorted(aliases.items()), sorted(strides.items()), threads, sorted(fastmath), CONFIG.num_threads))
    return DiskCache.key("program", (content, options, made_for(), made_by))


@cache
def versions() -> str | None:
    """Those of what makes programs: Python, NumPy and its build, jitml's own files; None if these have changed under us."""
    numpy = sys.modules["numpy._core._multiarray_umath" if hasattr(np, "_core") else "numpy.core._multiarray_umath"].__file__
    stamps = [("numpy", *_stamp(os.stat(str(numpy)))), *_stamps(_HERE, COMPILER)]
    if any(changed >= _BEGUN for *_, changed in stamps):  # after we were imported, perhaps: whose work is it?
        return None
    return repr((sys.version, np.__version__, [stamp[:-1] for stamp in stamps]))


def _stamps(folder: str, inner: tuple[str, ...] | None = None) -> Iterator[tuple[str, int, int, int]]:
    """Size and times of each source file in a folder, and in the folders in it, of which `inner` names those that count."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                yield entry.name, *_stamp(entry.stat())
            elif entry.is_dir() and (inner is None or entry.name in inner) and entry.name != "__pycache__":
                yield from _stamps(entry.path)


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    """Bytes, when the text was changed, and when anything of the file was."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


__all__ = ["COMPILER", "key_of", "versions"]
