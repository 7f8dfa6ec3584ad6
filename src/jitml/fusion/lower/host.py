"""Host calls, draws and empty memory: steps of their own, between whole buffers."""

from __future__ import annotations

from jitml.fusion.lower.nests import NestSite, nests
from jitml.ir import ops
from jitml.ir.ops.host import HostFunction
from jitml.kernels.ir import Buffer
from jitml.kernels.program import Call


@nests.rule(ops.host_call, ops.draw)
def lower_host_call(site: NestSite) -> None:
    call_python(site, site.node.params["function"])


def call_python(site: NestSite, function: HostFunction, *further: Buffer) -> None:
    """A step that hands whole buffers to Python: those that the node reads, each in the shape it has for the node, and others."""
    source = site.node.source
    given = (*site.reads, *further)
    reads, writes = (tuple(b.name for b in buffers) for buffers in (given, site.writes))
    params = {"function": function, "shapes": tuple(b.shape for b in given)}
    site.steps.append(Call("host", reads, writes, params, (source,) if source else ()))


@nests.rule(ops.empty)
def lower_empty(site: NestSite) -> None:
    """Memory that need not hold anything yet."""
    site.steps.append(Call("empty", (), (site.out.name,), {}, site.sources))
