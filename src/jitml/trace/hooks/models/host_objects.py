"""Host objects: how does rewritten code treat objects that the program makes, or is given at each call?

What is asked of them is asked by further host calls (`host_calls/objects.py`).
"""

from __future__ import annotations

import operator
from typing import Any

from jitml.trace.environment.loads import load, observe_changing
from jitml.trace.environment.understood import PLAIN
from jitml.trace.hooks.models.model import ModelHooks
from jitml.trace.hooks.models.tracers import TracerModel
from jitml.trace.hooks.models.user_methods import require_attribute
from jitml.trace.host_calls.objects import TracedObject, arrays_apart, attribute_of, method_of, original_of, outer_of
from jitml.trace.host_calls.staleness import is_computed, is_of_its_memory, require_unchanged
from jitml.trace.values.registry import has_meaning


class HostObjectModel(TracerModel):
    def attribute(self, hooks: ModelHooks, x: Any, name: str) -> Any:
        return getattr(x, name) if outer_of(x) is None else _attribute(hooks, x, name)

    def target(self, hooks: ModelHooks, x: Any) -> Any:
        return x if outer_of(x) is None else hooks.own(original_of(x))

    def item(self, hooks: ModelHooks, x: Any, index: Any) -> Any:
        return super().item(hooks, x, index) if outer_of(x) is None else _item(hooks, x, index)

    def callee(self, hooks: ModelHooks, x: Any) -> Any:
        return x

    def operate(self, hooks: ModelHooks, x: Any, method: str, other: Any) -> Any:
        if method.startswith("__r") and type(other) is not TracedObject and method in vars(TracedObject):
            return getattr(x, method)(other)
        return NotImplemented

    def compare(self, hooks: ModelHooks, x: Any, name: str, other: Any) -> Any:
        return x.compared(name, other)

    def truth(self, hooks: ModelHooks, x: Any) -> Any:
        return x.truth()

    def length(self, hooks: ModelHooks, x: Any) -> Any:
        return x.length()

    def contains(self, hooks: ModelHooks, x: Any, item: Any) -> Any:
        return x.contains(item)


def _attribute(hooks: ModelHooks, x: TracedObject, name: str) -> Any:
    """An attribute of one from outside: methods are called then, all else is loaded before."""
    original, trace = original_of(x), hooks.trace
    slot = trace.outside.places[id(x)]
    if (id(original), name) in trace.changes.stored:
        return trace.changes.stored[id(original), name]
    try:
        found = getattr(original, name)
    except AttributeError:
        require_attribute(trace, original, name, slot, False)
        raise
    if getattr(found, "__self__", None) is original:
        if not has_meaning(found):
            return method_of(x, name)
        trace.host.require_same(slot, original)
        return found
    text = f"{trace.host.name(slot)}.{name}"
    if is_computed(original, name, found):
        if arrays_apart(x):
            return attribute_of(x, name)
        require_unchanged(text, x)
    return observe_changing(trace, found, load(trace, getattr, slot, name, text), text)


def _item(hooks: ModelHooks, x: TracedObject, index: Any) -> Any:
    """`x[index]` of such an object."""
    trace = hooks.trace
    if not all(
        isinstance(n, PLAIN) and not isinstance(n, (frozenset, slice)) for n in (index if type(index) is tuple else [index])
    ):
        return x[index]
    slot = trace.outside.places[id(x)]
    text = f"{trace.host.name(slot)}[{index!r}]"
    found = original_of(x)[index]
    if not is_of_its_memory(found, original_of(x)):
        if arrays_apart(x):
            return x[index]
        require_unchanged(text, x)
    return observe_changing(trace, found, load(trace, operator.getitem, slot, index, text), text)
