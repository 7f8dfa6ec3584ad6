"""Inheritance: what does an object of the function's own get from its class, which is from outside, and what by `super()`?

What a class holds may change between calls, so it is loaded from there. Functions and descriptors are compared with the
class (`class_guards.py`); properties are converted, for Python would run them on the object while the function is traced.
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MemberDescriptorType
from typing import Any

from jitml.trace.effects.attribute_stores import HookProtocol, has_own
from jitml.trace.environment.class_guards import require_bases
from jitml.trace.environment.guarded_loads import load, observe, place_of
from jitml.trace.record.guards import HostConst
from jitml.trace.record.libraries import is_library
from jitml.trace.record.recording import is_users_class, unsupported

NOTHING = object()  # its class does not have it, or only functions of the user's, which are called


def from_class(hooks: HookProtocol, obj: Any, name: str, member: Any) -> Any:
    """An attribute of an object of the function's own that its class has, which is from outside; `NOTHING` if it has none.

    Args:
        member: what its type has by this name.
    """
    kind: Any = type(obj)
    if name[:2] == "__" == name[-2:] or member is None or hasattr(type(member), "__get__") or has_own(obj, name):
        return NOTHING
    if not is_users_class(kind) or place_of(hooks.trace, kind) is None:
        return NOTHING
    return hooks.attr(kind, name) if inspect.getattr_static(type(kind), name, None) is None else NOTHING


def by_super(hooks: HookProtocol, obj: Any, name: str) -> Any:
    """`super().name`: of the first class behind this one that has it, as if the object's class began there."""
    trace, owner, kind, this = hooks.trace, obj.__self__, obj.__self_class__, obj.__thisclass__
    require_bases(trace, kind)
    behind = kind.__mro__[kind.__mro__.index(this) + 1 :]
    holder = next((cls for cls in behind if name in vars(cls)), None)
    if holder is None or not is_users_class(holder):
        return getattr(obj, name)
    member: Any = vars(holder)[name]
    if isinstance(member, (FunctionType, staticmethod, classmethod, property)):
        place = load(trace, _own_member, HostConst(holder), name, f"{holder.__name__}.{name}")
        trace.host.require_same(place, member)  # whatever it is called through
    if owner is not kind and isinstance(member, property) and type(member.fget) is FunctionType:
        return hooks.convert(member.fget)(owner)
    getter = inspect.getattr_static(type(member), "__get__", None)
    if getter is None:
        slot, text = place_of(trace, kind), f"super().{name}"
        assert slot is not None, "classes are from outside"
        return observe(trace, member, load(trace, _found_behind, slot, (this, name), text), text)
    is_read = isinstance(member, MemberDescriptorType) and owner is not kind and place_of(trace, owner) is not None
    is_users = type(getter) is FunctionType and not is_library(getter)
    if is_read or is_users or isinstance(member, functools.cached_property):
        what = f"super().{name} would be read once, while the function is traced, and not at every call"
        unsupported(what, "Give it another name, or read it before the jitted call.")
    return getattr(obj, name)


def _own_member(cls: type, name: str) -> Any:
    return vars(cls)[name]


def _found_behind(cls: type, what: tuple[type, str]) -> Any:
    """What `super(this, x).name` finds for an x of a class."""
    this, name = what
    return getattr(super(this, cls), name)
