"""Opaque objects: what does a function see of an object of a library's, a spline, a sparse matrix, a data frame?

Which one it is, its class, and what it keeps in attributes (`hooks/models/opaque.py`). All that its own code would do, which
knows nothing of tracers, is a break.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn

from jitml.errors import Cause
from jitml.trace.record.guards import Slot
from jitml.trace.record.recording import active_trace, unsupported

_REMEDY = "Take what is needed of it, numbers and arrays, outside of the jitted function."
# Special methods that every class has, and none of which asks the object for anything.
_KEPT = {"__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__", "__class_getitem__", "__getattribute__"}
_KEPT |= {"__getattr__", "__setattr__", "__delattr__", "__del__", "__dir__", "__getstate__", "__array_ufunc__", "__array__"}


class OpaqueObject:
    """An object from outside: `isinstance(spline, CubicSpline)` holds, and so do `callable(spline)` and its like.

    Args:
        original: what it is in the call that is traced.
        slot: where the host program has that of each call.
    """

    __slots__ = ("_kind", "_original", "_slot")
    __array_ufunc__ = None  # arrays leave operators to it

    def __init__(self, original: Any, slot: Slot) -> None:
        for name, own in zip(OpaqueObject.__slots__, (type(original), original, slot)):
            object.__setattr__(self, name, own)

    @property  # type: ignore[misc]  # see TracedNumber.__class__
    def __class__(self) -> type:
        return self._kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse_opaque(self, f"is asked for its {name}")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        refuse_opaque(self, f"has its {name} set")

    def __delattr__(self, name: str) -> NoReturn:
        refuse_opaque(self, f"has its {name} deleted")

    def __hash__(self) -> int:
        if self._kind.__hash__ is not object.__hash__:
            refuse_opaque(self, "is looked up by what it holds")
        active_trace().root.host.require_same(self._slot, self._original)
        return hash(self._original)

    def __eq__(self, other: object) -> bool:
        return self is other or self._original is other

    def __repr__(self) -> str:
        refuse_opaque(self, "is shown")

    def __copy__(self) -> NoReturn:
        refuse_opaque(self, "is copied")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        refuse_opaque(self, "is copied")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        refuse_opaque(self, "is copied")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        refuse_opaque(self, "is used as an array")


def _refusing(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_opaque(self, f"is asked for its {name}")

    return method


@lru_cache(maxsize=1024)
def _class_for(kind: Any) -> Any:
    """The class of the stand-ins for objects of a class: it has the special methods that the class has."""
    names = [name for name in dir(kind) if name[:2] == "__" == name[-2:] and name not in _KEPT]
    own = [name for name in names if callable(getattr(kind, name)) and getattr(kind, name) is not getattr(object, name, None)]
    return type("OpaqueObject", (OpaqueObject,), {"__slots__": (), **{name: _refusing(name) for name in own}})


def opaque(original: Any, slot: Slot) -> OpaqueObject:
    """What stands for an object that the host program has."""
    kind: Any = type(original)
    made: OpaqueObject = _class_for(kind)(original, slot)
    return made


def is_opaque(x: Any) -> bool:
    """Whether this stands for an object of a library's."""
    return issubclass(type(x), OpaqueObject)


def original_of(x: Any) -> Any:
    """What an object from outside is in the call that is traced; of all else, itself."""
    return x._original if is_opaque(x) else x


def refuse_opaque(x: OpaqueObject, what: str) -> NoReturn:
    """Refuse what only the object itself could do.

    Raises:
        UnsupportedError: always.
    """
    kind = x._kind
    name = active_trace().root.host.name(x._slot)
    unsupported(f"{name}, a {kind.__module__}.{kind.__qualname__}, {what}", _REMEDY, Cause.OBJECT)


__all__ = ["OpaqueObject", "is_opaque", "opaque", "original_of", "refuse_opaque"]
