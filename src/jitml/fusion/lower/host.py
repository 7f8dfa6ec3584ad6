"""Host calls and draws: a step of their own, between whole buffers."""

from __future__ import annotations

from jitml.fusion.lower.nests import Site, nests
from jitml.fusion.program import Call
from jitml.ir import ops


@nests.rule(ops.host_call, ops.draw)
def lower_host_call(site: Site) -> None:
    source = site.node.source
    reads, writes = (tuple(b.name for b in buffers) for buffers in (site.reads, site.writes))
    site.steps.append(Call("host", reads, writes, site.node.params, (source,) if source else ()))
