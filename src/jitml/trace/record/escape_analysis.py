"""Escape analysis of traced values: does what leaves a trace as a constant hold a value that only the program computes?

Results, changed containers and attributes are taken apart down to arrays and numbers. What is not taken apart (a class made
inside, a text of the user's own class with attributes, the rest of a registered container) is the same object at every call: a
stand-in inside it would be dead, and come out without a word.
"""

from __future__ import annotations

import gc
import sys
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np
import optree

from jitml.trace.record.pytree import NAMESPACE
from jitml.trace.record.recording import home_of, unsupported

_MOST_LOOKED_AT = 10_000
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range)
_OUTSIDE = (ModuleType, np.ndarray, np.generic, np.dtype)


def require_untraced(leaf: Any, what: str) -> None:
    """Refuse what is handed out as it is if it holds a traced value."""
    if type(leaf) not in _PLAIN and _holds_traced([leaf]):
        _refuse(what, leaf)


def require_untraced_rest(x: Any, what: str) -> None:
    """The same of what a container of a registered kind knows besides its children."""
    if home_of(type(x)) in ("builtins", "collections") or home_of(type(x)).startswith("jitml.") or isinstance(x, tuple):
        return
    rest = optree.tree_flatten_one_level(x, namespace=NAMESPACE)[1]
    if _holds_traced([rest]):
        _refuse(what, x)


def _refuse(what: str, x: Any) -> NoReturn:
    kind: Any = type(x)
    unsupported(
        f"{what} a {kind.__qualname__} with a value in it that only the compiled program computes",
        "Return that value itself, in a tuple, list, dict or dataclass.",
    )


def is_stand_in(x: Any) -> bool:
    """Whether it is of a trace, and of no use to anybody else."""
    return home_of(type(x)).startswith("jitml.trace.")


def holds_stand_in(x: Any) -> bool:
    """The same of what something holds, as a tuple, an object or a closure does; a jitted function may keep traces."""
    return _holds_traced([x], looks_into_ours=False)


def _holds_traced(waiting: list[Any], *, looks_into_ours: bool = True) -> bool:
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_LOOKED_AT:
        x = waiting.pop()
        if is_stand_in(x):
            return True
        if type(x) in _PLAIN or isinstance(x, _OUTSIDE) or id(x) in seen:
            continue
        if not looks_into_ours and home_of(type(x)).startswith("jitml."):
            continue
        seen.add(id(x))
        if isinstance(x, type):
            waiting += [] if _is_importable(x) else vars(x).values()
        elif isinstance(x, FunctionType):
            waiting += [x.__defaults__, x.__kwdefaults__, x.__closure__, x.__dict__]
        else:
            waiting += gc.get_referents(x)
    return False


def _is_importable(cls: type) -> bool:
    """Whether a class is a module's, and not made by the function."""
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found is cls


__all__ = ["holds_stand_in", "is_stand_in", "require_untraced", "require_untraced_rest"]
