"""Attribute stores: what has become of the attributes of objects from outside?

They are set beside the object while it is traced.

`Trace.stored` has the values; `write_back.py` makes changes of them, for when the call has succeeded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NoReturn, Protocol

from jitml.trace.carried.container_items import effect
from jitml.trace.carried.mutable import OuterName
from jitml.trace.carried.outer_lists import OpenList, undecided
from jitml.trace.environment.guarded_loads import load, require_member
from jitml.trace.environment.tracked_copies import Loads
from jitml.trace.host_calls.array_ownership import ALONE, references
from jitml.trace.lists.traced_list import TracedList
from jitml.trace.record.recording import Trace, active_trace, unsupported
from jitml.trace.record.user_code import user_stack
from jitml.trace.rewrite.driver_protocol import UNDEF
from jitml.trace.speculation.modes import OpenRegions
from jitml.trace.values.boxing import TracedArray, is_traced
from jitml.trace.values.container_identity import MadeInside


class HookProtocol(Protocol):
    """What code that is converted calls, as far as what is written outside needs it."""

    @property
    def trace(self) -> Trace: ...

    @property
    def convert(self) -> Callable[[Any], Any]: ...

    def attr(self, obj: Any, name: str) -> Any: ...

    @property
    def conv(self) -> Callable[..., Any]: ...

    def own(self, obj: Any) -> Any: ...


def store(hooks: HookProtocol, obj: Any, name: str, value: Any, *, plainly: bool = False) -> None:
    """`obj.name = value` of an object from outside, which happens after the call has succeeded.

    Args:
        plainly: whatever the class's `__setattr__` does.
    """
    trace = hooks.trace
    member = inspect.getattr_static(type(obj), name, None)
    if isinstance(member, property) and type(member.fset) is FunctionType:
        require_member(hooks.trace, type(obj), name, member)
        hooks.convert(member.fset)(obj, value)
        return
    _require_plain(hooks, obj, name, plainly)
    key = id(obj), name
    slot = trace.outside.places[id(obj)]
    place = trace.outside.loaded.get((getattr, slot, False, name))
    if active_trace().is_body:
        before = hooks.attr(obj, name) if key in trace.changes.stored or has_own(obj, name) else UNDEF
        effect(obj, OuterName(obj, name, f"{trace.host.name(slot)}.{name}", trace.changes.stored, before))
    stored, containers = trace.changes.stored, trace.call[Loads].containers
    if key not in stored and type(value) is TracedArray and place is not None and value.slot == place:
        return  # `o.data *= 2`, which has written into the array
    if key in stored or place not in containers or containers[place] is not value:
        stored[key] = value
        trace.changes.stacks[key] = user_stack()


def _require_plain(hooks: HookProtocol, obj: Any, name: str, plainly: bool) -> None:
    """Refuse to set an attribute where more may happen than that."""
    kind = type(obj)
    member = inspect.getattr_static(kind, name, None)
    setter = inspect.getattr_static(kind, "__setattr__")
    is_plain = plainly or any(setter is vars(base).get("__setattr__") for base in (object, SimpleNamespace))
    is_plain = is_plain and not isinstance(obj, (type, ModuleType, FunctionType, MethodType))
    is_slot = isinstance(member, MemberDescriptorType)
    is_described = hasattr(type(member), "__set__") or hasattr(type(member), "__delete__")
    if not is_plain or (is_described and not is_slot):
        refuse_write(hooks.trace, obj)


def require_carried(obj: Any, name: str) -> None:
    """An attribute that is set is among those that regions carry and copies are compared by.

    `obj.__class__ = B` and `d.default_factory = f` change what only code written in C sees.
    """
    trace = active_trace()
    if is_traced(obj) or id(obj) in trace.outside.places or not _is_hidden(inspect.getattr_static(type(obj), name, None)):
        return
    if id(obj) in trace.copies.watched:
        refuse_write(trace, obj)
    if trace.is_body and id(obj) not in trace.local[MadeInside]:
        undecided(obj)


def _is_hidden(member: object) -> bool:
    """Whether a descriptor that is written in C keeps its value where no attribute is."""
    setter = inspect.getattr_static(type(member), "__set__", None)
    if setter is None or isinstance(member, property) or type(setter) is FunctionType:
        return False
    return not (isinstance(member, MemberDescriptorType) and "__slots__" in vars(member.__objclass__))


def refuse_write(trace: Trace, obj: Any) -> NoReturn:
    place = trace.outside.places.get(id(obj))
    name = trace.host.name(place) if place is not None else f"a {type(obj).__name__}"
    unsupported(
        f"{name} ({type(obj).__name__}) is from outside the jitted function and is changed in it",
        "Return the new value instead; writing into an array that it holds, as in obj.w -= g or obj.w[...] = v, is fine.",
    )


def require_outermost(trace: Trace, obj: Any) -> None:
    """Something from outside is changed by the jitted function itself, and not by one that it differentiates."""
    if active_trace().root is not active_trace() and not active_trace().is_body:
        refuse_write(trace, obj)


def require_own(trace: Trace, obj: Any) -> None:
    """A container that is changed is the function's own, or a copy that is watched."""
    if id(obj) in trace.copies.watched:
        require_outermost(trace, obj)
    elif id(obj) in trace.outside.places:
        refuse_write(trace, obj)


def require_not_made_up(trace: Trace, obj: Any, name: str, member: Any) -> None:
    """An attribute that the object itself has is not one that code of its class makes where the object has none.

    That code, a cached property's or `__getattr__`, would run before the program starts, on what the object is by then.
    """
    maker = inspect.getattr_static(type(obj), "__getattr__", None) if member is None else getattr(type(member), "__get__", None)
    if maker is not None and name in getattr(obj, "__dict__", ()):
        slot = trace.outside.places[id(obj)]
        text = f"whether {trace.host.name(slot)} itself has {name!r}"
        trace.host.require(load(trace, has_own, slot, name, text), True)


def held_value(space: dict[Any, Any], key: Any, *, is_end: bool = False) -> Any:
    """What an attribute is; the list that loops have filled, once they are over and nothing else holds what stands for it."""
    held = space[key]
    if not is_open(held) or active_trace().call[OpenRegions] or not (is_end or type(held.tail) is TracedList):
        return held
    box, space[key] = [held], None
    del held
    if references(box) > ALONE:
        box[0].close()
    space[key] = box[0].tail
    return space[key]


def is_open(x: Any) -> bool:
    """Whether it stands for a list of the function's own."""
    return type(x) is OpenList and x.is_own


def has_own(obj: Any, name: str) -> bool:
    """Whether an object itself, and not its class, has an attribute."""
    if isinstance(obj, type):
        return name in vars(obj)
    if name in getattr(obj, "__dict__", ()):
        return True
    return isinstance(inspect.getattr_static(type(obj), name, None), MemberDescriptorType) and hasattr(obj, name)
