"""Global and nonlocal stores: who binds a global or nonlocal name changes what others see, and is left to Python."""

from __future__ import annotations

from jitml.trace.record.recording import unsupported


class OuterNames:
    """Stands on the left where a global or nonlocal name is assigned: `__jm.outer.name = value`."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        unsupported(f"the jitted function assigns the global or nonlocal name {name!r}", "Return the value instead.")
