"""Rules of host calls: may there be any, and what is the same in all that a recording tries out?"""

from __future__ import annotations

from contextvars import Context

from jitml.records import dataclass
from jitml.trace.record.parts import CallPart
from jitml.trace.record.recording import active_trace, unsupported

WHY_NOT = "Move this call out of the jitted function, or write it with functions that are supported (docs/supported.md)."


@dataclass
class HostCallRules(CallPart):
    """Whether there may be any.

    trials: in which functions are tried out: what they set of context variables stays there.
    """

    allowed: bool = True
    trials: Context | None = None


def require_allowed(name: str, remedy: str = WHY_NOT) -> None:
    """Refuse a host call where the user forbids them.

    Raises:
        UnsupportedError: so it is.
    """
    if not active_trace().call[HostCallRules].allowed:
        unsupported(f"{name} would be a host call, and jit(host_calls='error') forbids them", remedy)
