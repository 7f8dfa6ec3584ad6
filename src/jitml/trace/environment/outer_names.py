"""Global and nonlocal stores: what has become of global and nonlocal names that the function assigns?

They are bound when the call has succeeded.

`Trace.stored` has their values, as those of attributes; who owns them is a module's dict, or a cell.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any, NoReturn

from jitml.trace.carried.mutable import OuterName
from jitml.trace.record.guards import HostConst
from jitml.trace.record.recording import active_trace, unsupported
from jitml.trace.record.user_code import user_stack


class OuterNames:
    """Stands on the left where a global or nonlocal name is assigned: `__jm.outer.name = value`."""

    __slots__ = ("_hooks",)
    _hooks: Any

    def __init__(self, hooks: Any) -> None:
        object.__setattr__(self, "_hooks", hooks)

    def __setattr__(self, name: str, value: Any) -> None:
        hooks, trace = self._hooks, self._hooks.trace
        owner = owner_of(hooks.function, name)
        if owner is None or not _is_bound(owner, name) or trace.functions.sourceless:
            refuse(name)
        if active_trace().root is not active_trace() and not active_trace().is_body:
            refuse(name)
        if active_trace().is_body:
            before = hooks.name(hooks.value_of(name), name)
            hooks.effect(owner, OuterName(owner, name, name, trace.changes.stored, before))
        if id(owner) not in trace.outside.places:
            cell = hooks.cell(name) if isinstance(owner, CellType) else HostConst(owner)
            trace.outside.places[id(owner)] = trace.host.hold(cell.value, name) if isinstance(cell, HostConst) else cell
            trace.outside.kept.append(owner)
            trace.changes.spaces[id(owner)] = owner
        trace.changes.stored[id(owner), name] = value
        trace.changes.stacks[id(owner), name] = user_stack()


class SetNames:
    """A module's dict gets these names, or a cell this one's value."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __call__(self, target: Any, values: Any) -> None:
        for name, value in zip(self.names, values):
            if isinstance(target, CellType):
                target.cell_contents = value
            else:
                dict.__setitem__(target, name, value)


def owner_of(function: FunctionType, name: str) -> Any:
    """The cell or the dict in which a function finds a name; None of a builtin's."""
    if name in function.__code__.co_freevars:
        return (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
    return function.__globals__ if name in function.__globals__ else None


def _is_bound(owner: Any, name: str) -> bool:
    if not isinstance(owner, CellType):
        return name in owner
    try:
        return owner.cell_contents is not owner
    except ValueError:
        return False


def refuse(name: str) -> NoReturn:
    unsupported(f"the jitted function assigns the global or nonlocal name {name!r}", "Return the value instead.")


__all__ = ["OuterNames", "SetNames", "owner_of", "refuse"]
