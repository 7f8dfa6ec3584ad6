"""Where do two outcomes differ, as of dicts, dataclasses and objects too?"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from programs import comparing


def difference(got: Any, expected: Any, close: comparing.Close, where: str = "result") -> str | None:
    """The first difference, in words; None if there is none. Objects are compared by class and attributes."""
    return comparing.difference(_plain(got), _plain(expected), close, where)


def _plain(x: Any) -> Any:
    """Lists and tuples all the way down, with the types of what they stand for."""
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(_plain, x)]
    if isinstance(x, dict):
        return [type(x).__name__, [(type(k).__name__, k, _plain(v)) for k, v in x.items()]]
    if isinstance(x, np.ndarray) and (x.dtype.kind in "OSUMmV" or type(x) is not np.ndarray):
        return [type(x).__name__, str(x.dtype), repr(x)]
    if dataclasses.is_dataclass(x) or (hasattr(x, "__dict__") and type(x).__module__.startswith("programs")):
        names = vars(x) if hasattr(x, "__dict__") else [field.name for field in dataclasses.fields(x)]
        return [type(x).__name__, [(name, _plain(getattr(x, name))) for name in names]]
    if isinstance(x, np.generic) and x.dtype.kind == "M":
        return repr(x)
    return x
