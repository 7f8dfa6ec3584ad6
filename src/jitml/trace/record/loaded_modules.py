"""Modules that are loaded: that a traced function found one, or an attribute of one, or missed it, holds at each call."""

from __future__ import annotations

import sys
from operator import contains, getitem
from types import ModuleType
from typing import Any

from jitml.trace.record.guards import HostConst
from jitml.trace.record.recording import Trace


def require_module(trace: Trace, name: str) -> bool:
    """Whether there is a module of this name: the same at each call."""
    found, host = name in sys.modules, trace.host
    host.require(host.compute(contains, (HostConst(sys.modules), HostConst(name)), f"{name!r} in sys.modules"), found)
    if found:
        place = host.compute(getitem, (HostConst(sys.modules), HostConst(name)), f"sys.modules[{name!r}]")
        host.require_same(place, sys.modules[name])
    return found


def found_in(trace: Trace, module: ModuleType, name: str) -> Any:
    """An attribute of a module that may change; that it has none of this name is looked up at each call, too."""
    try:
        return getattr(module, name)
    except AttributeError:
        text = f"hasattr({module.__name__}, {name!r})"
        trace.host.require(trace.host.compute(hasattr, (HostConst(module), HostConst(name)), text), False)
        raise


__all__ = ["found_in", "require_module"]
