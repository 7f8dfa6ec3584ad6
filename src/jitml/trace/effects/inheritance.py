"""Inheritance: which class from outside gives an attribute, to a class that the function has made, or by `super()`?

What such a class holds may change between calls, so it is loaded from there. Functions and descriptors are compared with the
class (`class_guards.py`); those that compute are converted, for Python would run them on the object while the function is traced.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from types import FunctionType, MemberDescriptorType
from typing import Any, NoReturn

from jitml.trace.effects.attributes import HookProtocol, cached, has_own
from jitml.trace.environment.class_guards import require_class
from jitml.trace.environment.loads import load, observe, place_of
from jitml.trace.record.guards import HostConst
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import Trace, is_users_class, unsupported

NOTHING = object()  # no class from outside has it, or only functions of the user's, which are called


def from_class(hooks: HookProtocol, obj: Any, name: str, member: Any) -> Any:
    """An attribute of an object, or a class, of the function's own that a class from outside has; `NOTHING` if none has.

    Args:
        member: what its type has by this name.
    """
    if name[:2] == "__" == name[-2:]:
        return NOTHING
    if isinstance(obj, type):
        return _constant(hooks, obj.__mro__, name) if member is None else NOTHING  # which the metaclass has
    kind: Any = type(obj)
    if member is None or hasattr(type(member), "__get__") or has_own(obj, name):
        return NOTHING
    if not _is_outside(hooks.trace, kind):
        return _constant(hooks, kind.__mro__, name)
    return hooks.attr(kind, name) if inspect.getattr_static(type(kind), name, None) is None else NOTHING


def by_super(hooks: HookProtocol, obj: Any, name: str) -> Any:
    """`super().name`: of the first class behind this one that has it, as if the object's class began there."""
    trace, owner, kind = hooks.trace, obj.__self__, obj.__self_class__
    holder = _holder(_behind(obj), name)
    if holder is None or not is_users_class(holder):
        return getattr(obj, name)
    member: Any = vars(holder)[name]
    if isinstance(member, (FunctionType, staticmethod, classmethod, property, functools.cached_property)):
        place = load(trace, _own_member, HostConst(holder), name, f"{holder.__name__}.{name}")
        trace.host.require_same(place, member)  # whatever it is called through
    if owner is not kind and isinstance(member, property) and type(member.fget) is FunctionType:
        return hooks.convert(member.fget)(owner)
    if owner is not kind and isinstance(member, functools.cached_property):
        return _cached(hooks, owner, name, member)
    getter = inspect.getattr_static(type(member), "__get__", None)
    if type(getter) is FunctionType and not is_library(getter):
        require_class(trace, type(member))
        return hooks.convert(getter)(member, None if owner is kind else owner, kind)
    if isinstance(member, MemberDescriptorType) and owner is not kind and place_of(trace, owner) is not None:
        _refuse(name, "would be read once, while the function is traced, and not at every call")
    return getattr(obj, name) if getter is not None else _kept(hooks, obj, name, member)


def _kept(hooks: HookProtocol, obj: Any, name: str, member: Any) -> Any:
    """`super().name` that is no descriptor."""
    slot = place_of(hooks.trace, obj.__self_class__)
    if slot is None:
        classes = _behind(obj)
        found = _constant(hooks, classes, name)
        return hooks.attr(_holder(classes, name), name) if found is NOTHING else found
    text = f"super().{name}"
    return observe(hooks.trace, member, load(hooks.trace, _found_behind, slot, (obj.__thisclass__, name), text), text)


def _cached(hooks: HookProtocol, owner: Any, name: str, member: functools.cached_property[Any]) -> Any:
    """A cached property: what the object has kept by its name, else what it computes, which the object keeps."""
    if name in vars(owner):
        if isinstance(inspect.getattr_static(type(owner), name), functools.cached_property):
            return hooks.attr(owner, name)
        _refuse(name, "is a cached property that its class hides")
    return cached(hooks, owner, name, member)


def _constant(hooks: HookProtocol, classes: Sequence[type], name: str) -> Any:
    """What the first of some classes that has it keeps by a name, if that is a class from outside and no descriptor."""
    holder = _holder(classes, name)
    if holder is None or not _is_outside(hooks.trace, holder) or hasattr(type(vars(holder)[name]), "__get__"):
        return NOTHING
    if inspect.getattr_static(type(holder), name, None) is not None:
        _refuse(name, "is an attribute of the class and of its metaclass")
    for cls in classes[: classes.index(holder)]:
        if _is_outside(hooks.trace, cls):
            text = f"whether {cls.__name__} itself has {name!r}"
            hooks.trace.host.require(load(hooks.trace, has_own, HostConst(cls), name, text), False)
    return hooks.attr(holder, name)


def _holder(classes: Sequence[type], name: str) -> type | None:
    return next((cls for cls in classes if name in vars(cls)), None)


def _behind(obj: Any) -> Sequence[type]:
    """The classes in which `super()` looks."""
    mro = obj.__self_class__.__mro__
    return mro[mro.index(obj.__thisclass__) + 1 :]


def _own_member(cls: type, name: str) -> Any:
    return vars(cls)[name]


def _found_behind(cls: type, what: tuple[type, str]) -> Any:
    """What `super(this, x).name` finds for an x of a class."""
    this, name = what
    return getattr(super(this, cls), name)


def _is_outside(trace: Trace, cls: type) -> bool:
    return is_users_class(cls) and place_of(trace, cls) is not None


def _refuse(name: str, why: str) -> NoReturn:
    unsupported(f"{name}, which a class inherits, {why}", "Give it another name, or read it before the jitted call.")
