"""Pending changes: what has the function changed that the outside does not show yet?

It will, once the call has succeeded (`write_back.py`).

What the host program calls before the compiled program starts would see it as it was before the call: that is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jitml.trace.environment.snapshot import Snapshot
from jitml.trace.record.recording import Trace, unsupported


def require_shown(trace: Trace, function: Any, name: str, values: Iterable[Any]) -> None:
    """The host program is about to call a function, with these values: nothing that it can reach has been changed."""
    root = trace.root
    changed = {id(x): known.name for known in root.watched.values() if known.is_changed() for x in (known.original, known.copy)}
    changed |= {owner: root.host.name(root.places[owner]) for owner, _ in root.stored if owner in root.places}
    arrays = [(concrete, root.host.name(slot)) for slot, (concrete, tracer) in root.arrays.items() if tracer.storage.mutated]
    if not changed and not arrays and not root.spaces:
        return
    reached = Snapshot([(function, name), *((value, "an argument") for value in values)])
    found = next((changed[key] for key in reached.seen if key in changed), None)
    found = found or next((key for owner, key in root.stored if owner in root.spaces and key in reached.names), None)
    for concrete, text in arrays:
        found = text if any(np.may_share_memory(concrete, x) for x in reached.arrays.values()) else found
    if found:
        unsupported(
            f"{found} is changed, and {name}, which may read it, is called before the compiled program starts",
            "Call it first, or hand on what it needs.",
        )
