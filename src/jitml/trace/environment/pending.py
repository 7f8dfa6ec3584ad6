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
from jitml.trace.values.boxing import LiftedArrays


def require_shown(trace: Trace, function: Any, name: str, values: Iterable[Any]) -> None:
    """The host program is about to call a function, with these values: nothing that it can reach has been changed."""
    stored, places = trace.changes.stored, trace.outside.places
    copies = [known for known in trace.copies.watched.values() if known.is_changed()]
    changed = {id(x): known.name for known in copies for x in (known.original, known.copy)}
    changed |= {owner: trace.host.name(places[owner]) for owner, _ in stored if owner in places}
    arrays = [(array, trace.host.name(slot)) for slot, array, _ in trace.call[LiftedArrays].written()]
    if not changed and not arrays:
        return
    reached = Snapshot([(function, name), *((value, "an argument") for value in values)])
    found = next((changed[key] for key in reached.seen if key in changed), None)
    for concrete, text in arrays:
        found = text if any(np.may_share_memory(concrete, x) for x in reached.arrays.values()) else found
    if found:
        unsupported(
            f"{found} is changed, and {name}, which may read it, is called before the compiled program starts",
            "Call it first, or hand on what it needs.",
        )
