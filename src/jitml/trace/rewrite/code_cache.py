"""Rewritten code on disk, made by an earlier process of the same code object: no source is read, parsed or rewritten.

A code object is known by all that is in it, the places of its instructions in their file included. Another text may compile to
the same one, by other comments, say: it is rewritten to what does the same.
"""

from __future__ import annotations

import marshal
import os
import sys
from functools import cache
from types import CodeType

from jitml.config import CONFIG
from jitml.disk_cache import IMPORTED, DiskCache, disk_cache, stamps

_SAME = 2  # version of the format in which equal code objects are the same bytes, whoever else holds their parts
_HERE = os.path.dirname(__file__)


def key_of(code: CodeType) -> str | None:
    """Where it is kept; None if it is not: in a file is no text of a console's, a notebook's or a generator's."""
    if CONFIG.check or disk_cache().folder is None or not os.path.isabs(code.co_filename):
        return None
    if (made_by := _made_by()) is None:
        return None
    try:
        return DiskCache.key("rewritten", (marshal.dumps(code, _SAME), made_by))
    except ValueError:  # a constant that has no bytes
        return None


def load(key: str | None) -> CodeType | None:
    """The rewritten code."""
    if key is None or (data := disk_cache().get(key)) is None:
        return None
    known: CodeType = marshal.loads(data)
    return known


def keep(key: str | None, code: CodeType) -> None:
    if key is not None:
        disk_cache().put(key, marshal.dumps(code))


@cache
def _made_by() -> str | None:
    """What has written it; None if that has changed since it was imported."""
    found = stamps(_HERE)
    if any(changed >= IMPORTED for *_, changed in found):
        return None
    return repr((sys.version, sys.flags.optimize, [place[:-1] for place in found]))
