"""`sys.modules` as a traced function sees it: which modules are there, and which they are, is guarded name by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from operator import contains, getitem
from types import ModuleType
from typing import Any, NoReturn

from jitml.records import dataclass
from jitml.trace.record.guards import HostConst
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import Trace, unsupported


class Modules(Mapping[str, ModuleType]):
    """What is asked of it is asked again at each call."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._asked: set[object] = set()

    @property  # type: ignore[misc]  # as TracedNumber.__class__
    def __class__(self) -> type:
        return dict

    def _is_new(self, name: object) -> bool:
        is_new = name not in self._asked
        self._asked.add(name)
        return is_new

    def __contains__(self, name: object) -> bool:
        found, host = name in sys.modules, self._trace.host
        if self._is_new(name):
            text = f"{name!r} in sys.modules"
            host.require(host.compute(contains, (HostConst(sys.modules), HostConst(name)), text), found)
        return found

    def __getitem__(self, name: str) -> ModuleType:
        if name not in self:
            raise KeyError(name)
        module, host = sys.modules[name], self._trace.host
        if self._is_new((name,)):
            place = host.compute(getitem, (HostConst(sys.modules), HostConst(name)), f"sys.modules[{name!r}]")
            host.require_same(place, module)
        return module

    def __iter__(self) -> Iterator[str]:
        names, host = tuple(sys.modules), self._trace.host
        if self._is_new(()):
            host.require(host.compute(tuple, (HostConst(sys.modules),), "names of sys.modules"), names)
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _all(self) -> dict[str, ModuleType]:
        return {name: self[name] for name in self}

    def require_missing(self, module: ModuleType, name: str) -> None:
        """A module has no attribute of this name."""
        if self._is_new((id(module), name)):
            place = self._trace.host.compute(
                hasattr, (HostConst(module), HostConst(name)), f"hasattr({module.__name__}, {name!r})"
            )
            self._trace.host.require(place, False)

    def keys(self) -> Any:
        return self._all().keys()

    def values(self) -> Any:
        return self._all().values()

    def items(self) -> Any:
        return self._all().items()

    def _refuse(self, *_: object) -> NoReturn:
        unsupported("sys.modules is changed in the jitted function", "Change it outside of it.")

    __setitem__ = __delitem__ = pop = popitem = clear = update = setdefault = _refuse


@dataclass
class _LoadedModules(CallPart):
    """What stands for `sys.modules`, once somebody has asked."""

    modules: Modules | None = None


def modules_of(trace: Trace) -> Modules:
    """The one of a recording."""
    part = trace.call[_LoadedModules]
    if part.modules is None:
        part.modules = Modules(trace.root)
    return part.modules


def found_in(trace: Trace, module: ModuleType, name: str) -> Any:
    """An attribute of a module that may change; that it has none of this name is looked up at each call, too."""
    try:
        return getattr(module, name)
    except AttributeError:
        modules_of(trace).require_missing(module, name)
        raise


__all__ = ["found_in", "modules_of"]
