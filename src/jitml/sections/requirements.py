"""Requirements: which programs are not to be compiled as sections, though they could be?"""

from __future__ import annotations

from jitml.errors import UnsupportedError
from jitml.trace.speculation.limits import TraceLimits
from jitml.trace.traced import Traced

MOST_VARIANTS = 8  # of a section, or of a function, beyond which another one is no better
# What is beyond them breaks: a loop runs as Python, with a compiled body, and nobody waits for minutes.
LIMITS = TraceLimits(iterations=32, nodes=10000, seconds=2.0, tracing=1.0)


def require_no_calls(traced: Traced) -> None:
    """Refuse calls of libraries where exceptions are handled: one that raises leaves behind what was bound before it.

    Raises:
        UnsupportedError: the program has such a call.
    """
    for node in traced.graph.walk():
        if node.op.family == "host":
            raise UnsupportedError("a library is called where exceptions are handled, and may raise one", source=node.source)


__all__ = ["LIMITS", "MOST_VARIANTS", "require_no_calls"]
