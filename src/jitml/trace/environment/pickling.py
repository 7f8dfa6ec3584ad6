"""Pickling: objects that stand for functions pickle as functions do, by name, or by value where the pickler does so.

`pickle` finds a function by its name where it is loaded. cloudpickle (joblib, dask, ray) and dill send those of `__main__`, a
notebook's too, as they are. A pickler does not tell an object's `__reduce__` who it is, but calls it: so its frame is looked at.
Where functions arrive so, no file has their source. It is sent along.
"""

from __future__ import annotations

import functools
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from jitml.imports.late import late
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import home_of, is_users_class
from jitml.trace.rewrite.code_names import outer_values

if TYPE_CHECKING:
    from jitml.trace.rewrite import source, source_texts
else:
    source, source_texts = late("jitml.trace.rewrite.source"), late("jitml.trace.rewrite.source_texts")

_BY_VALUE = {"cloudpickle", "dill"}
_MOST = 1000  # objects among which functions are looked for


def reduced(x: Any, again: Callable[..., Any], *args: Any) -> str | tuple[Any, ...]:
    """What `x.__reduce__` returns: the name that leads to it, or a call that makes it again.

    >>> reduced(reduced, print)
    'reduced'
    >>> reduced(lambda: None, print)
    (<built-in function print>, ())
    """
    pickler = _pickler(sys._getframe(1))
    by_value = pickler is not None and not _BY_VALUE.isdisjoint(_home(pickler).split("."))
    if _leads_to(x) and not (by_value and pickler is not None and _is_sent(x.__module__, pickler)):
        return str(x.__qualname__)
    return (_arrived, (_packed(x), again, args)) if by_value else (again, args)


def _arrived(packed: bytes, again: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    source_texts.keep_texts(zlib.decompress(packed).decode().split("\0"))
    return again(*args)


def _leads_to(x: Any) -> bool:
    """Whether an object is found by its name."""
    module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", "")
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is x


def _is_sent(module: str, pickler: FrameType) -> bool:
    """Whether this pickler sends what belongs to a module, which may not be there where it is loaded."""
    registered = pickler.f_globals.get("_PICKLE_BY_VALUE_MODULES", ())  # of cloudpickle
    return module == "__main__" or any(module == given or module.startswith(f"{given}.") for given in registered)


def _pickler(frame: FrameType | None) -> FrameType | None:
    """Who pickles: Python's own pickler, where it is written in Python, works for another."""
    while frame is not None and (_home(frame) in ("pickle", "copyreg") or _home(frame).startswith("jitml.")):
        frame = frame.f_back
    return frame


def _home(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _packed(x: Any) -> bytes:
    """The texts of all functions that an object reaches and that may be sent as they are."""
    texts = dict.fromkeys(filter(None, map(_text_of, _functions_reached(x))))
    return _compressed("\0".join(texts))


@functools.lru_cache(maxsize=64)
def _compressed(text: str) -> bytes:
    return zlib.compress(text.encode())


@functools.lru_cache(maxsize=256)
def _text_of(function: FunctionType) -> str:
    is_named = function.__module__ != "__main__" and _leads_to(function)
    found = None if is_named or is_library(function) else source.find(function)
    return found.text if isinstance(found, source.Found) else ""


def _functions_reached(x: Any) -> Iterator[FunctionType]:
    waiting, known = [x], set[int]()
    while waiting and len(known) < _MOST:
        x = waiting.pop()
        if id(x) not in known:
            known.add(id(x))
            if type(x) is FunctionType:
                yield x
            waiting += _parts(x)


def _parts(x: Any) -> Iterable[Any]:
    """Where functions may be."""
    match x:
        case FunctionType():
            return () if is_library(x) else [*outer_values(x).values(), *(x.__defaults__ or ())]
        case MethodType():
            return x.__func__, x.__self__
        case functools.partial():
            return x.func, *x.args, *x.keywords.values()
        case tuple() | list():
            return x[:_MOST]
        case dict():
            return [*x.values()][:_MOST]
        case type():
            return vars(x).values() if is_users_class(x) else ()
        case property() | staticmethod() | classmethod():
            return [getattr(x, name, None) for name in ("fget", "fset", "__func__")]
    kind: Any = type(x)
    if home_of(kind).startswith("jitml.") and callable(x):
        return vars(x).values()
    return [kind, *getattr(x, "__dict__", {}).values()] if is_users_class(kind) else ()
