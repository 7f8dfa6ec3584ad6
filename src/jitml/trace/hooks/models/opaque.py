"""Opaque objects: what of an object of a library's may rewritten code read?  What it keeps in attributes, as arrays' owners do.

A property, a method or an operator is the library's code, and a break: the stand-in's own special methods refuse.
"""

from __future__ import annotations

import inspect
from types import MemberDescriptorType
from typing import Any

from jitml.trace.environment.guarded_loads import load, observe_changing
from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.objects import ObjectModel
from jitml.trace.hooks.models.user_methods import require_attribute
from jitml.trace.values.opaque_objects import original_of, refuse_opaque

# What properties of these names tell does not depend on what the object's arrays hold.
_OF_FORM = {"shape", "ndim", "dtype", "size", "nnz", "itemsize", "nbytes", "format", "order", "o", "variable", "degree"}
_NOTHING = object()


class OpaqueModel(ObjectModel):
    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        original, trace = original_of(x), hooks.trace
        slot = trace.outside.places[id(x)]
        if name == "__class__":
            return type(original)
        found = inspect.getattr_static(original, name, _NOTHING)
        if found is _NOTHING and not hasattr(type(original), "__getattr__"):
            require_attribute(trace, original, name, slot, False)
            raise AttributeError(f"{type(original).__name__!r} object has no attribute {name!r}")
        if not _is_kept(original, name, found):
            refuse_opaque(x, f"is asked for its {name}")
        text = f"{trace.host.name(slot)}.{name}"
        return observe_changing(trace, getattr(original, name), load(trace, getattr, slot, name, text), text)

    def target(self, hooks: ModelHooks, x: Any) -> Any:
        return x

    def callee(self, hooks: ModelHooks, x: Any) -> Any:
        return x


def _is_kept(x: Any, name: str, found: Any) -> bool:
    """Whether an attribute is in the object itself, or a property that computes nothing.

    Args:
        found: what is there, without a descriptor's asking.
    """
    space = getattr(x, "__dict__", None)
    is_own = type(space) is dict and name in space and space[name] is found
    return is_own or type(found) is MemberDescriptorType or name in _OF_FORM
