"""Where do the objects of one run of a program differ from those of another?

Two runs are two modules: their classes have the same names and are not the same. Objects are compared by what they hold, each
pair once. Containers of the caller's that are one object in one run have to be one in the other, so ask for them first.
"""

from __future__ import annotations

import array
import contextvars
import functools
import queue
import types
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from jitml.jitted import Jit
from programs.comparing import Close, difference

_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc)
_PLAIN = (str, bytes, int, float, complex, type(None), types.EllipsisType, range, np.dtype, BaseException)
_VIEWS = (type({}.values()), type({}.keys()), type({}.items()))
_CHANGING = (list, dict, set, deque)


class Likeness:
    """Compares what two runs have left, in several questions."""

    def __init__(self, close: Close) -> None:
        self.close = close
        self.compared: set[tuple[int, int]] = set()
        self.partners: dict[int, Any] = {}  # by the container of one run, that of the other; and the reverse
        self.alive: list[Any] = []

    def difference(self, got: Any, expected: Any, where: str = "result") -> str | None:
        """The first difference, in words; None if there is none."""
        if _kind(got) != _kind(expected):
            return f"{where}: {_kind(got)} {_shown(got)}, NumPy gives {_kind(expected)} {_shown(expected)}"
        if isinstance(expected, _PLAIN) and not isinstance(expected, BaseException):
            return difference(got, expected, self.close, where)
        if isinstance(expected, (np.ndarray, np.generic)) and _is_numeric(expected):
            return difference(np.asarray(got), np.asarray(expected), self.close, where)
        if (id(got), id(expected)) in self.compared:
            return None
        self.compared.add((id(got), id(expected)))
        self.alive += [got, expected]
        if isinstance(expected, _CHANGING) and self._are_strangers(got, expected, where):
            return f"{where}: is not one with what it was one with"
        mine, theirs = list(_parts(got)), list(_parts(expected))
        for (name, g), (other, e) in zip(mine, theirs):
            if name != other:
                return f"{where}: has {name}, NumPy gives {other}"
            if apart := self.difference(g, e, f"{where}{name}"):
                return apart
        return None if len(mine) == len(theirs) else f"{where}: {len(mine)} items, NumPy gives {len(theirs)}"

    def _are_strangers(self, got: Any, expected: Any, where: str) -> bool:
        """One is what was met before, the other is not. A list of its own that a result holds twice may come back as two."""
        if where.startswith("result"):
            before = self.partners.get(id(got), expected), self.partners.get(id(expected), got)
        else:
            before = self.partners.setdefault(id(got), expected), self.partners.setdefault(id(expected), got)
        return before[0] is not expected or before[1] is not got


def _kind(x: Any) -> str:
    if isinstance(x, _NAMED):
        return f"{type(x).__name__} {getattr(x, '__qualname__', getattr(x, '__name__', ''))}"
    return "function" if type(x).__name__ == "Jit" else type(x).__qualname__


def _shown(x: Any) -> str:
    try:
        return repr(x)[:80]
    except Exception as error:
        return f"(its repr raises {error!r})"


def _is_numeric(x: Any) -> bool:
    return x.dtype.kind in "biufcSUmM"


def _parts(x: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, by names."""
    match x:
        case list() | tuple() | deque() | array.array() | bytearray():
            yield from ((f"[{n}]", v) for n, v in enumerate(x))
        case dict() | types.MappingProxyType():
            for n, (key, value) in enumerate(x.items()):
                yield f".key{n}", key
                yield f"[{_shown(key)}]", value
        case set() | frozenset():
            yield from ((f".item{n}", v) for n, v in enumerate(sorted(x, key=_shown)))
        case slice():
            yield from ((f".{n}", getattr(x, n)) for n in ("start", "stop", "step"))
        case np.ndarray():
            yield from ((".dtype", x.dtype), (".shape", x.shape))
            yield from ((f"[{n}]", v) for n, v in enumerate(x.tolist()))
        case functools.partial():
            yield from (("func", x.func), (".args", x.args), (".keywords", x.keywords))
        case types.MethodType():
            yield ".__self__", x.__self__
        case BaseException():
            yield ".args", x.args
        case queue.Queue():
            yield ".queue", x.queue
        case contextvars.ContextVar():
            yield ".get()", x.get(None)
        case weakref.ref():
            yield "()", x()
        case Jit():  # what answers its calls is its own affair
            yield ".__wrapped__", x.__wrapped__
        case types.FunctionType():
            yield from ((f".cell{n}", _content(c)) for n, c in enumerate(x.__closure__ or ()))
        case type():
            yield from _class_parts(x)
        case _ if isinstance(x, _VIEWS):
            yield "list()", list(x)
        case _ if isinstance(x, np.random.Generator):
            yield ".state", str(x.bit_generator.state)
        case _ if scipy.sparse.issparse(x):
            yield ".toarray()", x.toarray()
        case _ if type(x).__module__.startswith("scipy."):  # the order of its attributes is its own affair
            yield from sorted(_attributes(x), key=lambda named: named[0])
        case _:
            yield from _attributes(x)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _class_parts(x: type) -> Iterator[tuple[str, Any]]:
    """Attributes of a user's class that are no functions."""
    if not x.__module__.startswith(("builtins", "numpy", "scipy")):
        plain = (v for v in vars(x).items() if not v[0].startswith("_") and not callable(v[1]))
        yield from (
            (f".{n}", v) for n, v in plain if not isinstance(v, (property, classmethod, staticmethod, types.MemberDescriptorType))
        )


def _attributes(x: Any) -> Iterator[tuple[str, Any]]:
    """Of a user's object all, of a library's the arrays and numbers."""
    is_users = type(x).__module__.startswith("drawn_")
    if is_users:
        yield ".__class__", type(x)
    names = [n for c in type(x).__mro__ for n in _slots(c)] + list(getattr(x, "__dict__", {}))
    for name in names:
        try:
            value = getattr(x, name)
        except AttributeError:
            yield f".{name} (none)", None
            continue
        if is_users or isinstance(value, (np.ndarray, np.generic, int, float)):
            yield f".{name}", value


def _slots(c: type) -> list[str]:
    slots = vars(c).get("__slots__", ())
    return [n for n in ([slots] if isinstance(slots, str) else slots) if not n.startswith("__")]
